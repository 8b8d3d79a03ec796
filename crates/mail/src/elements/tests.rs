// SPDX-License-Identifier: GPL-3.0-or-later
//! Which tags close which elements, and which text is visible.

use super::*;
use crate::Work;
use crate::names::{is_cell, may_nest};
use crate::pieces;
use html5ever::tokenizer::TagKind;
use proptest::prelude::*;

/// The open elements, searched one after the other.
#[derive(Default)]
struct OneByOne(Vec<LocalName>);

impl OneByOne {
    fn open(&mut self, name: &LocalName) {
        for ended in ended_by(name) {
            self.end(ended);
        }
        if is_heading(name) && self.0.last().is_some_and(is_heading) {
            self.0.pop();
        }
        let part = self.0.iter().rposition(is_of_table).filter(|&at| !is_cell(&self.0[at]));
        let is_part = is_of_table(name) && *name != local_name!("table");
        if is_part {
            part.inspect(|&at| self.0.truncate(at + 1));
        }
        if closes_paragraph(name) {
            self.end(&local_name!("p"));
        }
        self.0.truncate(MAX_OPEN - 1);
        if !is_part || self.table().is_some() {
            self.0.push(name.clone());
        }
    }

    fn table(&self) -> Option<usize> {
        self.0.iter().rposition(|open| *open == local_name!("table"))
    }

    fn end(&mut self, name: &LocalName) {
        let is_bound =
            |open: &LocalName| if is_of_table(name) { *open == local_name!("table") } else { may_nest(open) };
        let found = self.0.iter().rposition(|open| open == name || is_bound(open));
        found.filter(|&at| self.0[at] == *name).inspect(|&at| self.0.truncate(at));
    }

    fn close(&mut self, name: &LocalName) {
        let block = self.0.iter().rposition(is_special);
        let heading = block.filter(|&at| is_heading(name) && is_heading(&self.0[at]));
        let Some(at) = heading.or_else(|| self.0.iter().rposition(|open| open == name)) else { return };
        let inner = &self.0[at + 1..];
        let ends = if *name == local_name!("table") {
            true
        } else if is_of_table(name) {
            Some(at) > self.table()
        } else {
            !inner.iter().any(is_cell) && (ends_blocks(name) || !inner.iter().any(is_special))
        };
        if ends {
            self.0.truncate(at);
        }
    }
}

proptest! {
    /// Up to the bound, and beyond it.
    #[test]
    fn tags_close_the_elements_that_a_search_would_find(
        closing in 0..8u8,
        tags in prop::collection::vec((0..13usize, 0..20u8), 0..3000),
    ) {
        let sheet = Sheet::default();
        const NAMES: [&str; 13] =
            ["p", "td", "tr", "li", "table", "ul", "div", "span", "x-unknown", "h1", "h2", "b", "dd"];
        let (mut elements, mut expected) = (Elements::new(&sheet), OneByOne::default());
        for (name, way) in tags {
            let name = LocalName::from(NAMES[name]);
            if way < closing {
                elements.close(&name);
                expected.close(&name);
            } else {
                let tag = Tag {
                    kind: TagKind::StartTag,
                    name: name.clone(),
                    self_closing: false,
                    attrs: Vec::new(),
                    had_duplicate_attributes: false,
                };
                elements.open(&tag);
                expected.open(&name);
            }
            prop_assert!(elements.open.iter().map(|element| &element.name).eq(&expected.0));
        }
    }
}

/// As browsers do, deeper elements count where they begin.
#[test]
fn elements_beyond_the_bound_are_beside_one_another() {
    let deep = |inner: &str| "<div>".repeat(2 * MAX_OPEN) + inner;
    assert_eq!(shown(&deep("<p style='display:none'>x</p>y")), "y");
    assert_eq!(shown(&deep("<template shadowrootmode=open>x</template><template>y</template>")), "x");
}

fn shown(html: &str) -> String {
    let mut all = String::new();
    pieces(html, &Work::default(), &mut |piece| {
        if let Piece::Text(text) = piece {
            all.push_str(text);
        }
    });
    all
}

