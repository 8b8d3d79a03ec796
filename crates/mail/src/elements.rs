// SPDX-License-Identifier: GPL-3.0-or-later
//! The open elements of an HTML part, which decide whether its text is visible.

mod inserted;
mod open;

use super::atoms::ByOwnHash;
use super::flow::Course;
use super::look::{Look, Visibility};
use super::names::{
    closes_paragraph, encloses, ended_by, ends_blocks, ends_drawing, ends_word, is_before_body, is_block,
    is_heading, is_of_table, is_replaced, is_shape, is_special, is_void,
};
use super::piece::Piece;
use super::style::{Backdrop, Node, PageState, Sheet, Style};
use html5ever::tokenizer::{Tag, TagKind};
use html5ever::{LocalName, local_name};
pub(super) use open::Edge;
use open::{Element, Innermost};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

/// Open elements that are tracked; deeper ones look like the last of them. Real mail has some dozens.
const MAX_OPEN: usize = 512;

/// Bytes of text that a page's style sheets may add, and of its pictures' alternative texts.
const MAX_GENERATED: usize = 32 << 10;

/// Elements of a page that are read in advance, for selectors that need later elements.
const MAX_KNOWN: usize = 1 << 15;

/// The open elements, outermost first. No operation searches them one by one: a message may have millions of unmatched end tags.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    sheet: &'a Sheet,
    document: Option<Rc<Node>>,
    known: PageState,
    /// Bytes of text that style sheets may still add.
    generated: usize,
    /// The alternative texts of visible pictures, a line each: those that are more than a label, and all.
    alternatives: [String; 2],
    /// The look of the element that the last start tag began, and its index if it is open.
    begun: Option<Look>,
    begun_at: Option<usize>,
    /// Its node, if style sheets may insert text in it.
    begun_node: Option<Rc<Node>>,
    /// The strongest edge of boxes not yet reported.
    edge: Edge,
    /// Number of open paragraphs.
    paragraphs: usize,
    open: Vec<Element>,
    /// The innermost open element of each name.
    innermost: HashMap<LocalName, usize, BuildHasherDefault<ByOwnHash>>,
    /// Number of elements opened so far.
    count: usize,
    /// Whether the body of the page has begun.
    has_body: bool,
    /// Whether the last drawing has a shape.
    is_painted: bool,
    /// The place of text in boxes that cut it off.
    course: Course,
    /// Starts and ends of boxes not yet reported.
    boxes: Vec<Piece<'static>>,
    /// The list of all elements, when the page is only listed before it is read.
    listed: Option<Vec<Rc<Node>>>,
    /// Whether the last shown words end with a colon, like the line that names the author of a quote.
    is_announced: bool,
}

impl<'a> Elements<'a> {
    /// No open element, on a page with these style sheets.
    pub(super) fn new(sheet: &'a Sheet) -> Self {
        Self {
            sheet,
            document: sheet.document(),
            known: PageState::default(),
            generated: sheet.inserts().min(MAX_GENERATED),
            alternatives: [String::new(), String::new()],
            begun: None,
            begun_at: None,
            begun_node: None,
            edge: Edge::None,
            paragraphs: 0,
            open: Vec::new(),
            innermost: HashMap::default(),
            count: 0,
            has_body: false,
            is_painted: false,
            course: Course::default(),
            boxes: Vec::new(),
            listed: None,
            is_announced: false,
        }
    }

    /// The same, for only listing the elements.
    pub(super) fn listing(sheet: &'a Sheet) -> Self {
        Self { listed: Some(Vec::new()), ..Self::new(sheet) }
    }

    /// All elements of the page; `None` if it has more than [`MAX_KNOWN`].
    pub(super) fn list(mut self) -> Option<Vec<Rc<Node>>> {
        self.close_from(0);
        self.listed.filter(|_| self.count <= MAX_KNOWN)
    }

