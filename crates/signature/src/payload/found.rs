// SPDX-License-Identifier: GPL-3.0-or-later
//! What was found in a message, and the signatures of that.

use super::address;
use super::link::Target;
use super::skeleton::Form;
use bulkmark_mail::Correspondents;
use bulkmark_types::{FederationKey, Kind, Signature};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Signatures of payload that a message reports.
pub const MAX_REPORTED: usize = 8;

/// Of each kind so many are kept until the message ends, and so many reported.
const MAX_KEPT: usize = 64;
const MAX_OF_KIND: usize = 3;

/// Different sites from which on the links of a message say nothing: a newsletter, a digest of news.
const MAX_SITES: usize = 10;

/// Bytes of the longest content.
const LONGEST: usize = 1024;

/// A kind of payload, the rarest first. Its number is hashed with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Payload {
    /// An address of a crypto-currency.
    Wallet = 1,
    /// A bank account.
    Iban = 2,
    /// A telephone number.
    Telephone = 3,
    /// A mail address in the text, or to which answers go.
    Address = 4,
    /// The domain of a link, with the shape of its path.
    Site = 5,
    /// The exact page to which a link leads.
    Page = 6,
    /// The elements of HTML: it only supports what others say.
    Skeleton = 7,
}

/// The payload signatures of a message, the rarest kinds first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payloads {
    /// [`MAX_REPORTED`] at most.
    pub all: Vec<PayloadSignature>,
}

/// A payload signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PayloadSignature {
    /// From what it is made.
    pub kind: Payload,
    /// Whether that stands in a footer and nowhere else. All mail of a mailing list has the same footer, whoever wrote it.
    pub in_footer: bool,
    /// What is counted.
    pub signature: Signature,
}

/// What was found in some parts of a message.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Each content, and whether it stands in footers only.
    contents: BTreeMap<(Payload, String), bool>,
    /// How many of each kind there are.
    counts: [usize; Payload::Skeleton as usize + 1],
    skeleton: Option<Form>,
    /// Whether a footer is read.
    in_footer: bool,
}

impl Found {
    /// What is added from now on is of a footer, or not.
    pub(crate) fn set_in_footer(&mut self, in_footer: bool) {
        self.in_footer = in_footer;
    }

    /// Adds a content in its one form.
    pub(super) fn add(&mut self, kind: Payload, content: String) {
        self.put(kind, content, self.in_footer);
    }

    fn put(&mut self, kind: Payload, content: String, in_footer: bool) {
        let count = &mut self.counts[kind as usize];
        if content.len() > LONGEST {
            return;
        }
        match self.contents.entry((kind, content)) {
            Entry::Occupied(mut known) => *known.get_mut() &= in_footer,
            Entry::Vacant(new) if *count < MAX_KEPT => {
                *count += 1;
                new.insert(in_footer);
            }
            Entry::Vacant(_) => (),
        }
    }

    /// Adds that to which a link leads.
    pub(super) fn target(&mut self, target: Target) {
        match target {
            Target::Telephone(number) => self.add(Payload::Telephone, number),
            Target::Address(address) => self.add(Payload::Address, address),
            Target::Wallet(wallet) => self.add(Payload::Wallet, wallet),
            Target::Page(page) => {
                if !page.host.is_of_provider() {
                    self.add(Payload::Site, page.site);
                }
                page.exact.into_iter().for_each(|exact| self.add(Payload::Page, exact));
            }
        }
    }

    /// Adds a skeleton. Of several the largest stays, of equal ones the first.
    pub(super) fn skeleton(&mut self, form: Form) {
        if self.skeleton.is_none_or(|known| known.elements < form.elements) {
            self.skeleton = Some(form);
        }
    }

    /// Adds what was found in another part.
    pub(crate) fn append(&mut self, other: Self) {
        other
            .contents
            .into_iter()
            .for_each(|((kind, content), in_footer)| self.put(kind, content, in_footer));
        other.skeleton.into_iter().for_each(|form| self.skeleton(form));
    }

    /// The signatures of all, in a message between these.
    pub(crate) fn finish(mut self, key: &FederationKey, between: &Correspondents) -> Payloads {
        for to in between.reply_to.iter().filter(|to| !between.from.contains(to)) {
            address::form(to).into_iter().for_each(|to| self.put(Payload::Address, to, false));
        }
        // The reader's own address is in the mail of everybody who writes to him by a program.
        for to in &between.to {
            address::form(to).into_iter().for_each(|to| {
                self.contents.remove(&(Payload::Address, to));
            });
        }
        if self.counts[Payload::Site as usize] > MAX_SITES {
            self.contents.retain(|(kind, _), _| !matches!(kind, Payload::Site | Payload::Page));
        }
        let made = |kind, in_footer, content: &[u8]| {
            let signature = key.signature(Kind::Payload, &[&[kind as u8], content]);
            PayloadSignature { kind, in_footer, signature }
        };
        let contents = self.contents.iter();
        let mut all: Vec<PayloadSignature> = contents
            .map(|((kind, content), in_footer)| made(*kind, *in_footer, content.as_bytes()))
            .collect();
        // Which of many are chosen depends neither on their order nor on what stands beside them.
        all.sort_unstable();
        let mut of_kind = (Payload::Wallet, 0);
        all.retain(|PayloadSignature { kind, .. }| {
            of_kind = if of_kind.0 == *kind { (*kind, of_kind.1 + 1) } else { (*kind, 1) };
            of_kind.1 <= MAX_OF_KIND
        });
        all.extend(self.skeleton.map(|form| made(Payload::Skeleton, false, &form.digest)));
        all.truncate(MAX_REPORTED);
        Payloads { all }
    }

    /// Each content behind the name of its kind.
    #[cfg(test)]
    pub(super) fn contents(&self) -> Vec<String> {
        self.contents.keys().map(|(kind, content)| format!("{kind:?} {content}")).collect()
    }
}
