// SPDX-License-Identifier: GPL-3.0-or-later
//! What was said here, by mailing, and who is trusted how much: for the administrator.

use crate::state::roles::State;
use crate::state::words::VoiceKey;
use bulkmark_types::{ReporterId, ReporterKind, Signature};
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
    /// What kind of reporter it is.
    pub kind: ReporterKind,
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

/// How often a reporter says of a mailing that it is spam, and that it is none.
type Sides = (usize, usize);

/// All words and all that they are of, as they are kept. No mail is counted while they are taken out, and the rest can be found without.
pub struct Gathered {
    /// What stands of each row.
    words: Vec<(VoiceKey, i32)>,
    of: Vec<Spoken>,
}

/// A signature that was spoken of.
struct Spoken {
    nomination: Signature,
    mailing: Signature,
    first: u64,
    last: u64,
}

/// What is to be told, but for what only the ledger knows.
pub struct Sorted {
    mailings: Vec<Mailing>,
    more_mailings: usize,
    said: HashMap<ReporterId, Sides>,
}

/// One mailing with its signatures.
struct Mailing {
    name: Signature,
    nominations: Vec<Signature>,
    first: u64,
    last: u64,
    said: Sides,
}

impl Gathered {
    /// Sorts it by mailing: those that are asked for, as many as are told.
    pub fn sort(self, asked: &Asked) -> Sorted {
        let mailing_of: HashMap<Signature, Signature> =
            self.of.iter().map(|spoken| (spoken.nomination, spoken.mailing)).collect();
        let mut words: HashMap<Signature, Words> = HashMap::new();
        for ((who, nomination), stands) in self.words {
            let Some(mailing) = mailing_of.get(&nomination) else { continue };
            let said = words.entry(*mailing).or_default().entry(who).or_default();
            if stands.abs() > said.abs() {
                *said = stands;
            }
        }
        let mut said: HashMap<ReporterId, Sides> = HashMap::new();
        for (who, units) in words.values().flatten() {
            let (spam, not_spam) = said.entry(*who).or_default();
            *spam += usize::from(*units > 0);
            *not_spam += usize::from(*units < 0);
        }
        words.retain(|_, words| asked.reporter.is_none_or(|who| words.get(&who).is_some_and(|&u| u != 0)));
        let mut mailings: HashMap<Signature, Mailing> = HashMap::new();
        for spoken in self.of {
            let Some(words) = words.get(&spoken.mailing) else { continue };
            let mailing = mailings.entry(spoken.mailing).or_insert_with(|| Mailing {
                name: spoken.mailing,
                nominations: Vec::new(),
                first: spoken.first,
                last: spoken.last,
                said: [1, -1]
                    .map(|side| words.values().filter(|units| units.signum() == side).count())
                    .into(),
            });
            mailing.nominations.push(spoken.nomination);
            (mailing.first, mailing.last) = (mailing.first.min(spoken.first), mailing.last.max(spoken.last));
        }
        let mut mailings: Vec<Mailing> =
            mailings.into_values().filter(|mailing| mailing.last >= asked.since).collect();
        mailings.sort_unstable_by_key(|mailing| (mailing.last, mailing.name));
        let more_mailings = mailings.len().saturating_sub(MOST);
        Sorted { mailings: mailings.split_off(more_mailings), more_mailings, said }
    }
}

impl State {
    /// All that was said here.
    pub fn gather(&self, now: u64) -> Gathered {
        let counts = self.counts();
        let words = counts.voices.iter().map(|(&key, words)| (key, counts.voices.stands(words, now)));
        let of = counts.cases.iter().map(|(&nomination, case)| Spoken {
            nomination,
            mailing: case.mailing,
            first: case.first,
            last: case.last,
        });
        Gathered { words: words.collect(), of: of.collect() }
    }

    /// What was said here, and by whom.
    pub fn overview(&self, sorted: &Sorted, asked: &Asked) -> Overview {
        let mailings = sorted.mailings.iter().map(|mailing| self.said_of(mailing, asked.now)).collect();
        let (reporters, more_reporters) = self.said_by(&sorted.said, asked);
        Overview { mailings, more_mailings: sorted.more_mailings, reporters, more_reporters }
    }

    fn said_of(&self, mailing: &Mailing, now: u64) -> SaidOf {
        let counts = self.counts();
        let net = |&nomination: &Signature| {
            let case = counts.cases.get(nomination)?;
            Some(self.known(case.of, nomination, counts.trust.weighing.thousandths, now).net)
        };
        let (spam, not_spam) = mailing.said;
        SaidOf {
            mailing: mailing.name.to_string(),
            subject: counts.cases.get(mailing.name).map(|case| case.subject.clone()).unwrap_or_default(),
            first: mailing.first,
            last: mailing.last,
            spam,
            not_spam,
            weight: mailing.nominations.iter().filter_map(net).max().map_or(0.0, whole).max(0.0),
        }
    }

    fn said_by(&self, said: &HashMap<ReporterId, Sides>, asked: &Asked) -> (Vec<SaidBy>, usize) {
        let trust = &self.counts().trust;
        let settings = &trust.weighing.settings;
        let of_traps = u8::try_from(trust.weighing.trap).unwrap_or(u8::MAX);
        let known = trust.standings.iter().map(|(who, _)| *who);
        let all: BTreeSet<ReporterId> = said.keys().copied().chain(known).chain(asked.reporter).collect();
        let of = |who: &ReporterId| {
            let standing = trust.standings.of(who);
            let (spam, not_spam) = said.get(who).copied().unwrap_or_default();
            let (trust, units) = if who.kind() == ReporterKind::Trap {
                (standing.trap_trust(asked.now), standing.trap_units(of_traps, asked.now))
            } else {
                (standing.trust(settings, asked.now), standing.units(settings, asked.now))
            };
            SaidBy {
                reporter: who.to_string(),
                kind: who.kind(),
                trust: f64::from(trust) / 65_536.0,
                weight: whole(units.into()),
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
    units as f64 / f64::from(bulkmark_types::UNIT)
}
