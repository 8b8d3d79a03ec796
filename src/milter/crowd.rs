// SPDX-License-Identifier: GPL-3.0-or-later
//! All connections of MTAs, and which of them has to go when there are as many as may be and another one waits.
//!
//! Anybody who reaches the socket can open connections and say nothing. An MTA keeps one for each SMTP client that is connected,
//! silent ones included, and opens another for the next; so the connection that was silent for the longest time is missed least.
//! It is the rule of `net/crowd.rs`, but for what silence is: an MTA has long pauses, which its packets explain.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How much sooner a connection goes whose MTA did not even say who its client is, which it does at once.
const GREETING: u32 = 4;

/// How long a connection that was told to go may take until another one is.
const GOING: Duration = Duration::from_secs(1);

/// How far a connection has come. Those that go first stand first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// No SMTP client was told of.
    Greeting,
    /// There is a client and no message.
    Between,
    /// A message is under way.
    Message,
    /// It is our turn to say something.
    Answer,
    /// It waits for its place, and nobody listens to it.
    Waiting,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// When the MTA said something last that matters.
    since: Instant,
    /// When it was told to go.
    closed: Option<Instant>,
    /// Who waits for the MTA.
    waker: Option<Waker>,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    open: Mutex<HashMap<u64, Arc<Mutex<State>>>>,
    next: AtomicU64,
    /// Those that were told to go, since the start.
    closed: AtomicU64,
    /// Who waits for one to go.
    waiting: Mutex<Option<Waker>>,
}

/// The place of a connection in the crowd, until dropped.
#[derive(Debug)]
pub(super) struct Place {
    crowd: Arc<Crowd>,
    number: u64,
    state: Arc<Mutex<State>>,
    packets: Packets,
}

impl Crowd {
    /// One more, which waits.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let state = State { stage: Stage::Waiting, since: Instant::now(), closed: None, waker: None };
        let (state, number) = (Arc::new(Mutex::new(state)), self.next.fetch_add(1, Ordering::Relaxed));
        self.open.lock().insert(number, Arc::clone(&state));
        Place { crowd: Arc::clone(self), number, state, packets: Packets::default() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.open.lock().len()
    }

    /// How many were told to go, since the start.
    pub(super) fn closed(&self) -> u64 {
        self.closed.load(Ordering::Relaxed)
    }

    /// Has somebody told when a connection ends.
    pub(super) fn wake_when_one_ends(&self, waker: &Waker) {
        self.waiting.lock().clone_from(&Some(waker.clone()));
    }

