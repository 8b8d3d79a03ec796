// SPDX-License-Identifier: GPL-3.0-or-later
//! Windows of time: which generation a report belongs to, and which generations count.

use crate::settings::Settings;
pub use crate::settings::USER_REPORT_WINDOW;
use bulkmark_filter::ParameterError;
use bulkmark_types::Signature;
use std::fmt;

/// A window, in seconds since 1970 (UTC): `start .. start + length`. All machines cut time at the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window {
    /// Its beginning, in seconds since 1970.
    pub start: u64,
    /// Its length in seconds.
    pub length: u64,
}

impl Window {
    /// Whether it is one of user reports.
    pub const fn is_user_report(self) -> bool {
        self.length == USER_REPORT_WINDOW
    }

    /// Whether a signature is counted in windows like this one.
    pub const fn takes(self, signature: Signature) -> bool {
        self.is_user_report() == signature.is_user_report()
    }

    /// As the keys of the ledger's tables have it.
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

/// Windows that have yet to begin and that there may be: those that a wrong clock somewhere brings.
pub const STRAY_WINDOWS: usize = 4;

/// Sizes that the filters of a window may have beside one another: servers take a new capacity one after the other.
pub const MAX_SIZES: usize = 4;

/// Windows beside the live ones, twice, that there may be at all: of other servers' retention.
const OTHER_WINDOWS: usize = 64;

/// Why there is no filter for a part of an update.
#[derive(Debug)]
pub enum NoPlace {
    /// A clock must be wrong.
    Clock(&'static str),
    /// A filter of this size is not admitted, or there is no memory for it.
    Parameter(ParameterError),
}

/// A window of user reports is made for so many times fewer signatures than others: most mail nobody says anything of.
pub const USER_REPORT_CAPACITY: u32 = 8;

/// Of the signatures that a filter of such a window is made for it takes one in so many. User reports is little, and what they say of
/// others must not fall on a stranger's mail: docs/filter.md has the figures.
pub const fn share_of(window: Window) -> u32 {
    if window.is_user_report() { USER_REPORT_SHARE } else { 1 }
}

/// Of so many signatures that a filter for user reports is made for, it takes one.
pub const USER_REPORT_SHARE: u32 = 2;

/// Signatures that a window is made for, where one of mail is made for `capacity`.
pub const fn capacity_of(window: Window, capacity: u32) -> u32 {
    if window.is_user_report() { capacity.div_ceil(USER_REPORT_CAPACITY) } else { capacity }
}

/// How time is cut: for what is counted of mail, and for user reports of it.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    length: u64,
    retention: u64,
    /// How long it counts user reports.
    user_reports: u64,
}

impl Calendar {
    /// The rules that follow from these settings.
    pub fn new(settings: &Settings) -> Self {
        Self {
            length: settings.window.as_secs().max(1),
            retention: settings.retention.as_secs(),
            user_reports: settings.user_report_retention.as_secs(),
        }
    }

    /// Length and retention of windows like one of this length.
    const fn like(&self, length: u64) -> (u64, u64) {
        if length == USER_REPORT_WINDOW {
            (USER_REPORT_WINDOW, self.user_reports)
        } else {
            (self.length, self.retention)
        }
    }

    /// The window that a report of a signature falls into, at the time `now`.
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

    /// The end of the window like one of this length that runs at the time `now`.
    const fn end_of_running(&self, length: u64, now: u64) -> u64 {
        let (length, _) = self.like(length);
        now - now % length + length
    }

    /// Whether reports of `signature` that are in `window` count at the time `now`.
    pub const fn counts(&self, window: Window, signature: Signature, now: u64) -> bool {
        window.takes(signature) && self.is_live(window, now)
    }

    /// Whether reports of `window` count at the time `now`. The running window and those before it, as many as the
    /// retention holds; never one that has yet to begin (a clock that was wrong may have left one).
    pub const fn is_live(&self, window: Window, now: u64) -> bool {
        let (_, retention) = self.like(window.length);
        window.start <= now && window.start + retention >= self.end_of_running(window.length, now)
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

    /// Whether there may be a filter for a window that others name, beside those of the windows `known`.
    ///
    /// # Errors
    /// What is wrong with it, so that a clock must be.
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
        // A window that counts always has its place, however many there are that have yet to begin.
        if window.start > now && ahead.count() >= STRAY_WINDOWS {
            return Err("which is in the future, like others");
        }
        Ok(())
    }

    /// Those of these windows that are of no more use. As many as are live at a time, and one, stay in any case: a clock that
    /// jumps ahead for a while does not empty the ledger.
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

    /// Windows that others may have at a time: those that are live, twice, and those of other servers' retention.
    pub fn most(&self) -> usize {
        let live = self.live(self.length).saturating_add(self.live(USER_REPORT_WINDOW));
        live.saturating_mul(2).saturating_add(OTHER_WINDOWS)
    }

    /// Whether windows have this length.
    ///
    /// # Errors
    /// When they do not.
    pub fn check_length(&self, length: u64) -> Result<(), ParameterError> {
        let (expected, _) = self.like(length);
        ParameterError::same("window", expected, length)
    }

    /// The number of windows like one of this length that are live at a time.
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
