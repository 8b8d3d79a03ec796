// SPDX-License-Identifier: GPL-3.0-or-later
//! Which styles hide text from readers, as Chromium and Thunderbird draw it.

use crate::Piece;
use crate::pieces;

fn shown(html: &str) -> String {
    let mut all = String::new();
    pieces(html, &mut |piece| {
        if let Piece::Text(text) = piece {
            all.push_str(text);
        }
    });
    all
}

#[track_caller]
fn hides(spans: &[&str]) {
    for span in spans {
        assert_eq!(shown(&format!("one {span}two")), "one two", "{span}");
    }
}

#[track_caller]
fn shows(spans: &[&str]) {
    for span in spans {
        assert_eq!(shown(&format!("one {span}")), "one x", "{span}");
    }
}

#[test]
fn letters_without_a_colour_are_black() {
    hides(&[
        "<div style='background:#000'>x</div>",
        "<table><tr bgcolor=black><td>x</table>",
        "<div style='background:#080808'><p style='color:initial'>x</p></div>",
        "<p style='color:red;background-color:currentColor'>x</p>",
        "<p style='background:currentcolor'>x</p>",
        "<button style='background:#000'>x</button>",
    ]);
    shows(&[
        "<div style='background:#000'><a href=u:>x</a></div>",
        "<div style='background:#000;color:#ddd'>x</div>",
        "<div style='background:#000'><p style='background:#fff'>x</p></div>",
        "<div style='color:#ccc'><p style='background:#000'>x</p></div>",
        "<div style='color:red;background:currentcolor'><b style='color:blue'>x</b></div>",
        "<div style='background:#000'><input value=y type=hidden><font color=yellow>x</font></div>",
    ]);
}

/// Small letters around do not make these small.
#[test]
fn letters_have_the_size_of_their_font_element() {
    shows(&[
        "<p style='font-size:1px'><font size=4>x</font></p>",
        "<p style='font-size:0'><font size='+1'>x</font></p>",
        "<p style='font-size:0'><font size=-9>x</font></p>",
        "<p style='font-size:0'><font size='3px'>x</font></p>",
    ]);
    hides(&[
        "<p style='font-size:1px'><font size=px>x</font></p>",
        "<p style='font-size:1px'><font size>x</font></p>",
        "<p><font size=4 style='font-size:1px'>x</font></p>",
        "<p style='font-size:1px'><b size=4>x</b></p>",
    ]);
}

#[test]
fn a_reset_brings_text_back() {
    shows(&[
        "<p style='display:none;all:unset'>x</p>",
        "<p style='opacity:0;all:revert'>x</p>",
        "<p style='color:#fff;ALL:Inherit'>x</p>",
        "<p hidden style='all:initial'>x</p>",
        "<p style='height:0;overflow:hidden;all:unset'>x</p>",
        "<div style='all:unset;height:0;overflow:hidden'>x</div>",
        "<style>#i{display:none;all:unset}</style><p id=i>x</p>",
        "<style>.a{display:none}p.a{all:unset}</style><p class=a>x</p>",
    ]);
    hides(&[
        "<p style='all:unset;display:none'>x</p>",
        "<p style='display:none!important;all:unset'>x</p>",
        "<p style='display:none;all:nonsense'>x</p>",
        "<p hidden style='all:revert'>x</p>",
        "<style>p{all:unset}.a{display:none}</style><p class=a>x</p>",
        "<style>.a{all:unset;display:none}p{color:red}</style><p class=a>x</p>",
        "<style>p.b{all:unset}.a{display:none}</style><p class=a>x</p>",
        "<div style='display:none'><p style='all:unset'>x</p></div>",
        "<div style='color:#fff'><p style='all:unset'>x</p></div>",
    ]);
}

#[test]
fn an_element_without_a_box_hides_nothing_by_it() {
    shows(&[
        "<div style='display:contents;opacity:0'>x</div>",
        "<div style='display:contents;height:0;overflow:hidden'>x</div>",
        "<div style='display:contents;transform:scale(0);position:absolute;left:-9999px'>x</div>",
        "<div style='color:#fff'><div style='display:contents;background:#fff;color:#000'>x</div></div>",
        "<p style='-moz-transform:scale(0)'>x</p>",
    ]);
    hides(&[
        "<div style='display:contents;visibility:hidden'>x</div>",
        "<div style='display:contents;color:#fff'>x</div>",
        "<div style='display:contents;font-size:0'>x</div>",
        "<div style='opacity:0;display:contents;display:block'>x</div>",
    ]);
}
