// SPDX-License-Identifier: GPL-3.0-or-later
//! The cost of one report: measured with real ledgers that make, encode and apply real batches, steps and snapshots.
//!
//! The sample of a day has the same mailings and steps, but a million signatures. The bytes of a step depend on the share of the
//! filter that it changes, and memory grows with the number of signatures, so both are the same for each signature.

use super::law::Law;
use super::member::{MAX_BATCH, Member, SampleError, Spooled};
use super::traffic::{Traffic, signature};
use bulkmark_filter::{BLOCK_BYTES, Refined, Scaling};
use bulkmark_types::Signature;
use std::collections::HashMap;

/// Signatures of the sampled day.
pub const SIGNATURES: u32 = 1_000_000;

/// Signatures for which its window is made: a tenth more, since the fill is estimated within a twentieth, and a filter that seems
/// full is joined by one of twice the size.
pub const CAPACITY: u32 = capacity_of(SIGNATURES);

/// The capacity for a sample of so many.
pub(super) const fn capacity_of(signatures: u32) -> u32 {
    signatures / 10 * 11
}

/// The approximate number of reports drawn to measure the bytes of a step, and the least and most steps.
const DRAWN: f64 = 60_000.0;
const STEPS: [f64; 2] = [30.0, 1000.0];

/// The measurements of the sampled day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Bytes of a step without its reports, of one batch.
    pub empty_step: f64,
    /// Bytes of a step that each further milter with a batch in it adds.
    pub mark: f64,
    /// Bytes of a batch without reports.
    pub empty_batch: f64,
    /// Bytes of a batch for each report.
    pub batch: f64,
    /// Bytes of a step for each report.
    pub step: f64,
    /// Bytes of memory of a window beyond its cells, for each signature: counts of bulk.
    pub beyond: f64,
    /// Bytes of a snapshot and of the ledger's file, for each byte of a window's memory.
    pub snapshot: f64,
    /// See `snapshot`.
    pub file: f64,
    /// CPU seconds for each report: to make a step of many, and to apply it.
    pub make: f64,
    /// See `make`.
    pub apply: f64,
}

/// Bytes of the cells of a window for so many signatures, in slices of which the first is for `capacity` of them.
#[must_use]
pub fn cells(signatures: f64, capacity: u32) -> f64 {
    let (mut left, mut bytes) = (signatures, 0.0);
    for slice in 0..32 {
        let (holds, blocks) = Scaling::<Refined>::shape(capacity, slice);
        bytes += (blocks * BLOCK_BYTES) as f64;
        left -= f64::from(holds);
        if left <= 0.0 {
            break;
        }
    }
    bytes
}

fn reports(copies: &[u32]) -> Vec<(Signature, u32)> {
    let all = copies.iter().enumerate().filter(|(_, copies)| **copies > 0);
    all.map(|(mailing, &copies)| (signature(mailing, 0), copies)).collect()
}

/// A step's reports, each signature once.
fn drawn(traffic: &mut Traffic, number: usize) -> Vec<(Signature, u32)> {
    let mut all: HashMap<usize, u32> = HashMap::new();
    (0..number).for_each(|_| *all.entry(traffic.draw()).or_default() += 1);
    all.into_iter().map(|(mailing, times)| (signature(mailing, 0), times)).collect()
}

