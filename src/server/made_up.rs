// SPDX-License-Identifier: GPL-3.0-or-later
//! Detection of clients whose signatures are not hashes of messages. Signatures aimed at few cells cost a server more than others, and
//! raise the counts of messages that nobody sent; so their sender is slowed down, and then refused.

use bulkmark_counts::state::anomaly::{Anomaly, anomaly};
use bulkmark_filter::{CELLS_PER_BLOCK, Sparse};
use bulkmark_types::Signature;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The size of a sample of different signatures. Of a larger batch, a random part is taken.
const SAMPLE: usize = 1024;

/// Blocks of the filter by which samples are checked. A signature's block is proportional to the number of blocks; so signatures aimed at
/// few blocks of a larger filter are aimed at few of these.
const BLOCKS: usize = 1 << 16;

/// Strikes after which a client is refused. Each anomalous sample adds one, each normal sample removes one.
const STRIKES: u32 = 3;

/// The time between two batches of a slowed client.
const PAUSE: Duration = Duration::from_secs(10);

/// The verdict on a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is taken.
    Good,
    /// It is taken, but its sample was anomalous; with the number of strikes.
    Strange(Anomaly, u32),
    /// It comes too soon after another.
    Slowed,
    /// The client is refused.
    Refused,
}

#[derive(Default)]
struct Suspect {
    sample: Vec<u128>,
    strikes: u32,
    /// When a batch was last taken.
    taken: Option<Instant>,
}

/// The samples of all reporting clients, 16 kB for each.
pub(super) struct MadeUp {
    /// Always empty. None if a filter of so many blocks were impossible; then nothing is anomalous.
    filter: Option<Sparse>,
    clients: Mutex<HashMap<String, Suspect>>,
}

impl Default for MadeUp {
    fn default() -> Self {
        Self { filter: Sparse::new(BLOCKS).ok(), clients: Mutex::default() }
    }
}

impl MadeUp {
    /// Judges a batch of a client. `chance` selects the start of its sample. Costs one check of 1,024 signatures, whatever the batch has;
    /// of a suspect client, a batch is judged once in ten seconds at most.
    pub(super) fn judge(
        &self,
        client: &str,
        batch: &[(Signature, u32)],
        chance: usize,
        now: Instant,
    ) -> Verdict {
        let mut clients = self.clients.lock();
        let suspect = match clients.get_mut(client) {
            Some(suspect) => suspect,
            None => clients.entry(client.to_owned()).or_default(),
        };
        if suspect.strikes >= STRIKES {
            return Verdict::Refused;
        }
        let too_soon = |taken: Instant| now.saturating_duration_since(taken) < PAUSE;
        if suspect.strikes > 0 && suspect.taken.is_some_and(too_soon) {
            return Verdict::Slowed;
        }
        suspect.taken = Some(now);
        // Signatures of user reports are hashes, too, except for their tag, by which no cell is chosen.
        let signatures = batch.iter().map(|(signature, _)| *signature);
        let from = chance % batch.len().max(1);
        let room = SAMPLE - suspect.sample.len().min(SAMPLE);
        let all = signatures.clone().skip(from).chain(signatures.take(from));
        suspect.sample.extend(all.take(room).map(Signature::bits));
        suspect.sample.sort_unstable();
        suspect.sample.dedup();
        if suspect.sample.len() < SAMPLE {
            return Verdict::Good;
        }
        let sample = std::mem::take(&mut suspect.sample);
        let found = self.filter.as_ref().and_then(|filter| look(filter, &sample));
        let Some(odd) = found else {
            suspect.strikes = suspect.strikes.saturating_sub(1);
            return Verdict::Good;
        };
        suspect.strikes += 1;
        Verdict::Strange(odd, suspect.strikes)
    }

    /// Whether a client is refused.
    pub(super) fn refused(&self, client: &str) -> bool {
        self.clients.lock().get(client).is_some_and(|suspect| suspect.strikes >= STRIKES)
    }