    /// Opens the element of a start tag.
    pub(super) fn open(&mut self, tag: &Tag) {
        if matches!(tag.name, local_name!("body") | local_name!("frameset")) {
            self.has_body = true;
        } else if !self.has_body && !is_before_body(&tag.name) {
            self.begin_body();
        }
        if let Some(drawing) = self.drawing()
            && ends_drawing(tag)
        {
            self.close_from(drawing);
        }
        for name in ended_by(&tag.name) {
            self.close_implicitly(name);
        }
        self.close_misplaced(&tag.name);
        if self.paragraphs > 0 && closes_paragraph(&tag.name) {
            self.close_implicitly(&local_name!("p"));
        }
        // Browsers put deeper ones beside one another.
        if self.open.len() == MAX_OPEN && !is_void(&tag.name) {
            self.close_from(MAX_OPEN - 1);
        }
        let node = self.node(tag);
        // A form in a form is none, nor is a part of a table outside of one.
        let is_second = tag.name == local_name!("form") && self.innermost.contains_key(&tag.name);
        let is_stray = is_of_table(&tag.name) && tag.name != local_name!("table") && self.table().is_none();
        (self.begun, self.begun_at, self.begun_node) = (None, None, None);
        if is_second || is_stray {
            return;
        }
        let outer = self.outer(&tag.name);
        let style = self.style(tag, &outer, node.as_deref());
        let look = outer.within(&style, tag, self.is_announced);
        let edge = match ends_word(&tag.name, style.parts) {
            true if style.is_small => Edge::None,
            true if outer.holds_box(&style, tag) => Edge::Shown,
            true => Edge::Hidden,
            false => Edge::None,
        };
        self.edge = self.edge.max(edge);
        if tag.name == local_name!("br") && edge == Edge::Shown {
            self.end_line();
            self.course.break_line(&outer);
        }
        self.begun = Some(look);
        self.begun_node = node.clone().filter(|_| self.sheet.generates_text() && !is_replaced(&tag.name));
        let is_root = matches!(tag.name, local_name!("svg") | local_name!("math"));
        let is_empty_drawing = tag.self_closing && (is_root || self.drawing().is_some());
        if !is_void(&tag.name) && !is_empty_drawing && self.open.len() < MAX_OPEN {
            self.begin_box(tag, &look, &style);
            self.push(tag, look, edge, node, &style);
        } else if is_void(&tag.name) && style.is_box == Some(true) {
            self.begin_box(tag, &look, &style);
            self.course.end(self.open.len());
        }
    }

    /// Begins the body of a page without a tag for it, if rules may be for it.
    pub(super) fn begin_body(&mut self) {
        if std::mem::replace(&mut self.has_body, true) || !self.sheet.is_for_pages() {
            return;
        }
        for name in [local_name!("html"), local_name!("body")] {
            if !self.innermost.contains_key(&name) {
                self.open(&empty_tag(&name));
            }
        }
    }

    /// The look of the element in which one begins.
    fn outer(&mut self, name: &LocalName) -> Look {
        let outer = if is_of_table(name) { self.look() } else { self.around() };
        let around = self.open.len().checked_sub(2).map_or(Look::START, |at| self.open[at].look);
        match self.open.last_mut() {
            // The first summary is what is seen of folded details.
            Some(details) if *name == local_name!("summary") && details.name == local_name!("details") => {
                let is_first = !std::mem::replace(&mut details.has_summary, true);
                Look { folded: if is_first { around.folded } else { outer.folded }, ..outer }
            }
            _ => outer,
        }
    }

    /// The style of an element that begins in one with this look.
    fn style(&mut self, tag: &Tag, outer: &Look, node: Option<&Node>) -> Style {
        if self.listed.is_some() {
            return Style::default();
        }
        let is_in_drawing = self.foreign().is_some_and(|root| *root == local_name!("svg"));
        self.known.is_drawn = is_in_drawing || tag.name == local_name!("svg");
        self.known.is_cut = self.course.is_cut();
        self.known.is_item = outer.holds_items;
        let mut style = Style::of(tag, self.sheet, node, &mut self.known);
        if is_in_drawing {
            self.is_painted |= is_shape(&tag.name);
            // Letters may stand on a shape.
            if self.is_painted {
                style.background = Some(Backdrop::Unknown);
            }
        } else if tag.name == local_name!("svg") {
            self.is_painted = false;
        }
        style
    }

    /// Notes the box of an element that begins.
    fn begin_box(&mut self, tag: &Tag, look: &Look, style: &Style) {
        let is_box = style.is_box.unwrap_or_else(|| is_block(&tag.name) || tag.name == local_name!("table"));
        if self.course.is_cut() || style.flow.cuts {
            self.course.begin(self.open.len(), &tag.name, &style.flow, look, is_box && look.is_displayed());
        }
    }

    /// Bytes of a text here that no box cuts off.
    pub(super) fn fit(&mut self, text: &str) -> usize {
        if self.course.is_cut() { self.course.fit(text, &self.around()) } else { text.len() }
    }

