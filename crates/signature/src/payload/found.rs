// SPDX-License-Identifier: GPL-3.0-or-later
//! What was found in a message, and the signatures of that.

use super::address;
use super::link::Target;
use super::skeleton::Form;
use bulkmark_mail::Correspondents;
use bulkmark_types::{FederationKey, Kind, Signature};
use std::collections::BTreeSet;

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

impl Payload {
    const fn number(self) -> u8 {
        self as u8
    }
}

/// The payload signatures of a message, the rarest kinds first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payloads {
    /// Each with its kind; [`MAX_REPORTED`] at most.
    pub all: Vec<(Payload, Signature)>,
}

/// What was found in some parts of a message.
#[derive(Debug, Default)]
pub(crate) struct Found {
    contents: BTreeSet<(Payload, String)>,
    /// How many of each kind there are.
    counts: [usize; Payload::Skeleton as usize + 1],
    skeleton: Option<Form>,
}

impl Found {
    /// Adds a content in its one form.
    pub(super) fn add(&mut self, kind: Payload, content: String) {
        let count = &mut self.counts[usize::from(kind.number())];
        if *count < MAX_KEPT && content.len() <= LONGEST && self.contents.insert((kind, content)) {
            *count += 1;
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
        other.contents.into_iter().for_each(|(kind, content)| self.add(kind, content));
        other.skeleton.into_iter().for_each(|form| self.skeleton(form));
    }

    /// The signatures of all, in a message between these.
    pub(crate) fn finish(mut self, key: &FederationKey, between: &Correspondents) -> Payloads {
        for to in between.reply_to.iter().filter(|to| !between.from.contains(to)) {
            address::form(to).into_iter().for_each(|to| self.add(Payload::Address, to));
        }
        // The reader's own address is in the mail of everybody who writes to him by a program.
        for to in &between.to {
            address::form(to).into_iter().for_each(|to| {
                self.contents.remove(&(Payload::Address, to));
            });
        }
        if self.counts[usize::from(Payload::Site.number())] > MAX_SITES {
            self.contents.retain(|(kind, _)| !matches!(kind, Payload::Site | Payload::Page));
        }
        let mut all: Vec<(Payload, Signature)> = self
            .contents
            .iter()
            .map(|(kind, content)| (*kind, signature(key, *kind, content.as_bytes())))
            .collect();
        // Which of many are chosen depends neither on their order nor on what stands beside them.
        all.sort_unstable();
        let mut of_kind = (Payload::Wallet, 0);
        all.retain(|(kind, _)| {
            of_kind = if of_kind.0 == *kind { (*kind, of_kind.1 + 1) } else { (*kind, 1) };
            of_kind.1 <= MAX_OF_KIND
        });
        all.extend(
            self.skeleton.map(|form| (Payload::Skeleton, signature(key, Payload::Skeleton, &form.digest))),
        );
        all.truncate(MAX_REPORTED);
        Payloads { all }
    }

    /// Each content behind the name of its kind.
    #[cfg(test)]
    pub(super) fn contents(&self) -> Vec<String> {
        self.contents.iter().map(|(kind, content)| format!("{kind:?} {content}")).collect()
    }
}

fn signature(key: &FederationKey, kind: Payload, content: &[u8]) -> Signature {
    key.signature(Kind::Payload, &[&[kind.number()], content])
}
