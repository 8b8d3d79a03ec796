// SPDX-License-Identifier: GPL-3.0-or-later
//! The sum of a day's lines. Memory is bounded, however many senders there are.

use super::line::{Line, Message, Stamp};
use super::names::{Names, drop_rare};
use bulkmark_policy::{Mailboxes, suggestion};
use std::collections::{BTreeMap, HashMap};

/// Mailings, and refused senders, that are counted separately. Beyond that the rare ones are counted together.
const MOST: usize = 10_000;

/// Senders and clients that are kept for one mailing.
const MOST_OF_ONE: usize = 50;

/// Other lines that are counted separately; those that differ only in numbers are one.
const MOST_NOTICES: usize = 200;

/// Policies, and machines, that are counted separately: more than a configuration has.
const MOST_SHARES: usize = 1000;

/// Actions that the sender's server notices.
const REFUSING: [&str; 2] = ["reject", "tempfail"];

/// The first and the last time, and the number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) count: u64,
    pub(super) first: Stamp,
    pub(super) last: Stamp,
}

impl Span {
    fn add(&mut self, at: &Stamp) {
        if self.count == 0 || *at < self.first {
            self.first = at.clone();
        }
        if *at > self.last {
            self.last = at.clone();
        }
        self.count += 1;
    }
}

/// Bulk or spam messages of one mailing. If the log does not name it: that are the same, or similar and from one sender.
#[derive(Debug)]
pub(super) struct Mailing {
    pub(super) span: Span,
    pub(super) recipients: u64,
    /// The highest count.
    pub(super) seen: u32,
    /// The actions with their numbers; "as spam" if users reported it, "wanted" if a white list matched.
    pub(super) done: BTreeMap<String, u64>,
    pub(super) senders: Names,
    pub(super) clients: Names,
    /// The queue id of the last message, by which its lines are found.
    pub(super) id: String,
    /// The name of the mailing, or the body signature; empty if only near signatures agree, or users report several texts of one sender as spam.
    pub(super) signature: String,
}

/// The messages of one policy, or of one machine.
#[derive(Debug, Default)]
pub(super) struct Share {
    pub(super) messages: u64,
    /// Those that were bulk or spam.
    pub(super) unwanted: u64,
    /// The actions for these, with their numbers.
    pub(super) done: BTreeMap<String, u64>,
}

/// A day.
#[derive(Debug)]
pub(super) struct Day {
    /// The recipient, or with a leading `@` the domain, whose messages are counted, and nothing else; none: all.
    pub(super) recipient: Option<String>,
    /// All lines of bulkmark.
    pub(super) all: Span,
    pub(super) messages: u64,
    pub(super) verdicts: BTreeMap<String, u64>,
    /// The actions for bulk and spam that is not whitelisted, by verdict.
    pub(super) done: BTreeMap<String, BTreeMap<String, u64>>,
    /// The same and all messages by policy, if the log names one.
    pub(super) policies: BTreeMap<String, Share>,
    /// The same by the machine that wrote the line, if the log names it.
    pub(super) machines: BTreeMap<String, Share>,
    pub(super) mailings: HashMap<String, Mailing>,
    /// Bulk and spam of mailings that were dropped because others had more messages.
    pub(super) others: u64,
    /// Domains whose mail was refused, permanently or temporarily.
    pub(super) refused: Names,
    pub(super) refusals: u64,
    /// Domains whose refusal was only rehearsed.
    pub(super) rehearsed: Names,
    pub(super) rehearsals: u64,
    /// White-list lines for bulk that is not whitelisted yet.
    pub(super) suggestions: Names,
    /// Why messages could not be judged.
    pub(super) unknown: BTreeMap<String, Span>,
    /// Other lines of the daemon that are worth reading.
    pub(super) notices: BTreeMap<String, (String, Span)>,
    pub(super) more_notices: u64,
}

