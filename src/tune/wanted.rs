// SPDX-License-Identifier: GPL-3.0-or-later
//! White-list lines for bulk that looks wanted.
//!
//! A list or sender is wanted if some of its bulk was labelled ham and none of its mail spam. Without labels, a list is wanted if it wrote on
//! three days or more. Doubtful proposals are other lists, and senders without a list that wrote on three days. Most mail of a sender without a
//! list must have come five times or more: that excludes public mail providers.

use super::archive::Label;
use super::letter::Letter;
use super::plain::plain;
use super::report::{Labels, Proposal, Standing};
use super::top::Top;
use bulkmark_policy::{Facts, Proven, WhiteList};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Lists, and senders, that are kept at a time; beyond that, the half with the least bulk is dropped.
const MOST: usize = 50_000;

/// Days on which an unlabelled sender must have written.
const DAYS: u32 = 3;

/// The count from which on a message is no personal letter.
const REPEATED: u32 = 5;

const DAY: u64 = 86_400;

/// A list, or a sender without one.
#[derive(Debug, Default)]
struct Sender {
    messages: u64,
    /// Messages with at least this count.
    repeated: u64,
    bulk: [u64; 3],
    labels: [u64; 3],
    days: u32,
    first: u64,
    last: u64,
    addresses: Top,
    /// The verified domains that signed all of the bulk; none before there is bulk.
    signed: Option<Vec<String>>,
    /// The domain that DMARC verified for all of the bulk; none before there is bulk, empty if there is no such domain.
    dmarc: Option<String>,
    /// The subject of a message that would have been bulk.
    subject: Box<str>,
}

/// The senders, and how much of their mail would have been bulk.
#[derive(Default)]
pub(super) struct Senders {
    lists: HashMap<Box<str>, Sender>,
    domains: HashMap<Box<str>, Sender>,
}

impl Senders {
    /// Adds a message that is not whitelisted, with its count.
    pub(super) fn add(&mut self, letter: &Letter, label: Label, count: u32, is_bulk: bool) {
        let (table, name) = match (&letter.content.list_id, letter.domain()) {
            (Some(id), _) => (&mut self.lists, &**id),
            (None, Some(domain)) => (&mut self.domains, domain),
            (None, None) => return,
        };
        if !table.contains_key(name) {
            if table.len() >= MOST {
                forget(table);
            }
            table.insert(name.into(), Sender { first: letter.time, ..Sender::default() });
        }
        let Some(sender) = table.get_mut(name) else { return };
        sender.messages += 1;
        sender.repeated += u64::from(count >= REPEATED);
        sender.bulk[label.index()] += u64::from(is_bulk);
        sender.labels[label.index()] += 1;
        sender.days += u32::from(sender.messages == 1 || letter.time / DAY != sender.last / DAY);
        sender.last = letter.time;
        letter.content.from.iter().take(1).for_each(|address| sender.addresses.add(address));
        if is_bulk {
            sender.subject = letter.subject.as_str().into();
            sender.verify(&letter.content.proven);
        }
    }

    /// Returns lines for all senders of bulk that may be wanted, those that look wanted first, then those with the most bulk.
    pub(super) fn proposals(&self) -> Vec<Proposal> {
        let lists = self.lists.iter().map(|(id, sender)| {
            let id = &**id;
            (format!("list-id  <{id}>"), id, sender, sender.list_standing())
        });
        let domains = self.domains.iter().map(|(domain, sender)| {
            (
                format!("from     {}", sender.addresses.only().unwrap_or(domain)),
                &**domain,
                sender,
                sender.sender_standing(),
            )
        });
        let mut proposals: Vec<_> = lists
            .chain(domains)
            .filter(|(line, _, sender, _)| sender.all_bulk() > 0 && matches(line, sender))
            .filter_map(|(line, name, sender, standing)| {
                let proof = sender.proof(name).map_or_else(String::new, |proof| format!(" & {proof}"));
                Some(sender.proposal(line + &proof, standing?))
            })
            .collect();
        proposals.sort_by(|a, b| {
            let order = |p: &Proposal| (p.standing, std::cmp::Reverse(p.bulk));
            order(a).cmp(&order(b)).then_with(|| a.line.cmp(&b.line))
        });
        proposals
    }
}

impl Sender {
    fn all_bulk(&self) -> u64 {
        self.bulk.iter().sum()
    }