    /// Adds an open element.
    fn push(&mut self, tag: &Tag, look: Look, edge: Edge, node: Option<Rc<Node>>, style: &Style) {
        let at = self.open.len();
        self.place_box(&tag.name, style.order);
        // The cells of a row follow the direction of text.
        let in_row = (tag.name == local_name!("tr") && look.right_to_left).then_some(true);
        let lays_out = style.lays_out.or(in_row);
        if let Some(reversed) = lays_out {
            self.boxes.push(Piece::Boxes { reversed });
        }
        self.begun_at = Some(at);
        self.paragraphs += usize::from(tag.name == local_name!("p"));
        self.open.push(Element {
            name: tag.name.clone(),
            look,
            edge,
            is_past_line: false,
            has_summary: false,
            lays_out: lays_out.is_some(),
            node,
            outer_with_name: self.innermost.insert(tag.name.clone(), at),
            inner: self.inner().with(&tag.name, at),
        });
    }

    /// Ends the first line of the innermost block. Only that is indented.
    fn end_line(&mut self) {
        if let Some(at) = self.inner().block {
            self.open[at].is_past_line = true;
        }
    }

    /// The look of text on this line.
    fn on_this_line(&self, look: Look) -> Look {
        let is_past_line = self.inner().block.is_some_and(|at| self.open[at].is_past_line);
        Look { indented: look.indented && !is_past_line, ..look }
    }

    /// Notes a box in one that reorders its inner boxes. A table does from its foot on, which stands at its end wherever it is written.
    fn place_box(&mut self, name: &LocalName, order: i16) {
        let Some(around) = self.open.last_mut() else { return };
        let is_in_table = around.name == local_name!("table");
        if is_in_table && *name == local_name!("tfoot") && !around.lays_out {
            around.lays_out = true;
            self.boxes.push(Piece::Boxes { reversed: false });
        }
        if around.lays_out {
            let order = match *name {
                local_name!("tfoot") if is_in_table => 1,
                local_name!("thead") if is_in_table => -1,
                _ => order,
            };
            self.boxes.push(Piece::Box { order });
        }
    }

    /// The innermost open drawing or formula, and the element of a page in it, if there is one (HTML standard, 13.2.6, "integration point").
    fn foreign_root(&self) -> Option<(usize, Option<usize>)> {
        let root = self.inner().foreign?;
        let of = |name: &str| self.innermost.get(&LocalName::from(name)).copied();
        let points: &[&str] = if self.open[root].name == local_name!("svg") {
            &["foreignobject", "title", "desc"]
        } else {
            &["mi", "mo", "mn", "ms", "mtext"]
        };
        Some((root, points.iter().filter_map(|name| of(name)).max().filter(|&point| point > root)))
    }

    /// The innermost open drawing or formula, unless a page stands in it.
    fn drawing(&self) -> Option<usize> {
        self.foreign_root().filter(|(_, page)| page.is_none()).map(|(root, _)| root)
    }

    /// The drawing or formula whose elements begin here; `None` in a page.
    pub(super) fn foreign(&self) -> Option<&LocalName> {
        self.drawing().map(|at| &self.open[at].name)
    }

    /// Whether `<![CDATA[` begins text here: in elements of drawings and formulas, also in those that hold a page.
    pub(super) fn has_sections(&self) -> bool {
        self.foreign_root().is_some_and(|(_, page)| page.is_none_or(|at| at + 1 == self.open.len()))
    }

    /// The node for selectors of an element that begins here.
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

    /// Notes text, visible or not.
    pub(super) fn fill(&self) {
        if let (Some(_), Some(Element { node: Some(node), .. })) = (&self.listed, self.open.last()) {
            node.fill();
        }
    }

    /// Closes the element of an end tag, with its open inner elements. Ignores an end tag without a start tag.
    /// Also one that browsers ignore: a cell ends by table tags only, and a block within an element that is none outlives its end tag.
    /// But one of a paragraph or a line break makes an element (HTML standard, 13.2.6.4.7).
    pub(super) fn close(&mut self, name: &LocalName) {
        // What stands behind the end of a page is in its body.
        if matches!(*name, local_name!("body") | local_name!("html")) {
            return;
        }
        if *name == local_name!("br") {
            self.open(&empty_tag(name));
            return;
        }
        let found = self.ended_by_tag(name).or_else(|| {
            let is_made = *name == local_name!("p") && self.open.len() < MAX_OPEN;
            is_made.then(|| self.open(&empty_tag(name)))?;
            self.begun_at
        });
        if let Some(at) = found {
            self.close_from(at);
        } else if self.open.len() == MAX_OPEN && ends_word(name, None) && !self.look().unboxed {
            // The end of an element that is not tracked.
            self.edge = Edge::Shown;
        }
    }

