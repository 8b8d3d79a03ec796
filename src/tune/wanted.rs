// SPDX-License-Identifier: GPL-3.0-or-later
//! White-list lines for bulk that looks wanted.
//!
//! A list is proposed when some of its mail would have been bulk and none of it was called spam. So is a sender without a
//! list when, besides, it wrote on three days at least or was called ham, and most of what it wrote would have been bulk:
//! that of a mail provider for everybody would not.

use super::archive::Label;
use super::plain::plain;
use super::replay::Letter;
use super::report::{Labels, Proposal};
use super::top::Top;
use crate::policy::{Facts, WhiteList};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Lists, and senders, that are kept at a time; when there are more, the half with the least bulk goes.
const MOST: usize = 50_000;

/// Days on which a sender without a list must have written.
const DAYS: u32 = 3;

const DAY: u64 = 86_400;

/// A list, or a sender without one.
#[derive(Debug, Default)]
struct Correspondent {
    messages: u64,
    bulk: u64,
    labels: [u64; 3],
    days: u32,
    first: u64,
    last: u64,
    addresses: Top,
    /// The subject of a message that would have been bulk.
    subject: Box<str>,
}

/// Who writes, and how much of it would have been bulk.
#[derive(Default)]
pub(super) struct Correspondents {
    lists: HashMap<Box<str>, Correspondent>,
    domains: HashMap<Box<str>, Correspondent>,
}

impl Correspondents {
    /// Adds a message that no white list wants.
    pub(super) fn add(&mut self, letter: &Letter, label: Label, is_bulk: bool) {
        let (table, name) = match (&letter.list_id, letter.domain()) {
            (Some(id), _) => (&mut self.lists, &**id),
            (None, Some(domain)) => (&mut self.domains, domain),
            (None, None) => return,
        };
        if !table.contains_key(name) {
            if table.len() >= MOST {
                forget(table);
            }
            table.insert(name.into(), Correspondent { first: letter.time, ..Correspondent::default() });
        }
        let Some(one) = table.get_mut(name) else { return };
        one.messages += 1;
        one.bulk += u64::from(is_bulk);
        one.labels[label.index()] += 1;
        one.days += u32::from(one.messages == 1 || letter.time / DAY != one.last / DAY);
        one.last = letter.time;
        letter.from.iter().take(1).for_each(|address| one.addresses.add(address));
        if is_bulk {
            one.subject = letter.subject.as_str().into();
        }
    }

    /// Lines for those that look wanted, those with the most bulk first, and how many have bulk that was called both ham
    /// and spam.
    pub(super) fn proposals(&self) -> (Vec<Proposal>, u64) {
        let (mut proposals, mut mixed) = (Vec::new(), 0);
        let lists = self.lists.iter().map(|(id, one)| (format!("list-id  <{id}>"), one, true));
        let domains = self.domains.iter().map(|(domain, one)| {
            (format!("from     {}", one.addresses.only().unwrap_or(domain)), one, one.is_steady())
        });
        for (line, one, looks_wanted) in lists.chain(domains) {
            let [_, ham, spam] = one.labels;
            if one.bulk > 0 && ham > 0 && spam > 0 {
                mixed += 1;
            } else if one.bulk > 0 && spam == 0 && looks_wanted && wants(&line, one) {
                proposals.push(one.proposal(line));
            }
        }
        proposals.sort_by(|a, b| b.bulk.cmp(&a.bulk).then_with(|| a.line.cmp(&b.line)));
        (proposals, mixed)
    }
}

impl Correspondent {
    fn is_steady(&self) -> bool {
        (self.days >= DAYS || self.labels[Label::Ham.index()] > 0) && 2 * self.bulk >= self.messages
    }

    fn proposal(&self, line: String) -> Proposal {
        Proposal {
            line,
            bulk: self.bulk,
            messages: self.messages,
            days: self.days,
            first: self.first,
            last: self.last,
            labels: Labels::from(self.labels),
            subject: self.subject.to_string(),
        }
    }
}