    /// Adds the verified domains of another bulk message.
    fn verify(&mut self, proven: &Proven) {
        match &mut self.signed {
            Some(all) => all.retain(|domain| proven.dkim.contains(domain)),
            None => self.signed = Some(proven.dkim.clone()),
        }
        let dmarc = proven.dmarc.first().map_or("", |domain| domain);
        match &mut self.dmarc {
            Some(all) if *all != dmarc => all.clear(),
            Some(_) => (),
            None => self.dmarc = Some(dmarc.to_owned()),
        }
    }

    /// Returns a proof that holds for all of its bulk and that nobody can forge. A signature of its own domain is preferred.
    fn proof(&self, name: &str) -> Option<String> {
        let is_plain = |domain: &&String| {
            !domain.is_empty() && domain.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
        };
        let is_own = |domain: &str| {
            let above = name.strip_suffix(domain).unwrap_or("no");
            above.is_empty() || above.ends_with('.')
        };
        let signed = self.signed.iter().flatten().filter(is_plain);
        let domain = signed.min_by_key(|domain| (!is_own(domain), domain.len(), domain.as_str()));
        let dmarc = || self.dmarc.as_ref().filter(is_plain).map(|domain| format!("dmarc {domain}"));
        domain.map(|domain| format!("dkim {domain}")).or_else(dmarc)
    }

    /// Returns the standing by labels, or none if there are none. A sender of mail labelled spam is not proposed, unless there is wanted bulk as
    /// well.
    fn by_labels(&self) -> Option<Option<Standing>> {
        match (self.bulk[Label::Ham.index()] > 0, self.labels[Label::Spam.index()] > 0) {
            (true, false) => Some(Some(Standing::Wanted)),
            (true, true) => Some(Some(Standing::Both)),
            (false, true) => Some(None),
            (false, false) => None,
        }
    }

    fn list_standing(&self) -> Option<Standing> {
        let steady = if self.days >= DAYS { Standing::Wanted } else { Standing::Unsure };
        self.by_labels().unwrap_or(Some(steady))
    }

    fn sender_standing(&self) -> Option<Standing> {
        let steady = (self.days >= DAYS).then_some(Standing::Unsure);
        self.by_labels().unwrap_or(steady).filter(|_| 2 * self.repeated >= self.messages)
    }

    fn proposal(&self, line: String, standing: Standing) -> Proposal {
        Proposal {
            line,
            standing,
            bulk: self.all_bulk(),
            messages: self.messages,
            days: self.days,
            first: self.first,
            last: self.last,
            labels: Labels::from(self.labels),
            subject: self.subject.to_string(),
        }
    }
}

/// Whether the milter reads the line as a white-list entry that matches such messages. Text from a header may have any content, and another
/// meaning in a white list.
fn matches(line: &str, sender: &Sender) -> bool {
    let spaced = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain(line, usize::MAX) != spaced || line.contains(['\n', '\r']) {
        return false;
    }
    let list = WhiteList::load(&[PathBuf::from("proposal")], &|_| Ok(line.into()));
    let id = line.strip_prefix("list-id  <").and_then(|rest| rest.strip_suffix('>'));
    let addresses: Vec<String> =
        sender.addresses.ranked().0.into_iter().map(|(address, _)| address).collect();
    let facts = |from| Facts { from, list_id: id, ..Facts::default() };
    list.is_ok_and(|list| match id {
        Some(_) => list.message(&facts(&[])).is_some(),
        None => addresses.chunks(1).all(|address| list.message(&facts(address)).is_some()),
    })
}

