// SPDX-License-Identifier: GPL-3.0-or-later
//! How much each reporter said today.

use bulkmark_counts::Side;
use bulkmark_types::{ReporterId, ReporterKind};
use parking_lot::Mutex;
use std::collections::HashMap;

/// Messages that one reporter may call spam in a day, and as many of which it may say that they are none. Who moves ten thousand at once has them done within days, and fills
/// nobody's memory.
pub(super) const MOST_A_DAY: u32 = 2000;

/// Reporters of one kind of whom that is known, each for spam and for not spam.
const MOST_REPORTERS: usize = 1 << 16;

/// How many stay when there is no room for one more.
const KEPT: usize = MOST_REPORTERS / 2;

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

/// How much the reporters of one kind said today, for and against.
#[derive(Default)]
struct Said {
    messages: HashMap<(ReporterId, Side), u32>,
    /// Whether counts were dropped today.
    is_crowded: bool,
}

/// How much each reporter said on the day with this number. Each kind has room of its own, so that names made up at an interface take none from
/// users.
#[derive(Default)]
pub(super) struct Daily(Mutex<(u64, HashMap<ReporterKind, Said>)>);

impl Daily {
    /// Whether this reporter may call one more message spam, or none. When a kind is full, the counts of those who said least start over: one
    /// look through all of the kind for every 32,768 new reporters.
    pub(super) fn admits(&self, reporter: ReporterId, side: Side, now: u64) -> Admitted {
        let mut daily = self.0.lock();
        let (day, kinds) = &mut *daily;
        if *day != now / DAY {
            (*day, *kinds) = (now / DAY, HashMap::new());
        }
        let kind = reporter.kind();
        let said = kinds.entry(kind).or_default();
        if said.messages.len() >= MOST_REPORTERS && !said.messages.contains_key(&(reporter, side)) {
            said.make_room(kind);
        }
        let messages = said.messages.entry((reporter, side)).or_default();
        *messages = messages.saturating_add(1);
        if *messages <= MOST_A_DAY {
            return Admitted::Yes;
        }
        Admitted::No { is_news: *messages == MOST_A_DAY + 1 }
    }
}

impl Said {
    /// Drops those who said least. The log has it once a day.
    fn make_room(&mut self, kind: ReporterKind) {
        let mut counts: Vec<u32> = self.messages.values().copied().collect();
        let dropped = counts.len().saturating_sub(KEPT);
        let (_, &mut bound, _) = counts.select_nth_unstable(dropped);
        let below = counts.iter().filter(|&&count| count < bound).count();
        // Of equal ones, any.
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

    /// Who moves ten thousand messages at once is heard for so many today, and told of once; that keeps nobody else from being heard, nor
    /// the same user from taking back as many, and they are heard tomorrow.
    #[test]
    fn one_reporter_is_heard_for_so_many_messages_a_day() {
        let daily = Daily::default();
        let admits = |name: &str, now| daily.admits(of(name), Side::Spam, now);
        let all: Vec<_> = (0..10_000).map(|_| admits("user:anna", 5 * DAY)).collect();
        let count = |wanted| all.iter().filter(|&&admitted| admitted == wanted).count();
        assert_eq!(count(Admitted::Yes), MOST_A_DAY as usize);
        assert_eq!(count(Admitted::No { is_news: true }), 1);
        assert_eq!(admits("user:bert", 5 * DAY), Admitted::Yes);
        assert_eq!(admits("user:anna", 6 * DAY - 1), Admitted::No { is_news: false });
        assert_eq!(daily.admits(of("user:anna"), Side::NotSpam, 5 * DAY), Admitted::Yes);
        assert_eq!(admits("user:anna", 6 * DAY), Admitted::Yes);
    }

    /// Names that somebody makes up take no more memory than so many, keep no new reporter from being heard, whatever its kind, and free
    /// nobody who said enough.
    #[test]
    fn made_up_names_silence_nobody_and_free_nobody() {
        let daily = Daily::default();
        let admits = |name: &str| daily.admits(of(name), Side::Spam, 7 * DAY);
        for name in ["user:anna", "interface:first"] {
            (0..=MOST_A_DAY).for_each(|_| _ = admits(name));
            assert_eq!(admits(name), Admitted::No { is_news: false });
        }
        for n in 0..2 * MOST_REPORTERS + 10 {
            assert_eq!(admits(&format!("interface:made-up-{n}")), Admitted::Yes);
        }
        for name in ["user:new", "interface:new"] {
            assert_eq!(admits(name), Admitted::Yes);
        }
        for name in ["user:anna", "interface:first"] {
            assert_eq!(admits(name), Admitted::No { is_news: false }, "{name}");
        }
        let daily = daily.0.lock();
        assert!(daily.1.values().all(|said| said.messages.len() <= MOST_REPORTERS));
        assert_eq!(daily.1[&ReporterKind::User].messages.len(), 2, "users have room of their own");
    }
}
