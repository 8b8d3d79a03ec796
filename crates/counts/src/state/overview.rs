// SPDX-License-Identifier: GPL-3.0-or-later
//! The user reports of this mail server by mailing, and the reporters' trust, for the administrator.

use crate::state::roles::State;
use crate::state::words::VoiceKey;
use bulkmark_types::{ReporterId, ReporterKind, Signature};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most mailings, and the most reporters, of an overview.
const MOST: usize = 1000;

/// The filter of an overview.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Only mailings with reports since this time, in seconds since 1970.
    pub since: u64,
    /// Only reports of this reporter.
    pub reporter: Option<ReporterId>,
    /// The time, in seconds since 1970.
    pub now: u64,
}

/// The user reports of this mail server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Overview {
    /// The mailings, sorted by their last report.
    pub mailings: Vec<SaidOf>,
    /// The number of further mailings.
    pub more_mailings: usize,
    /// The reporters, the most trusted first.
    pub reporters: Vec<SaidBy>,
    /// The number of further reporters.
    pub more_reporters: usize,
}

/// The user reports on one mailing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SaidOf {
    /// Identifies the mailing: the nomination of the first message's body, if it has one.
    pub mailing: String,
    /// The first message's subject, if it may be stored.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// The time of its first report, in seconds since 1970.
    pub first: u64,
    /// The time of its last report.
    pub last: u64,
    /// The number of reporters here who report it as spam.
    pub spam: usize,
    /// The number of those who report it as not spam.
    pub not_spam: usize,
    /// Nominations less revocations of its signature with the most, including others'; 1 is the weight of one fully trusted user.
    pub weight: f64,
}

/// The reports of one reporter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SaidBy {
    /// A hash of the name.
    pub reporter: String,
    /// The kind of reporter.
    pub kind: ReporterKind,
    /// Its trust, 0 to 1.
    pub trust: f64,
    /// The weight of its reports, 0 to 1.
    pub weight: f64,
    /// Mailings that it reports as spam.
    pub spam: usize,
    /// Mailings that it reports as not spam.
    pub not_spam: usize,
}

/// The net units in effect on one mailing, by reporter: above zero for spam.
type Words = BTreeMap<ReporterId, i32>;

/// The numbers of mailings reported as spam and as not spam, or of their reporters.
type Sides = (usize, usize);

/// Copies of all reports and their signatures. Mail has to wait while they are copied, but not while they are sorted.
pub struct Gathered {
    /// The net units in effect of each row.
    words: Vec<(VoiceKey, i32)>,
    of: Vec<Spoken>,
}

/// A signature with user reports.
struct Spoken {
    nomination: Signature,
    mailing: Signature,
    first: u64,
    last: u64,
}

/// The sorted reports, without the data that only the ledger has.
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
    /// Sorts the reports by mailing, and selects the mailings of the overview.
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
    /// Copies all user reports.
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

    /// Builds the overview.
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

/// Converts units to reports of full weight.
fn whole(units: i64) -> f64 {
    units as f64 / f64::from(bulkmark_types::UNIT)
}
