// SPDX-License-Identifier: GPL-3.0-or-later
//! Windows of time: the generation that a report belongs to, and the generations that count.

use crate::settings::Settings;
pub use crate::settings::USER_REPORT_WINDOW;
use bulkmark_filter::ParameterError;
use bulkmark_types::Signature;
use std::fmt;

/// A window, in seconds since 1970 (UTC): `start .. start + length`. All machines have the same window boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window {
    /// Its beginning, in seconds since 1970.
    pub start: u64,
    /// Its length in seconds.
    pub length: u64,
}

impl Window {
    /// Whether it is a window of user reports.
    pub const fn is_user_report(self) -> bool {
        self.length == USER_REPORT_WINDOW
    }

    /// Whether a signature is counted in windows like this one.
    pub const fn takes(self, signature: Signature) -> bool {
        self.is_user_report() == signature.is_user_report()
    }

    /// The key in the ledger's tables.
    pub const fn key(self) -> (u64, u64) {
        (self.start, self.length)
    }

    /// Start and length, little-endian.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.start.to_le_bytes());
        bytes[8..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }
}

impl From<(u64, u64)> for Window {
    fn from((start, length): (u64, u64)) -> Self {
        Self { start, length }
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.start, self.length)
    }
}

/// The most windows in the future: wrong clocks elsewhere cause them.
pub const FUTURE_WINDOWS: usize = 4;

/// The most filter sizes in a window: servers change their capacity one after another.
pub const MAX_SIZES: usize = 4;

/// The most other windows, beside twice the live ones: servers may have another retention.
const OTHER_WINDOWS: usize = 64;

/// The reason why there is no filter for a part of an update.
#[derive(Debug)]
pub enum NotAdmitted {
    /// A clock must be wrong.
    Clock(&'static str),
    /// The size of the filter is not admitted, or there is not enough memory.
    Parameter(ParameterError),
}

/// A window of user reports has this many times less capacity than others: most mail is never reported by users.
pub const USER_REPORT_CAPACITY: u32 = 8;

/// The share of a filter's capacity that it uses: one in so many signatures. User reports are few, and a collision must not make unrelated
/// mail spam: docs/filter.md has the figures.
pub const fn share_of(window: Window) -> u32 {
    if window.is_user_report() { USER_REPORT_SHARE } else { 1 }
}

/// A filter for user reports uses one in so many signatures of its capacity.
pub const USER_REPORT_SHARE: u32 = 2;

/// The capacity of a window if those of mail have `capacity`.
pub const fn capacity_of(window: Window, capacity: u32) -> u32 {
    if window.is_user_report() { capacity.div_ceil(USER_REPORT_CAPACITY) } else { capacity }
}

/// The windows of mail counts and of user reports, with their retention.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    length: u64,
    retention: u64,
    /// The retention of user reports.
    user_reports: u64,
}

impl Calendar {
    /// Derives the rules from the settings.
    pub fn new(settings: &Settings) -> Self {
        Self {
            length: settings.window.as_secs().max(1),
            retention: settings.retention.as_secs(),
            user_reports: settings.user_report_retention.as_secs(),
        }
    }

    /// Length and retention of the windows of the same kind as one of this length.
    const fn like(&self, length: u64) -> (u64, u64) {
        if length == USER_REPORT_WINDOW {
            (USER_REPORT_WINDOW, self.user_reports)
        } else {
            (self.length, self.retention)
        }
    }

    /// The window of a report of a signature at the time `now`.
    pub const fn of(&self, signature: Signature, now: u64) -> Window {
        let length = if signature.is_user_report() { USER_REPORT_WINDOW } else { self.length };
        Window { start: now - now % length, length }
    }

    /// The window of mail at the time `now`.
    pub const fn at(&self, now: u64) -> Window {
        Window { start: now - now % self.length, length: self.length }
    }

    /// The window of user reports at the time `now`.
    pub const fn of_user_reports(&self, now: u64) -> Window {
        Window { start: now - now % USER_REPORT_WINDOW, length: USER_REPORT_WINDOW }
    }

    /// The end of the current window of the same kind as one of this length, at the time `now`.
    const fn end_of_running(&self, length: u64, now: u64) -> u64 {
        let (length, _) = self.like(length);
        // Another member may claim any time.
        (now - now % length).saturating_add(length)
    }

    /// Whether reports of `signature` in `window` count at the time `now`.
    pub const fn counts(&self, window: Window, signature: Signature, now: u64) -> bool {
        window.takes(signature) && self.is_live(window, now)
    }