    /// Forgets all clients that fail `is_same`: they were removed, or the administrator changed them.
    pub(super) fn keep(&self, is_same: impl Fn(&str) -> bool) {
        self.clients.lock().retain(|name, _| is_same(name));
    }
}

/// Returns the anomaly of the cells of these signatures, if there is one.
fn look(filter: &Sparse, sample: &[u128]) -> Option<Anomaly> {
    let mut cells: Vec<usize> = sample.iter().flat_map(|&element| filter.cells_of(element)).collect();
    cells.sort_unstable();
    cells.dedup();
    let blocks = cells.chunk_by(|a, b| a / CELLS_PER_BLOCK == b / CELLS_PER_BLOCK).count();
    anomaly(sample.len() as u64, filter.blocks(), cells.len(), blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_types::revocation;

    fn hashes(first: u64, number: u64) -> Vec<(Signature, u32)> {
        let of = |n: u64| {
            let mixed = u128::from(n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
            let mixed = (mixed ^ mixed >> 61).wrapping_mul(0x94D0_49BB_1331_11EB_BF58_476D_1CE4_E5B9);
            Signature::from_bytes((mixed ^ mixed >> 67).to_le_bytes())
        };
        (first..first + number).map(|n| (of(n), 1)).collect()
    }

    /// Signatures whose first halves fall into a hundred blocks.
    fn aimed() -> Vec<(Signature, u32)> {
        let aim = |signature: Signature| {
            let mut bytes = signature.to_bytes();
            (bytes[0], bytes[1]) = (0, bytes[1] & 0x7F);
            Signature::from_bytes(bytes)
        };
        hashes(0, 8192).into_iter().map(|(signature, times)| (aim(signature), times)).collect()
    }

    /// Hashes are always taken, in batches of any size, also those of user reports for and against the same messages.
    #[test]
    fn honest_clients_are_never_slowed() {
        let made_up = MadeUp::default();
        let now = Instant::now();
        for (n, chance) in (0..200u64).zip((0..).step_by(977)) {
            let size = if n % 3 == 0 { 8192 } else { 37 };
            let batch = hashes(n * 8192, size);
            assert_eq!(made_up.judge("a", &batch, chance, now), Verdict::Good);
            let nominations = batch.iter().map(|(signature, _)| signature.tagged());
            let reports: Vec<_> =
                nominations.flat_map(|of| [(of, 1), (revocation(of), 1)]).take(8192).collect();
            assert_eq!(made_up.judge("b", &reports, chance, now), Verdict::Good);
        }
    }

    /// The tag of user reports hides no aimed signatures.
    #[test]
    fn aimed_user_reports_are_refused() {
        let made_up = MadeUp::default();
        let reports: Vec<_> =
            aimed().into_iter().map(|(signature, times)| (signature.tagged(), times)).collect();
        let now = Instant::now();
        (0..STRIKES).for_each(|n| _ = made_up.judge("a", &reports, 5000, now + n * PAUSE));
        assert!(made_up.refused("a"));
    }

    /// A client with aimed signatures is slowed down, refused, and taken again once the administrator changed it. Others are not affected.
    #[test]
    fn aimed_signatures_are_slowed_and_then_refused() {
        let made_up = MadeUp::default();
        let mut now = Instant::now();
        for strike in 1..=STRIKES {
            let verdict = made_up.judge("a", &aimed(), 5000, now);
            assert!(matches!(verdict, Verdict::Strange(_, strikes) if strikes == strike), "{verdict:?}");
            if strike < STRIKES {
                assert_eq!(made_up.judge("a", &aimed(), 0, now), Verdict::Slowed);
            }
            now += PAUSE;
        }
        assert_eq!(made_up.judge("a", &hashes(0, 10), 0, now), Verdict::Refused);
        assert!(made_up.refused("a") && !made_up.refused("b"));
        assert_eq!(made_up.judge("b", &hashes(0, 8192), 0, now), Verdict::Good);
        made_up.keep(|name| name == "b");
        assert_eq!(made_up.judge("a", &hashes(0, 8192), 0, now), Verdict::Good);
    }
}
