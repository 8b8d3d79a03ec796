// SPDX-License-Identifier: GPL-3.0-or-later
//! The signatures of a message, each in its slot.

use super::known::Known;
use super::sample::Passage;
use bulkmark_types::FederationKey;
use bulkmark_types::{Kind, Signature};

/// What is reported of a passage, and what else is asked for in its slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The passages that come first in the slot's order, and their signatures. The first one is reported; a count is the
    /// highest of all of them. Never empty.
    pub passages: Vec<(Passage, Signature)>,
    /// Whether the one that is reported begins at the end of the text and goes on at its beginning.
    pub goes_round: bool,
}

impl Slot {
    /// The signature that is reported.
    #[must_use]
    pub fn reported(&self) -> Signature {
        self.passages[0].1
    }

    /// Where its passage stands, by the number of its first word.
    #[must_use]
    pub fn place(&self) -> usize {
        self.passages[0].0.at
    }
}

/// From what else than text a signature was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// An attached file, by its number.
    File(usize),
    /// All links together.
    Links,
    /// The path of a picture on the net, by its number.
    Path(usize),
    /// One of the numbers of an enclosed picture. One alone says nothing.
    Band(u8),
    /// What its style hides.
    Hidden,
}

/// Bands of a picture that must agree, of seven.
const BANDS: usize = 3;

/// The `near` signatures of a message; all empty when it says too little.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Near {
    /// Those of its text.
    pub slots: Vec<Slot>,
    /// Those of what is attached or linked, where there is next to no text.
    pub things: Vec<(Thing, Signature)>,
    /// What else is asked for the [bands](Thing::Band) of a picture: as they would be if their least certain bits were others.
    pub unsure: Vec<(u8, Signature)>,
    /// That of the few words beside the things, where other words would mean another message. A thing that was seen while this
    /// was not stands beside ever other text. It is reported too.
    pub rest: Option<Signature>,
}

impl Near {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.things.is_empty()
    }

    /// The signatures that a message reports, eight at most.
    pub fn reported(&self) -> impl Iterator<Item = Signature> + '_ {
        let things = self.things.iter().map(|(_, signature)| *signature);
        self.slots.iter().map(Slot::reported).chain(things).chain(self.rest)
    }

    /// What its picture counts: `known` says of a signature how often it was seen, and `says` what that counts. A message reports
    /// each band in one form, so all forms together are the messages with this band; the picture counts as its third highest
    /// band. Nothing where there is no picture.
    pub(super) fn picture(&self, known: impl Fn(Signature) -> Known, says: impl Fn(Known) -> u32) -> u32 {
        let of_band = |&(thing, signature): &(Thing, Signature)| {
            let Thing::Band(band) = thing else { return None };
            let forms = self.unsure.iter().filter(|&&(of, _)| of == band).map(|&(_, signature)| signature);
            let all = forms.chain([signature]).map(&known);
            Some(says(all.fold(Known::default(), |sum, form| Known {
                count: sum.count.saturating_add(form.count),
                strays: sum.strays.saturating_add(form.strays),
            })))
        };
        let mut bands: Vec<u32> = self.things.iter().filter_map(of_band).collect();
        bands.sort_unstable_by(|a, b| b.cmp(a));
        bands.get(BANDS - 1).copied().unwrap_or(0)
    }
}

/// The signature that says of another: it was found below new text.
#[must_use]
pub fn stray(key: &FederationKey, of: Signature) -> Signature {
    key.signature(Kind::Stray, &[&of.to_bytes()])
}
