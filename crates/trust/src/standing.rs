// SPDX-License-Identifier: GPL-3.0-or-later
//! The standing of one reporter: a beta reputation.

use super::settings::{Settings, USUAL};
use bulkmark_types::UNIT;

/// One full piece of evidence: others of great weight reported the same of a message.
pub(super) const EVIDENCE: u32 = 1 << 16;

/// Trust of 1.
const ONE: u64 = 1 << 16;

/// The most pieces of evidence. New evidence pushes out old, so that trust earned over a long time cannot be spent all at once.
const MEMORY: u32 = 10;

/// The evidence that each reporter begins with.
const PRIOR: u64 = 1;

/// The weight of a contradiction, in agreements.
const PENALTY: u64 = 3;

/// The most evidence in a reporter's favour on one day: earning trust takes days, whatever the number of messages.
const DAILY: u32 = 3 * EVIDENCE;

/// Each day takes away one part in `AGEING` of all evidence: a half in 88 days.
const AGEING: u32 = 128;

/// No evidence is left after this many days.
const FORGOTTEN: u32 = 2_000;

/// Trust from which on a reporter has full weight; below, the weight is in proportion.
const FULL: u64 = ONE * 3 / 4;

/// Evidence for and against a reporter: others' reports on the same messages. [`Standing::default`] is a newcomer's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Evidence in its favour, in parts of [`EVIDENCE`].
    agreed: u32,
    /// Evidence against it.
    contradicted: u32,
    /// The day to which both are aged, since 1970.
    day: u32,
    /// The part of [`DAILY`] that was earned on this day.
    earned: u32,
}

impl Standing {
    /// The number of bytes of [`encode`](Self::encode).
    pub const BYTES: usize = 16;

    /// Trust in parts of 65,536, 0 to 1: (r + a W) / (r + P s + W), with r and s the evidence for and against, W = 1 piece that a newcomer
    /// begins with, a the share of it in its favour, and P = 3 the weight of a contradiction.
    #[must_use]
    pub fn trust(&self, settings: &Settings, now: u64) -> u32 {
        self.trust_of_one_who_began_with(settings.new_reporter_units(), now)
    }

    fn trust_of_one_who_began_with(&self, new_reporter_units: u32, now: u64) -> u32 {
        let aged = self.aged(day(now));
        let (agreed, contradicted) = (u64::from(aged.agreed), u64::from(aged.contradicted));
        let prior = PRIOR * u64::from(EVIDENCE);
        // Rounded up, so that a newcomer's trust gives the configured weight.
        let brought = prior * FULL * u64::from(new_reporter_units);
        let brought = brought.div_ceil(ONE * u64::from(UNIT)) + 1;
        let parts = (agreed + brought) * ONE / (agreed + PENALTY * contradicted + prior);
        u32::try_from(parts.min(ONE)).unwrap_or(u32::MAX)
    }

    /// The weight of this reporter's reports, 0 to 8 units ([`UNIT`]): in proportion to its trust, and full from 0.75 on.
    #[must_use]
    pub fn units(&self, settings: &Settings, now: u64) -> u8 {
        let units = u64::from(self.trust(settings, now)) * u64::from(UNIT) / FULL;
        u8::try_from(units.min(UNIT.into())).unwrap_or(u8::MAX)
    }

    /// Whether its trust is a half or more, so that it is neither a newcomer nor a reporter that lost its trust. A configured weight above
    /// the usual one does not count here, as nobody earned it: otherwise unknown reporters could be established.
    #[must_use]
    pub fn is_established(&self, settings: &Settings, now: u64) -> bool {
        let earned = settings.new_reporter_units().min(USUAL);
        u64::from(self.trust_of_one_who_began_with(earned, now)) * 2 >= ONE
    }

