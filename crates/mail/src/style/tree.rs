// SPDX-License-Identifier: GPL-3.0-or-later
//! The facts about an element and its surroundings that selectors need.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Siblings that are kept, the last ones, and attributes of an element. Its classes cost the budget of the page.
const MAX_BEFORE: usize = 16;
const MAX_ATTRIBUTES: usize = 32;

/// Names of siblings that are counted separately.
const MAX_KINDS: usize = 32;

/// An element without its context.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) kind: LocalName,
    pub(super) id: Option<StrTendril>,
    /// Its attribute `class`; empty without one.
    class: StrTendril,
    pub(super) attributes: Vec<(LocalName, StrTendril)>,
    /// Its number among its siblings, from 1, and among those with its name; `None` beyond a bound.
    pub(super) index: u32,
    pub(super) index_of_kind: Option<u32>,
    /// Whether it has text or an element.
    pub(super) is_filled: Cell<bool>,
}

impl Own {
    /// The element of a tag, without attributes.
    pub(super) fn of(tag: &Tag) -> Self {
        let value = |name| tag.attrs.iter().find(|a| a.name.local == name).map(|a| &a.value);
        // Cloning shares the value, without a copy.
        let class = value(local_name!("class")).cloned().unwrap_or_default();
        let id = value(local_name!("id")).map(|id| match id.trim() {
            trimmed if trimmed.len() == id.len() => id.clone(),
            trimmed => StrTendril::from_slice(trimmed),
        });
        Self { id, class, ..Self::plain(tag.name.clone()) }
    }

    /// Its classes.
    pub(super) fn classes(&self) -> impl Iterator<Item = &str> {
        self.class.split_ascii_whitespace()
    }

    /// Bytes of all its classes.
    pub(super) fn class_bytes(&self) -> usize {
        self.class.len()
    }

    fn plain(kind: LocalName) -> Self {
        let (class, attributes) = (StrTendril::new(), Vec::new());
        let is_filled = Cell::new(false);
        Self { kind, id: None, class, attributes, index: 1, index_of_kind: Some(1), is_filled }
    }
}

/// An element in its context.
#[derive(Debug)]
pub(crate) struct Node {
    pub(super) own: Rc<Own>,
    pub(super) parent: Option<Rc<Self>>,
    /// Its siblings before it, the last one last.
    pub(super) before: Vec<Rc<Own>>,
    children: Inside,
    needs: Needs,
    /// Its number in the page, from 0, and that of the first element behind it, if the page was [read in
    /// advance](super::Sheet::keep_document).
    pub(super) number: Cell<u32>,
    pub(super) end: Cell<u32>,
}

/// The facts that selectors need besides types, ids and classes, and those of outer elements.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Needs {
    /// Any fact of this kind.
    pub(super) anything: bool,
    pub(super) attributes: bool,
    pub(super) siblings: bool,
    /// Also inner and later elements, so that the page must be read twice.
    pub(super) following: bool,
}

impl Needs {
    pub(super) const fn add(&mut self, other: Self) {
        self.anything |= other.anything;
        self.attributes |= other.attributes;
        self.siblings |= other.siblings;
        self.following |= other.following;
    }
}

/// The children of an element that was written, or of one that is implied and shared by several nodes.
#[derive(Debug)]
enum Inside {
    Written(RefCell<Children>),
    Implied(Rc<RefCell<Children>>),
}

impl Default for Inside {
    fn default() -> Self {
        Self::Written(RefCell::default())
    }
}

impl Inside {
    fn get(&self) -> &RefCell<Children> {
        match self {
            Self::Written(children) => children,
            Self::Implied(children) => children,
        }
    }
}

/// Facts about the children of an element.
#[derive(Debug, Default)]
struct Children {
    count: u32,
    kinds: Vec<(LocalName, u32)>,
    last: VecDeque<Rc<Own>>,
    /// The children of an implied element in it.
    implied: Option<(LocalName, Rc<RefCell<Self>>)>,
}

impl Node {
    /// The document, the root of all elements.
    pub(crate) fn root(needs: Needs) -> Rc<Self> {
        Self::new(Own::plain(LocalName::from("")), None, Vec::new(), Inside::default(), needs)
    }

    fn new(
        own: Own,
        parent: Option<Rc<Self>>,
        before: Vec<Rc<Own>>,
        children: Inside,
        needs: Needs,
    ) -> Rc<Self> {
        let (number, end) = (Cell::new(0), Cell::new(0));
        Rc::new(Self { own: Rc::new(own), parent, before, children, needs, number, end })
    }

