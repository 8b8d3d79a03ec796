// SPDX-License-Identifier: GPL-3.0-or-later
//! All members of a fleet, by the state that they report in the log; and the mailings of all.

use super::state_report::{Condition, FleetMailing, MemberRole, ReportBody};
use crate::log::{Log, LogError, StateReport};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A member is silent after it missed three reports, plus some seconds for delivery.
const MISSED: u64 = 3;
const WAY: u64 = 5;

/// The lag and the waiting time of reports, in seconds, above which a member is late. Alerts use the same limits.
const LAG: u64 = 60;
const WAITING: u64 = 300;

/// How long the log keeps a member's state report, in seconds.
const KEPT: u64 = 3600;

/// Maximum of shown members and mailings.
const MOST_MEMBERS: usize = 10_000;
const MOST_MAILINGS: usize = 50;

/// The state of a member, at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberState {
    /// No problem.
    Well,
    /// It lags behind the log, or nobody counts its reports.
    Late,
    /// It no longer reports its state.
    Silent,
    /// It is in the log's lists, and reported nothing for an hour, or never.
    Absent,
    /// Its report is in a format that this version does not know.
    Unreadable,
}

impl MemberState {
    /// All states, with their names.
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
    /// Its name, as the log authenticated it.
    pub name: String,
    /// Its state.
    pub state: MemberState,
    /// The age of its report; of an absent member, the hour for which reports are kept.
    pub heard_seconds_ago: u64,
    /// Its role and its position.
    #[serde(flatten)]
    pub condition: Condition,
}

/// The last report of a member.
#[derive(Debug)]
struct LastReport {
    name: String,
    seconds_ago: u64,
    /// None if it cannot be parsed.
    body: Option<ReportBody>,
}

/// The members at the time of reading.
#[derive(Debug)]
pub struct Members {
    at: Instant,
    all: Vec<LastReport>,
    /// The members in the log's lists, with their roles.
    listed: BTreeMap<String, MemberRole>,
}

impl Members {
    /// Reads all members from the log.
    ///
    /// # Errors
    /// When the lists or the state reports cannot be read.
    pub async fn read<L: Log>(log: &L) -> Result<Self, LogError> {
        // Read the lists first: a member that joins meanwhile is not absent.
        let (clients, aggregators) = (log.clients().await?, log.aggregators().await?);
        let clients = clients.into_iter().map(|client| (client.name, MemberRole::Milter));
        let aggregators = aggregators.into_iter().map(|name| (name, MemberRole::Aggregator));
        Ok(Self::of(log.state_reports().await?, clients.chain(aggregators).take(MOST_MEMBERS).collect()))
    }

    fn of(reports: Vec<StateReport>, listed: BTreeMap<String, MemberRole>) -> Self {
        let last = |StateReport { name, seconds_ago, bytes }| LastReport {
            name,
            seconds_ago,
            body: ReportBody::decode(&bytes),
        };
        let all = reports.into_iter().take(MOST_MEMBERS).map(last).collect();
        Self { at: Instant::now(), all, listed }
    }

