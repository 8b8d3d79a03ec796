// SPDX-License-Identifier: GPL-3.0-or-later
//! Which styles hide text from readers, as Chromium and Thunderbird draw it.

use crate::{Piece, Work, pieces};

mod paint;

fn shown(html: &str) -> String {
    let mut all = String::new();
    pieces(html, &Work::default(), &mut |piece| {
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

#[test]
fn a_translucent_colour_lies_over_that_behind_it() {
    shows(&[
        "<p style='background:rgba(0,0,0,.1)'>x</p>",
        "<p style='background:rgb(0 0 0 / .5)'>x</p>",
        "<p style='background-color:#0006'>x</p>",
        "<div style='background:#000'><p style='background:rgba(255,255,255,.5)'>x</p></div>",
    ]);
    hides(&[
        "<p style='background:rgba(0,0,0,.5);color:#7f7f7f'>x</p>",
        "<p style='background:#00000019;color:#e5e5e5'>x</p>",
        "<div style='background:#000'><p style='background:rgba(255,255,255,.5);color:#808080'>x</p></div>",
        "<p style='background:#000000f2'>x</p>",
        "<p style='color:rgb(from white r g b)'>x</p>",
        "<p style='color:color-mix(in srgb,white,transparent 99%)'>x</p>",
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

#[test]
fn a_page_has_a_body_without_a_tag() {
    assert_eq!(shown("<style>body{color:#fff}</style>x<p style='color:red'>y"), "y");
    assert_eq!(shown("<style>body{font-size:0}</style><p>x"), "");
    assert_eq!(shown("<html><style>html{color:#fff}</style><p>x"), "");
    assert_eq!(shown("<style>body{color:#fff}</style><body>x</body></html>x"), "");
    assert_eq!(shown("<style>.a{color:#fff}</style>x"), "x");
    // The window shows what overflows it.
    shows(&["<body style='height:0;overflow:hidden'>x", "<html style='height:0;overflow:hidden'><p>x"]);
}

#[test]
fn moves_of_boxes_and_paddings_add_up() {
    shows(&[
        "<div style='padding-left:1000px'><div style='margin-left:-1000px'>x</div></div>",
        "<div style='padding-left:9999px'><div style='margin-left:-9999px'>x</div></div>",
        "<div style='margin-top:-1000px;padding-top:1000px'>x</div>",
        "<div style='margin-top:-1000px'><div style='margin-top:1000px'>x</div></div>",
        // Shares of a height that is not known.
        "<div style='transform:translateY(-100%)'>x</div>",
        "<div style='translate:0 -100%'>x</div>",
        "<div style='position:relative;top:-100%'>x</div>",
        "<div style='max-height:0%;overflow:hidden'>x</div>",
    ]);
    hides(&[
        "<div style='padding-left:9999px'>x</div>",
        "<div style='translate:-100%'>x</div>",
        "<div style='margin-top:-1000px;padding-top:10px'>x</div>",
        "<div style='width:0%;overflow:hidden'>x</div>",
    ]);
}

#[test]
fn letters_are_squeezed_by_a_share_of_their_size() {
    hides(&["<p style='font-size:10px;letter-spacing:-10px'>x</p>", "<p style='letter-spacing:-.7em'>x</p>"]);
    shows(&["<p style='font-size:40px;letter-spacing:-16px'>x</p>", "<p style='letter-spacing:-.1em'>x</p>"]);
    hides(&["<p style='font-size:10px;letter-spacing:-10px'><b style='letter-spacing:inherit'>x</b></p>"]);
}

#[test]
fn boxes_that_cut_off_by_themselves() {
    hides(&[
        "<marquee width=0 height=1>x</marquee>",
        "<marquee style='height:1px'>x</marquee>",
        "<textarea style='height:0'>x</textarea>",
        "<input style='width:0' value=x>",
        "<div style='line-height:0;overflow:hidden'>x</div>",
    ]);
    shows(&[
        "<marquee height=40>x</marquee>",
        "<textarea>x</textarea>",
        "<div style='line-height:0;overflow:hidden'><p style='line-height:20px'>x</p></div>",
        "<div style='line-height:0;overflow:hidden;min-height:20px'>x</div>",
    ]);
}

/// An animation shows only what it changes.
#[test]
fn animations_show_what_they_change() {
    let page = |rule: &str, style: &str| {
        format!("<style>@keyframes k{{{rule}}}</style><p style='animation:k 1s;{style}'>x")
    };
    for (rule, style) in [
        ("to{opacity:1}", "opacity:0"),
        ("0%{left:-9999px}to{left:0}", "position:absolute;left:-9999px"),
        ("to{max-height:90px}", "max-height:0;overflow:hidden"),
        ("to{color:#000}", "color:#fff"),
        ("to{opacity:0}", "opacity:1"),
    ] {
        assert_eq!(shown(&page(rule, style)), "x", "{rule} {style}");
    }
    for (rule, style) in [
        ("to{left:0}", "opacity:0"),
        ("to{opacity:0}", "opacity:0"),
        ("to{color:white}", "color:#fff"),
        ("to{display:block}", "display:none"),
        ("", "max-height:0;overflow:hidden"),
        ("to{opacity:1}", "opacity:0!important"),
    ] {
        assert_eq!(shown(&page(rule, style)), "", "{rule} {style}");
    }
}

/// A box that cuts off what is below this many lines.
fn low(style: &str, html: &str) -> String {
    format!("<div style='overflow:hidden;{style}'>{html}</div>")
}

#[track_caller]
fn cuts(style: &str, html: &str) {
    let page = low(style, html);
    assert_eq!(shown(&page).trim_end(), "one", "{page}");
}

#[track_caller]
fn cuts_nothing(style: &str, html: &str) {
    let page = low(style, html);
    assert!(shown(&page).contains('x'), "{page}");
}

#[test]
fn lines_below_the_end_of_their_box_are_hidden() {
    for style in [
        "height:20px",
        "max-height:1em",
        "height:12pt",
        "height:200px;max-height:20px",
        "height:20px;padding:0 9px",
    ] {
        cuts(style, "one<br>x");
        cuts(style, "<div>one</div><div>x</div>");
        cuts(style, "one<p>x</p>");
        cuts(style, "one<table><tr><td><br>x</table>");
        cuts(style, "one<div style='float:left'><br>x</div>");
        cuts(style, "one<ul><li><b>x</b></ul>x");
        cuts(style, "one<div style='height:30px'></div>x");
        cuts(style, "one<div style='margin-top:30px'>x</div>");
        cuts(style, "one<div style='margin-bottom:1.5em'></div>x");
        cuts(style, "one<div style='padding-top:20px'>x</div>");
        cuts(style, "one<div style='overflow:hidden;height:5000px'>x</div>");
        cuts(style, "one<div style='line-height:90px'>x</div>");
    }
    cuts(
        "height:10px;line-height:60px",
        "<i style='line-height:1'></i><b style='display:block;line-height:10px'>one</b>x",
    );
    let hidden =
        low("height:10px;line-height:60px", "x") + &low("height:30px", "<p style='line-height:9em'>x");
    assert_eq!(shown(&hidden), "");
    cuts("width:300px;height:20px", "one<div style='margin-left:450px'>x</div>");
    cuts("width:300px;height:20px", "one<div style='padding:0 0 0 450px'>x</div>");
    cuts("height:38px;line-height:20px", "one<br><br>x");
}

#[test]
fn words_beyond_the_lines_of_their_box_are_hidden() {
    let words = |count: usize| "word ".repeat(count);
    let seen = |page: &str| shown(page).split_whitespace().count();
    let page = low("height:20px", &words(2000));
    assert!((90..200).contains(&seen(&page)), "{}", seen(&page));
    let page = low("height:20px;width:300px", &words(2000));
    assert!((15..60).contains(&seen(&page)), "{}", seen(&page));
    let page = low("width:300px;white-space:nowrap", &words(2000));
    assert!((15..60).contains(&seen(&page)), "{}", seen(&page));
    let page = low("max-width:300px;white-space:nowrap", &words(2000));
    assert!((15..60).contains(&seen(&page)), "{}", seen(&page));
    // A line without breaks is one line.
    let page = low("height:40px;width:300px;white-space:nowrap", &(words(90) + "<br>end"));
    assert!(shown(&page).ends_with("end"));
    let page =
        low("height:40px;width:300px", &("<div style='width:9000px'>".to_owned() + &words(90) + "</div>end"));
    assert!(shown(&page).ends_with("end"));
}

#[test]
fn lines_that_may_stand_in_their_box_are_shown() {
    for html in [
        "x",
        "<p>x</p>",
        "one <b>two</b> x",
        "one<div style='margin-top:-20px'>x</div>",
        "one<div style='position:relative;top:-20px'>x</div>",
        "one<div style='position:absolute;top:0'>x</div>",
        "one<div style='transform:translateY(-20px)'>x</div>",
        "<div style='float:left'>one<br>two</div>x",
        "<span style='display:inline-block'>one<br>two</span>x",
        "<div style='display:flex;align-items:center'><div>one<br>x</div></div>",
        "<table><tr><td>one<br>two<td>x</table>",
        "<div style='height:1px'>one<br>two</div>x",
        "<div style='max-height:1px'>one<br>two</div>x",
        "<div style='height:50%'>one<br>two</div>x",
        "one<hr style='margin-bottom:-30px'>x",
        "one<div style='margin-bottom:-9em'></div>x",
        "one<div style='margin-bottom:-10%'></div>x",
        "<div style='display:none'>one<br>two<p>three</p></div>x",
        "<i hidden>one<br>two</i>x",
        "<div style='writing-mode:vertical-rl'>one<br>x</div>",
        "<div style='line-height:4px'>one<br>x</div>",
        "<div style='font-size:8px'>one<br>x</div>",
        "<div style='font:16px/1px Arial'>one<br>x</div>",
    ] {
        cuts_nothing("height:20px", html);
    }
    for style in [
        "height:20px;overflow:auto",
        "height:20px;overflow:visible",
        "height:20px;min-height:40px",
        "height:20px;padding-bottom:30px",
        "height:20px;display:inline",
        "height:20%",
        "height:20vh",
        "height:3em;font-size:8px;font-size:32px",
        "height:40px",
        "height:20px;display:flex;flex-direction:column-reverse",
        "height:20px;columns:2",
        "height:40px;width:300px;padding-left:200px",
        "height:20px;align-content:end",
    ] {
        cuts_nothing(style, "one<br>x");
    }
    let behind = low("height:20px", "one<br>two") + "x<br>x<p>x";
    assert_eq!(shown(&behind), "onexxx");
}

#[test]
fn moves_of_boxes_add_up() {
    shows(&[
        "<div style='position:absolute;left:-9999px'><div style='position:absolute;left:9999px'>x</div></div>",
        "<div style='position:absolute;left:-9999px'><div style='position:fixed;left:9px;top:9px'>x</div></div>",
        "<div style='margin-left:-9999px'><div style='position:absolute;left:9px'>x</div></div>",
        "<div style='position:relative;top:-2000px'><p style='position:relative;top:2000px'>x</p></div>",
        "<div style='transform:translateX(-2000px)'><p style='translate:2000px'>x</p></div>",
        "<p style='position:absolute;left:100%;transform:translateX(-100%)'>x</p>",
        "<p style='position:absolute;bottom:2000px'>x</p>",
        "<div style='margin-left:-500px'><p style='margin-left:-300px'>x</p></div>",
        "<div style='position:relative;left:-500px'><p style='position:absolute;left:-300px'>x</p></div>",
        "<div style='position:sticky;left:-9999px'>x</div>",
    ]);
    hides(&[
        "<div style='margin-left:-500px'><div style='margin-left:-500px'>x</div></div>",
        "<div style='position:relative;left:-600px'><div style='position:relative;left:-600px'>x</div></div>",
        "<div style='transform:translateX(-600px)'><div style='translate:-600px'>x</div></div>",
        "<div style='position:absolute;left:-9999px'><div style='position:absolute;top:0'>x</div></div>",
        "<div style='position:absolute;left:-9999px'><p>x</p></div>",
        "<div style='transform:translateX(-9999px)'><div style='position:fixed;left:0'>x</div></div>",
        "<p style='position:relative;right:2000px'>x</p><p style='position:relative;bottom:2000px'>x</p>",
        "<div style='position:relative;left:-9999px'><div style='position:absolute;left:0'>x</div></div>",
        "<p style='position:absolute;left:-600px;margin-left:-600px'>x</p>",
    ]);
}

#[test]
fn attributes_of_drawings_hide_their_text() {
    let drawing = |inner: &str| format!("<svg width=300 height=40>{inner}</svg>");
    for inner in [
        "<text fill=white>x</text>",
        "<text fill=none>x</text>",
        "<g fill='#fff'><text>x</text></g>",
        "<text style='fill:#fff'>x</text>",
        "<text fill-opacity=0>x</text>",
        "<text opacity=0>x</text>",
        "<g visibility=hidden><text>x</text></g>",
        "<text display=none>x</text>",
        "<text font-size=1>x</text>",
        "<text fill=red style='fill:#fff'>x</text>",
        "<foreignObject><p>x</p></foreignObject>",
        "<foreignObject width=0 height=90><p>x</p></foreignObject>",
    ] {
        assert_eq!(shown(&drawing(inner)), "", "{inner}");
    }
    for inner in [
        "<text>x</text>",
        "<text fill=red>x</text>",
        "<text style='color:#fff'>x</text>",
        "<rect width=300 height=40 /><text fill=white>x</text>",
        "<text fill=none stroke=red>x</text>",
        "<text fill='url(#a)'>x</text>",
        "<text fill=currentColor>x</text>",
        "<g visibility=hidden><text visibility=visible>x</text></g>",
        "<foreignObject width='100%' height=40><p>x</p></foreignObject>",
        "<foreignObject style='width:90px;height:40px'><p style='color:#fff'>x</p></foreignObject>",
    ] {
        assert_eq!(shown(&drawing(inner)), "x", "{inner}");
    }
    // On a page these are no attributes of letters.
    shows(&["<p fill=white opacity=0 display=none visibility=hidden>x</p>"]);
    let colours = drawing("<rect/>")
        + &drawing("<text fill=white>x</text>")
        + "<div style='color:#fff'>"
        + &drawing("<text>y</text>");
    assert_eq!(shown(&colours), "y");
}

#[test]
fn only_the_first_summary_of_details_is_shown() {
    shows(&[
        "<details><summary>x</summary></details>",
        "<details><p>y</p><summary>x</summary></details>",
        "<summary>x</summary>",
        "<details open><summary>x</summary></details>",
    ]);
    hides(&[
        "<details><div><summary>x</summary></div></details>",
        "<details><summary></summary><summary>x</summary></details>",
        "<details><details><summary>x</summary></details></details>",
        "<details><summary></summary><details open><summary>x</summary>x</details></details>",
    ]);
}

#[test]
fn boxes_without_a_width_among_others_are_hidden() {
    let row = |style: &str| format!("<div style='display:flex'><span style='{style}'>x</span></div>");
    for style in [
        "flex:0 0 0;overflow:hidden",
        "flex:0 0 0px;overflow:hidden",
        "flex:0;overflow:hidden",
        "flex:0 1 0%;overflow:hidden",
        "flex-basis:0;overflow:hidden",
        "width:0;overflow:hidden",
        "height:0;overflow:clip",
    ] {
        assert_eq!(shown(&row(style)), "", "{style}");
    }
    for style in [
        "flex:0 0 0",
        "flex:1;overflow:hidden",
        "flex:1 1 0;overflow:hidden",
        "flex:auto;overflow:hidden",
        "flex:none;overflow:hidden",
        "flex:0 0 50%;overflow:hidden",
        "flex:0 auto;overflow:hidden",
        "flex-basis:0;flex-grow:1;overflow:hidden",
        "flex:0 0 0;min-width:90px;overflow:hidden",
        "flex:0 0 0;overflow:hidden;flex:initial",
    ] {
        assert_eq!(shown(&row(style)), "x", "{style}");
    }
    shows(&[
        "<span style='width:0;overflow:hidden'>x</span>",
        "<p><span style='flex:0 0 0;overflow:hidden'>x</span></p>",
    ]);
}

#[test]
fn boxes_without_a_height_of_their_own_are_hidden() {
    hides(&[
        "<div style='contain:strict'>x</div>",
        "<div style='contain:size;overflow:hidden'>x</div>",
        "<div style='contain:size paint'>x</div>",
        "<p style='position:absolute;clip:rect(auto,0,auto,auto)'>x</p>",
        "<p style='color:transparent;text-shadow:9999px 0 0 #000'>x</p>",
        "<style>@supports (display:grid){p{display:none}}</style><p>x</p>",
    ]);
    shows(&[
        "<div style='contain:size'>x</div>",
        "<div style='contain:strict;height:90px'>x</div>",
        "<div style='contain:strict;min-height:90px'>x</div>",
        "<p style='position:absolute;clip:rect(auto,auto,auto,auto)'>x</p>",
        "<style>@supports (display:nonsense){p{display:none}}</style><p>x</p>",
        "<style>b::before{content:'x';content:nonsense}</style><b></b>",
    ]);
}
