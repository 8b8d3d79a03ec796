// SPDX-License-Identifier: GPL-3.0-or-later
//! The daily limits of reporters.

use bulkmark_counts::Side;
use bulkmark_types::{ReporterId, ReporterKind};
use parking_lot::Mutex;
use std::collections::HashMap;

/// The most messages that one reporter may report as spam in a day, and the same for not spam. Reports of ten thousand messages at once are
/// thus counted within days, and fill no memory.
pub(super) const MOST_A_DAY: u32 = 2000;

/// The most reporters of one kind that are counted, for spam and not spam separately.
const MOST_REPORTERS: usize = 1 << 16;

/// The number of reporters that stay when there is no more room.
const KEPT: usize = MOST_REPORTERS / 2;

const DAY: u64 = 86_400;

/// Whether a reporter may report one more message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    Yes,
    /// The limit of the day is reached.
    No {
        /// Whether this message is the first beyond it.
        is_first: bool,
    },
}

/// The number of messages of each reporter of one kind today.
#[derive(Default)]
struct Counts {
    messages: HashMap<(ReporterId, Side), u32>,
    /// Whether counts were dropped today.
    is_crowded: bool,
}

/// The counts of the day with this number. Each kind has its own room, so that made-up names at an interface take none from users.
#[derive(Default)]
pub(super) struct DailyLimits(Mutex<(u64, HashMap<ReporterKind, Counts>)>);

impl DailyLimits {
    /// Whether this reporter may report one more message. When a kind is full, the counts of reporters with the fewest reports start over:
    /// one pass through the kind for every 32,768 new reporters.
    pub(super) fn admits(&self, reporter: ReporterId, side: Side, now: u64) -> Admitted {
        let mut limits = self.0.lock();
        let (day, kinds) = &mut *limits;
        if *day != now / DAY {
            (*day, *kinds) = (now / DAY, HashMap::new());
        }
        let kind = reporter.kind();
        let counts = kinds.entry(kind).or_default();
        if counts.messages.len() >= MOST_REPORTERS && !counts.messages.contains_key(&(reporter, side)) {
            counts.make_room(kind);
        }
        let messages = counts.messages.entry((reporter, side)).or_default();
        *messages = messages.saturating_add(1);
        if *messages <= MOST_A_DAY {
            return Admitted::Yes;
        }
        Admitted::No { is_first: *messages == MOST_A_DAY + 1 }
    }
}

impl Counts {
    /// Drops the reporters with the fewest reports. Logged once a day.
    fn make_room(&mut self, kind: ReporterKind) {
        let mut counts: Vec<u32> = self.messages.values().copied().collect();
        let dropped = counts.len().saturating_sub(KEPT);
        let (_, &mut bound, _) = counts.select_nth_unstable(dropped);
        let below = counts.iter().filter(|&&count| count < bound).count();
        // Among equal counts, any.
        let mut equal = dropped - below;
        self.messages.retain(|_, &mut count| {
            let is_equal = count == bound && equal > 0;
            equal -= usize::from(is_equal);
            count >= bound && !is_equal
        });
        if !std::mem::replace(&mut self.is_crowded, true) {
            log::warn!(
                "reported: more than {MOST_REPORTERS} reporters of the kind \"{kind}\" today, perhaps made-up names; the limit of {MOST_A_DAY} messages a day starts over for those who reported least"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_types::FederationKey;

    fn of(name: &str) -> ReporterId {
        ReporterId::of(&FederationKey::public(), name.as_bytes())
    }

    /// A reporter of ten thousand messages at once is admitted up to the limit, and logged once; others are still admitted, so is the same
    /// user's not-spam report, and the user again tomorrow.
    #[test]
    fn each_reporter_has_a_daily_limit() {
        let limits = DailyLimits::default();
        let admits = |name: &str, now| limits.admits(of(name), Side::Spam, now);
        let all: Vec<_> = (0..10_000).map(|_| admits("user:anna", 5 * DAY)).collect();
        let count = |wanted| all.iter().filter(|&&admitted| admitted == wanted).count();
        assert_eq!(count(Admitted::Yes), MOST_A_DAY as usize);
        assert_eq!(count(Admitted::No { is_first: true }), 1);
        assert_eq!(admits("user:bert", 5 * DAY), Admitted::Yes);
        assert_eq!(admits("user:anna", 6 * DAY - 1), Admitted::No { is_first: false });
        assert_eq!(limits.admits(of("user:anna"), Side::NotSpam, 5 * DAY), Admitted::Yes);
        assert_eq!(admits("user:anna", 6 * DAY), Admitted::Yes);
    }

    /// Made-up names take bounded memory, do not keep new reporters of any kind out, and reset no reporter at the limit.
    #[test]
    fn made_up_names_silence_nobody_and_free_nobody() {
        let limits = DailyLimits::default();
        let admits = |name: &str| limits.admits(of(name), Side::Spam, 7 * DAY);
        for name in ["user:anna", "interface:first"] {
            (0..=MOST_A_DAY).for_each(|_| _ = admits(name));
            assert_eq!(admits(name), Admitted::No { is_first: false });
        }
        for n in 0..2 * MOST_REPORTERS + 10 {
            assert_eq!(admits(&format!("interface:made-up-{n}")), Admitted::Yes);
        }
        for name in ["user:new", "interface:new"] {
            assert_eq!(admits(name), Admitted::Yes);
        }
        for name in ["user:anna", "interface:first"] {
            assert_eq!(admits(name), Admitted::No { is_first: false }, "{name}");
        }
        let limits = limits.0.lock();
        assert!(limits.1.values().all(|counts| counts.messages.len() <= MOST_REPORTERS));
        assert_eq!(limits.1[&ReporterKind::User].messages.len(), 2, "users have their own room");
    }
}
