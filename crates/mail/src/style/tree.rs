// SPDX-License-Identifier: GPL-3.0-or-later
//! What selectors ask of an element, and of those around it and before it.

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Elements with one parent that are remembered, the last ones; attributes and classes of an element.
const MAX_BEFORE: usize = 16;
const MAX_ATTRIBUTES: usize = 32;
const MAX_CLASSES: usize = 32;

/// Names of elements with one parent that are counted apart.
const MAX_KINDS: usize = 32;

/// An element by itself.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) kind: LocalName,
    pub(super) id: Option<String>,
    pub(super) classes: Vec<String>,
    pub(super) attributes: Vec<(LocalName, StrTendril)>,
    /// Its number among those with its parent, from 1, and among those of its name; `None` beyond a bound.
    pub(super) index: u32,
    pub(super) index_of_kind: Option<u32>,
}

impl Own {
    /// `None` where it has more classes than are read.
    pub(super) fn of(tag: &Tag) -> Option<Self> {
        let value = |name| tag.attrs.iter().find(|a| a.name.local == name).map(|a| &*a.value);
        let names = value(local_name!("class")).unwrap_or("").split_ascii_whitespace();
        let classes: Vec<String> = names.take(MAX_CLASSES + 1).map(str::to_owned).collect();
        let id = value(local_name!("id")).map(|id| id.trim().to_owned());
        let kind = tag.name.clone();
        (classes.len() <= MAX_CLASSES).then(|| Self { kind, id, classes, ..Self::plain(LocalName::from("")) })
    }

    fn plain(kind: LocalName) -> Self {
        let (classes, attributes) = (Vec::new(), Vec::new());
        Self { kind, id: None, classes, attributes, index: 1, index_of_kind: Some(1) }
    }
}

/// An element among others.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(super) own: Rc<Own>,
    pub(super) parent: Option<Rc<Self>>,
    /// Those before it with the same parent, the last one last.
    pub(super) before: Vec<Rc<Own>>,
    children: Rc<RefCell<Children>>,
    needs: Needs,
}

/// What selectors ask for of elements besides their types, ids and classes, and those around them.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Needs {
    /// They ask for anything of this kind.
    pub(super) anything: bool,
    pub(super) attributes: bool,
    pub(super) siblings: bool,
}

/// What is known of the elements in one.
#[derive(Debug, Default)]
struct Children {
    count: u32,
    kinds: Vec<(LocalName, u32)>,
    last: VecDeque<Rc<Own>>,
    /// The same of an element that nobody wrote, and which is there nevertheless.
    implied: Option<(LocalName, Rc<RefCell<Self>>)>,
}

impl Node {
    /// The document, in which there is no element.
    pub(crate) fn root(needs: Needs) -> Rc<Self> {
        let own = Rc::new(Own::plain(LocalName::from("")));
        Rc::new(Self { own, parent: None, before: Vec::new(), children: Rc::default(), needs })
    }

    /// Whether it is the document.
    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }

    /// An element that begins in this one. Of those that are left out around it (HTML standard, 13.1.2.4) it tells the usual ones.
    pub(crate) fn open(self: &Rc<Self>, tag: &Tag) -> Rc<Self> {
        let parent = self.home(&tag.name);
        let mut children = parent.children.borrow_mut();
        let mut own = Own::of(tag).unwrap_or_else(|| Own::plain(tag.name.clone()));
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
        let own = Rc::new(own);
        let before = children.last.iter().cloned().collect();
        if self.needs.siblings {
            if children.last.len() == MAX_BEFORE {
                children.last.pop_front();
            }
            children.last.push_back(Rc::clone(&own));
        }
        drop(children);
        Rc::new(Self { own, parent: Some(parent), before, children: Rc::default(), needs: self.needs })
    }

    /// The element in which one of this name stands, if it is written in this one.
    fn home(self: &Rc<Self>, kind: &LocalName) -> Rc<Self> {
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
        let mut children = self.children.borrow_mut();
        let known = children.implied.take_if(|(there, _)| there == kind);
        let (name, inner) = known.unwrap_or_else(|| (kind.clone(), Rc::default()));
        children.implied = Some((name, Rc::clone(&inner)));
        let own = Rc::new(Own::plain(kind.clone()));
        Rc::new(Self {
            own,
            parent: Some(Rc::clone(self)),
            before: Vec::new(),
            children: inner,
            needs: self.needs,
        })
    }

    /// Whether there are more before it than are remembered.
    pub(super) fn has_forgotten(&self) -> bool {
        self.before.len() == MAX_BEFORE
    }
}

impl Children {
    /// The number of another one of this name.
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
