// SPDX-License-Identifier: GPL-3.0-or-later
//! The rules of style sheets that may hide text, indexed by a key of the element.
//!
//! A rule that may or may not apply hides nothing, but shows text that another one hides: possibly visible text is shown.

use super::cascade::{Cascade, Found, Rank, Slot, perhaps};
use super::compound::{Compound, Pseudo, Selector};
use super::generated::Generated;
use super::matching::{self, Budget, is_such};
use super::media::Applies;
use super::tree::{Needs, Node, Own};
use super::vars::Vars;
use super::work::Left;
use html5ever::tokenizer::Tag;
use html5ever::{LocalName, local_name};
use std::collections::HashMap;
use std::rc::Rc;

/// Declarations that are kept, counted for each selector of their rule.
const MAX_KEPT: usize = 1 << 16;

/// The [weight](Selector::weight) of all copies of selectors, and the declarations that weigh one.
const MAX_WEIGHT: usize = 1 << 16;
const WEIGHT_DECLARATIONS: usize = 8;

/// Rules with conditions besides their key, such as `p.x`; each is tested for each element with the key.
const MAX_COMPOUNDS: usize = 32;

/// The rules that may hide or show text.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    ids: HashMap<String, Rules>,
    classes: HashMap<String, Rules>,
    kinds: HashMap<LocalName, Rules>,
    all: Rules,
    /// The declarations of all rules, for all elements: applied when the budget is spent.
    perhaps: Rules,
    /// Number of declarations kept; 0 if there is nothing to look up.
    kept: usize,
    weight: usize,
    /// The work that was left for the page; of comparisons, the budget has the rest.
    work: Left,
    /// Whether there was more than is read.
    is_over: bool,
    needs: Needs,
    generated: Vec<Generated>,
    vars: Vars,
    budget: Budget,
}

/// The declarations for elements with one key.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Unconditional ones, at most one for each slot.
    own: Vec<Found>,
    /// Ones with further conditions.
    compounds: Vec<(Selector, Vec<Found>)>,
}

impl Rules {
    pub(super) fn add(&mut self, found: Found) {
        if found.0 == Slot::All {
            // Those that it resets come before it, and later ones behind it.
            self.own.retain(|there| there.1 > found.1);
        }
        match self.own.iter_mut().find(|there| there.0 == found.0) {
            Some(there) if there.1 <= found.1 => *there = found,
            Some(_) => (),
            None => self.own.push(found),
        }
    }

    /// The unconditional declarations.
    pub(super) fn own(&self) -> &[Found] {
        &self.own
    }

    fn add_compound(&mut self, selector: Selector, found: Vec<Found>) {
        if self.compounds.len() < MAX_COMPOUNDS {
            self.compounds.push((selector, found));
        } else {
            found
                .into_iter()
                .filter_map(|(s, r, v)| Some((s, r, perhaps(s, v)?)))
                .for_each(|found| self.add(found));
        }
    }

    fn apply(&self, own: &Own, node: Option<&Node>, budget: &Budget, cascade: &mut Cascade) {
        for (selector, found) in &self.compounds {
            let applies = match node {
                Some(node) => matching::fits(selector, node, budget),
                None => is_such(&selector.compound, own, budget),
            };
            if budget.is_over() {
                return;
            }
            if applies == Applies::No {
                continue;
            }
            budget.take_to_add(found.len());
            for &(slot, rank, value) in found {
                let value = if applies == Applies::Yes { Some(value) } else { perhaps(slot, value) };
                if let Some(value) = value {
                    cascade.add(slot, rank, value);
                }
            }
        }
        budget.take_to_add(self.own.len());
        self.add_to(cascade);
    }

    /// Adds the unconditional ones.
    fn add_to(&self, cascade: &mut Cascade) {
        self.own.iter().for_each(|&(slot, rank, value)| cascade.add(slot, rank, value));
    }
}

impl Sheet {
    /// An empty sheet for a page with these custom properties, and this much work.
    pub(super) fn new(vars: Vars, work: Left) -> Self {
        Self { vars, work, budget: Budget::new(work.comparisons), ..Self::default() }
    }

    /// The bytes of text that may be inserted.
    pub(crate) const fn inserts(&self) -> usize {
        self.work.inserted
    }

    /// The work that the page leaves over, apart from the text that was inserted.
    pub(crate) const fn left(&self) -> Left {
        let weight = self.work.weight.saturating_sub(self.weight);
        Left { comparisons: self.budget.left(), weight, inserted: self.work.inserted }
    }

    /// The sheet after all was read: without rules, if there were too many.
    pub(super) fn finish(mut self) -> Self {
        if self.is_over {
            let Self { vars, weight, work, budget, .. } = self;
            return Self { vars, weight, work, budget, ..Self::default() };
        }
        // Most pages only have rules without text, such as those that end floats.
        if self.generated.iter().all(Generated::is_empty) {
            self.generated.clear();
        }
        for generated in &self.generated {
            self.needs.add(generated.selector().needs());
            // The text may contain values of attributes.
            self.needs.anything = true;
            self.needs.attributes = true;
        }
        self
    }

    /// The custom properties and animations of the page.
    pub(super) const fn vars(&self) -> &Vars {
        &self.vars
    }

    /// The document that contains the elements, if rules need an element's context.
    pub(crate) fn document(&self) -> Option<Rc<Node>> {
        self.needs.anything.then(|| Node::root(self.needs))
    }

