// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether a selector matches an element.

use super::compound::{Among, Combinator, Compound, Selector, Simple};
use super::media::Applies;
use super::tree::{Node, Own};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// The bytes of an attribute's value that cost as much as a comparison, and the declarations that do when they are added to an element's.
const COMPARISON_BYTES: usize = 64;
const COMPARISON_DECLARATIONS: usize = 8;

/// The elements of a page, if they were read in advance, and the comparisons left for it. A comparison beyond the budget may match.
#[derive(Debug, Default)]
pub(super) struct Budget {
    left: Cell<u32>,
    nodes: OnceCell<Vec<Rc<Node>>>,
}

impl Budget {
    pub(super) const fn new(comparisons: u32) -> Self {
        Self { left: Cell::new(comparisons), nodes: OnceCell::new() }
    }

    /// The elements of the page, in order.
    pub(super) const fn nodes(&self) -> &OnceCell<Vec<Rc<Node>>> {
        &self.nodes
    }

    /// The comparisons left.
    pub(super) const fn left(&self) -> u32 {
        self.left.get()
    }

    pub(super) fn is_over(&self) -> bool {
        self.left.get() == 0
    }

    fn take(&self) -> bool {
        self.take_for(0)
    }

    /// Takes a comparison with a text of so many bytes, which costs more the longer it is. Returns false if too little is left.
    fn take_for(&self, bytes: usize) -> bool {
        self.take_more(bytes / COMPARISON_BYTES)
    }

    /// Takes the work of adding so many declarations.
    pub(super) fn take_to_add(&self, declarations: usize) {
        self.take_more(declarations / COMPARISON_DECLARATIONS);
    }

    /// Takes one and so many more.
    fn take_more(&self, more: usize) -> bool {
        let cost = u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1);
        let left = self.left.get();
        self.left.set(left.saturating_sub(cost));
        left >= cost
    }
}

/// Whether all of a selector fits an element.
pub(super) fn fits(selector: &Selector, node: &Node, budget: &Budget) -> Applies {
    let own = compound(&selector.compound, &node.own, node, budget);
    if own == Applies::No {
        return own;
    }
    let most = if selector.is_cut { Applies::Perhaps } else { Applies::Yes };
    own.min(most).min(outer(&selector.outer, node, 0, budget))
}

/// Whether the compounds left of one match; that one matched `node`, or the element `back` places before it.
fn outer(rest: &[(Combinator, Compound)], node: &Node, back: usize, budget: &Budget) -> Applies {
    let Some(((combinator, asked), rest)) = rest.split_first() else { return Applies::Yes };
    let mut found = Applies::No;
    match combinator {
        Combinator::Inside | Combinator::Child => {
            let mut next = node.parent.as_ref().filter(|parent| !parent.is_root());
            while let Some(parent) = next {
                if budget.is_over() {
                    return Applies::Perhaps;
                }
                let here = compound(asked, &parent.own, parent, budget);
                if here > Applies::No {
                    found = found.max(here.min(outer(rest, parent, 0, budget)));
                }
                if found == Applies::Yes || *combinator == Combinator::Child {
                    break;
                }
                next = parent.parent.as_ref().filter(|parent| !parent.is_root());
            }
        }
        Combinator::Next | Combinator::Later => {
            let mut back = back + 1;
            while let Some(own) = node.before.len().checked_sub(back).and_then(|at| node.before.get(at)) {
                if budget.is_over() {
                    return Applies::Perhaps;
                }
                let here = compound(asked, own, node, budget);
                if here > Applies::No {
                    found = found.max(here.min(outer(rest, node, back, budget)));
                }
                if found == Applies::Yes || *combinator == Combinator::Next {
                    return found;
                }
                back += 1;
            }
            if node.has_forgotten() {
                found = found.max(Applies::Perhaps);
            }
        }
    }
    found
}

/// Whether a compound matches an element, which is `node` or stands beside it.
fn compound(asked: &Compound, own: &Rc<Own>, node: &Node, budget: &Budget) -> Applies {
    match is_such(asked, own, budget) {
        Applies::Yes => {
            asked.others.iter().map(|simple| one(simple, own, node, budget)).min().unwrap_or(Applies::Yes)
        }
        found => found,
    }
}

