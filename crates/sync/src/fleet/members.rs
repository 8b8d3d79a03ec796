// SPDX-License-Identifier: GPL-3.0-or-later
//! All members of a fleet, as they said of themselves in the log; and the mailings of all.

use super::word::{MailingWord, MemberRole, MemberWord};
use crate::log::{Log, LogError, Word};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A member is silent when it missed three times to speak, and some seconds for the way.
const MISSED: u64 = 3;
const WAY: u64 = 5;

/// How far it may lag, and how long its reports may wait, in seconds, before it is late: what alerts are made of, too.
const LAG: u64 = 60;
const WAITING: u64 = 300;

/// How long the log keeps what a member says, in seconds.
const KEPT: u64 = 3600;

/// Members and mailings that are told at most.
const MOST_MEMBERS: usize = 10_000;
const MOST_MAILINGS: usize = 50;

/// How a member is, at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberState {
    /// As it should be.
    Well,
    /// It lags behind the log, or nobody counts what it reports.
    Late,
    /// It says nothing any more.
    Silent,
    /// It said nothing for an hour, or never, and stands in the log's lists.
    Absent,
    /// It says what this version does not understand.
    Unreadable,
}

impl MemberState {
    /// All of them, with their names.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Well, "well"),
        (Self::Late, "late"),
        (Self::Silent, "silent"),
        (Self::Absent, "absent"),
        (Self::Unreadable, "unreadable"),
    ];
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MemberStatus {
    /// Its name, as the log proves it.
    pub name: String,
    /// How it is.
    pub state: MemberState,
    /// How long ago it said what follows; of one that is absent, the hour for which that is kept.
    pub heard_seconds_ago: u64,
    /// What it does.
    pub role: MemberRole,
    /// The version of its program.
    pub program: String,
    /// Steps that it counts, and their epoch.
    pub step: u64,
    /// The epoch of the last of them.
    pub epoch: u64,
    /// Seconds since it had all that the log has.
    pub lag_seconds: Option<u64>,
    /// Places of steps that it did not read yet.
    pub steps_behind: Option<u64>,
    /// Its own reports that no step covers yet.
    pub uncovered: u64,
    /// For how many seconds the oldest of them has waited.
    pub waiting_seconds: Option<u64>,
}

/// A mailing, as all members saw it that tell theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FleetMailing {
    /// By which it is named.
    pub signature: String,
    /// The highest count that any of them has.
    pub count: u32,
    /// Messages at all of them.
    pub messages: u64,
    /// Recipients at all of them.
    pub recipients: u64,
    /// When the first came, in seconds since 1970.
    pub first: u64,
    /// When the last did.
    pub last: u64,
    /// Who saw it.
    pub members: Vec<String>,
    /// A subject, if any of them tells one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// What was read at a time.
#[derive(Debug)]
pub struct Members {
    at: Instant,
    all: Vec<(String, u64, Option<MemberWord>)>,
    /// Who stands in the log's lists, and as what.
    listed: BTreeMap<String, MemberRole>,
}

impl Members {
    /// As they stand in the log now.
    ///
    /// # Errors
    /// When the log does not say who they are, or how.
    pub async fn read<L: Log>(log: &L) -> Result<Self, LogError> {
        // Who is let in meanwhile is not taken for absent.
        let (clients, aggregators) = (log.clients().await?, log.aggregators().await?);
        let clients = clients.into_iter().map(|client| (client.name, MemberRole::Milter));
        let aggregators = aggregators.into_iter().map(|name| (name, MemberRole::Aggregator));
        Ok(Self::of(log.words().await?, clients.chain(aggregators).take(MOST_MEMBERS).collect()))
    }

    fn of(words: Vec<Word>, listed: BTreeMap<String, MemberRole>) -> Self {
        let member = |word: Word| (word.name, word.seconds_ago, MemberWord::decode(&word.bytes));
        let all = words.into_iter().take(MOST_MEMBERS).map(member).collect();
        Self { at: Instant::now(), all, listed }
    }

    /// Whether none of them says anything yet.
    #[must_use]
    pub const fn are_silent(&self) -> bool {
        self.all.is_empty()
    }