#[test]
fn hidden_text_is_not_shown() {
    for span in [
        "<span style=\"display:none\">x</span>",
        "<div style='max-height:0; overflow:hidden'><p>x<p>x</div>",
        "<span style='FONT-SIZE: 0px;line-height:0'>x</span>",
        "<span style='font-size:1pt'>x</span>",
        "<font color=\"#ffffff\" size=1>x</font>",
        "<font color=white>x</font>",
        "<span style=\"color:#fefefe !important\">x</span>",
        "<span style=\"color: rgb(250, 250, 250)\">x</span>",
        "<span style=\"visibility:hidden\">x</span>",
        "<span style=\"position:absolute;left:-9999px\">x</span>",
        "<span style='opacity:0'>x<b>x</b></span>",
        "<p hidden>x</p>",
        "<table bgcolor='#ff0000'><tr><td style='color:#fe0202'>x</td></tr></table>",
        "<div style='display:none'><table><tr><td>x</table></div>",
        "<div style='height:0;overflow:hidden'>x</div>",
        "<div style='line-height:0;overflow:hidden'>x</div>",
        "<span style='display:inline-block;width:0;overflow:hidden'>x</span>",
        "<span style='float:left;max-width:0px;overflow-x:hidden'>x</span>",
        "<span style='position:absolute;clip:rect(0 0 0 0)'>x</span>",
        "<p style='clip-path:inset(50%)'>x</p>",
        "<p style='transform: rotate(3deg) scale(0)'>x</p>",
        "<p style='transform:translateX(-9999px)'>x</p>",
        "<p style='margin:0 0 0 -9999px'>x</p>",
        "<p style='text-indent:-9999px'>x</p>",
        "<p style='letter-spacing:-99px'>x</p>",
        "<p style='font:0/0 a'>x</p>",
        "<p style='font-size:.01em'>x<b style='font-size:1em'>x</b></p>",
        "<p style='visibility:hidden'>x</p>",
        "<p style='color:rgba(0,0,0,0)'>x</p>",
        "<p style='color:#0000'>x</p>",
        "<p style='color:transparent'>x<b>x</b></p>",
        "<p style='dis\\70lay:none'>x</p>",
        "<p style=\"font-family:'a;b';display:none\">x</p>",
        "<p style='display:block;display:none'>x</p>",
        "<template>x<p>x</p></template>",
        "<video src=u:>x<b>x</b></video><audio>x</audio>",
        "<iframe src=u:><p>x</p></iframe><noframes>x</noframes><noembed>x</noembed>",
        "<object data=cid:u>x</object><datalist><option>x</datalist><select><option>x</select>",
        "<dialog>x</dialog><div popover>x</div><ruby><rp>x</rp></ruby>",
        "<details><p>x</p></details>",
        "<div style='background:#123456 none'><p style='color:#123456'>x</p></div>",
        // Attributes of other elements than these, and colours that are none.
        "<div bgcolor=black style='color:#fff'>x</div><div background=x style='color:#fff'>x</div>",
        "<table bgcolor='#00 00 00'><tr><td><font color=black>x</font></table>",
        "<div style='height:4px;overflow:hidden'>x</div>",
        "<object data='data:text/plain,y'>x</object>",
        "<div style='text-indent:-9999px'>x<p>x</p></div>",
        "<div style='height:0;overflow:hidden;position:relative'><p style='position:absolute'>x</p></div>",
        "<div style='height:0;overflow:hidden'><p style='position:relative'><b style='position:absolute'>x</b></p></div>",
        "<div style='position:absolute;left:-9999px;right:0'>x</div>",
        "<p style='transform:translateX(-600px) translateX(-600px)'>x</p>",
        "<p style='color:#000;background:linear-gradient(#000,#000)'>x</p>",
        "<style>p:read-only:defined:not(:required):not(:open){display:none}</style><p>x</p>",
    ] {
        assert_eq!(shown(&format!("one {span}two")), "one two", "{span}");
    }
}