/// Whether an element has the type, id and classes of a compound.
pub(super) fn is_such(asked: &Compound, own: &Own, budget: &Budget) -> Applies {
    // Each class that is asked for is searched for in the element's.
    let id_bytes = asked.id.as_ref().map_or(0, String::len);
    if !budget.take_for(asked.classes.len().saturating_mul(own.class_bytes()).saturating_add(id_bytes)) {
        return Applies::Perhaps;
    }
    sure(
        asked.kind.as_ref().is_none_or(|kind| own.kind == *kind)
            && asked.id.as_ref().is_none_or(|id| own.id.as_deref() == Some(id))
            && asked.classes.iter().all(|class| own.classes().any(|own| own == class)),
    )
}

const fn sure(fits: bool) -> Applies {
    if fits { Applies::Yes } else { Applies::No }
}

fn one(simple: &Simple, own: &Rc<Own>, node: &Node, budget: &Budget) -> Applies {
    match simple {
        Simple::Attribute(attribute) => {
            let value = own.attributes.iter().find(|(name, _)| *name == attribute.name);
            let Some((_, value)) = value else { return Applies::No };
            if budget.take_for(value.len()) { sure(attribute.fits(value)) } else { Applies::Perhaps }
        }
        Simple::Nth { a, b, among, from_end } => match number(among, *from_end, own, node, budget) {
            Count::Of(number) => sure(is_nth(i64::from(number), i64::from(*a), i64::from(*b))),
            Count::None => Applies::No,
            Count::Unknown => Applies::Perhaps,
        },
        Simple::Not(all) => match any(all, own, node, budget) {
            Applies::Yes => Applies::No,
            Applies::No => Applies::Yes,
            Applies::Perhaps => Applies::Perhaps,
        },
        Simple::Any(all) => any(all, own, node, budget),
        Simple::Has(all) => has(all, own, node, budget),
        Simple::Empty if budget.nodes.get().is_some() => sure(!own.is_filled.get()),
        Simple::Empty => Applies::Perhaps,
        Simple::Root => sure(&*own.kind == "html"),
        Simple::Never => Applies::No,
        Simple::OfState(of_others) => {
            if has_state(own) {
                Applies::Perhaps
            } else {
                sure(*of_others)
            }
        }
        Simple::Unknown => Applies::Perhaps,
    }
}

/// Whether an element has a state that readers, programs or its content change.
fn has_state(own: &Own) -> bool {
    const STATEFUL: [&str; 16] = [
        "input", "select", "textarea", "button", "form", "fieldset", "output", "object", "option",
        "optgroup", "details", "dialog", "progress", "meter", "video", "audio",
    ];
    // Names with a dash are for elements that scripts define.
    STATEFUL.contains(&&*own.kind)
        || own.kind.contains('-')
        || own.attributes.iter().any(|(name, _)| &**name == "contenteditable")
}

/// The number of an element among others.
enum Count {
    Of(u32),
    /// It is not among them.
    None,
    Unknown,
}

fn number(among: &Among, from_end: bool, own: &Rc<Own>, node: &Node, budget: &Budget) -> Count {
    let (index, kind) = match among {
        Among::All => (Some(own.index), None),
        Among::Kind => (own.index_of_kind, Some(&own.kind)),
        Among::Such(all) => return number_of_such(all, from_end, own, node, budget),
    };
    let Some(index) = index else { return Count::Unknown };
    if !from_end {
        return Count::Of(index);
    }
    // In a page that was not read in advance, later elements are unknown.
    let all = budget.nodes.get().and_then(|_| node.siblings(kind));
    all.and_then(|all| all.checked_sub(index)).map_or(Count::Unknown, |behind| Count::Of(behind + 1))
}

