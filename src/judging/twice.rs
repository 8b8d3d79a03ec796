// SPDX-License-Identifier: GPL-3.0-or-later
//! A message that comes through several interfaces is counted once.
//!
//! A mail server may ask by the milter protocol, and its content filter by another interface a moment later. Of copies of one message, as many
//! are counted as came through the interface that saw most of them; so what comes through one interface alone counts in full, whatever
//! Message-ID it has. It is the same with what else is added up: what an account sent, and what traps got.

use crate::activity::Interface;
use bulkmark_types::Signature;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;

/// How long a message is remembered, in seconds.
const WINDOW: u64 = 60;

/// Messages that are remembered, in some 10 MB a minute. Of more, those beyond may be counted twice.
const MOST: usize = 1 << 16;

/// Interfaces that there may be.
const INTERFACES: usize = 3;

/// Messages of the last minute, by what names them.
#[derive(Default)]
pub(super) struct Twice {
    /// None where all messages come through one interface.
    seen: Option<Mutex<Seen>>,
    hasher: RandomState,
}

/// Two minutes' messages: those of the older one make way at the end of the newer one.
#[derive(Default)]
struct Seen {
    /// The number of each message, by its names.
    numbers: [HashMap<u64, u64>; 2],
    messages: [HashMap<u64, Copies>; 2],
    /// When the newer minute began, in seconds since 1970.
    since: u64,
    next: u64,
}

/// Copies of one message.
#[derive(Debug, Clone, Copy, Default)]
struct Copies {
    /// Those that came through each interface.
    of: [u32; INTERFACES],
    counted: u32,
    /// When the last one came, in seconds since 1970.
    at: u64,
}

/// What is counted of a message. An interface may know of a login or of a trap where another does not, so each is counted by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Of {
    /// Its signatures.
    Signatures,
    /// Recipients to whom an account sent it.
    Account,
    /// That traps got it.
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

impl Twice {
    /// For a daemon with several interfaces.
    pub(super) fn watching() -> Self {
        Self { seen: Some(Mutex::default()), hasher: RandomState::new() }
    }

