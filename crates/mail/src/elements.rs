// SPDX-License-Identifier: GPL-3.0-or-later
//! The open elements of an HTML part, as far as they say whether their text is seen.

use super::look::{How, Look};
use super::names::{closes_its_like, closes_paragraph, holds_its_own, is_void};
use super::piece::Piece;
use super::style::{Known, Node, Pseudo, Sheet, Style};
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// Elements that are remembered; what is deeper is shown like the last of them. Real mail has some dozens.
const MAX_OPEN: usize = 512;

/// Bytes of text that the style sheets of a page add, and of texts in the place of its pictures.
const MAX_GENERATED: usize = 32 << 10;

/// Elements of a page that are read before, for what asks for what follows an element.
const MAX_KNOWN: usize = 1 << 15;

/// An open element.
#[derive(Debug)]
struct Element {
    name: LocalName,
    look: Look,
    /// The boxes in it stand in an order of their own.
    lays_out: bool,
    /// None where nothing is asked of what stands around an element.
    node: Option<Rc<Node>>,
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
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = (self.0.rotate_left(32) ^ hash).wrapping_mul(0x9E37_79B9_7F4A_7C15);
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
    document: Option<Rc<Node>>,
    known: Known,
    /// Bytes of text that style sheets may still add.
    generated: usize,
    /// What stands in the place of pictures that are shown, a line each.
    alternatives: String,
    /// How many paragraphs are open.
    paragraphs: usize,
    open: Vec<Element>,
    /// For each name that is open, the innermost element.
    innermost: HashMap<LocalName, usize, BuildHasherDefault<ByOwnHash>>,
    /// How many elements were opened of the page.
    count: usize,
    /// Where boxes began and ended since these were shown last.
    boxes: Vec<Piece<'static>>,
    /// They are only listed, to be known when the page is read again.
    listed: Option<Vec<Rc<Node>>>,
    /// Whether the last shown words end with a colon, like the line that names the author of a quote.
    is_announced: bool,
}

impl<'a> Elements<'a> {
    /// None, on a page with these style sheets.
    pub(super) fn new(sheet: &'a Sheet) -> Self {
        Self {
            sheet,
            document: sheet.document(),
            known: Known::default(),
            generated: MAX_GENERATED,
            alternatives: String::new(),
            paragraphs: 0,
            open: Vec::new(),
            innermost: HashMap::default(),
            count: 0,
            boxes: Vec::new(),
            listed: None,
            is_announced: false,
        }
    }

    /// The same that only lists elements.
    pub(super) fn listing(sheet: &'a Sheet) -> Self {
        Self { listed: Some(Vec::new()), ..Self::new(sheet) }
    }

    /// All elements of the page; `None` where there are more than are read before.
    pub(super) fn list(mut self) -> Option<Vec<Rc<Node>>> {
        self.close_from(0);
        self.listed.filter(|_| self.count <= MAX_KNOWN)
    }

    /// A start tag was read.
    pub(super) fn open(&mut self, tag: &Tag) {
        if closes_its_like(&tag.name) {
            self.close_like(&tag.name);
        }
        if self.paragraphs > 0 && closes_paragraph(&tag.name) {
            self.close_like(&local_name!("p"));
        }
        let node = self.node(tag);
        if is_void(&tag.name) {
            return;
        }
        if self.open.len() < MAX_OPEN {
            let outer = self.look();
            let mut lays_out = false;
            let look = if self.listed.is_some() {
                outer
            } else {
                let style = Style::of(tag, self.sheet, node.as_deref(), &mut self.known);
                if self.open.last().is_some_and(|around| around.lays_out) {
                    self.boxes.push(Piece::Box { order: style.order });
                }
                if let Some(reversed) = style.lays_out {
                    self.boxes.push(Piece::Boxes { reversed });
                    lays_out = true;
                }
                outer.within(&style, tag, self.is_announced)
            };
            let at = self.open.len();
            self.paragraphs += usize::from(tag.name == local_name!("p"));
            self.open.push(Element {
                name: tag.name.clone(),
                look,
                lays_out,
                node,
                namesake: self.innermost.insert(tag.name.clone(), at),
                holder: if holds_its_own(&tag.name) { Some(at) } else { self.holder() },
            });
        }
    }

    /// What selectors ask of an element that begins here.
    fn node(&mut self, tag: &Tag) -> Option<Rc<Node>> {
        let around = self.open.last().map_or(&self.document, |element| &element.node).as_ref()?;
        self.count += 1;
        if let Some(node) = self.sheet.known(self.count - 1) {
            return Some(Rc::clone(node));
        }
        let node = around.open(tag);
        if let Some(all) = self.listed.as_mut().filter(|_| self.count <= MAX_KNOWN) {
            node.begin(all.len());
            all.push(Rc::clone(&node));
        }
        Some(node)
    }

    /// Text was read, seen or not.
    pub(super) fn fill(&self) {
        if let (Some(_), Some(Element { node: Some(node), .. })) = (&self.listed, self.open.last()) {
            node.fill();
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

    /// Shows where boxes began and ended.
    pub(super) fn show_boxes(&mut self, see: &mut dyn FnMut(Piece<'_>)) {
        self.boxes.drain(..).for_each(see);
    }

    /// How text that stands here is shown.
    pub(super) fn how(&self) -> How {
        self.look().how()
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

    /// Whether letters that stand here are read from right to left, whatever they are.
    pub(super) fn is_reversed(&self) -> bool {
        self.look().reversed
    }

    /// Keeps the text in the place of a picture that stands here.
    pub(super) fn keep_alternative(&mut self, text: &str) {
        if self.how() == How::Shown && self.alternatives.len() + text.len() < MAX_GENERATED {
            self.alternatives.extend(text.chars().map(|c| if c == '\n' { ' ' } else { c }));
            self.alternatives.push('\n');
        }
    }

    /// All of these.
    pub(super) fn take_alternatives(&mut self) -> String {
        std::mem::take(&mut self.alternatives)
    }

    /// Text that style sheets put at the beginning of the innermost element.
    pub(super) fn before(&mut self) -> Option<String> {
        if !self.sheet.generates_text() {
            return None;
        }
        self.generate(self.open.len().checked_sub(1)?, Pseudo::Before)
    }

    /// Text that they put at the end of the element that an end tag of this name closes.
    pub(super) fn after(&mut self, name: &LocalName) -> Option<String> {
        if !self.sheet.generates_text() {
            return None;
        }
        self.generate(*self.innermost.get(name)?, Pseudo::After)
    }

    fn generate(&mut self, at: usize, pseudo: Pseudo) -> Option<String> {
        let text = self.sheet.generated(self.open.get(at)?.node.as_deref(), pseudo)?;
        self.generated = self.generated.checked_sub(text.len())?;
        Some(text)
    }

    fn look(&self) -> Look {
        self.open.last().map_or(Look::START, |element| element.look)
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
        for Element { name, namesake, node, lays_out, .. } in self.open.drain(at..).rev() {
            if let (Some(_), Some(node)) = (&self.listed, node) {
                node.end_before(self.count);
            }
            self.paragraphs -= usize::from(name == local_name!("p"));
            if lays_out {
                self.boxes.push(Piece::BoxesEnd);
            }
            match namesake {
                Some(outer) => self.innermost.insert(name, outer),
                None => self.innermost.remove(&name),
            };
        }
    }
}

#[cfg(test)]
mod tests;