    /// Each of them, as it is by now.
    #[must_use]
    pub fn status(&self) -> Vec<MemberStatus> {
        let since = self.at.elapsed().as_secs();
        let known = self.all.iter().map(|(name, ago, word)| {
            let mut status = status(name, ago + since, word.as_ref());
            if status.role == MemberRole::Unknown {
                status.role = self.listed.get(name).copied().unwrap_or(MemberRole::Unknown);
            }
            status
        });
        let speak: BTreeSet<_> = self.all.iter().map(|(name, ..)| name).collect();
        let absent = self.listed.iter().filter(|(name, _)| !speak.contains(name));
        let absent = absent.map(|(name, role)| MemberStatus {
            state: MemberState::Absent,
            role: *role,
            ..status(name, KEPT, None)
        });
        let mut all: Vec<_> = known.chain(absent).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// The largest mailings of all.
    #[must_use]
    pub fn mailings(&self) -> Vec<FleetMailing> {
        let mut merged: BTreeMap<&str, FleetMailing> = BTreeMap::new();
        for (name, _, word) in &self.all {
            for mailing in word.iter().flat_map(|word| &word.mailings) {
                let one = merged.entry(&mailing.signature).or_insert_with(|| none_of(mailing));
                add(one, name, mailing);
            }
        }
        let mut all: Vec<_> = merged.into_values().collect();
        all.sort_by_key(|mailing| (std::cmp::Reverse(mailing.count), mailing.first));
        all.truncate(MOST_MAILINGS);
        all
    }
}

fn status(name: &str, ago: u64, word: Option<&MemberWord>) -> MemberStatus {
    let unread = MemberWord::new(MemberRole::Unknown, 600);
    let known = word.unwrap_or(&unread);
    let is_late = known.lag_seconds.is_some_and(|lag| lag > LAG)
        || known.waiting_seconds.is_some_and(|waiting| waiting > WAITING);
    let state = match word {
        Some(word) if ago > MISSED * word.every + WAY => MemberState::Silent,
        Some(_) if is_late => MemberState::Late,
        Some(_) => MemberState::Well,
        None => MemberState::Unreadable,
    };
    MemberStatus {
        name: name.to_owned(),
        state,
        heard_seconds_ago: ago,
        role: known.role,
        program: word.map(|word| word.program.clone()).unwrap_or_default(),
        step: known.step,
        epoch: known.epoch,
        lag_seconds: known.lag_seconds,
        steps_behind: known.steps_behind,
        uncovered: known.uncovered,
        waiting_seconds: known.waiting_seconds,
    }
}

fn none_of(mailing: &MailingWord) -> FleetMailing {
    FleetMailing {
        signature: mailing.signature.clone(),
        count: 0,
        messages: 0,
        recipients: 0,
        first: mailing.first,
        last: mailing.last,
        members: Vec::new(),
        subject: None,
    }
}

fn add(to: &mut FleetMailing, name: &str, mailing: &MailingWord) {
    to.count = to.count.max(mailing.count);
    to.messages = to.messages.saturating_add(mailing.messages);
    to.recipients = to.recipients.saturating_add(mailing.recipients);
    to.first = to.first.min(mailing.first);
    to.last = to.last.max(mailing.last);
    // It may have said the same twice.
    if to.members.last().is_none_or(|last| last != name) {
        to.members.push(name.to_owned());
    }
    if to.subject.is_none() {
        to.subject.clone_from(&mailing.subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(name: &str, seconds_ago: u64, word: MemberWord) -> Word {
        Word { name: name.to_owned(), seconds_ago, bytes: word.encode() }
    }

    #[test]
    fn who_lags_waits_or_is_silent_is_marked() {
        let at = |lag_seconds, waiting_seconds| MemberWord {
            lag_seconds,
            waiting_seconds,
            ..MemberWord::new(MemberRole::Milter, 60)
        };
        let words = vec![
            word("well", 180, at(Some(60), Some(300))),
            word("behind", 0, at(Some(61), None)),
            word("waits", 0, at(None, Some(301))),
            word("silent", 186, at(None, None)),
            Word { name: "other".to_owned(), seconds_ago: 0, bytes: b"{}".to_vec() },
        ];
        let listed = [
            ("agg", MemberRole::Aggregator),
            ("never", MemberRole::Milter),
            ("other", MemberRole::Aggregator),
            ("well", MemberRole::Milter),
        ];
        let listed = listed.map(|(name, role)| (name.to_owned(), role)).into();
        let members = Members::of(words, listed);
        let all = members.status();
        let states: Vec<_> = all.iter().map(|member| (member.name.as_str(), member.state)).collect();
        let [well, late, silent, absent, unreadable] = MemberState::ALL.map(|(state, _)| state);
        let expected = [
            ("agg", absent),
            ("behind", late),
            ("never", absent),
            ("other", unreadable),
            ("silent", silent),
            ("waits", late),
            ("well", well),
        ];
        assert_eq!(states, expected);
        let roles = [0, 2, 3, 6].map(|i: usize| all[i].role);
        let [milter, aggregator] = [MemberRole::Milter, MemberRole::Aggregator];
        assert_eq!(roles, [aggregator, milter, aggregator, milter], "the lists say what it is");
    }

    #[test]
    fn mailings_of_all_are_one_list() {
        let mailing = |n: u8, count, messages, (first, last)| MailingWord {
            signature: format!("{n:032x}"),
            count,
            messages,
            recipients: u64::MAX,
            first,
            last,
            subject: (count == 30).then(|| "Offer".to_owned()),
        };
        let with = |mailings| MemberWord { mailings, ..MemberWord::new(MemberRole::Milter, 60) };
        let words = vec![
            word("mx1", 0, with(vec![mailing(1, 20, 3, (10, 20)), mailing(1, 20, 3, (10, 20))])),
            word("mx2", 0, with(vec![mailing(2, 25, 1, (1, 2)), mailing(1, 30, 4, (5, 15))])),
        ];
        let members = Members::of(words, BTreeMap::new());
        let all = members.mailings();
        assert_eq!((all.len(), all[0].count, all[0].messages, all[0].recipients), (2, 30, 10, u64::MAX));
        assert_eq!((all[0].first, all[0].last, all[0].subject.as_deref()), (5, 20, Some("Offer")));
        assert_eq!(
            (&all[0].members[..], &all[1].members[..]),
            (&["mx1".to_owned(), "mx2".to_owned()][..], &["mx2".to_owned()][..])
        );
    }
}
