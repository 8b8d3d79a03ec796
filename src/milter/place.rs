// SPDX-License-Identifier: GPL-3.0-or-later
//! The place of an MTA's connection in the [crowd](crate::net::Crowd), and when it must make room for another one.
//!
//! Anybody who reaches the socket can open silent connections. An MTA keeps one for each connected SMTP client, including silent ones, and
//! opens another for the next; so the connection that was silent for longest is missed least. An MTA has long pauses, which its packets
//! explain: a connection without an SMTP client is closed first, then one between two messages, and one amid a message last.

use crate::net::Seat;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;
use tokio::sync::futures::OwnedNotified;

/// The factor by which a connection without a client is closed sooner: an MTA sends the client at once.
const GREETING: u32 = 4;

/// The stage of a connection. Those that are closed first come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No SMTP client is known.
    Greeting,
    /// There is a client and no message.
    Between,
    /// A message is being received.
    Message,
    /// We owe an answer.
    Answer,
}

/// The place of a connection, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    seat: Seat,
    /// The time that an MTA may be silent while another connection waits.
    idle: Duration,
    stage: Stage,
    sent_away: Pin<Box<OwnedNotified>>,
    is_closed: bool,
}

impl Place {
    /// The place of a new connection.
    pub(super) fn new(seat: Seat, idle: Duration) -> Self {
        let sent_away = Box::pin(seat.sent_away());
        let mut place = Self { seat, idle, stage: Stage::Greeting, sent_away, is_closed: false };
        place.reach(Stage::Greeting);
        place
    }

    fn reach(&mut self, stage: Stage) {
        self.stage = stage;
        match stage {
            Stage::Greeting => self.seat.may_go(0, self.idle / GREETING),
            Stage::Between => self.seat.may_go(1, self.idle),
            Stage::Message => self.seat.may_go(2, self.idle),
            Stage::Answer => self.seat.may_stay(),
        }
    }

    /// Takes commands of the MTA.
    pub(super) fn read(&mut self, commands: &[u8]) {
        let mut stage = None;
        for kind in commands {
            stage = match kind {
                b'K' => Some(Stage::Greeting),
                b'C' | b'A' => Some(Stage::Between),
                b'M' => Some(Stage::Message),
                b'E' => Some(Stage::Answer),
                b'R' | b'T' | b'L' | b'N' | b'B' => stage.or(Some(self.stage)),
                // Macros, HELO, offers: they can be repeated without progress.
                _ => stage,
            };
        }
        if let Some(stage) = stage {
            self.reach(stage);
        }
    }

    /// Takes note that an answer was written to the MTA.
    pub(super) fn wrote(&mut self) {
        if self.stage == Stage::Answer {
            self.reach(Stage::Between);
        }
    }

    /// Whether it must be closed; if not, the task is woken when it must.
    pub(super) fn is_closed(&mut self, cx: &mut Context<'_>) -> bool {
        self.is_closed = self.is_closed || self.sent_away.as_mut().poll(cx).is_ready();
        self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Bounds, Crowd};
    use std::task::Waker;

    const HOUR: u64 = 3_600_000;

    /// First connections without a client, then those between two messages, then those amid one; never those that wait for an answer. Each
    /// only after its time.
    #[test]
    fn the_longest_silent_goes_first() {
        let crowd = Crowd::new(Bounds { all: 5, address: usize::MAX, known: usize::MAX });
        let place = |_| Place::new(crowd.admit(None, 0).unwrap(), Duration::from_secs(20 * 3600));
        let mut places: Vec<Place> = (0..5).map(place).collect();
        places[0].read(b"OCMRTLNBE");
        places[1].read(b"OCDMR");
        places[2].read(b"OC");
        places[3].read(b"OCMRTNBE");
        places[3].wrote();
        places[4].read(b"ODHO");
        // New connections are not silent yet.
        let mut came = Vec::new();
        let mut closed = |hour: u64| {
            came.extend(crowd.admit(None, hour * HOUR).ok());
            let mut cx = Context::from_waker(Waker::noop());
            (0..5).filter(|&i| places[i].is_closed(&mut cx)).collect::<Vec<_>>()
        };
        assert_eq!(closed(1), [0_usize; 0], "no connection is silent for long");
        assert_eq!(closed(6), [4], "it made no progress");
        assert_eq!(closed(6), [4]);
        assert_eq!(closed(30), [2, 4]);
        assert_eq!(closed(30), [2, 3, 4]);
        assert_eq!(closed(30), [1, 2, 3, 4]);
        assert_eq!(closed(50), [1, 2, 3, 4]);
        assert_eq!((crowd.sent_away(), crowd.open()), (4, 5));
    }
}
