// SPDX-License-Identifier: GPL-3.0-or-later
//! The results of other schemes of near signatures than the shipped one: the sweep of docs/evaluation.md.
//!
//! Each scheme runs under several keys, which draw other passages, since one key's false joins are a matter of luck. There is no
//! daemon and no protection of blocks that come with new text: it only counts whether so many slots agree.

use crate::labelled::{Labelled, LabelledError, Replicas};
use bulkmark_mail::RawMessage;
use bulkmark_signature::near::{Scheme, under};
use bulkmark_types::{FederationKey, Signature};
use std::collections::HashSet;
use std::path::PathBuf;

/// Keys under which each scheme is tried.
const KEYS: u8 = 8;

/// Mutations that are hard: they leave least of the text as it was.
pub const HARD: [&str; 5] = ["prepend-line", "append-line", "typo", "synonym", "heavy"];

/// A scheme, and how many of its slots must agree.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// Its difference from the shipped one.
    pub what: &'static str,
    /// The scheme.
    pub scheme: Scheme,
    /// Slots that must agree.
    pub agreeing: usize,
}

/// The shipped scheme, and variants in one respect.
#[must_use]
pub fn variants() -> Vec<Variant> {
    let shipped = Scheme::SHIPPED;
    let mut all = vec![Variant { what: "shipped", scheme: shipped, agreeing: 3 }];
    for (slots, probes, agreeing) in
        [(8, 1, 2), (8, 1, 3), (8, 2, 3), (8, 5, 4), (7, 3, 3), (6, 4, 3), (5, 4, 2), (4, 4, 2), (5, 4, 1)]
    {
        let scheme = Scheme { slots, probes, ..shipped };
        all.push(Variant { what: "slots and probes", scheme, agreeing });
    }
    for (run, runs, gap, window) in [
        (3, 1, 0, 1),
        (6, 1, 0, 1),
        (3, 2, 4, 8),
        (4, 2, 4, 8),
        (3, 3, 3, 3),
        (2, 3, 2, 4),
        (2, 4, 4, 6),
        (1, 8, 1, 2),
    ] {
        let scheme = Scheme { run, runs, gap, window, ..shipped };
        all.push(Variant { what: "passage", scheme, agreeing: 3 });
    }
    for last in [20, 10, 5] {
        let scheme = Scheme { last, ..shipped };
        all.push(Variant { what: "weight of the last passage", scheme, agreeing: 3 });
    }
    all
}

/// The messages of labelled mail.
#[derive(Debug)]
pub struct Mail {
    ham: Vec<RawMessage>,
    campaigns: Vec<Vec<RawMessage>>,
    alone: Vec<RawMessage>,
    replicas: [Vec<RawMessage>; HARD.len()],
}

/// The results of one variant: means over all keys.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Unrelated messages that were joined.
    pub ham: f64,
    /// The share of campaigns' messages beyond the first that were joined; percent.
    pub campaigns: f64,
    /// The share of campaigns without a missed message; percent.
    pub whole: f64,
    /// The share of the replicas of each of [`HARD`] that were joined; percent.
    pub hard: [f64; HARD.len()],
}

impl Mail {
    /// Reads the messages.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn read(labelled: &Labelled, replicas: &Replicas) -> Result<Self, LabelledError> {
        let of = |hard: &str| replicas.names.iter().position(|name| name == hard);
        let mut hard: [Vec<RawMessage>; HARD.len()] = Default::default();
        for (messages, name) in hard.iter_mut().zip(HARD) {
            if let Some(files) = of(name).and_then(|at| replicas.files.get(at)) {
                *messages = read_all(files)?;
            }
        }
        Ok(Self {
            ham: read_all(&labelled.ham)?,
            campaigns: labelled.campaigns.iter().map(|files| read_all(files)).collect::<Result<_, _>>()?,
            alone: read_all(&labelled.alone)?,
            replicas: hard,
        })
    }

    /// Returns the results of a variant. The order of the mail: ham, campaigns, other spam, replicas of it.
    #[must_use]
    pub fn find(&self, variant: &Variant) -> Found {
        let (mut ham, mut joined, mut whole, mut hard) = (0, 0, 0, [0; HARD.len()]);
        for n in 0..KEYS {
            let Some(mut seen) = Seen::new(n, variant) else { continue };
            ham += seen.joined(&self.ham);
            for campaign in &self.campaigns {
                let Some((first, later)) = campaign.split_first() else { continue };
                seen.joins(first);
                let of_it = seen.joined(later);
                joined += of_it;
                whole += usize::from(of_it == later.len());
            }
            seen.joined(&self.alone);
            for (hard, replicas) in hard.iter_mut().zip(&self.replicas) {
                *hard += seen.joined(replicas);
            }
        }
        let keys = f64::from(KEYS);
        let percent = |n: usize, of: usize| 100.0 * n as f64 / keys / of.max(1) as f64;
        let later: usize = self.campaigns.iter().map(|campaign| campaign.len().saturating_sub(1)).sum();
        let mut of_replicas = [0.0; HARD.len()];
        for ((share, n), replicas) in of_replicas.iter_mut().zip(hard).zip(&self.replicas) {
            *share = percent(n, replicas.len());
        }
        Found {
            ham: ham as f64 / keys,
            campaigns: percent(joined, later),
            whole: percent(whole, self.campaigns.len()),
            hard: of_replicas,
        }
    }
}

/// A file that is no message counts as an empty one.
fn read_all(files: &[PathBuf]) -> Result<Vec<RawMessage>, LabelledError> {
    let read = |path: &PathBuf| match std::fs::read(path) {
        Ok(bytes) => Ok(RawMessage::from_bytes(&bytes)),
        Err(error) => Err(LabelledError::Read { path: path.clone(), error }),
    };
    files.iter().map(read).collect()
}

/// The mail so far under one key.
struct Seen<'a> {
    key: FederationKey,
    variant: &'a Variant,
    all: HashSet<Signature>,
}

impl<'a> Seen<'a> {
    /// No mail yet, under the key of this number.
    fn new(number: u8, variant: &'a Variant) -> Option<Self> {
        let key = FederationKey::from_bytes(format!("the key number {number} of the sweep").as_bytes());
        Some(Self { key: key.ok()?, variant, all: HashSet::new() })
    }

    /// The number of these messages with similar ones before them.
    fn joined(&mut self, messages: &[RawMessage]) -> usize {
        messages.iter().filter(|message| self.joins(message)).count()
    }

    /// Whether a similar message came before; adds this one.
    fn joins(&mut self, message: &RawMessage) -> bool {
        let near = under(message, &self.key, &self.variant.scheme);
        let known = |signature: &Signature| self.all.contains(signature);
        let agrees = |passages: &[(_, Signature)]| passages.iter().any(|(_, signature)| known(signature));
        let agree = near.slots.iter().filter(|slot| agrees(&slot.passages)).count();
        let joins =
            agree >= self.variant.agreeing || near.things.iter().any(|(_, signature)| known(signature));
        self.all.extend(near.reported());
        joins
    }
}
