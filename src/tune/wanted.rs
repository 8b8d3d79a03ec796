// SPDX-License-Identifier: GPL-3.0-or-later
//! White-list lines for bulk that looks wanted.
//!
//! A list or sender is wanted when some of its bulk was called ham and none of its mail spam. Where nothing was called
//! anything, so is a list that wrote on three days at least. What else might be is proposed with a doubt: other lists, and
//! senders without one who wrote on three days. Of senders without a list most of what they wrote must have come five
//! times at least: that of a mail provider for everybody does not.

use super::archive::Label;
use super::letter::Letter;
use super::plain::plain;
use super::report::{Labels, Proposal, Standing};
use super::top::Top;
use bulkmark_policy::{Facts, VerifiedNames, WhiteList};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Lists, and senders, that are kept at a time; when there are more, the half with the least bulk goes.
const MOST: usize = 50_000;

/// Days on which somebody must have written of whom nothing was said.
const DAYS: u32 = 3;

/// How often a message was seen that is no letter to somebody.
const REPEATED: u32 = 5;

const DAY: u64 = 86_400;

/// A list, or a sender without one.
#[derive(Debug, Default)]
struct Correspondent {
    messages: u64,
    /// Those that were seen often enough not to be letters.
    repeated: u64,
    bulk: [u64; 3],
    labels: [u64; 3],
    days: u32,
    first: u64,
    last: u64,
    addresses: Top,
    /// The domains that signed all of the bulk, as somebody verified; none before there is bulk.
    signed: Option<Vec<String>>,
    /// The domain of which all of the bulk is by DMARC, none before there is bulk, empty if it is not.
    dmarc: Option<String>,
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
    /// Adds a message that no white list wants, and that was seen so often.
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
            table.insert(name.into(), Correspondent { first: letter.time, ..Correspondent::default() });
        }
        let Some(one) = table.get_mut(name) else { return };
        one.messages += 1;
        one.repeated += u64::from(count >= REPEATED);
        one.bulk[label.index()] += u64::from(is_bulk);
        one.labels[label.index()] += 1;
        one.days += u32::from(one.messages == 1 || letter.time / DAY != one.last / DAY);
        one.last = letter.time;
        letter.content.from.iter().take(1).for_each(|address| one.addresses.add(address));
        if is_bulk {
            one.subject = letter.subject.as_str().into();
            one.verify(&letter.content.verified);
        }
    }

    /// Lines for all with bulk that may be wanted, those that look so first, then those with the most bulk.
    pub(super) fn proposals(&self) -> Vec<Proposal> {
        let lists = self.lists.iter().map(|(id, one)| {
            let id = &**id;
            (format!("list-id  <{id}>"), id, one, one.of_list())
        });
        let domains = self.domains.iter().map(|(domain, one)| {
            (format!("from     {}", one.addresses.only().unwrap_or(domain)), &**domain, one, one.of_sender())
        });
        let mut proposals: Vec<_> = lists
            .chain(domains)
            .filter(|(line, _, one, _)| one.all_bulk() > 0 && wants(line, one))
            .filter_map(|(line, name, one, standing)| {
                let proof = one.proof(name).map_or_else(String::new, |proof| format!(" & {proof}"));
                Some(one.proposal(line + &proof, standing?))
            })
            .collect();
        proposals.sort_by(|a, b| {
            let order = |p: &Proposal| (p.standing, std::cmp::Reverse(p.bulk));
            order(a).cmp(&order(b)).then_with(|| a.line.cmp(&b.line))
        });
        proposals
    }
}

impl Correspondent {
    fn all_bulk(&self) -> u64 {
        self.bulk.iter().sum()
    }

    /// Takes what is verified of another message of its bulk.
    fn verify(&mut self, verified: &VerifiedNames) {
        match &mut self.signed {
            Some(all) => all.retain(|domain| verified.dkim.contains(domain)),
            None => self.signed = Some(verified.dkim.clone()),
        }
        let dmarc = verified.dmarc.first().map_or("", |domain| domain);
        match &mut self.dmarc {
            Some(all) if *all != dmarc => all.clear(),
            Some(_) => (),
            None => self.dmarc = Some(dmarc.to_owned()),
        }
    }

    /// What holds of all of its bulk and nobody can forge. A signature of its own domain is better than another.
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