    /// Tells the one to go that is silent for longest, if it is for `idle` at least.
    pub(super) fn close_one(&self, idle: Duration, now: Instant) {
        let open = self.open.lock();
        let mut longest: Option<(Stage, Instant, &Arc<Mutex<State>>)> = None;
        for place in open.values() {
            let state = place.lock();
            if let Some(at) = state.closed {
                if now.duration_since(at) < GOING {
                    return;
                }
                continue;
            }
            let least = if state.stage == Stage::Greeting { idle / GREETING } else { idle };
            let is_silent = state.stage < Stage::Answer && now.duration_since(state.since) >= least;
            let (stage, since) = (state.stage, state.since);
            if is_silent && longest.is_none_or(|(of, at, _)| (stage, since) < (of, at)) {
                longest = Some((stage, since, place));
            }
        }
        let Some((.., place)) = longest else { return };
        let mut state = place.lock();
        state.closed = Some(now);
        self.closed.fetch_add(1, Ordering::Relaxed);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Place {
    /// It has its place: from now on it is listened to.
    pub(super) fn begin(&self) {
        let mut state = self.state.lock();
        (state.stage, state.since) = (Stage::Greeting, Instant::now());
    }

    /// Notes bytes from the MTA.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let state = &self.state;
        self.packets.read(bytes, |kind| {
            let mut state = state.lock();
            state.stage = match kind {
                b'K' => Stage::Greeting,
                b'C' | b'A' => Stage::Between,
                b'M' => Stage::Message,
                b'E' => Stage::Answer,
                b'R' | b'T' | b'L' | b'N' | b'B' => state.stage,
                // Macros, HELO, offers: what can be said again and again and leads nowhere.
                _ => return,
            };
            state.since = Instant::now();
        });
    }

    /// Notes that something was said to the MTA.
    pub(super) fn wrote(&self) {
        let mut state = self.state.lock();
        if state.stage == Stage::Answer {
            (state.stage, state.since) = (Stage::Between, Instant::now());
        }
    }

    /// Whether it was told to go; if not, `waker` is called when it is.
    pub(super) fn is_closed(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock();
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        state.closed.is_some()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.crowd.open.lock().remove(&self.number);
        if let Some(waker) = self.crowd.waiting.lock().take() {
            waker.wake();
        }
    }
}

/// Finds packets in a stream of bytes: a length of four bytes, a kind, and the rest.
#[derive(Debug, Default)]
struct Packets {
    /// The length, as far as it is known, and how many of its bytes are.
    length: u32,
    known: u8,
    /// Bytes up to the next packet.
    rest: u32,
}

impl Packets {
    fn read(&mut self, mut bytes: &[u8], mut kind: impl FnMut(u8)) {
        while let Some((&first, behind)) = bytes.split_first() {
            if self.rest > 0 {
                let skipped = usize::try_from(self.rest).unwrap_or(usize::MAX).min(bytes.len());
                self.rest -= u32::try_from(skipped).unwrap_or(self.rest);
                bytes = &bytes[skipped..];
                continue;
            }
            bytes = behind;
            if self.known < 4 {
                self.length = self.length << 8 | u32::from(first);
                self.known += 1;
                continue;
            }
            kind(first);
            *self = Self { rest: self.length.saturating_sub(1), ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Duration = Duration::from_secs(20);

    fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len() + 1).unwrap();
        [&[0, 0, 0, length, kind], payload].concat()
    }

    #[test]
    fn packets_are_found_however_they_are_cut() {
        let stream = [packet(b'O', b"Cx"), packet(b'E', b""), packet(b'C', &[b'M'; 200])].concat();
        for size in [1, 2, 3, 7, 300] {
            let (mut packets, mut kinds) = (Packets::default(), Vec::new());
            for piece in stream.chunks(size) {
                packets.read(piece, |kind| kinds.push(kind));
            }
            assert_eq!(kinds, b"OEC", "in pieces of {size}");
        }
    }

    fn stage(place: &mut Place, kinds: &[u8]) {
        kinds.iter().for_each(|&kind| place.read(&packet(kind, b"x")));
    }

    fn is_closed(place: &Place) -> bool {
        place.is_closed(Waker::noop())
    }

    /// First who never said anything, then who is between two messages, then who is in the midst of one; never whom we owe an
    /// answer. Each only after its time.
    #[test]
    fn the_longest_silent_goes_first() {
        let crowd = Arc::new(Crowd::default());
        let mut places: Vec<Place> = (0..5).map(|_| crowd.enter()).collect();
        places.iter().for_each(Place::begin);
        let waiting = crowd.enter();
        stage(&mut places[0], b"OCMRTLNBE");
        stage(&mut places[1], b"OCDMR");
        stage(&mut places[2], b"OC");
        stage(&mut places[3], b"OCMRTNBE");
        places[3].wrote();
        stage(&mut places[4], b"ODHO");
        let mut now = Instant::now();
        crowd.close_one(IDLE, now);
        assert_eq!(crowd.closed(), 0, "nobody is silent for long");
        now += IDLE / GREETING;
        crowd.close_one(IDLE, now);
        assert!(is_closed(&places[4]) && crowd.closed() == 1, "it said nothing that matters");
        crowd.close_one(IDLE, now);
        assert_eq!(crowd.closed(), 1, "one is on its way");
        drop(places.pop());
        crowd.close_one(IDLE, now);
        assert_eq!(crowd.closed(), 1);
        for gone in [2, 3, 1] {
            now += IDLE;
            crowd.close_one(IDLE, now);
            assert!(is_closed(&places[gone]), "{gone}");
        }
        now += IDLE;
        crowd.close_one(IDLE, now);
        assert_eq!((crowd.closed(), crowd.len()), (4, 5));
        assert!(!is_closed(&waiting) && !is_closed(&places[0]));
    }
}