/// Browsers ignore a declaration with a value that they do not know, so that the one before it counts.
#[test]
fn invalid_values_show_nothing() {
    for style in [
        "color:#fff;color:#12345",
        "color:#fff;color:rgb(1,2)",
        "color:#fff;color:red blue",
        "color:#fff;color:12",
        "color:#fff;color:foo(1)",
        "font:0/0 a;font:12px",
        "font:0/0 a;font:foo",
        "font:0/0 a;font:700 a",
        "transform:scale(0);transform:foo(1)",
        "clip-path:inset(50%);clip-path:foo",
        "filter:opacity(0);filter:foo",
        "display:none;display:-moz-box",
        "display:none;display:run-in",
    ] {
        assert_eq!(shown(&format!("one <p style='{style}'>x</p>")), "one ", "{style}");
    }
    for style in [
        "color:#fff;color:color-mix(in srgb, red, blue)",
        "color:#fff;color:rgb(from white 0 g b)",
        "color:#fff;color:rgb(calc(1 + 2) 3 4)",
        "color:#fff;color:-webkit-link",
        "color:#fff;color:var(--x)",
        "font:0/0 a;font:italic 12px / 14px Arial",
        "font:0/0 a;font:caption",
        "font:0/0 a;font:100% Arial",
        "font:0/0 a;font:700 12px/1.5 Arial",
        "font:0/0 a;font:bold medium a",
        "font:0/0 a;font:12px/2 \"A B\"",
        "transform:scale(0);transform:rotate(1deg) translate(1px)",
        "filter:opacity(0);filter:var(--x)",
        "display:none;--t:foo;display:var(--t)",
        "display:none;--u: ;display:var(--u)",
        "-ms-transform:scale(0)",
    ] {
        assert_eq!(shown(&format!("one <p style='{style}'>x</p>")), "one x", "{style}");
    }
}

#[test]
fn text_hidden_by_newer_properties_is_not_shown() {
    for span in [
        "<p style='clip-path:polygon(0 0,0 0,0 0)'>x</p>",
        "<p style='filter:opacity(0%)'>x</p><p style='filter:blur(40px)'>x</p>",
        "<p style='mask:linear-gradient(transparent,transparent)'>x</p>",
        "<p style='content-visibility:hidden'>x</p>",
        "<p style='position:absolute;left:-12in'>x</p><p style='position:absolute;left:-300mm'>x</p>",
        "<p style='position:absolute;left:-100vw'>x</p><p style='position:fixed;inset:0 0 0 -9999px'>x</p>",
        "<p style='position:absolute;left:calc(0px - 100vw)'>x</p>",
        "<p style='translate:-9999px'>x</p><p style='scale:0'>x</p><p style='zoom:.01'>x</p>",
        "<p style='transform:matrix(0,0,0,0,0,0)'>x</p><p style='transform:rotateY(90deg)'>x</p>",
        "<p style='-webkit-text-fill-color:transparent'>x<b style='color:red'>x</b></p>",
        "<p style='block-size:0;overflow:hidden'>x</p><p style='max-block-size:0;overflow:clip'>x</p>",
        "<p style='background:linear-gradient(#fff,#fff);color:#fff'>x</p>",
        "<p style='color:hsl(0,0%,100%)'>x</p><p style='color:hsl(0 0% 0% / 0)'>x</p><p style='color:azure'>x</p>",
        "<p style='color:red;background:red'>x</p><p style='color:rgb(100% 100% 100%)'>x</p>",
        "<p style='font-size:calc(1px - 1px)'>x</p><p style='font-size:.1vw;'>x</p>",
        "<p style='font-size:.4em'><b style='font-size:.3em'>x</b></p>",
        "<div style='background:#fff'><p style='position:relative;z-index:-1'>x</p></div>",
        "<p style='display:var(--a,none)'>x</p><p style='--b:0;font-size:var(--b)'>x</p>",
        "<p style='text-indent:100%;overflow:hidden'>x</p><p style='margin-top:-9999px'>x</p>",
        "<p style='color:#fff;text-shadow:0 0 1px white'>x</p>",
        "<p style='display:none;display:nonsense'>x</p><p style='height:0;overflow:hidden;height:much;overflow:some'>x</p>",
        "<p style='visibility:hidden;visibility:yes'>x</p><p style='position:absolute;left:-9999px;position:here;left:all the way'>x</p>",
        "<p style='padding-left:9999px'>x</p><p style='text-indent:9999px'>x</p><div style='height:2px;overflow:hidden'>x</div>",
        "<p style='opacity:0;animation:none'>x</p><p style='opacity:0;animation:zz 1s'>x</p>",
        "<p style='opacity:.2'><b style='opacity:.2'><i style='opacity:.2'>x</i></b></p>",
        "<div style='scale:.3'><p style='transform:scale(.3) scale(.5)'>x</p></div>",
        "<p style='zoom:.4'><b style='zoom:.2'>x</b></p><p style='transform:scale(.2) scale(.2)'>x</p>",
        "<p style='color:#fff;-webkit-text-stroke:0 red'>x</p><p style='color:#fff;-webkit-text-stroke:red'>x</p>",
        "<p style='background:#00f;color:#00f;text-shadow:0 0 1px blue'>x</p>",
        "<div style='height:0;contain:paint'>x</div><div style='height:0;contain:strict'>x</div>",
        "<p style='clip-path:path(\"M0 0\")'>x</p><p style='clip-path:shape(from 0 0,line to 0 0)'>x</p>",
        "<p style='rotate:1 0 0 90deg'>x</p><p style='transform:rotate3d(1,0,0,90deg)'>x</p>",
        "<p style='transform:matrix3d(0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0)'>x</p>",
        "<style>.x{--a:none;display:var(--a)}</style><p class=x>x</p>",
        "<svg width=0 height=0><text>x</text></svg><svg style='height:0'><text>x</text></svg>",
        "<svg>x<g>x</g><clipPath><text>x</text></clipPath></svg>",
        "<p style='display:table-column'>x</p><progress>x</progress><meter>x</meter>",
        "<svg><title>x</title><defs><text>x</text></defs><desc>x</desc></svg><math><annotation>x</annotation></math>",
    ] {
        assert_eq!(shown(&format!("one {span}two")), "one two", "{span}");
    }
}