fn number_of_such(all: &[Selector], from_end: bool, own: &Rc<Own>, node: &Node, budget: &Budget) -> Count {
    if from_end || !Rc::ptr_eq(own, &node.own) || node.has_forgotten() {
        return Count::Unknown;
    }
    match any(all, own, node, budget) {
        Applies::Yes => (),
        Applies::No => return Count::None,
        Applies::Perhaps => return Count::Unknown,
    }
    let mut count = 1;
    for before in &node.before {
        match any(all, before, node, budget) {
            Applies::Yes => count += 1,
            Applies::No => (),
            Applies::Perhaps => return Count::Unknown,
        }
    }
    Count::Of(count)
}

/// Whether one of the selectors matches something in `node` or behind it.
fn has(all: &[Selector], own: &Rc<Own>, node: &Node, budget: &Budget) -> Applies {
    let Some(nodes) = budget.nodes.get().filter(|_| Rc::ptr_eq(own, &node.own)) else {
        return Applies::Perhaps;
    };
    let [start, end] = [node.number.get().saturating_add(1), node.end.get()].map(|n| n as usize);
    let mut found = Applies::No;
    for selector in all {
        let places = match selector.leading() {
            Combinator::Inside | Combinator::Child => nodes.get(start..end),
            Combinator::Next | Combinator::Later => nodes.get(end..),
        };
        for other in places.unwrap_or_default() {
            if !budget.take() {
                return Applies::Perhaps;
            }
            let is_there = match selector.leading() {
                Combinator::Inside => true,
                Combinator::Child => other.is_child_of(node),
                Combinator::Next | Combinator::Later => other.is_beside(node),
            };
            if is_there {
                // The outer elements of the last compound may be outside `node`.
                let most = if selector.is_of_one() { Applies::Yes } else { Applies::Perhaps };
                found = found.max(fits(selector, other, budget).min(most));
                if found == Applies::Yes || selector.leading() == Combinator::Next {
                    break;
                }
            }
        }
    }
    found
}

fn any(all: &[Selector], own: &Rc<Own>, node: &Node, budget: &Budget) -> Applies {
    let of = |selector: &Selector| {
        if budget.is_over() {
            return Applies::Perhaps;
        }
        if Rc::ptr_eq(own, &node.own) {
            fits(selector, node, budget)
        } else if selector.is_of_one() {
            compound(&selector.compound, own, node, budget)
        } else {
            Applies::Perhaps
        }
    };
    let mut found = Applies::No;
    for selector in all {
        found = found.max(of(selector));
        // The other selectors do not change the result.
        if found == Applies::Yes || budget.is_over() {
            break;
        }
    }
    found
}

/// Whether `number` is `a * n + b` for an `n` from 0.
const fn is_nth(number: i64, a: i64, b: i64) -> bool {
    let rest = number - b;
    if a == 0 { rest == 0 } else { rest % a == 0 && rest / a >= 0 }
}

#[cfg(test)]
mod tests {
    use super::super::selector::list;
    use super::super::tree::Needs;
    use super::*;
    use cssparser::Parser;
    use html5ever::tokenizer::{Tag, TagKind};
    use html5ever::{Attribute, LocalName, QualName, ns};

    /// Comparisons with long values and classes take as much of the budget as many with short ones.
    #[test]
    fn long_values_cost_their_length() {
        const LENGTH: usize = 64_000;
        let attribute = |name: &str| {
            let name = QualName::new(None, ns!(), LocalName::from(name));
            Attribute { name, value: "q".repeat(LENGTH).into() }
        };
        let attrs = vec![attribute("title"), attribute("class")];
        let tag = Tag {
            kind: TagKind::StartTag,
            name: "p".into(),
            self_closing: false,
            attrs,
            had_duplicate_attributes: false,
        };
        let needs = Needs { anything: true, attributes: true, ..Needs::default() };
        let node = Node::root(needs).open(&tag);
        for css in ["[title*=xy]", "[title*=xy i]", "[title~=xy][title$=z]", ".a", ":is(.a, [title*=x])"] {
            let selector = list(&mut Parser::new(css), false).unwrap().remove(0);
            let budget = Budget::new(u32::try_from(10 * LENGTH / COMPARISON_BYTES).unwrap());
            let compared = (0..100).take_while(|_| fits(&selector, &node, &budget) == Applies::No).count();
            assert!((4..10).contains(&compared), "{css}: {compared}");
        }
    }
}