/// Whether the milter reads the line as a white-list entry that wants such messages. What stands in a header may be
/// anything, and mean something else in a white list.
fn wants(line: &str, one: &Correspondent) -> bool {
    let spaced = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain(line, usize::MAX) != spaced || line.contains(['\n', '\r']) {
        return false;
    }
    let list = WhiteList::load(&[PathBuf::from("proposal")], &|_| Ok(line.to_owned()));
    let id = line.strip_prefix("list-id  <").and_then(|rest| rest.strip_suffix('>'));
    let addresses: Vec<String> = one.addresses.ranked().0.into_iter().map(|(address, _)| address).collect();
    let facts = |from| Facts {
        client_ip: None,
        client_host: None,
        sender: None,
        recipients: &[],
        from,
        list_id: id,
        signature: None,
    };
    list.is_ok_and(|list| match id {
        Some(_) => list.message(&facts(&[])).is_some(),
        None => addresses.chunks(1).all(|address| list.message(&facts(address)).is_some()),
    })
}

fn forget(table: &mut HashMap<Box<str>, Correspondent>) {
    let mut order: Vec<_> =
        table.iter().map(|(name, one)| (one.bulk, one.messages, one.last, name.clone())).collect();
    order.sort_unstable();
    let gone: HashSet<_> = order.drain(..MOST / 2).map(|(.., name)| name).collect();
    table.retain(|name, _| !gone.contains(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BULK: bool = true;

    fn letter(from: &str, list_id: Option<&str>, day: u64) -> Letter {
        Letter {
            from: vec![from.to_owned()],
            list_id: list_id.map(str::to_owned),
            time: 1_795_255_205 + day * DAY,
            subject: "Subject".to_owned(),
            ..Letter::default()
        }
    }

    fn lines(letters: &[(Letter, Label, bool)]) -> Vec<String> {
        let mut all = Correspondents::default();
        letters.iter().for_each(|(letter, label, bulk)| all.add(letter, *label, *bulk));
        all.proposals().0.into_iter().map(|proposal| proposal.line).collect()
    }

    #[test]
    fn lists_of_which_nothing_is_spam() {
        let list = |label| (letter("a@example.org", Some("news.example.org"), 0), label, BULK);
        assert_eq!(lines(&[list(Label::None)]), ["list-id  <news.example.org>"]);
        assert!(lines(&[list(Label::None), list(Label::Spam)]).is_empty());
        assert!(lines(&[(letter("a@example.org", Some("news.example.org"), 0), Label::Ham, false)]).is_empty());
    }

    #[test]
    fn senders_who_write_bulk_for_days() {
        let from = |address: &str, day, bulk| (letter(address, None, day), Label::None, bulk);
        assert_eq!(
            lines(&[from("a@x.test", 0, true), from("a@x.test", 1, true), from("a@x.test", 2, true)]),
            ["from     a@x.test"]
        );
        let (two_days, one_domain) = ([0, 0, 1], [0, 1, 2]);
        assert!(lines(&two_days.map(|day| from("a@x.test", day, true))).is_empty());
        assert_eq!(lines(&one_domain.map(|day| from(&format!("{day}@x.test"), day, true))), ["from     x.test"]);
        // A provider for everybody, of whose users one writes bulk.
        let mut provider: Vec<_> = (0..9).map(|day| from(&format!("{day}@x.test"), day, false)).collect();
        provider.extend(one_domain.map(|day| from("a@x.test", day, true)));
        provider.sort_by_key(|(letter, ..)| letter.time);
        assert!(lines(&provider).is_empty());
    }

    /// "#" begins a comment in a white list, and a blank ends a name.
    #[test]
    fn what_would_mean_something_else_is_not_proposed() {
        for id in ["news#1.example.org", "our news", "a>b", "", "a\nfrom b"] {
            let list = (letter("a@example.org", Some(id), 0), Label::Ham, BULK);
            assert!(lines(&[list]).is_empty(), "{id}");
        }
    }
}
