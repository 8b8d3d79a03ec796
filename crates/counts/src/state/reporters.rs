// SPDX-License-Identifier: GPL-3.0-or-later
//! Who is meant by the beginning of a hash, and who spoke of one mailing: for the administrator.

use crate::state::roles::State;
use bulkmark_types::{ReporterId, ReporterKind, Signature, UNIT};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Reporters of one mailing that are told at most.
const MOST: usize = 1000;

/// Who said something of one mailing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SpokenOf {
    /// What tells it from others.
    pub mailing: String,
    /// The first message's subject, where that may be kept.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// When it was first spoken of, in seconds since 1970.
    pub first: u64,
    /// When it last was.
    pub last: u64,
    /// Those first whose word weighs most.
    pub reporters: Vec<SpokenBy>,
    /// Reporters beyond those.
    pub more_reporters: usize,
}

/// What one reporter said of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SpokenBy {
    /// A hash of the name.
    pub reporter: String,
    /// What kind of reporter it is.
    pub kind: ReporterKind,
    /// Whether it calls it spam.
    pub spam: bool,
    /// What its word weighs for the signature of the mailing for which it weighs most.
    pub weight: f64,
    /// The beginning of the window in which it spoke last, in seconds since 1970.
    pub window: u64,
}

/// Why it is not known who or what is meant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// It is no beginning of any hash.
    #[error("found {0:?}, expected the first of 32 hexadecimal digits, as `bulkmark report list` shows them")]
    NoHash(String),
    /// None begins so.
    #[error("no {of} that is known here begins with {prefix}")]
    Unknown {
        /// What was looked for.
        of: &'static str,
        /// The beginning.
        prefix: String,
    },
    /// Several do.
    #[error("{count} {of}s begin with {prefix}, among them {first} and {second}: give more digits")]
    Ambiguous {
        /// What was looked for.
        of: &'static str,
        /// The beginning.
        prefix: String,
        /// How many.
        count: usize,
        /// One of them.
        first: String,
        /// Another.
        second: String,
    },
}

/// The one of these whose hash begins so; each may be there several times.
pub fn only<T: Ord + ToString>(all: Vec<T>, of: &'static str, prefix: &str) -> Result<T, Unclear> {
    let (all, prefix) = (BTreeSet::from_iter(all), prefix.to_lowercase());
    if !(1..=32).contains(&prefix.len()) || !prefix.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Unclear::NoHash(prefix));
    }
    let mut all = all.into_iter().filter(|one| one.to_string().starts_with(&prefix));
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one),
        (Some(first), Some(second)) => {
            let (count, first, second) = (2 + all.count(), first.to_string(), second.to_string());
            Err(Unclear::Ambiguous { of, prefix, count, first, second })
        }
        (None, _) => Err(Unclear::Unknown { of, prefix }),
    }
}

impl State {
    /// Who said something here or is trusted for what was said, some several times.
    pub fn speakers(&self) -> Vec<ReporterId> {
        let counts = self.counts();
        let speakers = counts.voices.iter().map(|((who, _), _)| *who);
        speakers.chain(counts.trust.standings.iter().map(|(who, _)| *who)).collect()
    }

    /// Of which mailing each signature is that was spoken of.
    pub fn mailings(&self) -> Vec<Signature> {
        self.counts().cases.iter().map(|(_, case)| case.mailing).collect()
    }

    /// Who spoke of a mailing, and how.
    pub fn spoken_of(&self, mailing: Signature, now: u64) -> SpokenOf {
        let counts = self.counts();
        let cases = || counts.cases.iter().filter(|(_, case)| case.mailing == mailing);
        let of: BTreeSet<Signature> = cases().map(|(nomination, _)| *nomination).collect();
        let mut said: BTreeMap<ReporterId, (i32, u64)> = BTreeMap::new();
        for ((who, nomination), words) in counts.voices.iter() {
            let stands = counts.voices.stands(words, now);
            if stands != 0 && of.contains(nomination) {
                let (most, last) = said.entry(*who).or_default();
                *most = if stands.abs() > most.abs() { stands } else { *most };
                *last = words.iter().map(|word| word.window).max().unwrap_or_default().max(*last);
            }
        }
        let mut said: Vec<_> = said.into_iter().collect();
        said.sort_by_key(|(who, (units, _))| (-units.abs(), *who));
        let more_reporters = said.len().saturating_sub(MOST);
        let by = |(who, (units, window)): &(ReporterId, (i32, u64))| SpokenBy {
            reporter: who.to_string(),
            kind: who.kind(),
            spam: *units > 0,
            weight: f64::from(units.abs()) / f64::from(UNIT),
            window: *window,
        };
        SpokenOf {
            mailing: mailing.to_string(),
            subject: counts.cases.get(mailing).map(|case| case.subject.clone()).unwrap_or_default(),
            first: cases().map(|(_, case)| case.first).min().unwrap_or_default(),
            last: cases().map(|(_, case)| case.last).max().unwrap_or_default(),
            reporters: said.iter().take(MOST).map(by).collect(),
            more_reporters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What could be two is neither, and what is none is told as such.
    #[test]
    fn a_beginning_means_one_or_nobody() {
        let of = |first: u8| ReporterId::from_bytes([first, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        let find = |prefix: &str| only(vec![of(0xab), of(0xac), of(0x10), of(0xac)], "reporter", prefix);
        assert_eq!([find("AB"), find("1")], [Ok(of(0xab)), Ok(of(0x10))]);
        assert_eq!(find(&of(0xac).to_string()), Ok(of(0xac)));
        let told = |prefix: &str| find(prefix).unwrap_err().to_string();
        assert_eq!(
            told("a"),
            format!("2 reporters begin with a, among them {} and {}: give more digits", of(0xab), of(0xac))
        );
        assert_eq!(told("ff"), "no reporter that is known here begins with ff");
        for bad in ["", "anna", "ab ", &"a".repeat(33)] {
            assert!(told(bad).ends_with("as `bulkmark report list` shows them"), "{bad}");
        }
    }
}
