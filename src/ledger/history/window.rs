// SPDX-License-Identifier: GPL-3.0-or-later
//! Windows of time: which generation a report belongs to, and which generations count.

use crate::ledger::settings::Settings;
use bulkmark_filter::ParameterError;
use std::fmt;

/// A window, in seconds since 1970 (UTC): `start .. start + length`. All machines cut time at the same places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) length: u64,
}

impl Window {
    /// As the keys of the ledger's tables have it.
    pub(crate) const fn key(self) -> (u64, u64) {
        (self.start, self.length)
    }

    /// Start and length, little-endian.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
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
pub(crate) const STRAY_WINDOWS: usize = 4;

/// Windows beside the live ones, twice, that there may be at all: of other servers' retention.
const OTHER_WINDOWS: usize = 64;

/// Why there is no filter for a part of an update.
#[derive(Debug)]
pub(crate) enum NoPlace {
    /// A clock must be wrong.
    Clock(&'static str),
    Parameter(ParameterError),
}

/// How time is cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calendar {
    length: u64,
    retention: u64,
}

impl Calendar {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { length: settings.window.as_secs().max(1), retention: settings.retention.as_secs() }
    }

    /// The window that a report of the time `now` falls into.
    pub(crate) const fn at(&self, now: u64) -> Window {
        Window { start: now - now % self.length, length: self.length }
    }

    /// Whether reports of `window` count at the time `now`. The running window and those before it, as many as the
    /// retention holds; never one that has yet to begin (a clock that was wrong may have left one).
    pub(crate) const fn is_live(&self, window: Window, now: u64) -> bool {
        let end_of_running = self.at(now).start + self.length;
        window.start <= now && window.start + self.retention >= end_of_running
    }

    /// Whether reports of `window` will never count again.
    pub(crate) const fn is_over(&self, window: Window, now: u64) -> bool {
        window.start.saturating_add(self.retention) < self.at(now).start + self.length
    }

    /// The first time at which a window that begins at `start` [is over](Self::is_over).
    pub(crate) const fn over_at(&self, start: u64) -> u64 {
        let behind = start.saturating_add(self.retention).saturating_sub(self.length);
        (behind / self.length + 1).saturating_mul(self.length)
    }

    /// Whether there may be a filter for a window that others name, beside those of the windows `known`.
    ///
    /// # Errors
    /// What is wrong with it, so that a clock must be.
    pub(crate) fn admit(
        &self,
        window: Window,
        mut known: impl Iterator<Item = Window>,
        now: u64,
    ) -> Result<(), &'static str> {
        if window != self.at(window.start) {
            return Err("which does not begin at a window boundary");
        }
        // A window that counts always has its place, however many there are that have yet to begin.
        if window.start > now && known.by_ref().filter(|known| known.start > now).count() >= STRAY_WINDOWS {
            return Err("which is in the future, like others");
        }
        Ok(())
    }

    /// Those of these windows that are of no more use. As many as are live at a time, and one, stay in any case: a clock that
    /// jumps ahead for a while does not empty the ledger.
    pub(crate) fn over(&self, windows: impl Iterator<Item = Window>, now: u64) -> Vec<Window> {
        let (mut begun, ahead): (Vec<_>, Vec<_>) = windows.partition(|window| window.start <= now);
        begun.sort_unstable();
        begun.truncate(begun.len().saturating_sub(self.live().saturating_add(1)));
        begun.into_iter().chain(ahead).filter(|&window| self.is_over(window, now)).collect()
    }

    /// Windows that others may have at a time: those that are live, twice, and those of other servers' retention.
    pub(crate) fn most(&self) -> usize {
        self.live().saturating_mul(2).saturating_add(OTHER_WINDOWS)
    }

    /// The length of a window, in seconds.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    /// The number of windows that are live at a time.
    pub(crate) fn live(&self) -> usize {
        usize::try_from(self.retention.div_ceil(self.length)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    #[test]
    fn a_window_is_over_from_a_time_on() {
        for (window, retention) in [(DAY, 7 * DAY), (DAY, DAY), (3600, 5000), (DAY, 8 * DAY - 1)] {
            let calendar = Calendar { length: window, retention };
            let first = Window { start: 5 * DAY, length: window };
            let over_at = calendar.over_at(first.start);
            assert!(calendar.is_over(first, over_at), "{window} {retention}");
            assert!(!calendar.is_over(first, over_at - 1), "{window} {retention}");
        }
    }

    #[test]
    fn a_week_of_days() {
        let calendar = Calendar::new(&Settings::default());
        let now = 20_000 * DAY + 5;
        assert_eq!(calendar.at(now), Window { start: 20_000 * DAY, length: DAY });
        assert_eq!(calendar.live(), 7);
        let live = |days_ago: u64| calendar.is_live(calendar.at(now - days_ago * DAY), now);
        assert!((0..7).all(live));
        assert!(!live(7));
        assert!(!calendar.is_live(calendar.at(now + DAY), now), "a window in the future");
    }
}