    /// How many of `times` that came through an interface are still to be counted.
    pub(super) fn left(
        &self,
        interface: Interface,
        (of, names): (Of, Names<'_>),
        times: u32,
        now: u64,
    ) -> u32 {
        let Some(seen) = &self.seen else { return times };
        let names = self.names(of, names);
        if names.is_empty() {
            return times;
        }
        seen.lock().left(interface, &names, times, now)
    }

    /// Numbers of what names a message; nobody outside can make two that are equal.
    fn names(&self, of: Of, Names { queue_id, message_id, content }: Names<'_>) -> Vec<u64> {
        let [queue_id, message_id] =
            [queue_id, message_id].map(|id| id.map(str::trim).filter(|id| !id.is_empty()));
        let content = content.map(Signature::to_bytes);
        // Without content the Message-ID tells messages of one queue id apart.
        let beside_queue_id = message_id.filter(|_| content.is_none());
        let by_queue_id = queue_id.map(|id| self.hasher.hash_one((of, 0u8, id, content, beside_queue_id)));
        let by_message_id = message_id.map(|id| self.hasher.hash_one((of, 1u8, id, content)));
        by_queue_id.into_iter().chain(by_message_id).collect()
    }
}

impl Seen {
    fn left(&mut self, interface: Interface, names: &[u64], times: u32, now: u64) -> u32 {
        self.turn(now);
        let known = names.iter().find_map(|name| self.numbers.iter().find_map(|of| of.get(name)).copied());
        let is_full = self.numbers[0].len() + names.len() > MOST;
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
    fn turn(&mut self, now: u64) {
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

    /// As many copies count as the interface saw through which most came, in whatever order they come.
    #[test]
    fn a_message_counts_once_however_many_interfaces_it_comes_through() {
        let twice = Twice::watching();
        let left = |interface, id, times| twice.left(interface, (Of::Signatures, names(id)), times, 1000);
        assert_eq!(left(Interface::Milter, "<a>", 3), 3);
        assert_eq!([left(Interface::Dccifd, "<a>", 1), left(Interface::Dccifd, "<a>", 1)], [0, 0]);
        assert_eq!(left(Interface::Http, "<a>", 5), 2, "two more recipients than before");
        assert_eq!(left(Interface::Milter, "<b>", 1), 1, "another message");
        for _ in 0..100 {
            assert_eq!(
                left(Interface::Milter, "<c>", 1),
                1,
                "what comes through one interface counts in full"
            );
        }
        assert_eq!(left(Interface::Dccifd, "", 1), 1, "nothing names it");
        assert_eq!(Twice::default().left(Interface::Milter, (Of::Signatures, names("<a>")), 2, 1000), 2);
    }

    #[test]
    fn either_name_tells_it_and_for_a_minute() {
        let twice = Twice::watching();
        let content = Some(Signature::from_bytes([1; 16]));
        let of = |queue_id, message_id| Names { queue_id, message_id, content };
        assert_eq!(twice.left(Interface::Milter, (Of::Signatures, of(Some("4A"), Some("<a>"))), 1, 1000), 1);
        assert_eq!(twice.left(Interface::Dccifd, (Of::Signatures, of(None, Some("<a>"))), 1, 1010), 0);
        assert_eq!(twice.left(Interface::Http, (Of::Signatures, of(Some("4A"), None)), 1, 1059), 0);
        assert_eq!(twice.left(Interface::Http, (Of::Signatures, of(Some("4B"), Some("<b>"))), 1, 1059), 1);
        for interface in [Interface::Dccifd, Interface::Milter] {
            let at = 1120 + u64::from(interface == Interface::Milter) * 61;
            assert_eq!(
                twice.left(interface, (Of::Signatures, of(None, Some("<a>"))), 1, at),
                1,
                "a minute later it is another"
            );
        }
    }

    /// The same Message-ID over another body is another message.
    #[test]
    fn a_message_id_alone_names_nothing() {
        let twice = Twice::watching();
        let body = |n| Some(Signature::from_bytes([n; 16]));
        let of = |n| Names { queue_id: None, message_id: Some("<a>"), content: body(n) };
        assert_eq!(twice.left(Interface::Milter, (Of::Signatures, of(1)), 1, 1000), 1);
        assert_eq!(twice.left(Interface::Dccifd, (Of::Signatures, of(2)), 1, 1000), 1);
    }

    /// A program at an interface may send one queue id for all messages, or the one of another message.
    #[test]
    fn a_queue_id_alone_names_nothing() {
        let twice = Twice::watching();
        let left = |interface, queue_id: &str, message_id: &str, n: Option<u8>| {
            let content = n.map(|n| Signature::from_bytes([n; 16]));
            let names = Names { queue_id: Some(queue_id), message_id: Some(message_id), content };
            twice.left(interface, (Of::Signatures, names), 1, 1000)
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

    /// What one interface counts of a message says nothing of what another one knows besides.
    #[test]
    fn each_thing_is_counted_by_itself() {
        let twice = Twice::watching();
        let left = |interface, of, times| twice.left(interface, (of, names("<a>")), times, 1000);
        assert_eq!(left(Interface::Http, Of::Signatures, 1), 1);
        assert_eq!([Of::Signatures, Of::Account].map(|of| left(Interface::Milter, of, 3)), [2, 3]);
        assert_eq!([Of::Account, Of::Traps].map(|of| left(Interface::Http, of, 3)), [0, 3]);
    }

    #[test]
    fn more_messages_take_no_more_memory() {
        let twice = Twice::watching();
        (0..3 * MOST).for_each(|n| {
            _ = twice.left(Interface::Milter, (Of::Signatures, names(&n.to_string())), 1, 1000)
        });
        let seen = twice.seen.as_ref().unwrap().lock();
        assert!(seen.numbers[0].len() <= MOST && seen.messages[0].len() <= MOST);
    }
}
