// SPDX-License-Identifier: GPL-3.0-or-later
//! The payload found in a message, and its signature.

use super::address;
use super::link::Target;
use bulkmark_mail::Correspondents;
use bulkmark_types::{FederationKey, Kind, Signature};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The most contents of each kind kept for a message.
const MAX_KEPT: usize = 64;

/// Different sites from which on a message's links are ignored: a newsletter, a digest of news.
const MAX_SITES: usize = 10;

/// Bytes of the longest content.
const LONGEST: usize = 1024;

/// A kind of payload, the rarest first. Its number is hashed with the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Payload {
    /// An address of a crypto-currency.
    Wallet = 1,
    /// A bank account.
    Iban = 2,
    /// A telephone number.
    Telephone = 3,
    /// A mail address in the text, or from Reply-To.
    Address = 4,
    /// The domain of a link, with the shape of its path.
    Site = 5,
    /// The page of a link, exactly.
    Page = 6,
}

impl Payload {
    /// Whether the writer of a letter may have one: a telephone number, or an address of mail.
    pub(crate) const fn is_personal(self) -> bool {
        matches!(self, Self::Telephone | Self::Address)
    }
}

/// The payload found in some parts of a message.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Each content, and whether it stands in footers only.
    contents: BTreeMap<(Payload, String), bool>,
    /// The number of contents of each kind.
    counts: [usize; Payload::Page as usize + 1],
    /// Whether the current text is a footer.
    in_footer: bool,
}

impl Found {
    /// Sets whether content that follows is in a footer.
    pub(crate) fn set_in_footer(&mut self, in_footer: bool) {
        self.in_footer = in_footer;
    }

    /// Adds a content in canonical form.
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

    /// Adds the target of a link.
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

    /// Adds the payload of another part.
    pub(crate) fn append(&mut self, other: Self) {
        other
            .contents
            .into_iter()
            .for_each(|((kind, content), in_footer)| self.put(kind, content, in_footer));
    }

    /// The payload of a message between these correspondents, and its signature: of the rarest kind, the lowest signature. Contents in
    /// footers only are left out: all mail of a list has the same footer, whatever its author.
    pub(crate) fn finish(
        mut self,
        key: &FederationKey,
        between: &Correspondents,
    ) -> Option<(Payload, Signature)> {
        for to in between.reply_to.iter().filter(|to| !between.from.contains(to)) {
            address::form(to).into_iter().for_each(|to| self.put(Payload::Address, to, false));
        }
        // The reader's own address is in much mail that programs write to him.
        for to in &between.to {
            address::form(to).into_iter().for_each(|to| {
                self.contents.remove(&(Payload::Address, to));
            });
        }
        if self.counts[Payload::Site as usize] > MAX_SITES {
            self.contents.retain(|(kind, _), _| !matches!(kind, Payload::Site | Payload::Page));
        }
        let own = self.contents.iter().filter(|(_, in_footer)| !**in_footer);
        let made = own.map(|((kind, content), _)| {
            (*kind, key.signature(Kind::Payload, &[&[*kind as u8], content.as_bytes()]))
        });
        // The choice depends neither on the order of the contents nor on their context.
        made.min()
    }

    /// Each content behind the name of its kind.
    #[cfg(test)]
    pub(super) fn contents(&self) -> Vec<String> {
        self.contents.keys().map(|(kind, content)| format!("{kind:?} {content}")).collect()
    }
}