    /// Whether none of them has reported its state yet.
    #[must_use]
    pub const fn are_silent(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the current state of each.
    #[must_use]
    pub fn status(&self) -> Vec<MemberStatus> {
        let since = self.at.elapsed().as_secs();
        let known = self.all.iter().map(|LastReport { name, seconds_ago, body }| {
            let mut status = status(name, seconds_ago + since, body.as_ref());
            if status.condition.role == MemberRole::Unknown {
                status.condition.role = self.listed.get(name).copied().unwrap_or(MemberRole::Unknown);
            }
            status
        });
        let reporting: BTreeSet<_> = self.all.iter().map(|last| &last.name).collect();
        let absent = self.listed.iter().filter(|(name, _)| !reporting.contains(name));
        let absent = absent.map(|(name, role)| MemberStatus {
            state: MemberState::Absent,
            condition: Condition { role: *role, ..Condition::default() },
            ..status(name, KEPT, None)
        });
        let mut all: Vec<_> = known.chain(absent).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Returns the largest mailings of all members.
    #[must_use]
    pub fn mailings(&self) -> Vec<FleetMailing> {
        let mut merged: BTreeMap<&str, FleetMailing> = BTreeMap::new();
        for LastReport { name, body, .. } in &self.all {
            for mailing in body.iter().flat_map(|body| &body.mailings) {
                match merged.entry(&mailing.signature) {
                    Entry::Occupied(mut entry) => add(entry.get_mut(), name, mailing),
                    Entry::Vacant(entry) => {
                        entry.insert(FleetMailing { members: vec![name.clone()], ..mailing.clone() });
                    }
                }
            }
        }
        let mut all: Vec<_> = merged.into_values().collect();
        all.sort_by_key(|mailing| (std::cmp::Reverse(mailing.count), mailing.first));
        all.truncate(MOST_MAILINGS);
        all
    }
}

fn status(name: &str, ago: u64, body: Option<&ReportBody>) -> MemberStatus {
    let condition = body.map(|body| body.condition.clone()).unwrap_or_default();
    let is_late = condition.lag_seconds.is_some_and(|lag| lag > LAG)
        || condition.waiting_seconds.is_some_and(|waiting| waiting > WAITING);
    let state = match body {
        Some(body) if ago > MISSED * body.every + WAY => MemberState::Silent,
        Some(_) if is_late => MemberState::Late,
        Some(_) => MemberState::Well,
        None => MemberState::Unreadable,
    };
    MemberStatus { name: name.to_owned(), state, heard_seconds_ago: ago, condition }
}

fn add(to: &mut FleetMailing, name: &str, mailing: &FleetMailing) {
    to.count = to.count.max(mailing.count);
    to.messages = to.messages.saturating_add(mailing.messages);
    to.recipients = to.recipients.saturating_add(mailing.recipients);
    to.first = to.first.min(mailing.first);
    to.last = to.last.max(mailing.last);
    // It may have reported the same mailing twice.
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

    fn report(name: &str, seconds_ago: u64, body: ReportBody) -> StateReport {
        StateReport { name: name.to_owned(), seconds_ago, bytes: body.encode() }
    }

    #[test]
    fn members_that_lag_wait_or_are_silent_are_marked() {
        let milter = Condition::new(MemberRole::Milter);
        let at = |lag_seconds, waiting_seconds| {
            ReportBody::new(Condition { lag_seconds, waiting_seconds, ..milter.clone() }, 60)
        };
        let reports = vec![
            report("well", 180, at(Some(60), Some(300))),
            report("behind", 0, at(Some(61), None)),
            report("waits", 0, at(None, Some(301))),
            report("silent", 186, at(None, None)),
            StateReport { name: "other".to_owned(), seconds_ago: 0, bytes: b"{}".to_vec() },
        ];
        let listed = [
            ("agg", MemberRole::Aggregator),
            ("never", MemberRole::Milter),
            ("other", MemberRole::Aggregator),
            ("well", MemberRole::Milter),
        ];
        let listed = listed.map(|(name, role)| (name.to_owned(), role)).into();
        let members = Members::of(reports, listed);
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
        let roles = [0, 2, 3, 6].map(|i: usize| all[i].condition.role);
        let [milter, aggregator] = [MemberRole::Milter, MemberRole::Aggregator];
        assert_eq!(roles, [aggregator, milter, aggregator, milter], "the lists say what it is");
    }

    #[test]
    fn mailings_of_all_are_one_list() {
        let mailing = |n: u8, count, messages, (first, last)| FleetMailing {
            signature: format!("{n:032x}"),
            count,
            messages,
            recipients: u64::MAX,
            first,
            last,
            members: Vec::new(),
            subject: (count == 30).then(|| "Offer".to_owned()),
        };
        let milter = || ReportBody::new(Condition::new(MemberRole::Milter), 60);
        let with = |mailings| ReportBody { mailings, ..milter() };
        let reports = vec![
            report("mx1", 0, with(vec![mailing(1, 20, 3, (10, 20)), mailing(1, 20, 3, (10, 20))])),
            report("mx2", 0, with(vec![mailing(2, 25, 1, (1, 2)), mailing(1, 30, 4, (5, 15))])),
        ];
        let members = Members::of(reports, BTreeMap::new());
        let all = members.mailings();
        assert_eq!((all.len(), all[0].count, all[0].messages, all[0].recipients), (2, 30, 10, u64::MAX));
        assert_eq!((all[0].first, all[0].last, all[0].subject.as_deref()), (5, 20, Some("Offer")));
        assert_eq!(
            (&all[0].members[..], &all[1].members[..]),
            (&["mx1".to_owned(), "mx2".to_owned()][..], &["mx2".to_owned()][..])
        );
    }
}
