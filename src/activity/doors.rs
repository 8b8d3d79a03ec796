// SPDX-License-Identifier: GPL-3.0-or-later
//! By which doors messages come, and how much is asked at each.

use super::connections::Connections;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// By which way somebody asks about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Door {
    /// The mail server, by the milter protocol.
    Milter,
    /// A program, by HTTP.
    Http,
    /// A client of DCC's interface daemon.
    Dccifd,
    /// A client of Pyzor.
    Pyzor,
}

impl Door {
    /// Those beside the milter's.
    pub const BESIDE: [Self; 3] = [Self::Http, Self::Dccifd, Self::Pyzor];

    /// Its name in log and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Milter => "milter",
            Self::Http => "http",
            Self::Dccifd => "dccifd",
            Self::Pyzor => "pyzor",
        }
    }

    const fn place(self) -> usize {
        self as usize
    }
}

/// What became of a request at a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// A message was judged and counted.
    Counted,
    /// A message was judged and not counted.
    Asked,
    /// A message was nominated.
    Nominated,
    /// It was refused: the client may not ask, or nobody could read it.
    Refused,
    /// It did not come in time.
    TimedOut,
}

impl Request {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Counted, Self::Asked, Self::Nominated, Self::Refused, Self::TimedOut];

    /// Its name in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Asked => "asked",
            Self::Nominated => "nominated",
            Self::Refused => "refused",
            Self::TimedOut => "timed-out",
        }
    }
}

/// What happens at all doors beside the milter's.
#[derive(Debug, Default)]
pub struct Doors {
    requests: [[AtomicU64; Request::ALL.len()]; 4],
    connections: [Arc<Connections>; 4],
}

impl Doors {
    /// Counts a request.
    pub fn add(&self, door: Door, request: Request) {
        self.requests[door.place()][request as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How many of these there were.
    #[must_use]
    pub fn requests(&self, door: Door, request: Request) -> u64 {
        self.requests[door.place()][request as usize].load(Ordering::Relaxed)
    }

    /// The connections of a door.
    #[must_use]
    pub fn connections(&self, door: Door) -> &Arc<Connections> {
        &self.connections[door.place()]
    }
}