#[test]
fn shown_text_is() {
    for span in [
        "<span style=\"display:block\">x</span>",
        "<table><tr><td bgcolor=black><font color=white>x</font></table>",
        "<div style='background-color:#003366'><a style='color:#ffffff'>x</a></div>",
        "<div style='background:url(x.png)'><a style='color:#ffffff'>x</a></div>",
        "<div style='font-size:0'><p style='font-size:14px'>x</p></div>",
        "<span style='color:#777'>x</span>",
        "<p style='display:none'><p>x</p>",
        "<p style='display:none'><div>x</div>",
        "<p style='display:none'><ul><li>x</ul>",
        "<p style='display:none;display:block'>x</p>",
        "<p style='visibility:hidden'><b style='visibility:visible'>x</b></p>",
        "<span style='height:0;overflow:hidden'>x</span>",
        "<td style='height:0;width:0;overflow:hidden'>x</td>",
        "<div style='max-height:0'>x</div>",
        "<p style='left:-9999px'>x</p>",
        "<p style='line-height:0'>x</p>",
        "<p style='clip:rect(0 0 0 0)'>x</p>",
        "<p style='mso-hide:all'>x</p>",
        "<p style='font:bold 12px/0 Arial'>x</p>",
        "<div style='font:0/0 a'><p style='font:12px a'>x</p></div>",
        "<p style=\"font-family:'a;display:none'\">x</p>",
        "<p style='letter-spacing:-1px;opacity:.5;margin-left:-20px'>x</p>",
        "<div style='color:white'><a href=u:>x</a></div>",
        "<div style='background-image:url(x)'><b style='color:white'>x</b></div>",
        "<p style='color:hotpink;background:white'>x</p>",
        "<dialog open>x</dialog>",
        "<canvas>x</canvas>",
        "<style>@keyframes k{to{opacity:1}}</style><p style='opacity:0;animation:k 1s forwards'>x</p>",
        "<p style='margin-left:-20px;padding-left:900px'>x</p>",
        "<object>x</object>",
        "<details open>x</details>",
        "<details><summary>x</summary></details>",
        "<p style='transform:scale(1.5)'>x</p>",
        "<br style='display:none'>x",
        "<p style='clip-path:polygon(0 0,100% 0,100% 100%)'>x</p>",
        "<p style='filter:blur(1px) opacity(.9)'>x</p>",
        "<p style='mask:linear-gradient(#000,transparent)'>x</p>",
        "<p style='position:absolute;left:2in'>x</p>",
        "<p style='margin-left:calc(50% - 50vw)'>x</p>",
        "<p style='translate:10px;scale:1.5;zoom:2'>x</p>",
        "<p style='color:white;-webkit-text-fill-color:black'>x</p>",
        "<p style='color:transparent;background:linear-gradient(red,blue);-webkit-background-clip:text'>x</p>",
        "<p style='color:transparent;text-shadow:0 0 0 #000'>x</p>",
        "<p style='color:white;-webkit-text-stroke:1px black'>x</p>",
        "<p style='background:linear-gradient(#000,#333);color:#fff'>x</p>",
        "<p style='color:hsl(0,0%,100%);background:hsl(220 80% 20%)'>x</p>",
        "<p style='font-size:.8em'><b style='font-size:.8em'>x</b></p>",
        "<p style='position:relative;z-index:-1'>x</p>",
        "<div style='background:#fff;position:relative;z-index:0'><p style='position:relative;z-index:-1'>x</p></div>",
        "<p style='display:var(--a,block)'>x</p>",
        "<p style='text-indent:2em;overflow:hidden'>x</p>",
        "<p style='background:rgb(0, 51, 102);color:#fff'>x</p>",
        "<svg><text>x</text></svg>",
        "</span></b></nonsense>x",
    ] {
        assert_eq!(shown(&format!("one {span}")), "one x", "{span}");
    }
}

