// SPDX-License-Identifier: GPL-3.0-or-later
//! How much each reporter said today.

use crate::signature::ReporterId;
use parking_lot::Mutex;
use std::collections::HashMap;

/// Messages of which one reporter may say something in a day. Who moves ten thousand at once has them done within days, and fills
/// nobody's memory.
pub(super) const MOST_A_DAY: u32 = 2000;

/// Reporters of whom that is known.
const MOST_REPORTERS: usize = 1 << 16;

const DAY: u64 = 86_400;

/// How much each reporter said today.
#[derive(Default)]
pub(super) struct Daily(Mutex<(u64, HashMap<ReporterId, u32>)>);

impl Daily {
    /// Whether this reporter may say something of one more message.
    pub(super) fn admits(&self, reporter: ReporterId, now: u64) -> bool {
        let mut daily = self.0.lock();
        let (day, said) = &mut *daily;
        if *day != now / DAY {
            (*day, *said) = (now / DAY, HashMap::new());
        }
        if said.len() >= MOST_REPORTERS && !said.contains_key(&reporter) {
            return false;
        }
        let said = said.entry(reporter).or_default();
        *said += 1;
        *said <= MOST_A_DAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::FederationKey;

    /// Who moves ten thousand messages at once is heard for so many today, keeps nobody else from being heard, and is heard tomorrow.
    #[test]
    fn one_reporter_is_heard_for_so_many_messages_a_day() {
        let daily = Daily::default();
        let of = |name: &str| ReporterId::of(&FederationKey::public(), name.as_bytes());
        let heard = |name: &str, now| (0..10_000).filter(|_| daily.admits(of(name), now)).count();
        assert_eq!(heard("user:anna", 5 * DAY), MOST_A_DAY as usize);
        assert!(daily.admits(of("user:bert"), 5 * DAY) && !daily.admits(of("user:anna"), 6 * DAY - 1));
        assert!(daily.admits(of("user:anna"), 6 * DAY));
        // Names that somebody makes up take no more memory than so many.
        (0..MOST_REPORTERS + 10).for_each(|n| _ = daily.admits(of(&n.to_string()), 7 * DAY));
        assert!(daily.0.lock().1.len() <= MOST_REPORTERS);
    }
}
