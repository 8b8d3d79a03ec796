// SPDX-License-Identifier: GPL-3.0-or-later
//! A message that comes through several interfaces is counted once.
//!
//! A mail server may ask by the milter protocol, and its content filter through another interface a moment later. Of the copies of one
//! message, as many count as came through the interface with the most; so mail through one interface only counts in full, whatever its
//! Message-ID. The same holds for other sums: mail of accounts, and mail to traps.

use crate::activity::Interface;
use bulkmark_types::Signature;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// The time that a message is remembered, in seconds.
const WINDOW: u64 = 60;

/// The most messages that are remembered, in some 10 MB a minute. Others may be counted twice.
const MAX_MESSAGES: usize = 1 << 16;

/// The number of interfaces.
const INTERFACES: usize = 3;

/// Messages of the last minute, by their names.
#[derive(Default)]
pub(super) struct Duplicates {
    /// `None` if all messages come through one interface.
    seen: Option<Mutex<Seen>>,
    hasher: RandomState,
}

/// The messages of two minutes: the older minute is dropped when the newer one ends.
#[derive(Default)]
struct Seen {
    /// The number of each message, by its names.
    numbers: [HashMap<u64, u64>; 2],
    messages: [HashMap<u64, Copies>; 2],
    /// The beginning of the newer minute, in seconds since 1970.
    since: u64,
    next: u64,
}

/// Copies of one message.
#[derive(Debug, Clone, Copy, Default)]
struct Copies {
    /// The number of copies through each interface.
    of: [u32; INTERFACES],
    counted: u32,
    /// The time of the last one, in seconds since 1970.
    at: u64,
}

/// The aspects of a message that are counted. An interface may know a login or a trap that another does not, so each is counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Aspect {
    /// Its signatures.
    Signatures,
    /// Recipients of an account's message.
    Account,
    /// Copies to traps.
    Traps,
}

/// The names of a message: the mail server's queue id, and the Message-ID, each with the content. Neither id suffices alone: a sender chooses
/// the Message-ID, and programs at an interface may send one queue id for all messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a> {
    pub(super) queue_id: Option<&'a str>,
    pub(super) message_id: Option<&'a str>,
    /// The signature of the body, or of a passage or payload of a message without one.
    pub(super) content: Option<Signature>,
}

impl Duplicates {
    /// For a daemon with several interfaces.
    pub(super) fn for_several_interfaces() -> Self {
        Self { seen: Some(Mutex::default()), hasher: RandomState::new() }
    }

    /// The part of `times` copies through an interface that is not counted yet.
    pub(super) fn uncounted(
        &self,
        interface: Interface,
        (of, names): (Aspect, Names<'_>),
        times: u32,
        now: u64,
    ) -> u32 {
        let Some(seen) = &self.seen else { return times };
        let names = self.names(of, names);
        if names.is_empty() {
            return times;
        }
        seen.lock().uncounted(interface, &names, times, now)
    }

    /// Hashes of a message's names; nobody outside can make two that are equal.
    fn names(&self, of: Aspect, Names { queue_id, message_id, content }: Names<'_>) -> Vec<u64> {
        let [queue_id, message_id] =
            [queue_id, message_id].map(|id| id.map(str::trim).filter(|id| !id.is_empty()));
        let content = content.map(Signature::to_bytes);
        // Without content, the Message-ID distinguishes messages with one queue id.
        let beside_queue_id = message_id.filter(|_| content.is_none());
        let by_queue_id = queue_id.map(|id| self.hasher.hash_one((of, 0u8, id, content, beside_queue_id)));
        let by_message_id = message_id.map(|id| self.hasher.hash_one((of, 1u8, id, content)));
        by_queue_id.into_iter().chain(by_message_id).collect()
    }
}

impl Seen {
    fn uncounted(&mut self, interface: Interface, names: &[u64], times: u32, now: u64) -> u32 {
        self.begin_minute(now);
        let known = names.iter().find_map(|name| self.numbers.iter().find_map(|of| of.get(name)).copied());
        let is_full = self.numbers[0].len() + names.len() > MAX_MESSAGES;
        if is_full && known.is_none() {
            return times;
        }
        let number = known.unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        if !is_full {
            self.numbers[0].extend(names.iter().map(|&name| (name, number)));
        }
        let mut copies = self.messages.iter().find_map(|of| of.get(&number)).copied().unwrap_or_default();
        if now.saturating_sub(copies.at) > WINDOW {
            copies = Copies::default();
        }
        copies.at = now;
        let of_interface = &mut copies.of[interface as usize];
        *of_interface = of_interface.saturating_add(times);
        let left = of_interface.saturating_sub(copies.counted);
        copies.counted += left;
        self.messages[0].insert(number, copies);
        left
    }