    /// Whether rules for elements depend on inner or later elements.
    pub(crate) const fn needs_lookahead(&self) -> bool {
        self.needs.following && self.kept > 0
    }

    /// Stores the elements of the page, in order, after it was read.
    pub(crate) fn keep_document(&self, nodes: Vec<Rc<Node>>) {
        // It is read once.
        let _ = self.budget.nodes().set(nodes);
    }

    /// An element of the page by its number, if it was read in advance.
    pub(crate) fn known(&self, number: usize) -> Option<&Rc<Node>> {
        self.budget.nodes().get()?.get(number)
    }

    /// Adds the declarations for an element; returns false if there are certainly none. `node` is the element if the sheet needs
    /// [more](Self::document) than its tag.
    pub(super) fn apply(&self, tag: &Tag, node: Option<&Node>, cascade: &mut Cascade) -> bool {
        if self.kept == 0 {
            return false;
        }
        let alone;
        let own = match node {
            Some(node) => &*node.own,
            None => {
                alone = Own::of(tag);
                &alone
            }
        };
        let by_id = own.id.as_deref().and_then(|id| self.ids.get(id));
        let by_class = own.classes().filter_map(|class| self.classes.get(class));
        let all = by_class.chain(by_id).chain(self.kinds.get(&tag.name)).chain([&self.all]);
        let budget = &self.budget;
        all.take_while(|_| !budget.is_over()).for_each(|rules| rules.apply(own, node, budget, cascade));
        if budget.is_over() {
            // Some were not looked at.
            self.perhaps.add_to(cascade);
        }
        true
    }

    /// The text that rules insert before or behind that of an element, and the declarations for it.
    pub(crate) fn generated(&self, node: Option<&Node>, pseudo: Pseudo) -> Option<(String, &Cascade)> {
        let node = node.filter(|_| !self.generated.is_empty() && !self.budget.is_over())?;
        let fitting = self.generated.iter().filter(|generated| {
            generated.is_for(pseudo)
                && matching::fits(generated.selector(), node, &self.budget) == Applies::Yes
        });
        let highest = fitting.max_by_key(|generated| generated.rank())?;
        (!highest.is_empty()).then(|| (highest.text(&node.own), highest.cascade()))
    }

    /// Adds the declarations of a rule for one of its selectors.
    pub(super) fn add(&mut self, selector: &Selector, found: &[Found]) {
        let of_selector = |&(slot, rank, value): &Found| {
            let value = if selector.is_cut { perhaps(slot, value) } else { Some(value) };
            Some((slot, Rank { specificity: selector.specificity, ..rank }, value?))
        };
        let found: Vec<_> = found.iter().filter_map(of_selector).collect();
        if found.is_empty() || !self.keep(found.len()) {
            return;
        }
        let may_apply =
            found.iter().filter_map(|&(slot, rank, value)| Some((slot, rank, perhaps(slot, value)?)));
        may_apply.for_each(|found| self.perhaps.add(found));
        let Compound { kind, id, classes, others } = &selector.compound;
        let is_plain = selector.is_of_one() && others.is_empty();
        self.needs.add(selector.needs());
        let is_one = usize::from(kind.is_some()) + usize::from(id.is_some()) + classes.len() <= 1;
        let rules = match (kind, id, classes.last()) {
            (_, Some(id), _) => self.ids.entry(id.clone()).or_default(),
            (_, None, Some(class)) => self.classes.entry(class.clone()).or_default(),
            (Some(kind), None, None) => self.kinds.entry(kind.clone()).or_default(),
            (None, None, None) => &mut self.all,
        };
        if is_plain && is_one {
            found.into_iter().for_each(|found| rules.add(found));
        } else {
            rules.add_compound(selector.clone(), found);
        }
    }

    /// Adds a rule that inserts text, or keeps others from it.
    pub(super) fn add_generated(&mut self, generated: Generated) {
        let is_same = |there: &&Generated| there.is_empty() == generated.is_empty();
        if self.generated.iter().filter(is_same).count() < Generated::MAX {
            self.generated.push(generated);
        }
    }

    /// Whether rules may be for `html` or `body`.
    pub(crate) fn is_for_pages(&self) -> bool {
        let has_any = |rules: &Rules| !rules.own.is_empty() || !rules.compounds.is_empty();
        self.kept > 0
            && (has_any(&self.all)
                || [local_name!("html"), local_name!("body")]
                    .iter()
                    .any(|kind| self.kinds.contains_key(kind)))
    }

    /// Whether any rule inserts text.
    pub(crate) const fn generates_text(&self) -> bool {
        !self.generated.is_empty()
    }

    /// Counts more declarations kept; returns false if there are too many.
    fn keep(&mut self, more: usize) -> bool {
        self.kept = self.kept.saturating_add(more);
        self.is_over |= self.kept > MAX_KEPT;
        self.weigh(more / WEIGHT_DECLARATIONS)
    }

    /// Counts the weight of more copies of selectors; returns false if all are too heavy.
    pub(super) fn weigh(&mut self, more: usize) -> bool {
        let weight = self.weight.saturating_add(more);
        self.is_over |= weight > MAX_WEIGHT.min(self.work.weight);
        if !self.is_over {
            self.weight = weight;
        }
        !self.is_over
    }

    /// Drops all rules, as there are more than are read: the unread rest might show text that others hide.
    pub(super) const fn give_up(&mut self) {
        self.is_over = true;
    }

    pub(super) const fn gave_up(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests;
