// SPDX-License-Identifier: GPL-3.0-or-later
//! The open elements of an HTML part, as far as they say whether their text is seen.

use super::names::{closes_its_like, holds_its_own, is_never_shown, is_void};
use super::style::{Colour, Ink, PAGE, Sheet, Style, alike};
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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
    /// It is shown once a reader opens what it stands in.
    folded: bool,
    invisible: bool,
    tiny: bool,
    squeezed: bool,
    quoted: bool,
    ink: Ink,
    background: Option<Colour>,
}

const START: Look = Look {
    hidden: false,
    folded: false,
    invisible: false,
    tiny: false,
    squeezed: false,
    quoted: false,
    ink: Ink::Unknown,
    background: Some(PAGE),
};

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

/// Names bring a hash of their own. Whoever finds names with equal ones makes [`MAX_OPEN`] of them meet, no more.
#[derive(Default)]
struct ByOwnHash(u64);

impl Hasher for ByOwnHash {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u32(u32::from(*b)));
    }

    fn write_u32(&mut self, hash: u32) {
        self.0 = (self.0.rotate_left(32) ^ u64::from(hash)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The open elements, outermost first. None is looked for one by one: a message may have millions of tags that close
/// nothing.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    sheet: &'a Sheet,
    open: Vec<Element>,
    /// For each name that is open, the innermost element.
    innermost: HashMap<LocalName, usize, BuildHasherDefault<ByOwnHash>>,
    /// Whether the last words that are shown end with a colon, as the line does that names whom a quote is of.
    is_announced: bool,
}

impl<'a> Elements<'a> {
    /// None, on a page with these style sheets.
    pub(super) fn new(sheet: &'a Sheet) -> Self {
        Self { sheet, open: Vec::new(), innermost: HashMap::default(), is_announced: false }
    }

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
            let style = Style::of(tag, self.sheet);
            let look = Look {
                hidden: outer.hidden || style.hidden || is_never_shown(tag),
                folded: is_folded(tag).unwrap_or(outer.folded),
                invisible: style.invisible.unwrap_or(outer.invisible),
                tiny: style.tiny.unwrap_or(outer.tiny),
                squeezed: style.squeezed.unwrap_or(outer.squeezed),
                quoted: outer.quoted || is_quote(tag, self.is_announced),
                ink: style.ink.unwrap_or(outer.ink),
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

    /// Text was read that is shown.
    pub(super) fn shown(&mut self, text: &str) {
        if let Some(last) = text.trim_end().chars().next_back() {
            self.is_announced = matches!(last, ':' | '\u{ff1a}');
        }
    }

    /// How text that stands here is shown.
    pub(super) fn how(&self) -> How {
        let look = self.look();
        let is_drawn = match (look.ink, look.background) {
            (Ink::Of(ink), Some(background)) => !alike(ink, background),
            (Ink::Transparent, _) => false,
            _ => true,
        };
        if look.hidden || look.folded || look.invisible || look.tiny || look.squeezed || !is_drawn {
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

    /// Whether what stands here is laid out at all, for this message or for one that it quotes.
    pub(super) fn is_displayed(&self) -> bool {
        !self.look().hidden
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

/// Whether an element is folded up, or what stays of one that is; none for all others.
fn is_folded(tag: &Tag) -> Option<bool> {
    match tag.name {
        local_name!("details") => {
            (!tag.attrs.iter().any(|a| a.name.local == local_name!("open"))).then_some(true)
        }
        local_name!("summary") => Some(false),
        _ => None,
    }
}

/// Quotes of an answered message, as mail programs mark them; or announce them, for many give the quote no mark.
fn is_quote(tag: &Tag, is_announced: bool) -> bool {
    if tag.name == local_name!("blockquote") && is_announced {
        return true;
    }
    if tag.name != local_name!("blockquote") && tag.name != local_name!("div") {
        return false;
    }
    let value = |name: &LocalName| tag.attrs.iter().find(|a| a.name.local == *name).map(|a| &a.value);
    let cited = value(&local_name!("type")).is_some_and(|v| v.eq_ignore_ascii_case("cite"));
    let class = value(&local_name!("class"));
    cited
        || class.is_some_and(|v| {
            v.split_whitespace()
                .any(|c| c == "moz-cite-prefix" || c.ends_with("_quote") || c.ends_with("_quoted"))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Piece, pieces};
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
            let sheet = Sheet::default();
            const NAMES: [&str; 9] = ["p", "td", "tr", "li", "table", "ul", "div", "span", "x-unknown"];
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
            "<video src=u:>x<b>x</b></video><audio>x</audio><canvas>x</canvas>",
            "<iframe src=u:><p>x</p></iframe><noframes>x</noframes><noembed>x</noembed>",
            "<object data=u:>x</object><datalist><option>x</datalist><select><option>x</select>",
            "<dialog>x</dialog><div popover>x</div><ruby><rp>x</rp></ruby>",
            "<details><p>x</p></details>",
            "<div style='background:#123456 none'><p style='color:#123456'>x</p></div>",
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
            "<object>x</object>",
            "<details open>x</details>",
            "<details><summary>x</summary></details>",
            "<p style='transform:scale(1.5)'>x</p>",
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
        assert_eq!(shown("yes<div class=protonmail_quote>no</div>"), "yes");
        // A line that ends with a colon announces it.
        assert_eq!(shown("Ana wrote:<br> <blockquote>no</blockquote>yes"), "Ana wrote: yes");
        assert_eq!(shown("Ana wrote:<p>yes<blockquote>yes</blockquote>"), "Ana wrote:yesyes");
    }
}