    /// Begins another minute, when it is time.
    fn begin_minute(&mut self, now: u64) {
        if now.abs_diff(self.since) > WINDOW {
            self.numbers.swap(0, 1);
            self.messages.swap(0, 1);
            self.numbers[0].clear();
            self.messages[0].clear();
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(message_id: &str) -> Names<'_> {
        Names { queue_id: None, message_id: Some(message_id), content: None }
    }

    /// As many copies count as came through the interface with the most, in any order.
    #[test]
    fn a_message_counts_once_however_many_interfaces_it_comes_through() {
        let duplicates = Duplicates::for_several_interfaces();
        let left = |interface, id, times| {
            duplicates.uncounted(interface, (Aspect::Signatures, names(id)), times, 1000)
        };
        assert_eq!(left(Interface::Milter, "<a>", 3), 3);
        assert_eq!([left(Interface::Dccifd, "<a>", 1), left(Interface::Dccifd, "<a>", 1)], [0, 0]);
        assert_eq!(left(Interface::Http, "<a>", 5), 2, "two more recipients than before");
        assert_eq!(left(Interface::Milter, "<b>", 1), 1, "another message");
        for _ in 0..100 {
            assert_eq!(left(Interface::Milter, "<c>", 1), 1, "mail through one interface counts in full");
        }
        assert_eq!(left(Interface::Dccifd, "", 1), 1, "it has no name");
        assert_eq!(
            Duplicates::default().uncounted(Interface::Milter, (Aspect::Signatures, names("<a>")), 2, 1000),
            2
        );
    }

    #[test]
    fn either_name_identifies_it_for_a_minute() {
        let duplicates = Duplicates::for_several_interfaces();
        let content = Some(Signature::from_bytes([1; 16]));
        let of = |queue_id, message_id| Names { queue_id, message_id, content };
        assert_eq!(
            duplicates.uncounted(
                Interface::Milter,
                (Aspect::Signatures, of(Some("4A"), Some("<a>"))),
                1,
                1000
            ),
            1
        );
        assert_eq!(
            duplicates.uncounted(Interface::Dccifd, (Aspect::Signatures, of(None, Some("<a>"))), 1, 1010),
            0
        );
        assert_eq!(
            duplicates.uncounted(Interface::Http, (Aspect::Signatures, of(Some("4A"), None)), 1, 1059),
            0
        );
        assert_eq!(
            duplicates.uncounted(Interface::Http, (Aspect::Signatures, of(Some("4B"), Some("<b>"))), 1, 1059),
            1
        );
        for interface in [Interface::Dccifd, Interface::Milter] {
            let at = 1120 + u64::from(interface == Interface::Milter) * 61;
            assert_eq!(
                duplicates.uncounted(interface, (Aspect::Signatures, of(None, Some("<a>"))), 1, at),
                1,
                "a minute later it is another"
            );
        }
    }

    /// The same Message-ID over another body is another message.
    #[test]
    fn a_message_id_alone_names_nothing() {
        let duplicates = Duplicates::for_several_interfaces();
        let body = |n| Some(Signature::from_bytes([n; 16]));
        let of = |n| Names { queue_id: None, message_id: Some("<a>"), content: body(n) };
        assert_eq!(duplicates.uncounted(Interface::Milter, (Aspect::Signatures, of(1)), 1, 1000), 1);
        assert_eq!(duplicates.uncounted(Interface::Dccifd, (Aspect::Signatures, of(2)), 1, 1000), 1);
    }

    /// A program at an interface may send one queue id for all messages, or the one of another message.
    #[test]
    fn a_queue_id_alone_names_nothing() {
        let duplicates = Duplicates::for_several_interfaces();
        let left = |interface, queue_id: &str, message_id: &str, n: Option<u8>| {
            let content = n.map(|n| Signature::from_bytes([n; 16]));
            let names = Names { queue_id: Some(queue_id), message_id: Some(message_id), content };
            duplicates.uncounted(interface, (Aspect::Signatures, names), 1, 1000)
        };
        assert_eq!(left(Interface::Milter, "4A", "<a>", Some(1)), 1);
        assert_eq!(left(Interface::Http, "4A", "<b>", Some(2)), 1, "another message with the same id");
        for n in 0..20 {
            let id = format!("<{n}@constant>");
            let content = (n % 2 == 0).then_some(10 + n);
            assert_eq!(left(Interface::Milter, &format!("4B{n}"), &id, content), 1);
            assert_eq!(left(Interface::Http, "NOQUEUE", &id, content), 0, "{n}: it came through the milter");
        }
    }

    /// Each aspect is counted separately, since interfaces know different ones.
    #[test]
    fn each_aspect_is_counted_separately() {
        let duplicates = Duplicates::for_several_interfaces();
        let left = |interface, of, times| duplicates.uncounted(interface, (of, names("<a>")), times, 1000);
        assert_eq!(left(Interface::Http, Aspect::Signatures, 1), 1);
        assert_eq!([Aspect::Signatures, Aspect::Account].map(|of| left(Interface::Milter, of, 3)), [2, 3]);
        assert_eq!([Aspect::Account, Aspect::Traps].map(|of| left(Interface::Http, of, 3)), [0, 3]);
    }

    #[test]
    fn more_messages_take_no_more_memory() {
        let duplicates = Duplicates::for_several_interfaces();
        (0..3 * MAX_MESSAGES).for_each(|n| {
            _ = duplicates.uncounted(Interface::Milter, (Aspect::Signatures, names(&n.to_string())), 1, 1000)
        });
        let seen = duplicates.seen.as_ref().unwrap().lock();
        assert!(seen.numbers[0].len() <= MAX_MESSAGES && seen.messages[0].len() <= MAX_MESSAGES);
    }
}