impl Day {
    pub(super) fn new(recipient: Option<String>) -> Self {
        Self {
            recipient,
            all: Span::default(),
            messages: 0,
            verdicts: BTreeMap::new(),
            done: BTreeMap::new(),
            policies: BTreeMap::new(),
            machines: BTreeMap::new(),
            mailings: HashMap::new(),
            others: 0,
            refused: Names::new(MOST),
            refusals: 0,
            rehearsed: Names::new(MOST),
            rehearsals: 0,
            suggestions: Names::new(MOST),
            unknown: BTreeMap::new(),
            notices: BTreeMap::new(),
            more_notices: 0,
        }
    }

    /// Adds a line.
    pub(super) fn add(&mut self, at: &Stamp, line: &Line<'_>) {
        self.all.add(at);
        match line {
            // A test of the mail system is not mail.
            Line::Message(message) if message.reason == "canary" => (),
            Line::Message(message) => match &self.recipient {
                None => self.message(at, message),
                Some(wanted) => {
                    let recipients = message.recipients_of(wanted);
                    if recipients > 0 {
                        self.message(at, &Message { recipients, ..*message });
                    }
                }
            },
            Line::Other(text, level) if self.recipient.is_none() && *level != Some(false) => {
                self.notice(at, text);
            }
            Line::Other(..) => (),
        }
    }

    fn message(&mut self, at: &Stamp, message: &Message<'_>) {
        self.messages += 1;
        *self.verdicts.entry(message.verdict.to_owned()).or_default() += 1;
        let domain = message.domain();
        if REFUSING.contains(&message.action) {
            self.refusals += 1;
            self.refused.add(if domain.is_empty() { "<>" } else { domain }, 1);
        }
        if REFUSING.contains(&message.would) {
            self.rehearsals += 1;
            self.rehearsed.add(if domain.is_empty() { "<>" } else { domain }, 1);
        }
        let done_with = message.done();
        add_share(&mut self.policies, message.policy, message, &done_with);
        add_share(&mut self.machines, message.machine, message, &done_with);
        match message.verdict {
            "unknown" => self.unknown.entry(message.reason.to_owned()).or_default().add(at),
            "whitelisted" => self.mailing(at, message, "wanted"),
            verdict @ ("bulk" | "spam") => {
                let done = self.done.entry(verdict.to_owned()).or_default();
                *done.entry(done_with.clone()).or_default() += 1;
                if verdict == "spam" {
                    // Mail that users report as spam does not belong in a white list.
                    return self.mailing(at, message, &format!("{done_with} as spam"));
                }
                self.mailing(at, message, &done_with);
                if let Some(line) = suggestion(message.host, domain, None) {
                    self.suggestions.add(&line, 1);
                }
            }
            _ => (),
        }
    }

    fn mailing(&mut self, at: &Stamp, message: &Message<'_>, done: &str) {
        let exact = message.body.zip(message.threshold).is_some_and(|(count, threshold)| count >= threshold);
        let (key, signature) = match (message.mailing, exact) {
            // Machines have different names for a mailing, and the same signature for an exact copy.
            (_, true) => (message.signature.to_owned(), message.signature),
            // Copies that differ have different signatures; they come from one sender by one route. Whatever its count, users report this text.
            ("", false) => {
                let signature = if message.verdict == "spam" { message.signature } else { "" };
                (format!("{} {}", message.domain(), message.client()), signature)
            }
            (mailing, _) => (mailing.to_owned(), mailing),
        };
        if self.mailings.len() >= MOST && !self.mailings.contains_key(&key) {
            self.others += drop_rare(&mut self.mailings, |mailing| mailing.span.count);
        }
        let mailing = self.mailings.entry(key).or_insert_with(|| Mailing {
            span: Span::default(),
            recipients: 0,
            seen: 0,
            done: BTreeMap::new(),
            senders: Names::new(MOST_OF_ONE),
            clients: Names::new(MOST_OF_ONE),
            id: String::new(),
            signature: signature.to_owned(),
        });
        if mailing.signature != signature {
            mailing.signature.clear();
        }
        mailing.span.add(at);
        mailing.recipients += message.recipients;
        mailing.seen = mailing.seen.max(message.body.max(message.near).unwrap_or_default());
        *mailing.done.entry(done.to_owned()).or_default() += 1;
        mailing.senders.add(if message.from.is_empty() { "<>" } else { message.from }, 1);
        mailing.clients.add(&message.client(), 1);
        message.id.clone_into(&mut mailing.id);
    }

