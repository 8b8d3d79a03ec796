// SPDX-License-Identifier: GPL-3.0-or-later
//! The dropped part of a history: its updates up to a mark, and the time at which all their reports expire.

use super::fields::Fields;
use super::vector::{Chain, Mark, Origin};
use super::window::{Calendar, Window};

/// The beginning of an origin's history, whose updates were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// The origin of the history.
    pub origin: Origin,
    /// Its last update.
    pub mark: Mark,
    /// The time (seconds since 1970) from which on none of its reports counts: a holder that lacks them misses nothing.
    pub over_at: u64,
}

/// Bytes of one entry: origin, version, hash, time.
const BYTES: usize = 8 + 8 + 16 + 8;

/// The most histories that are read at a time: a server knows no more origins.
const MAX: usize = 65_536;

impl Past {
    /// Encodes the entries of several origins.
    #[must_use]
    pub fn encode_all(all: &[Self]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(all.len() * BYTES);
        for Self { origin, mark, over_at } in all {
            bytes.extend_from_slice(&origin.0.to_le_bytes());
            bytes.extend_from_slice(&mark.version.to_le_bytes());
            bytes.extend_from_slice(&mark.chain.0);
            bytes.extend_from_slice(&over_at.to_le_bytes());
        }
        bytes
    }

    /// Reads the bytes of [`encode_all`](Self::encode_all). `None` for other bytes.
    #[must_use]
    pub fn decode_all(bytes: &[u8]) -> Option<Vec<Self>> {
        let (all, []) = bytes.as_chunks::<BYTES>() else { return None };
        let decode = |bytes: &[u8; BYTES]| {
            let mut fields = Fields(bytes);
            let origin = Origin(fields.u64().ok()?);
            let mark = Mark { version: fields.u64().ok()?, chain: Chain(fields.take().ok()?) };
            Some(Self { origin, mark, over_at: fields.u64().ok()? })
        };
        if all.len() > MAX { None } else { all.iter().map(decode).collect() }
    }
}

/// Returns the time at which all reports of an update have expired, from its bytes; 0 if it has none. `None` for other bytes.
pub fn over_at(calendar: Calendar, update: &[u8]) -> Option<u64> {
    let (_, mut parts) = update.split_at_checked(32)?;
    let mut over_at = 0;
    while !parts.is_empty() {
        let mut fields = Fields(parts);
        let window = Window::from((fields.u64().ok()?, fields.u64().ok()?));
        let _ = (fields.u32().ok()?, fields.u32().ok()?);
        let length = fields.u32().ok()? as usize;
        // In a withdrawal all but one number are zero.
        if window.start > 0 {
            over_at = over_at.max(calendar.over_at(window));
        }
        parts = fields.0.get(length..)?;
    }
    Some(over_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn only_encoded_entries_are_decoded() {
        let mark = Mark { version: 7, chain: Chain([3; 16]) };
        let all =
            vec![Past { origin: Origin(1), mark, over_at: 9 }, Past { origin: Origin(2), mark, over_at: 8 }];
        let bytes = Past::encode_all(&all);
        assert_eq!(Past::decode_all(&bytes), Some(all));
        assert_eq!(Past::decode_all(&bytes[1..]), None);
        assert_eq!(Past::decode_all(&[]), Some(Vec::new()));
    }

    /// The bytes of an update with parts of these windows.
    fn update(windows: &[Window]) -> Vec<u8> {
        let mut bytes = vec![7; 32];
        for window in windows {
            bytes.extend_from_slice(&window.to_bytes());
            bytes.extend_from_slice(&[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 9, 9]);
        }
        bytes
    }

    /// Servers keep an update until the last of its reports expires, in whatever window.
    #[test]
    fn an_update_is_over_with_the_last_of_its_windows() {
        const DAY: u64 = 86_400;
        let calendar = Calendar::new(&Settings::default());
        let now = 20_000 * DAY;
        let (mail, user_reports) = (calendar.at(now), calendar.of_user_reports(now));
        assert_eq!(over_at(calendar, &update(&[mail])), Some(now + 7 * DAY));
        let end = user_reports.start + 30 * DAY;
        for windows in [[mail, user_reports], [user_reports, mail]] {
            assert_eq!(over_at(calendar, &update(&windows)), Some(end));
        }
        assert!(calendar.is_live(user_reports, end - 1) && !calendar.is_live(user_reports, end));
        assert_eq!(over_at(calendar, &update(&[])), Some(0));
        assert_eq!(over_at(calendar, &update(&[mail])[..60]), None);
    }
}
