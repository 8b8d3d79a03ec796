// SPDX-License-Identifier: GPL-3.0-or-later
//! The open elements of an HTML part, as far as they say whether their text is seen.

use super::style::{self, Colour, PAGE, Style};
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};
use std::collections::HashMap;

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

/// An open element.
#[derive(Debug)]
struct Element {
    name: LocalName,
    look: Look,
    /// The innermost of those around it that have its name.
    namesake: Option<usize>,
    /// The innermost element that [holds its own](holds_its_own), this one or around it.
    holder: Option<usize>,
}

/// The open elements, outermost first. None is looked for one by one: a message may have millions of tags that close
/// nothing.
#[derive(Debug, Default)]
pub(super) struct Elements {
    open: Vec<Element>,
    /// For each name that is open, the innermost element.
    innermost: HashMap<LocalName, usize>,
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
            let at = self.open.len();
            self.open.push(Element {
                name: tag.name.clone(),
                look,
                namesake: self.innermost.insert(tag.name.clone(), at),
                holder: if holds_its_own(&tag.name) { Some(at) } else { self.holder() },
            });
        }
    }

    /// An end tag was read. It closes what is open inside of it; one that nothing opened means nothing.
    pub(super) fn close(&mut self, name: &LocalName) {
        if let Some(&at) = self.innermost.get(name) {
            self.close_from(at);
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

    /// Whether a picture that stands here is seen, and belongs to this message.
    pub(super) fn shows_pictures(&self) -> bool {
        let look = self.look();
        !look.hidden && !look.quoted
    }

    fn look(&self) -> Look {
        self.open.last().map_or(START, |element| element.look)
    }

    fn holder(&self) -> Option<usize> {
        self.open.last().and_then(|element| element.holder)
    }

    /// Closes an element whose end tag may be left out, unless it is outside of the table or list that is open.
    fn close_like(&mut self, name: &LocalName) {
        if let Some(&at) = self.innermost.get(name).filter(|&&at| Some(at) > self.holder()) {
            self.close_from(at);
        }
    }

    fn close_from(&mut self, at: usize) {
        for Element { name, namesake, .. } in self.open.drain(at..).rev() {
            match namesake {
                Some(outer) => self.innermost.insert(name, outer),
                None => self.innermost.remove(&name),
            };
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
    use super::*;
    use crate::mail::{Piece, pieces};
    use html5ever::tokenizer::TagKind;
    use proptest::prelude::*;

    /// What is open, found by looking at one element after the other.
    #[derive(Default)]
    struct OneByOne(Vec<LocalName>);

    impl OneByOne {
        fn open(&mut self, name: &LocalName) {
            if closes_its_like(name) {
                let found = self.0.iter().rposition(|open| open == name || holds_its_own(open));
                found.filter(|&at| self.0[at] == *name).inspect(|&at| self.0.truncate(at));
            }
            if self.0.len() < MAX_OPEN {
                self.0.push(name.clone());
            }
        }

        fn close(&mut self, name: &LocalName) {
            self.0.iter().rposition(|open| open == name).inspect(|&at| self.0.truncate(at));
        }
    }

    proptest! {
        /// Up to the bound, and beyond it.
        #[test]
        fn tags_close_what_a_search_would_find(
            closing in 0..8u8,
            tags in prop::collection::vec((0..9usize, 0..20u8), 0..3000),
        ) {
            const NAMES: [&str; 9] = ["p", "td", "tr", "li", "table", "ul", "div", "span", "x-unknown"];
            let (mut elements, mut expected) = (Elements::default(), OneByOne::default());
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
