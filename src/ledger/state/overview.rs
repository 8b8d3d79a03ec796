// SPDX-License-Identifier: GPL-3.0-or-later
//! What was said here, by mailing, and who is trusted how much: for the administrator.

use crate::ledger::state::roles::State;
use crate::ledger::state::trusted::Known;
use crate::signature::{ReporterId, Signature};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Mailings that are told at most, and reporters.
const MOST: usize = 1000;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Of which something was said since this time, in seconds since 1970.
    pub since: u64,
    /// Only what this reporter said.
    pub reporter: Option<ReporterId>,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// What was said here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Overview {
    /// Those last that were spoken of last.
    pub mailings: Vec<SaidOf>,
    /// Mailings beyond those.
    pub more_mailings: usize,
    /// Those first whose word weighs most.
    pub reporters: Vec<SaidBy>,
    /// Reporters beyond those.
    pub more_reporters: usize,
}

/// What was said of one mailing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SaidOf {
    /// What tells it from others: the nomination of the first message's body, if it has one.
    pub mailing: String,
    /// The first message's subject, where that may be kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// When it was first spoken of, in seconds since 1970.
    pub first: u64,
    /// When it last was.
    pub last: u64,
    /// Reporters here who call it spam.
    pub spam: usize,
    /// Those who say that it is none.
    pub not_spam: usize,
    /// Nominations less revocations of its signature with the most, others' included; 1 is the whole word of one.
    pub weight: f64,
}

/// What one reporter said.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SaidBy {
    /// A hash of the name.
    pub reporter: String,
    /// How far it is trusted, 0 to 1.
    pub trust: f64,
    /// What its word weighs, 0 to 1.
    pub weight: f64,
    /// Mailings that it calls spam.
    pub spam: usize,
    /// Those of which it says that they are none.
    pub not_spam: usize,
}

/// What stands of one mailing, by reporter: above zero for spam.
type Words = BTreeMap<ReporterId, i32>;

impl State {
    /// What was said here, and by whom.
    pub(crate) fn overview(&self, asked: &Asked) -> Overview {
        let counts = self.counts();
        let mut mailings: HashMap<Signature, Words> = HashMap::new();
        for (&(who, nomination), words) in counts.voices.iter() {
            let Some(case) = counts.cases.get(nomination) else { continue };
            let stands = counts.voices.stands(words, asked.now);
            let said = mailings.entry(case.mailing).or_default().entry(who).or_default();
            if stands.abs() > said.abs() {
                *said = stands;
            }
        }
        let (reporters, more_reporters) = self.said_by(&mailings, asked);
        let wanted =
            |words: &Words| asked.reporter.is_none_or(|who| words.get(&who).is_some_and(|&u| u != 0));
        mailings.retain(|_, words| wanted(words));
        let mut of_mailings: HashMap<Signature, SaidOf> = HashMap::new();
        for (&nomination, case) in counts.cases.iter() {
            let Some(words) = mailings.get(&case.mailing) else { continue };
            let said = of_mailings.entry(case.mailing).or_insert_with(|| SaidOf {
                mailing: case.mailing.to_string(),
                subject: String::new(),
                first: case.first,
                last: case.last,
                spam: words.values().filter(|&&units| units > 0).count(),
                not_spam: words.values().filter(|&&units| units < 0).count(),
                weight: 0.0,
            });
            (said.first, said.last) = (said.first.min(case.first), said.last.max(case.last));
            if nomination == case.mailing {
                said.subject.clone_from(&case.subject);
            }
            let Known { net, .. } =
                self.known(case.of, nomination, counts.trust.weighing.thousandths, asked.now);
            said.weight = said.weight.max(whole(net));
        }
        let mut list: Vec<_> = of_mailings.into_values().filter(|said| said.last >= asked.since).collect();
        list.sort_by(|a, b| (a.last, &a.mailing).cmp(&(b.last, &b.mailing)));
        let more_mailings = list.len().saturating_sub(MOST);
        Overview { mailings: list.split_off(more_mailings), more_mailings, reporters, more_reporters }
    }

    fn said_by(&self, mailings: &HashMap<Signature, Words>, asked: &Asked) -> (Vec<SaidBy>, usize) {
        let trust = &self.counts().trust;
        let settings = &trust.weighing.settings;
        let mut said: HashMap<ReporterId, (usize, usize)> = HashMap::new();
        for (who, units) in mailings.values().flatten() {
            let (spam, not_spam) = said.entry(*who).or_default();
            *spam += usize::from(*units > 0);
            *not_spam += usize::from(*units < 0);
        }
        let known = trust.standings.iter().map(|(who, _)| ReporterId::from_bytes(*who));
        let all: BTreeSet<ReporterId> = said.keys().copied().chain(known).chain(asked.reporter).collect();
        let of = |who: &ReporterId| {
            let standing = trust.standings.of(who.bytes());
            let (spam, not_spam) = said.get(who).copied().unwrap_or_default();
            SaidBy {
                reporter: who.to_string(),
                trust: f64::from(standing.trust(settings, asked.now)) / 65_536.0,
                weight: whole(standing.units(settings, asked.now).into()),
                spam,
                not_spam,
            }
        };
        let asked_for = all.iter().filter(|who| asked.reporter.is_none_or(|only| only == **who));
        let mut list: Vec<SaidBy> = asked_for.map(of).collect();
        list.sort_by(|a, b| {
            b.trust.total_cmp(&a.trust).then_with(|| (b.spam + b.not_spam).cmp(&(a.spam + a.not_spam)))
        });
        let more = list.len().saturating_sub(MOST);
        list.truncate(MOST);
        (list, more)
    }
}

/// Units as whole words.
fn whole(units: i64) -> f64 {
    units as f64 / f64::from(crate::signature::UNIT)
}