/// Samples a day of this law and of so many signatures, of which each step has the `steps`-th part.
///
/// # Errors
/// When a ledger fails.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from one to a million")]
pub async fn sample(law: Law, signatures: u32, steps: f64) -> Result<Sample, SampleError> {
    let capacity = capacity_of(signatures);
    let mut traffic = Traffic::new(law, signatures, 1);
    let mut noon = Member::new(capacity, 3)?;
    let morning = reports(&traffic.morning());
    let filled = noon.fill(&morning).await?;
    let [one, two, three]: [_; 3] = {
        let mut empty = [0.0; 3];
        for (milters, bytes) in (1..).zip(&mut empty) {
            let spooled: Vec<_> = (0..milters).map(|milter| Spooled { milter, reports: &[] }).collect();
            *bytes = noon.step(&spooled).await?.step as f64;
        }
        empty
    };
    let empty_batch = noon.step(&[Spooled { milter: 0, reports: &[] }]).await?.batches as f64;
    let each = (traffic.all() as f64 / steps).round().clamp(1.0, 90_000.0);
    let rounds = (DRAWN / each).clamp(STEPS[0], STEPS[1]).round() as usize;
    let (mut step, mut batch, mut distinct) = (0.0, 0.0, 0);
    for _ in 0..rounds {
        let reports = drawn(&mut traffic, each as usize);
        distinct += reports.len();
        let spooled: Vec<_> =
            reports.chunks(MAX_BATCH).map(|reports| Spooled { milter: 0, reports }).collect();
        let stepped = noon.step(&spooled).await?;
        step += stepped.step as f64 - one;
        batch += stepped.batches as f64 - empty_batch * spooled.len() as f64;
    }
    drop(noon);
    let mut evening = Member::new(capacity, 1)?;
    evening.fill(&reports(traffic.copies())).await?;
    let [memory, file, snapshot] = evening.sizes().await?.map(|bytes| bytes as f64);
    let whole = cells(signatures.into(), capacity);
    let in_morning = morning.len() as f64;
    Ok(Sample {
        empty_step: one,
        mark: (three - two).max(two - one),
        empty_batch,
        batch: batch / distinct as f64,
        step: step / (each * rounds as f64),
        beyond: (memory - whole) / f64::from(signatures),
        snapshot: snapshot / memory,
        file: file / memory,
        make: filled.made / in_morning,
        apply: filled.applied / in_morning,
    })
}

/// Messages of a fully counted window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Whole {
    /// Reports, each a signature of a message.
    pub reports: u64,
    /// Steps and batches, and their bytes.
    pub steps: u64,
    /// See `steps`.
    pub batches: u64,
    /// See `steps`.
    pub step_bytes: u64,
    /// See `steps`.
    pub batch_bytes: u64,
    /// A holder's memory of cells, bytes of its file, and of a snapshot.
    pub sizes: [u64; 3],
}

/// The distribution of a small window's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealt {
    /// Signatures that the window is made for.
    pub capacity: u32,
    /// Mail servers, which get messages in turn.
    pub milters: usize,
    /// Messages of a step, all mail servers together.
    pub each: usize,
    /// A mail server's batches in it.
    pub batches: usize,
}

/// Counts a whole small window: its messages in this order.
///
/// # Errors
/// When a ledger fails.
pub async fn whole(messages: &[Vec<Signature>], dealt: Dealt) -> Result<Whole, SampleError> {
    let Dealt { capacity, milters, each, batches: rounds } = dealt;
    let mut member = Member::new(capacity, milters)?;
    let mut whole = Whole { reports: 0, steps: 0, batches: 0, step_bytes: 0, batch_bytes: 0, sizes: [0; 3] };
    for of_step in messages.chunks(each.max(1)) {
        let mut batches = Vec::new();
        for of_round in of_step.chunks(each.div_ceil(rounds).max(1)) {
            let mut sums: Vec<HashMap<Signature, u32>> = vec![HashMap::new(); milters];
            for (number, signatures) in of_round.iter().enumerate() {
                for &signature in signatures {
                    *sums[number % milters].entry(signature).or_default() += 1;
                }
                whole.reports += signatures.len() as u64;
            }
            let of_milters = sums.into_iter().enumerate().filter(|(_, sums)| !sums.is_empty());
            batches.extend(of_milters.map(|(milter, sums)| (milter, sums.into_iter().collect::<Vec<_>>())));
        }
        let spooled: Vec<_> =
            batches.iter().map(|(milter, reports)| Spooled { milter: *milter, reports }).collect();
        let stepped = member.step(&spooled).await?;
        whole.steps += 1;
        whole.batches += spooled.len() as u64;
        whole.step_bytes += stepped.step as u64;
        whole.batch_bytes += stepped.batches as u64;
    }
    whole.sizes = member.sizes().await?;
    Ok(whole)
}