fn forget(table: &mut HashMap<Box<str>, Sender>) {
    let mut order: Vec<_> = table
        .iter()
        .map(|(name, sender)| (sender.all_bulk(), sender.messages, sender.last, name.clone()))
        .collect();
    order.sort_unstable();
    let gone: HashSet<_> = order.drain(..MOST / 2).map(|(.., name)| name).collect();
    table.retain(|name, _| !gone.contains(name));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BULK: bool = true;

    fn letter(from: &str, list_id: Option<&str>, day: u64) -> Letter {
        let mut letter = Letter::empty();
        letter.content.from = vec![from.to_owned()];
        letter.content.list_id = list_id.map(str::to_owned);
        letter.time = 1_795_255_205 + day * DAY;
        letter.subject = "Subject".to_owned();
        letter
    }

    fn lines(letters: &[(Letter, Label, bool)]) -> Vec<(String, Standing)> {
        let mut all = Senders::default();
        letters.iter().for_each(|(letter, label, bulk)| {
            all.add(letter, *label, if *bulk { 20 } else { 1 }, *bulk);
        });
        all.proposals().into_iter().map(|proposal| (proposal.line, proposal.standing)).collect()
    }

    fn only(line: &str, standing: Standing) -> Vec<(String, Standing)> {
        vec![(line.to_owned(), standing)]
    }

    #[test]
    fn lists_without_spam_are_proposed() {
        let list = |day, label, bulk| (letter("a@example.org", Some("news.example.org"), day), label, bulk);
        let line = |standing| only("list-id  <news.example.org>", standing);
        assert_eq!(lines(&[list(0, Label::Ham, BULK)]), line(Standing::Wanted));
        assert_eq!(lines(&[0, 0, 1].map(|day| list(day, Label::None, BULK))), line(Standing::Unsure));
        assert_eq!(lines(&[0, 1, 2].map(|day| list(day, Label::None, BULK))), line(Standing::Wanted));
        assert_eq!(lines(&[list(0, Label::Ham, BULK), list(1, Label::Spam, false)]), line(Standing::Both));
        assert_eq!(lines(&[0, 1, 2].map(|day| list(day, Label::Spam, BULK))), []);
        assert_eq!(lines(&[0, 1, 2].map(|day| list(day, Label::Ham, false))), []);
    }

    #[test]
    fn senders_that_write_bulk_for_days() {
        let from = |address: &str, day, bulk| (letter(address, None, day), Label::None, bulk);
        let of = |days: [u64; 3]| lines(&days.map(|day| from("a@x.test", day, BULK)));
        assert_eq!(of([0, 1, 2]), only("from     a@x.test", Standing::Unsure));
        assert_eq!(of([0, 0, 1]), []);
        let many = [0, 1, 2].map(|day| from(&format!("{day}@x.test"), day, BULK));
        assert_eq!(lines(&many), only("from     x.test", Standing::Unsure));
        let called_ham = [(letter("a@x.test", None, 0), Label::Ham, BULK)];
        assert_eq!(lines(&called_ham), only("from     a@x.test", Standing::Wanted));
        // A public provider, with one user who writes bulk.
        let mut provider: Vec<_> = (0..9).map(|day| from(&format!("{day}@x.test"), day, false)).collect();
        provider.extend([0, 1, 2].map(|day| from("a@x.test", day, BULK)));
        provider.sort_by_key(|(letter, ..)| letter.time);
        assert_eq!(lines(&provider), []);
    }

    #[test]
    fn the_proof_of_all_bulk_is_added_to_a_line() {
        let list = |signed: &[&str], dmarc: &[&str]| {
            let mut letter = letter("a@example.org", Some("news.example.org"), 0);
            let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            letter.content.proven = Proven { dkim: all(signed), dmarc: all(dmarc), ..Proven::default() };
            (letter, Label::Ham, BULK)
        };
        let line = |letters: &[(Letter, Label, bool)]| lines(letters).remove(0).0;
        let signed = list(&["a.test", "example.org"], &[]);
        let line_of_all = "list-id  <news.example.org> & dkim example.org";
        assert_eq!(line(&[signed, list(&["example.org", "a.test"], &[])]), line_of_all);
        let service = [list(&["example.org", "service.test"], &[]), list(&["service.test"], &[])];
        assert_eq!(line(&service), "list-id  <news.example.org> & dkim service.test");
        let dmarc = [list(&["example.org"], &["example.org"]), list(&[], &["example.org"])];
        assert_eq!(line(&dmarc), "list-id  <news.example.org> & dmarc example.org");
        let unsigned = [list(&["example.org"], &["example.org"]), list(&[], &[])];
        assert_eq!(line(&unsigned), "list-id  <news.example.org>");
        assert_eq!(line(&[list(&["a#b.test"], &[])]), "list-id  <news.example.org>");
    }

    /// "#" begins a comment in a white list, and a blank ends a name.
    #[test]
    fn a_line_with_another_meaning_is_not_proposed() {
        for id in ["news#1.example.org", "our news", "a>b", "", "a\nfrom b", "a\u{202e}b"] {
            let list = (letter("a@example.org", Some(id), 0), Label::Ham, BULK);
            assert_eq!(lines(&[list]), [], "{id}");
        }
    }
}