    fn notice(&mut self, at: &Stamp, text: &str) {
        let like: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        if self.notices.len() >= MOST_NOTICES && !self.notices.contains_key(&like) {
            self.more_notices += 1;
            return;
        }
        let (last, span) = self.notices.entry(like).or_default();
        text.clone_into(last);
        span.add(at);
    }

    /// Returns all mailings, those with the most messages first.
    pub(super) fn ranked(&self) -> Vec<&Mailing> {
        let mut all: Vec<_> = self.mailings.iter().collect();
        all.sort_unstable_by(|(a, one), (b, two)| two.span.count.cmp(&one.span.count).then_with(|| a.cmp(b)));
        all.into_iter().map(|(_, mailing)| mailing).collect()
    }
}

/// Adds a message to the share of a policy or machine, if the log names it.
fn add_share(shares: &mut BTreeMap<String, Share>, name: &str, message: &Message<'_>, done: &str) {
    if name.is_empty() || shares.len() >= MOST_SHARES && !shares.contains_key(name) {
        return;
    }
    let share = shares.entry(name.to_owned()).or_default();
    share.messages += 1;
    if ["bulk", "spam"].contains(&message.verdict) {
        share.unwanted += 1;
        *share.done.entry(done.to_owned()).or_default() += 1;
    }
}

/// Returns policies or machines, those with the most messages first.
pub(super) fn ranked_shares(shares: &BTreeMap<String, Share>) -> Vec<(&String, &Share)> {
    let mut all: Vec<_> = shares.iter().collect();
    all.sort_by(|a, b| b.1.messages.cmp(&a.1.messages).then_with(|| a.0.cmp(b.0)));
    all
}