#[test]
fn text_that_a_place_or_an_attribute_does_not_hide_is_shown() {
    for span in [
        "<td bgcolor='rgb(0,0,0)' style='color:#000'>x</td>",
        "<font color='rgb(255,255,255)'>x</font>",
        "<font color='#fff0'>x</font>",
        "<font color=transparent>x</font>",
        "<div bgcolor=black style='color:#000'>x</div>",
        "<object data=u:>x</object>",
        "<div style='height:0;overflow-x:clip'>x</div>",
        "<div style='height:0;min-height:fit-content;overflow:hidden'>x</div>",
        "<dialog style='display:block'>x</dialog>",
        "<div popover style='display:block'>x</div>",
        "<datalist style='display:block'><option>x</datalist>",
        "<noframes style='display:block'>x</noframes>",
        "<div style='height:0;overflow:hidden'><p style='position:absolute'>x</p></div>",
        "<div style='width:1px;height:1px;overflow:hidden'><p style='position:fixed'>x</p></div>",
        "<p style='position:relative;left:0;right:9999px'>x</p>",
        "<p style='position:sticky;left:-9999px'>x</p>",
        "<div style='text-indent:-9999px'><br>x</div>",
        "<div style='text-indent:-9999px'><p style='text-indent:0'>x</p></div>",
        "<p style='margin-left:-9999px;padding-left:9999px'>x</p>",
        "<p style='text-indent:-9999px;padding-left:9999px'>x</p>",
        "<p style='margin-left:-9999px;text-align:right'>x</p>",
        "<p style='position:absolute;left:-9999px;right:0;text-align:right'>x</p>",
        "<p style='transform:translateX(-9999px) translateX(9999px)'>x</p>",
        "<p style='transform:rotateY(90deg) rotateY(-90deg)'>x</p>",
        "<p style='color:#fff;filter:invert(1)'>x</p>",
        "<p style='color:#fff;box-shadow:inset 0 0 0 300px #000'>x</p>",
        "<p style='color:#000;background:linear-gradient(#000,#000) 0/0 0'>x</p>",
        "<p style='color:#000;background-image:linear-gradient(#000,#000);background-size:0'>x</p>",
        "<style>p:not(:target-within){display:none}</style><p>x</p>",
    ] {
        assert_eq!(shown(&format!("one {span}")), "one x", "{span}");
    }
}