    /// Whether reports of `window` count at the time `now`: the current window and as many before it as the retention holds. Never a window
    /// in the future, which a wrong clock may have left.
    pub const fn is_live(&self, window: Window, now: u64) -> bool {
        let (_, retention) = self.like(window.length);
        let end = self.end_of_running(window.length, now);
        window.start <= now && window.start.saturating_add(retention) >= end
    }

    /// Whether reports of `window` will never count again.
    pub const fn is_over(&self, window: Window, now: u64) -> bool {
        let (_, retention) = self.like(window.length);
        window.start.saturating_add(retention) < self.end_of_running(window.length, now)
    }

    /// The first time at which a window [is over](Self::is_over).
    pub const fn over_at(&self, window: Window) -> u64 {
        let (length, retention) = self.like(window.length);
        let behind = window.start.saturating_add(retention).saturating_sub(length);
        (behind / length + 1).saturating_mul(length)
    }

    /// Checks whether there may be a filter for another machine's window, beside those of the windows `known`.
    ///
    /// # Errors
    /// The mismatch, which means that a clock is wrong.
    pub fn admit(
        &self,
        window: Window,
        known: impl Iterator<Item = Window>,
        now: u64,
    ) -> Result<(), &'static str> {
        let (length, _) = self.like(window.length);
        if window.length != length || !window.start.is_multiple_of(length) {
            return Err("which does not begin at a window boundary");
        }
        let ahead = known.filter(|known| known.length == length && known.start > now);
        // A window that counts is always admitted, however many are in the future.
        if window.start > now && ahead.count() >= FUTURE_WINDOWS {
            return Err("which is in the future, like others");
        }
        Ok(())
    }

    /// The windows that can be dropped. As many as are live at a time, and one, always stay: a clock that jumps ahead for a while does not
    /// empty the ledger.
    pub fn over(&self, windows: impl Iterator<Item = Window>, now: u64) -> Vec<Window> {
        let (mut begun, mut over): (Vec<_>, Vec<_>) = windows.partition(|window| window.start <= now);
        begun.sort_unstable();
        for like in [self.length, USER_REPORT_WINDOW] {
            let is_like = |window: &&Window| window.is_user_report() == (like == USER_REPORT_WINDOW);
            let all = begun.iter().filter(is_like).count();
            let stay = self.live(like).saturating_add(1);
            over.extend(begun.iter().filter(is_like).take(all.saturating_sub(stay)));
        }
        over.retain(|&window| self.is_over(window, now));
        over
    }

    /// The most windows of other machines at a time: twice the live ones, and some for another retention.
    pub fn most(&self) -> usize {
        let live = self.live(self.length).saturating_add(self.live(USER_REPORT_WINDOW));
        live.saturating_mul(2).saturating_add(OTHER_WINDOWS)
    }

    /// Checks the length of windows.
    ///
    /// # Errors
    /// If the length differs.
    pub fn check_length(&self, length: u64) -> Result<(), ParameterError> {
        let (expected, _) = self.like(length);
        ParameterError::same("window", expected, length)
    }

    /// The number of windows of the same kind as one of this length that are live at a time.
    pub fn live(&self, length: u64) -> usize {
        let (length, retention) = self.like(length);
        usize::try_from(retention.div_ceil(length)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn a_window_is_over_from_a_time_on() {
        for (window, retention) in [(DAY, 7 * DAY), (DAY, DAY), (3600, 5000), (DAY, 8 * DAY - 1)] {
            let calendar = Calendar { length: window, retention, user_reports: 30 * DAY };
            let first = Window { start: 5 * DAY, length: window };
            let over_at = calendar.over_at(first);
            assert!(calendar.is_over(first, over_at), "{window} {retention}");
            assert!(!calendar.is_over(first, over_at - 1), "{window} {retention}");
        }
    }

    #[test]
    fn any_time_has_windows() {
        let calendar = Calendar::new(&Settings::default());
        for now in [0, 1, u64::MAX - DAY, u64::MAX - 1, u64::MAX] {
            assert_eq!(calendar.is_over(calendar.at(5 * DAY), now), now > 20 * DAY, "{now}");
            assert!(calendar.is_live(calendar.at(now), now), "{now}");
        }
    }

    #[test]
    fn a_week_of_days() {
        let calendar = Calendar::new(&Settings::default());
        let now = 20_000 * DAY + 5;
        assert_eq!(calendar.at(now), Window { start: 20_000 * DAY, length: DAY });
        assert_eq!(calendar.live(DAY), 7);
        let live = |days_ago: u64| calendar.is_live(calendar.at(now - days_ago * DAY), now);
        assert!((0..7).all(live));
        assert!(!live(7));
        assert!(!calendar.is_live(calendar.at(now + DAY), now), "a window in the future");
    }
}