impl Message<'_> {
    /// Returns the domain of the envelope sender; empty if there is none.
    fn domain(&self) -> &str {
        self.from.rsplit_once('@').map_or("", |(_, domain)| domain)
    }

    /// Returns the number of named recipients that are this one, or of this domain.
    fn recipients_of(&self, wanted: &str) -> u64 {
        let mailboxes = Mailboxes::default();
        // A quoted local part may have a comma in it, and no address an angle bracket.
        self.to.split(">,<").filter(|address| mailboxes.is_recipient(address, wanted)).count() as u64
    }

    /// Returns the action, taken or rehearsed.
    fn done(&self) -> String {
        if self.would.is_empty() { self.action.to_owned() } else { format!("would {}", self.would) }
    }

    /// Returns the client's verified name, or else its address.
    fn client(&self) -> String {
        self.host.map_or_else(|| format!("[{}]", self.ip), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::read;
    use super::*;

    fn day(lines: &[String]) -> Day {
        let mut day = Day::new(None);
        for line in lines {
            let (stamp, line) = read(line).unwrap_or_else(|| panic!("{line}"));
            day.add(&stamp, &line);
        }
        day
    }

    fn message(n: usize, from: &str, counts: &str, rest: &str) -> String {
        format!(
            "2026-11-22T1{}:00:00Z mx bulkmark[1]: 4A{n}: client=out{n}.shop.example[192.0.2.1] from=<{from}> to=<x@b.example> \
             nrcpt=2 {counts} threshold=20 signature=s{n} {rest} ms=1.0",
            n % 10
        )
    }

    #[test]
    fn near_replicas_of_one_sender_are_one_mailing_and_wanted_bulk_is_not_suggested() {
        let lines = [
            message(1, "a@shop.example", "verdict=bulk body=25 near=25", "action=reject"),
            message(1, "b@shop.example", "verdict=bulk body=26 near=26", "action=mark"),
            message(2, "a@lists.example", "verdict=whitelisted body=30", "whitelist=f:1 action=mark"),
            message(3, "a@shop.example", "verdict=clean body=3", "action=mark"),
            message(4, "a@shop.example", "verdict=bulk reason=canary", "action=mark"),
        ];
        let found = day(&lines);
        assert_eq!((found.messages, found.verdicts["bulk"], found.refusals), (4, 2, 1));
        let ranked = found.ranked();
        assert_eq!((ranked.len(), ranked[0].span.count, ranked[0].recipients, ranked[0].seen), (2, 2, 4, 26));
        assert_eq!(ranked[0].senders.first(), "a@shop.example and 1 more");
        assert_eq!(found.suggestions.ranked(), [("host .shop.example", 2)]);
        // Copies that differ: only near signatures have reached the threshold.
        let copies: Vec<_> = (0..5)
            .map(|n| {
                message(n, "a@shop.example", "verdict=bulk body=1 near=40", "action=mark")
                    .replace(&format!("out{n}"), "out")
            })
            .collect();
        let found = day(&copies);
        assert_eq!((found.mailings.len(), found.ranked()[0].span.count), (1, 5));
    }

    /// One sender by one route has two mailings; one of them comes from other senders by other routes as well.
    #[test]
    fn the_log_names_the_mailings_of_near_replicas() {
        let copy = |n: usize, from: &str, mailing: &str| {
            message(n, from, "verdict=bulk body=1 near=40", &format!("mailing={mailing} action=mark"))
        };
        let lines = [
            copy(1, "a@shop.example", "spring"),
            copy(1, "a@shop.example", "summer"),
            copy(2, "b@else.example", "spring"),
            copy(3, "c@third.example", "spring"),
        ];
        let found = day(&lines);
        let ranked: Vec<_> = found.ranked().iter().map(|one| (&*one.signature, one.span.count)).collect();
        assert_eq!(ranked, [("spring", 3), ("summer", 1)]);
    }

    #[test]
    fn reported_spam_is_a_separate_mailing_and_not_suggested() {
        let spam = |n: usize, text: &str| {
            message(n, "win@lottery.example", "verdict=spam body=1 near=4 spam=3", "action=quarantine")
                .replace(&format!("out{n}"), "out")
                .replace(&format!("signature=s{n}"), &format!("signature={text}"))
        };
        let found = day(&[spam(1, "one"), spam(2, "one")]);
        assert_eq!((found.verdicts["spam"], found.done["spam"]["quarantine"]), (2, 2));
        let ranked = found.ranked();
        assert_eq!((ranked.len(), ranked[0].span.count, &*ranked[0].signature), (1, 2, "one"));
        assert_eq!(ranked[0].done, BTreeMap::from([("quarantine as spam".to_owned(), 2)]));
        assert!(found.suggestions.ranked().is_empty());
        // Copies that differ have no signature in common.
        let found = day(&[spam(1, "one"), spam(2, "two")]);
        assert_eq!((found.mailings.len(), &*found.ranked()[0].signature), (1, ""));
    }

    #[test]
    fn rehearsed_refusals_are_listed_separately() {
        let lines = [
            message(
                1,
                "a@shop.example",
                "verdict=bulk body=25 near=25",
                "policy=strict would=reject action=mark",
            ),
            message(2, "a@else.example", "verdict=bulk body=26", "would=discard action=mark"),
        ];
        let found = day(&lines);
        assert_eq!((found.refusals, found.rehearsals), (0, 1));
        assert_eq!(found.rehearsed.ranked(), [("shop.example", 1)]);
        let done = [("would discard".to_owned(), 1), ("would reject".to_owned(), 1)];
        assert_eq!(found.done["bulk"], BTreeMap::from(done));
        let policy = &found.policies["strict"];
        assert_eq!(
            (found.policies.len(), policy.messages, policy.unwanted, policy.done["would reject"]),
            (1, 1, 1, 1)
        );
    }

    #[test]
    fn machines_of_a_federation_are_added_up_separately() {
        let bulk = message(1, "a@shop.example", "verdict=bulk body=25", "action=reject");
        let lines = [
            bulk.replace("Z mx ", "Z mx.one.example "),
            bulk.replace("Z mx ", "Z mx.two.example "),
            message(2, "b@shop.example", "verdict=clean body=1", "action=mark")
                .replace("Z mx ", "Z mx.two.example "),
        ];
        let found = day(&lines);
        let shares: Vec<_> = ranked_shares(&found.machines)
            .into_iter()
            .map(|(name, share)| (&**name, share.messages, share.unwanted))
            .collect();
        assert_eq!(shares, [("mx.two.example", 2, 1), ("mx.one.example", 1, 1)]);
        assert_eq!(found.mailings.len(), 1, "one mailing at both");
    }

    /// The digest for the postmaster of a domain: its mail, and no trouble of the machine.
    #[test]
    fn a_domain_has_a_digest_of_its_own() {
        let lines = [
            message(1, "a@shop.example", "verdict=bulk body=25", "action=reject"),
            message(2, "a@shop.example", "verdict=bulk body=26", "action=reject")
                .replace("to=<x@b.example>", "to=<y@c.example>,<Anna+news@B.example>,<z@b.example.org>"),
            message(3, "a@shop.example", "verdict=clean body=1", "action=mark")
                .replace("b.example", "c.example"),
            "2026-11-22T01:30:00Z mx bulkmark[1]: err: the disk has not answered for 10 s".to_owned(),
        ];
        let of = |recipient: &str| {
            let mut day = Day::new(Some(recipient.to_owned()));
            for line in &lines {
                let (stamp, line) = read(line).unwrap();
                day.add(&stamp, &line);
            }
            let recipients: u64 = day.mailings.values().map(|mailing| mailing.recipients).sum();
            assert_eq!((day.notices.len(), day.all.count), (0, 4));
            (day.messages, day.refusals, recipients)
        };
        assert_eq!(of("@b.example"), (2, 2, 2));
        assert_eq!(of("@C.Example"), (2, 1, 1));
        assert_eq!(of("anna@b.example"), (1, 1, 1));
        assert_eq!(of("@example"), (0, 0, 0));
    }

    #[test]
    fn outages_are_listed_once_with_their_times() {
        let line = |hour: u32, text: &str| format!("2026-11-22T{hour:02}:30:00Z mx bulkmark[1]: {text}");
        let unknown = |hour| {
            line(
                hour,
                "4A: client=x[192.0.2.1] from=<> nrcpt=1 verdict=unknown reason=timeout action=mark ms=9",
            )
        };
        let found = day(&[
            line(1, "err: the disk has not answered for 10 s"),
            line(2, "err: the disk has not answered for 20 s"),
            line(2, "info: bulkmark 0.1.0 listens on inet:127.0.0.1:8720"),
            unknown(3),
            unknown(2),
        ]);
        let (text, span) = found.notices.values().next().unwrap();
        assert_eq!(
            (found.notices.len(), text.as_str(), span.count),
            (1, "the disk has not answered for 20 s", 2)
        );
        let span = &found.unknown["timeout"];
        assert_eq!((span.count, &*span.first.time, &*span.last.time), (2, "02:30", "03:30"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut found = Day::new(None);
        let mut add = |n: usize| {
            let line = message(n, &format!("a@{n}.example"), "verdict=bulk body=25", "action=reject");
            let (stamp, line) = read(&line).unwrap();
            found.add(&stamp, &line);
        };
        (0..2 * MOST).for_each(&mut add);
        (0..100).for_each(|_| add(2 * MOST));
        let messages: u64 = found.mailings.values().map(|mailing| mailing.span.count).sum();
        assert!(found.mailings.len() <= MOST && found.refused.ranked().len() <= MOST);
        assert_eq!((messages + found.others, found.refusals), (2 * MOST as u64 + 100, 2 * MOST as u64 + 100));
        // Though it came after so many others.
        assert_eq!((found.ranked()[0].span.count, found.refused.ranked()[0].1), (100, 100));
    }
}