    /// What the labels say; none where they say nothing. Of what was called spam nothing is proposed, unless there is
    /// wanted bulk as well.
    fn by_labels(&self) -> Option<Option<Standing>> {
        match (self.bulk[Label::Ham.index()] > 0, self.labels[Label::Spam.index()] > 0) {
            (true, false) => Some(Some(Standing::Wanted)),
            (true, true) => Some(Some(Standing::Both)),
            (false, true) => Some(None),
            (false, false) => None,
        }
    }

    fn of_list(&self) -> Option<Standing> {
        let steady = if self.days >= DAYS { Standing::Wanted } else { Standing::Unsure };
        self.by_labels().unwrap_or(Some(steady))
    }

    fn of_sender(&self) -> Option<Standing> {
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

/// Whether the milter reads the line as a white-list entry that wants such messages. What stands in a header may be
/// anything, and mean something else in a white list.
fn wants(line: &str, one: &Correspondent) -> bool {
    let spaced = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain(line, usize::MAX) != spaced || line.contains(['\n', '\r']) {
        return false;
    }
    let list = WhiteList::load(&[PathBuf::from("proposal")], &|_| Ok(line.into()));
    let id = line.strip_prefix("list-id  <").and_then(|rest| rest.strip_suffix('>'));
    let addresses: Vec<String> = one.addresses.ranked().0.into_iter().map(|(address, _)| address).collect();
    let facts = |from| Facts { from, list_id: id, ..Facts::default() };
    list.is_ok_and(|list| match id {
        Some(_) => list.message(&facts(&[])).is_some(),
        None => addresses.chunks(1).all(|address| list.message(&facts(address)).is_some()),
    })
}

fn forget(table: &mut HashMap<Box<str>, Correspondent>) {
    let mut order: Vec<_> =
        table.iter().map(|(name, one)| (one.all_bulk(), one.messages, one.last, name.clone())).collect();
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
        let mut all = Correspondents::default();
        letters.iter().for_each(|(letter, label, bulk)| {
            all.add(letter, *label, if *bulk { 20 } else { 1 }, *bulk);
        });
        all.proposals().into_iter().map(|proposal| (proposal.line, proposal.standing)).collect()
    }

    fn only(line: &str, standing: Standing) -> Vec<(String, Standing)> {
        vec![(line.to_owned(), standing)]
    }

    #[test]
    fn lists_of_which_nothing_is_spam() {
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
    fn senders_who_write_bulk_for_days() {
        let from = |address: &str, day, bulk| (letter(address, None, day), Label::None, bulk);
        let of = |days: [u64; 3]| lines(&days.map(|day| from("a@x.test", day, BULK)));
        assert_eq!(of([0, 1, 2]), only("from     a@x.test", Standing::Unsure));
        assert_eq!(of([0, 0, 1]), []);
        let many = [0, 1, 2].map(|day| from(&format!("{day}@x.test"), day, BULK));
        assert_eq!(lines(&many), only("from     x.test", Standing::Unsure));
        let called_ham = [(letter("a@x.test", None, 0), Label::Ham, BULK)];
        assert_eq!(lines(&called_ham), only("from     a@x.test", Standing::Wanted));
        // A provider for everybody, of whose users one writes bulk.
        let mut provider: Vec<_> = (0..9).map(|day| from(&format!("{day}@x.test"), day, false)).collect();
        provider.extend([0, 1, 2].map(|day| from("a@x.test", day, BULK)));
        provider.sort_by_key(|(letter, ..)| letter.time);
        assert_eq!(lines(&provider), []);
    }

    #[test]
    fn what_was_verified_of_all_bulk_is_joined() {
        let list = |signed: &[&str], dmarc: &[&str]| {
            let mut letter = letter("a@example.org", Some("news.example.org"), 0);
            let all = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            letter.content.verified =
                VerifiedNames { dkim: all(signed), dmarc: all(dmarc), ..VerifiedNames::default() };
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
    fn what_would_mean_something_else_is_not_proposed() {
        for id in ["news#1.example.org", "our news", "a>b", "", "a\nfrom b", "a\u{202e}b"] {
            let list = (letter("a@example.org", Some(id), 0), Label::Ham, BULK);
            assert_eq!(lines(&[list]), [], "{id}");
        }
    }
}