#[test]
fn text_hidden_by_no_newer_property_is_shown() {
    for span in [
        "<p style='opacity:.5'><b style='opacity:.5'>x</b></p>",
        "<p style='transform:scale(.05)'><b style='display:block;scale:20'>x</b></p>",
        "<p style='background:#000;color:transparent;text-shadow:0 0 1px #fff'>x</p>",
        "<p style='color:#fff;-webkit-text-stroke:thin red'>x</p>",
        "<div style='height:0;contain:layout'>x</div>",
        "<p style='rotate:0 0 1 90deg'>x</p>",
        "<svg width=9 height='9'/>x",
        "<svg><foreignObject width=9 height=9>x</foreignObject></svg>",
        "<svg><path/><p>x",
        "<svg><a><text>x</text></a></svg>",
        "<select multiple><option>x</select>",
        "<select size=9><option>x</select>",
    ] {
        assert_eq!(shown(&format!("one {span}")), "one x", "{span}");
    }
}

#[test]
fn answered_messages_are_quoted() {
    assert_eq!(shown("yes<blockquote type=cite>no<blockquote>no</blockquote></blockquote>yes"), "yesyes");
    assert_eq!(shown("yes<div class=\"gmail_quote x\">no</div><blockquote>yes</blockquote>"), "yesyes");
    assert_eq!(shown("yes<div class=protonmail_quote>no</div>"), "yes");
    // A line that ends with a colon announces the quote.
    assert_eq!(shown("Ana wrote:<br> <blockquote>no</blockquote>yes"), "Ana wrote: yes");
    assert_eq!(shown("Ana wrote:<p>yes<blockquote>yes</blockquote>"), "Ana wrote:yesyes");
}

/// Where an element ends decides how much of a page it hides.
#[test]
fn hidden_elements_end_where_browsers_end_them() {
    for (html, expected) in [
        ("<a style='display:none'>x<a>one</a>", "one"),
        ("<dl><dt style='display:none'>x<dd>one</dl>", "one"),
        ("<table><tbody style='display:none'><tr><td>x<tbody><tr><td>one</table>", "one"),
        ("<h1 style='display:none'>x</h2>one", "one"),
        ("<h1 style='display:none'>x<h2>one</h2>", "one"),
        ("<button style='display:none'>x<button>one</button>", "one"),
        ("<form style='display:none'>x<form>x</form>one</form>", "one"),
        // Text of a table outside of its cells stands before it.
        ("<table style='display:none'>one<tr><td>x</table>", "one"),
        ("<table><tr style='display:none'><div>one</div><td>x</table>", "one"),
        // A block outlives the end tag of an element around it that is none, and a cell that of a block.
        ("one<span style='display:none'>x<p>x</span>x</p>x", "one"),
        ("<b style='display:none'>x<p>x</b>one</p>", "one"),
        ("one<div style='display:none'><table><tr><td>x</div>x</table></div>", "one"),
        // A part of a table is none outside of it, and a cell ends what stands open in the one before.
        ("<div style='display:none'><td>x</div>one", "one"),
        ("<table><tr><td><div style='display:none'>x<td>one</div></table>", "one"),
        ("<table><tr style='display:none'><td><b>x<tr><td>one</table>", "one"),
        ("<template><table><td>x</template>one", "one"),
        ("<template><style>.x{display:none}</style></template><p class=x>one</p>", "one"),
        ("<style>.x,::zzz{display:none}</style><p class=x>one</p>", "one"),
        ("<div style='height:0;min-height:60px;overflow:hidden'>one</div>", "one"),
        ("<div style='height:0;padding-bottom:60px;overflow:hidden'>one</div>", "one"),
        ("<div style='width:0;min-width:60px;overflow:hidden'>one</div>", "one"),
        ("<div style='display:none\\9'>one</div>", "one"),
        ("one<p style='color:#fff;color:nonsense'>x</p>", "one"),
        ("<p style='color:#fff;color:LinkText'>one</p>", "one"),
        ("<span dir=rtl style='unicode-bidi:bidi-override'>eno</span>", "one"),
    ] {
        assert_eq!(shown(html), expected, "{html}");
    }
}