    /// The standing of a reporter for whom the administrator vouches: all remembered evidence is in its favour. It fades, and
    /// contradictions reduce it, as if it had been earned.
    #[must_use]
    pub fn vouched(now: u64) -> Self {
        Self { agreed: MEMORY * EVIDENCE, day: day(now), ..Self::default() }
    }

    /// Adds evidence in its favour (at most [`EVIDENCE`]).
    pub(super) fn agree(&mut self, evidence: u32, now: u64) {
        *self = self.aged(day(now));
        let evidence = evidence.min(EVIDENCE).min(DAILY.saturating_sub(self.earned));
        self.earned += evidence;
        self.push_out(evidence);
        self.agreed += evidence;
    }

    /// Adds evidence against it (at most [`EVIDENCE`]).
    pub(super) fn contradict(&mut self, evidence: u32, now: u64) {
        *self = self.aged(day(now));
        let evidence = evidence.min(EVIDENCE);
        self.push_out(evidence);
        self.contradicted += evidence;
    }

    /// Old evidence makes room for new: the forgetting of Jøsang and Ismail, 1 - 1/[`MEMORY`] for each whole piece. So neither kind ever
    /// exceeds [`MEMORY`] pieces.
    fn push_out(&mut self, evidence: u32) {
        let part = |old: u32| u64::from(old) * u64::from(evidence) / u64::from(EVIDENCE * MEMORY);
        let less = |old: u32| old - u32::try_from(part(old)).unwrap_or(old).min(old);
        (self.agreed, self.contradicted) = (less(self.agreed), less(self.contradicted));
    }

    /// The standing aged to a day. A clock that goes back changes nothing.
    fn aged(&self, day: u32) -> Self {
        let days = day.saturating_sub(self.day);
        if days == 0 {
            return *self;
        }
        let aged = |evidence: u32| match days {
            FORGOTTEN.. => 0,
            days => (0..days).fold(evidence, |left, _| left - left.div_ceil(AGEING)),
        };
        Self { agreed: aged(self.agreed), contradicted: aged(self.contradicted), day, earned: 0 }
    }

    /// Whether it equals a newcomer's, so that it can be dropped.
    #[must_use]
    pub fn is_forgotten(&self, now: u64) -> bool {
        let aged = self.aged(day(now));
        (aged.agreed, aged.contradicted) == (0, 0)
    }

    /// A trap's trust in parts of 65,536: 1 / (1 + s), with s the evidence against it. The administrator vouches for it, so it begins with
    /// 1, and only time raises it again.
    #[must_use]
    pub fn trap_trust(&self, now: u64) -> u32 {
        let contradicted = u64::from(self.aged(day(now)).contradicted);
        let evidence = u64::from(EVIDENCE);
        u32::try_from(ONE * evidence / (evidence + contradicted)).unwrap_or(0)
    }

    /// The weight of a trap's report, `full` units if its trust is 0.75 or more, else in proportion to its trust.
    #[must_use]
    pub fn trap_units(&self, full: u8, now: u64) -> u8 {
        let units = u64::from(self.trap_trust(now)).min(FULL) * u64::from(full) / FULL;
        u8::try_from(units).unwrap_or(full).min(full)
    }

    /// Returns its bytes: four numbers of 32 bits, the least significant byte first.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let fields = [self.agreed, self.contradicted, self.day, self.earned];
        for (bytes, field) in bytes.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    /// Reads a standing; `None` for values that none can have.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let mut fields = bytes.as_chunks::<4>().0.iter().map(|field| u32::from_le_bytes(*field));
        let mut field = || fields.next();
        let found = Self { agreed: field()?, contradicted: field()?, day: field()?, earned: field()? };
        let most = MEMORY * EVIDENCE;
        (found.agreed <= most && found.contradicted <= most && found.earned <= DAILY).then_some(found)
    }
}

/// The day of a time in seconds since 1970.
fn day(now: u64) -> u32 {
    u32::try_from(now / 86_400).unwrap_or(u32::MAX)
}
