// SPDX-License-Identifier: GPL-3.0-or-later
//! Selectors: compounds, each a test of one element, and the combinators between them.

use super::attribute::Attribute;
use super::tree::Needs;
use html5ever::LocalName;

/// Classes of one compound that are read, and its other conditions.
pub(super) const MAX_CLASSES: usize = 16;
pub(super) const MAX_OTHERS: usize = 8;

/// Compounds of one selector.
pub(super) const MAX_OUTER: usize = 12;

/// Bytes of texts that weigh as much as a condition, and those that a class or id takes beside its name.
const WEIGHT_BYTES: usize = 64;
const TEXT_BYTES: usize = 32;

/// The conditions of a compound on one element.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Compound {
    pub(super) kind: Option<LocalName>,
    pub(super) id: Option<String>,
    pub(super) classes: Vec<String>,
    pub(super) others: Vec<Simple>,
}

/// A condition other than type, id and class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Simple {
    Attribute(Attribute),
    /// Its number is `a * n + b` for some `n`, counted among all children of its parent or some of them.
    Nth {
        a: i32,
        b: i32,
        among: Among,
        from_end: bool,
    },
    Not(Vec<Selector>),
    Any(Vec<Selector>),
    /// An element inside it or behind it matches.
    Has(Vec<Selector>),
    /// It has neither text nor elements.
    Empty,
    /// The outermost element.
    Root,
    /// Never true while a message is read: under the mouse, visited.
    Never,
    /// A state of fields and the like; whether all other elements fit it.
    OfState(bool),
    /// Unknown here.
    Unknown,
}

/// The elements among which one is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Among {
    All,
    /// Those with its name.
    Kind,
    Such(Vec<Selector>),
}

/// The relation of an element to the one that the next compound matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Combinator {
    Inside,
    Child,
    Next,
    Later,
}

/// Where a rule inserts text in an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pseudo {
    Before,
    After,
}

/// One selector of a list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Selector {
    pub(super) compound: Compound,
    /// The compounds to its left, the nearest first.
    pub(super) outer: Vec<(Combinator, Compound)>,
    pub(super) specificity: u32,
    /// Whether parts of it were dropped.
    pub(super) is_cut: bool,
    pub(super) pseudo: Option<Pseudo>,
    /// Whether its first compound is the element of the outer rule (`&`). Otherwise, in a nested rule, `leading` relates it to that
    /// element.
    pub(super) joins: bool,
    pub(super) leading: Option<Combinator>,
}

impl Selector {
    /// Whether it depends on one element alone.
    pub(super) const fn is_of_one(&self) -> bool {
        self.outer.is_empty()
    }

    /// The facts that it needs.
    pub(super) fn needs(&self) -> Needs {
        let compounds = self.outer.iter().map(|(_, compound)| compound).chain([&self.compound]);
        let others = || compounds.clone().flat_map(|compound| &compound.others);
        let is_beside = |(combinator, _): &(_, _)| matches!(combinator, Combinator::Next | Combinator::Later);
        let mut needs = Needs {
            anything: !self.outer.is_empty() || others().next().is_some(),
            siblings: self.outer.iter().any(is_beside),
            ..Needs::default()
        };
        for simple in others() {
            needs.attributes |= matches!(simple, Simple::Attribute(_) | Simple::OfState(_));
            needs.siblings |= matches!(simple, Simple::Nth { among: Among::Such(_), .. });
            needs.following |=
                matches!(simple, Simple::Has(_) | Simple::Empty | Simple::Nth { from_end: true, .. });
            simple.inner().iter().for_each(|selector| needs.add(selector.needs()));
        }
        needs
    }

    /// The memory that a copy of selectors takes, in units of some hundred bytes: one for each compound and condition, and more for long
    /// texts.
    pub(super) fn weight(all: &[Self]) -> usize {
        let compounds =
            all.iter().flat_map(|one| one.outer.iter().map(|(_, compound)| compound).chain([&one.compound]));
        compounds.map(Compound::weight).sum()
    }

    /// Its relation to the tested element, in `:has()`.
    pub(super) fn leading(&self) -> Combinator {
        self.leading.unwrap_or(Combinator::Inside)
    }

    /// The selector when nested in a rule with the selector `parent` (CSS Nesting Module, 3).
    pub(super) fn within(mut self, parent: &Self) -> Self {
        self.specificity = self.specificity.saturating_add(parent.specificity);
        self.is_cut |= parent.is_cut;
        if self.joins {
            let first = self.outer.last_mut().map_or(&mut self.compound, |(_, compound)| compound);
            self.is_cut |= !first.join(&parent.compound);
        } else {
            self.outer.push((self.leading.unwrap_or(Combinator::Inside), parent.compound.clone()));
        }
        self.outer.extend(parent.outer.iter().cloned());
        self.is_cut |= self.outer.len() > MAX_OUTER;
        self.outer.truncate(MAX_OUTER);
        self
    }
}

impl Simple {
    /// The selectors in it.
    fn inner(&self) -> &[Selector] {
        match self {
            Self::Not(all) | Self::Any(all) | Self::Has(all) => all,
            Self::Nth { among: Among::Such(all), .. } => all,
            _ => &[],
        }
    }
}

impl Compound {
    /// Whether it has no conditions.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn weight(&self) -> usize {
        let texts = self.id.iter().chain(&self.classes).map(|text| TEXT_BYTES + text.len());
        let values = self.others.iter().map(|simple| match simple {
            Simple::Attribute(attribute) => attribute.bytes(),
            _ => 0,
        });
        let inner: usize = self.others.iter().map(|simple| Selector::weight(simple.inner())).sum();
        1 + self.others.len() + inner + texts.chain(values).sum::<usize>() / WEIGHT_BYTES
    }

    /// Adds all conditions of another one; returns false if they conflict or are too many.
    fn join(&mut self, other: &Self) -> bool {
        let is_one = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        let fits = is_one(&self.id, &other.id)
            && (self.kind.is_none() || other.kind.is_none() || self.kind == other.kind);
        self.kind = self.kind.take().or_else(|| other.kind.clone());
        self.id = self.id.take().or_else(|| other.id.clone());
        self.classes.extend(other.classes.iter().cloned());
        self.others.extend(other.others.iter().cloned());
        fits && self.classes.len() <= 2 * MAX_CLASSES && self.others.len() <= 2 * MAX_OTHERS
    }
}