    /// Whether it is the document.
    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// An element that begins in this one. Creates the usual implied elements around it (HTML standard, 13.1.2.4).
    pub(crate) fn open(self: &Rc<Self>, tag: &Tag) -> Rc<Self> {
        let parent = self.actual_parent(&tag.name);
        let mut children = parent.children.get().borrow_mut();
        let mut own = Own::of(tag);
        if self.needs.attributes {
            own.attributes = tag
                .attrs
                .iter()
                .take(MAX_ATTRIBUTES)
                .map(|a| (a.name.local.clone(), a.value.clone()))
                .collect();
        }
        children.count = children.count.saturating_add(1);
        own.index = children.count;
        own.index_of_kind = children.number(&tag.name);
        let before = children.last.iter().cloned().collect();
        drop(children);
        parent.own.is_filled.set(true);
        let node = Self::new(own, Some(Rc::clone(&parent)), before, Inside::default(), self.needs);
        if self.needs.siblings {
            let last = &mut parent.children.get().borrow_mut().last;
            if last.len() == MAX_BEFORE {
                last.pop_front();
            }
            last.push_back(Rc::clone(&node.own));
        }
        node
    }

    /// The parent of an element with this name that is written in this one.
    fn actual_parent(self: &Rc<Self>, kind: &LocalName) -> Rc<Self> {
        let is_head = |kind: &LocalName| {
            matches!(
                *kind,
                local_name!("style")
                    | local_name!("title")
                    | local_name!("meta")
                    | local_name!("link")
                    | local_name!("base")
            )
        };
        let is_main = matches!(*kind, local_name!("head") | local_name!("body") | local_name!("frameset"));
        let place = if is_head(kind) { local_name!("head") } else { local_name!("body") };
        match self.own.kind {
            _ if self.is_root() && *kind == local_name!("html") => Rc::clone(self),
            _ if self.is_root() && is_main => self.implied(&local_name!("html")),
            _ if self.is_root() => self.implied(&local_name!("html")).implied(&place),
            local_name!("html") if !is_main => self.implied(&place),
            local_name!("table") if *kind == local_name!("tr") => self.implied(&local_name!("tbody")),
            _ => Rc::clone(self),
        }
    }

    fn implied(self: &Rc<Self>, kind: &LocalName) -> Rc<Self> {
        let mut children = self.children.get().borrow_mut();
        let known = children.implied.take_if(|(there, _)| there == kind);
        let (name, inner) = known.unwrap_or_else(|| (kind.clone(), Rc::default()));
        children.implied = Some((name, Rc::clone(&inner)));
        let own = Own::plain(kind.clone());
        Self::new(own, Some(Rc::clone(self)), Vec::new(), Inside::Implied(inner), self.needs)
    }

    /// Notes that it has text.
    pub(crate) fn fill(&self) {
        self.own.is_filled.set(true);
    }

    /// Sets its number in the page.
    pub(crate) fn begin(&self, number: usize) {
        self.number.set(u32::try_from(number).unwrap_or(u32::MAX));
        self.end_before(number + 1);
    }

    /// Sets the number of the element behind it.
    pub(crate) fn end_before(&self, number: usize) {
        self.end.set(u32::try_from(number).unwrap_or(u32::MAX));
    }

    /// The number of its parent's children, in all or with one name; final only after the page was read.
    pub(super) fn siblings(&self, kind: Option<&LocalName>) -> Option<u32> {
        let children = self.parent.as_ref()?.children.get().borrow();
        match kind {
            None => Some(children.count),
            Some(kind) => children.kinds.iter().find(|(there, _)| there == kind).map(|&(_, count)| count),
        }
    }

    /// Whether both have the same parent.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let of = |node: &Self| node.parent.as_ref().map(|parent| std::ptr::from_ref(parent.children.get()));
        of(self) == of(other)
    }

    /// Whether `other` is its parent.
    pub(super) fn is_child_of(&self, other: &Self) -> bool {
        self.parent.as_ref().is_some_and(|parent| std::ptr::eq(parent.children.get(), other.children.get()))
    }

    /// Whether siblings before it may have been dropped.
    pub(super) fn has_forgotten(&self) -> bool {
        self.before.len() == MAX_BEFORE
    }
}

impl Children {
    /// The number of another child with this name.
    fn number(&mut self, kind: &LocalName) -> Option<u32> {
        if let Some((_, count)) = self.kinds.iter_mut().find(|(there, _)| there == kind) {
            *count = count.saturating_add(1);
            return Some(*count);
        }
        (self.kinds.len() < MAX_KINDS).then(|| {
            self.kinds.push((kind.clone(), 1));
            1
        })
    }
}
