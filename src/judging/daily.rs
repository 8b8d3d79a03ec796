// SPDX-License-Identifier: GPL-3.0-or-later
//! How much each reporter said today.

use bulkmark_counts::Side;
use bulkmark_types::ReporterId;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Messages that one reporter may call spam in a day, and as many of which it may say that they are none. Who moves ten thousand at once has them done within days, and fills
/// nobody's memory.
pub(super) const MOST_A_DAY: u32 = 2000;

/// Reporters of whom that is known.
const MOST_REPORTERS: usize = 1 << 16;

const DAY: u64 = 86_400;

/// Whether a reporter may say something of one more message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    Yes,
    /// It said as much as it may today.
    No {
        /// Whether that is so since this message.
        is_news: bool,
    },
}

/// How much each reporter said, for and against.
type Said = HashMap<(ReporterId, Side), u32>;

/// The same of today, whose number it is.
#[derive(Default)]
pub(super) struct Daily(Mutex<(u64, Said)>);

impl Daily {
    /// Whether this reporter may call one more message spam, or none.
    pub(super) fn admits(&self, reporter: ReporterId, side: Side, now: u64) -> Admitted {
        let mut daily = self.0.lock();
        let (day, said) = &mut *daily;
        if *day != now / DAY {
            (*day, *said) = (now / DAY, HashMap::new());
        }
        let key = (reporter, side);
        if said.len() >= MOST_REPORTERS && !said.contains_key(&key) {
            return Admitted::No { is_news: false };
        }
        let said = said.entry(key).or_default();
        *said = said.saturating_add(1);
        if *said <= MOST_A_DAY { Admitted::Yes } else { Admitted::No { is_news: *said == MOST_A_DAY + 1 } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bulkmark_types::FederationKey;

    /// Who moves ten thousand messages at once is heard for so many today, and told of once; that keeps nobody else from being heard, nor
    /// the same user from taking back as many, and they are heard tomorrow.
    #[test]
    fn one_reporter_is_heard_for_so_many_messages_a_day() {
        let daily = Daily::default();
        let of = |name: &str| ReporterId::of(&FederationKey::public(), name.as_bytes());
        let admits = |name: &str, now| daily.admits(of(name), Side::Spam, now);
        let all: Vec<_> = (0..10_000).map(|_| admits("user:anna", 5 * DAY)).collect();
        let count = |wanted| all.iter().filter(|&&admitted| admitted == wanted).count();
        assert_eq!(count(Admitted::Yes), MOST_A_DAY as usize);
        assert_eq!(count(Admitted::No { is_news: true }), 1);
        assert_eq!(admits("user:bert", 5 * DAY), Admitted::Yes);
        assert_eq!(admits("user:anna", 6 * DAY - 1), Admitted::No { is_news: false });
        assert_eq!(daily.admits(of("user:anna"), Side::NotSpam, 5 * DAY), Admitted::Yes);
        assert_eq!(admits("user:anna", 6 * DAY), Admitted::Yes);
        // Names that somebody makes up take no more memory than so many.
        (0..MOST_REPORTERS + 10).for_each(|n| _ = admits(&n.to_string(), 7 * DAY));
        assert!(daily.0.lock().1.len() <= MOST_REPORTERS);
    }
}
