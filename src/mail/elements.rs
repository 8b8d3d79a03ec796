// SPDX-License-Identifier: GPL-3.0-or-later
//! The open elements of an HTML part, as far as they say whether their text is seen.

use super::style::{self, Colour, PAGE, Style};
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};

/// Elements that are remembered; what is deeper is shown like the last of them. Real mail has some dozens.
const MAX_OPEN: usize = 512;

/// How the text of an element is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Shown,
    Quoted,
    Hidden,
}

/// The way in which the text of an element is shown, with what its inner ones inherit.
#[derive(Debug, Clone, Copy)]
struct Look {
    hidden: bool,
    tiny: bool,
    quoted: bool,
    colour: Option<Colour>,
    background: Option<Colour>,
}

const START: Look = Look { hidden: false, tiny: false, quoted: false, colour: None, background: Some(PAGE) };

/// The open elements, outermost first.
#[derive(Debug, Default)]
pub(super) struct Elements {
    open: Vec<(LocalName, Look)>,
}

impl Elements {
    /// A start tag was read.
    pub(super) fn open(&mut self, tag: &Tag) {
        if is_void(&tag.name) {
            return;
        }
        if closes_its_like(&tag.name) {
            self.close_like(&tag.name);
        }
        if self.open.len() < MAX_OPEN {
            let outer = self.look();
            let style = Style::of(tag);
            let look = Look {
                hidden: outer.hidden || style.hidden,
                tiny: style.tiny.unwrap_or(outer.tiny),
                quoted: outer.quoted || style::is_quote(tag),
                colour: style.colour.or(outer.colour),
                background: style.background.unwrap_or(outer.background),
            };
            self.open.push((tag.name.clone(), look));
        }
    }

    /// An end tag was read. It closes what is open inside of it; one that nothing opened means nothing.
    pub(super) fn close(&mut self, name: &LocalName) {
        if let Some(at) = self.open.iter().rposition(|(open, _)| open == name) {
            self.open.truncate(at);
        }
    }

    /// How text that stands here is shown.
    pub(super) fn how(&self) -> How {
        let look = self.look();
        let invisible = look.colour.zip(look.background).is_some_and(|(a, b)| style::alike(a, b));
        if look.hidden || look.tiny || invisible {
            How::Hidden
        } else if look.quoted {
            How::Quoted
        } else {
            How::Shown
        }
    }

    fn look(&self) -> Look {
        self.open.last().map_or(START, |(_, look)| *look)
    }

    /// Closes an element whose end tag may be left out, unless it is outside of the table or list that is open.
    fn close_like(&mut self, name: &LocalName) {
        for (at, (open, _)) in self.open.iter().enumerate().rev() {
            if open == name {
                self.open.truncate(at);
                return;
            }
            if holds_its_own(open) {
                return;
            }
        }
    }
}

/// Elements without content and end tag.
fn is_void(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("area")
            | local_name!("base")
            | local_name!("br")
            | local_name!("col")
            | local_name!("embed")
            | local_name!("hr")
            | local_name!("img")
            | local_name!("input")
            | local_name!("link")
            | local_name!("meta")
            | local_name!("param")
            | local_name!("source")
            | local_name!("track")
            | local_name!("wbr")
    )
}

/// Elements that end where the next of the same name begins.
fn closes_its_like(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("p")
            | local_name!("li")
            | local_name!("dt")
            | local_name!("dd")
            | local_name!("td")
            | local_name!("th")
            | local_name!("tr")
            | local_name!("option")
    )
}

/// Elements in which others of the name of an outer one may stand.
fn holds_its_own(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("table")
            | local_name!("ul")
            | local_name!("ol")
            | local_name!("dl")
            | local_name!("div")
            | local_name!("blockquote")
    )
}

/// Elements in the middle of a word.
pub(super) fn is_inline(name: &LocalName) -> bool {
    matches!(
        *name,
        local_name!("a")
            | local_name!("abbr")
            | local_name!("b")
            | local_name!("bdo")
            | local_name!("big")
            | local_name!("code")
            | local_name!("del")
            | local_name!("em")
            | local_name!("font")
            | local_name!("i")
            | local_name!("ins")
            | local_name!("kbd")
            | local_name!("label")
            | local_name!("mark")
            | local_name!("nobr")
            | local_name!("s")
            | local_name!("small")
            | local_name!("span")
            | local_name!("strike")
            | local_name!("strong")
            | local_name!("sub")
            | local_name!("sup")
            | local_name!("tt")
            | local_name!("u")
            | local_name!("wbr")
    )
}

#[cfg(test)]
mod tests {
    use crate::mail::{Piece, pieces};

    fn shown(html: &str) -> String {
        let mut all = String::new();
        pieces(html, &mut |piece| {
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
        ] {
            assert_eq!(shown(&format!("one {span}two")), "one two", "{span}");
        }
    }

    #[test]
    fn shown_text_is() {
        for span in [
            "<span style=\"display:block\">x</span>",
            "<td bgcolor=black><font color=white>x</font></td>",
            "<div style='background-color:#003366'><a style='color:#ffffff'>x</a></div>",
            "<div style='background:url(x.png)'><a style='color:#ffffff'>x</a></div>",
            "<div style='font-size:0'><p style='font-size:14px'>x</p></div>",
            "<span style='color:#777'>x</span>",
            "<p style='display:none'><p>x</p>",
            "<br style='display:none'>x",
            "</span></b></nonsense>x",
        ] {
            assert_eq!(shown(&format!("one {span}")), "one x", "{span}");
        }
    }

    #[test]
    fn answered_messages_are_quoted() {
        assert_eq!(shown("yes<blockquote type=cite>no<blockquote>no</blockquote></blockquote>yes"), "yesyes");
        assert_eq!(shown("yes<div class=\"gmail_quote x\">no</div><blockquote>yes</blockquote>"), "yesyes");
    }
}