    /// The index of the element that an end tag closes.
    fn ended_by_tag(&self, name: &LocalName) -> Option<usize> {
        let inner = self.inner();
        let heading = || inner.block.filter(|&at| is_heading(name) && is_heading(&self.open[at].name));
        let at = heading().or_else(|| self.innermost.get(name).copied())?;
        let ends = encloses(name)
            || is_of_table(name) && Some(at) >= self.table()
            || inner.cell <= Some(at) && (ends_blocks(name) || inner.block <= Some(at));
        ends.then_some(at)
    }

    /// Notes visible text.
    pub(super) fn shown(&mut self, text: &str) {
        if let Some(last) = text.trim_end().chars().next_back() {
            self.is_announced = matches!(last, ':' | '\u{ff1a}');
        }
    }

    /// Passes on the starts and ends of boxes.
    pub(super) fn show_boxes(&mut self, emit: &mut dyn FnMut(Piece<'_>)) {
        self.boxes.drain(..).for_each(emit);
    }

    /// Takes the strongest edge of the boxes that began or ended.
    pub(super) fn take_edge(&mut self) -> Edge {
        std::mem::take(&mut self.edge)
    }

    /// How text is shown here.
    pub(super) fn visibility(&self) -> Visibility {
        self.on_this_line(self.around()).visibility()
    }

    /// How text of the element that just began is shown: its own, not that in it.
    pub(super) fn own_visibility(&self) -> Visibility {
        self.begun.map_or(Visibility::Hidden, |look| self.on_this_line(look).visibility())
    }

    /// Whether the picture that just began is visible and belongs to this message.
    pub(super) fn shows_picture(&self) -> bool {
        self.begun.is_some_and(|look| look.is_displayed() && !look.invisible && !look.quoted)
    }

    /// Whether content here is laid out, in this message or in a quoted one.
    pub(super) fn is_displayed(&self) -> bool {
        self.around().is_displayed()
    }

    /// Whether letters here are forced to read from right to left.
    pub(super) fn is_reversed(&self) -> bool {
        self.around().reversed
    }

    fn look(&self) -> Look {
        self.open.last().map_or(Look::START, |element| element.look)
    }

    /// The look of text here: in a table outside of its cells, that of the text before the table, where browsers put it.
    fn around(&self) -> Look {
        let inner = self.inner();
        let last = self.open.len().checked_sub(1);
        if inner.part.is_some() && inner.part == last && inner.cell != last {
            let outside = self.table().and_then(|at| at.checked_sub(1));
            return outside.and_then(|at| self.open.get(at)).map_or(Look::START, |element| element.look);
        }
        self.look()
    }

    fn inner(&self) -> Innermost {
        self.open.last().map_or_else(Innermost::default, |element| element.inner)
    }

    /// Closes an element whose end tag may be omitted, unless it is outside the open table or list.
    fn close_implicitly(&mut self, name: &LocalName) {
        let within = if is_of_table(name) { self.table() } else { self.inner().container };
        if let Some(&at) = self.innermost.get(name).filter(|&&at| Some(at) > within) {
            self.close_from(at);
        }
    }

    fn table(&self) -> Option<usize> {
        self.inner().table
    }

    /// Closes what cannot hold an element of this name: a heading another one, and what stands in a table outside of its cells a part of it.
    fn close_misplaced(&mut self, name: &LocalName) {
        let inner = self.inner();
        if is_heading(name)
            && let Some(last) = self.open.len().checked_sub(1)
            && is_heading(&self.open[last].name)
        {
            self.close_from(last);
        } else if is_of_table(name)
            && *name != local_name!("table")
            && let Some(part) = inner.part.filter(|&part| Some(part) != inner.cell)
        {
            self.close_from(part + 1);
        }
    }

    fn close_from(&mut self, at: usize) {
        self.course.end(at);
        let mut ends_line = false;
        for Element { name, outer_with_name, node, lays_out, edge, .. } in self.open.drain(at..).rev() {
            if let (Some(_), Some(node)) = (&self.listed, node) {
                node.end_before(self.count);
            }
            self.edge = self.edge.max(edge);
            ends_line |= edge == Edge::Shown && is_special(&name);
            self.paragraphs -= usize::from(name == local_name!("p"));
            if lays_out {
                self.boxes.push(Piece::BoxesEnd);
            }
            match outer_with_name {
                Some(outer) => self.innermost.insert(name, outer),
                None => self.innermost.remove(&name),
            };
        }
        if ends_line {
            self.end_line();
        }
    }
}

/// The start tag of an element that an end tag makes.
fn empty_tag(name: &LocalName) -> Tag {
    let (name, kind) = (name.clone(), TagKind::StartTag);
    Tag { kind, name, self_closing: false, attrs: Vec::new(), had_duplicate_attributes: false }
}

#[cfg(test)]
mod tests;
