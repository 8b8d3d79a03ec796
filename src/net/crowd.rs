// SPDX-License-Identifier: GPL-3.0-or-later
//! All connections of a socket, and the choice of those to close when there are too many. Known clients are counted by name, all others
//! (strangers) by address. If a stranger finds no room, the connection that has been silent for longest is closed, if its
//! [patience](super::patience) is used up; otherwise the stranger waits. If an address has too many, one of its own is closed at once. A
//! protocol that knows more about silence can [rank](Seat::may_go) its connections.

use super::accept::Stream;
use super::network::network_of;
use super::patience::{Deadline, Monitored, NEVER};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::sleep;

/// Milliseconds until a connection from which nothing is awaited is checked again.
const AGAIN: u64 = 50;

/// Maximum numbers of connections at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub all: usize,
    /// Of strangers from one address.
    pub address: usize,
    /// Of one known client.
    pub known: usize,
}

/// Too many connections of a known client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

/// All connections of a socket.
#[derive(Debug)]
pub struct Crowd {
    bounds: Bounds,
    /// The zero of all times.
    begin: Instant,
    inside: Mutex<Inside>,
    /// Notified when a connection ends, or a request was answered.
    room: Notify,
}

/// The connections by their numbers; a lower one came earlier.
#[derive(Debug, Default)]
struct Inside {
    next: u64,
    /// All data that arrived before this time, in milliseconds, was seen. Under load that may be long ago.
    seen_until: u64,
    /// The number of connections that were closed to make room.
    sent_away: u64,
    /// All of them.
    open: HashMap<u64, Entry>,
    /// Strangers without a request that is being answered, by the time, in milliseconds, at which they must be checked: they may then be
    /// closed, or get more patience.
    silent: BTreeSet<(u64, u64)>,
    /// The strangers of each address.
    strangers: HashMap<IpAddr, BTreeSet<u64>>,
    /// The number of connections of each known client.
    known: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Entry {
    /// The address under which it counts; none on a Unix socket.
    from: Option<IpAddr>,
    /// The name of the client, once known.
    name: Option<Arc<str>>,
    /// The number of its requests that are being answered.
    busy: usize,
    /// Its time in `silent`, if it is there.
    look: Option<u64>,
    until: Deadline,
    close: Arc<Notify>,
}

impl Inside {
    /// Removes a connection.
    fn remove(&mut self, id: u64) {
        self.look_at(id, None);
        let Some(entry) = self.open.remove(&id) else { return };
        match entry.name {
            Some(name) => self.forget_name(&name),
            None => self.forget_stranger(id, entry.from),
        }
    }

    fn forget_name(&mut self, name: &str) {
        if let Some(count) = self.known.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.known.remove(name);
            }
        }
    }

    fn forget_stranger(&mut self, id: u64, from: Option<IpAddr>) {
        if let Some(from) = from
            && let Some(strangers) = self.strangers.get_mut(&from)
        {
            strangers.remove(&id);
            if strangers.is_empty() {
                self.strangers.remove(&from);
            }
        }
    }

    /// Sets the time at which a connection must be checked for silence; none if it need not be.
    fn look_at(&mut self, id: u64, when: Option<u64>) {
        let Some(entry) = self.open.get_mut(&id) else { return };
        if let Some(before) = std::mem::replace(&mut entry.look, when) {
            self.silent.remove(&(before, id));
        }
        self.silent.extend(when.map(|when| (when, id)));
    }

    /// Closes a connection to make room.
    fn send_away(&mut self, id: u64) {
        if let Some(entry) = self.open.get(&id) {
            entry.close.notify_one();
            self.sent_away += 1;
        }
        self.remove(id);
    }

    /// Returns the connection whose patience ended, and first in its rank; if there is none yet, the time of the next check.
    fn silent(&mut self, now: u64) -> Result<u64, Option<u64>> {
        let (mut first, mut from) = (None, (0, 0));
        while let Some(&(look, id)) = self.silent.range(from..).next().filter(|(look, _)| *look <= now) {
            from = (look, id + 1);
            let (rank, until) = self.open.get(&id).map_or((0, look), |entry| entry.until.get());
            match until {
                until if until == look => {
                    let found = (rank, look, id);
                    first = Some(first.map_or(found, |first| found.min(first)));
                    if rank == 0 {
                        break;
                    }
                }
                NEVER => self.look_at(id, Some(now + AGAIN)),
                until => self.look_at(id, Some(until)),
            }
        }
        match first {
            Some((.., id)) => Ok(id),
            None => Err(self.silent.first().map(|&(look, _)| look)),
        }
    }

    /// Returns the connection from this address whose patience ends first. It is not waited for, which would delay other addresses. One
    /// that was not checked yet may have sent something, so it comes last.
    fn silent_from(&self, from: IpAddr) -> Option<u64> {
        let until = |id: &u64| {
            let entry = self.open.get(id).filter(|entry| entry.look.is_some())?;
            Some((entry.until.get().1, *id))
        };
        self.strangers.get(&from)?.iter().filter_map(until).min().map(|(_, id)| id)
    }
}

/// A connection is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Its address has reached its maximum, and all of its connections are being answered.
    Refused,
    /// All places are taken; the time of the next check, if there is one.
    Waits(Option<u64>),
}

impl Crowd {
    /// Creates an empty one.
    #[must_use]
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, begin: Instant::now(), inside: Mutex::default(), room: Notify::new() })
    }

    /// Returns the number of connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.inside.lock().open.len()
    }

    /// Returns the number of connections closed to make room since the start.
    #[must_use]
    pub fn sent_away(&self) -> u64 {
        self.inside.lock().sent_away
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(NEVER - AGAIN)
    }

    /// Admits a connection once there is room; none if its address has reached its maximum.
    pub async fn enter(self: &Arc<Self>, ip: Option<IpAddr>) -> Option<Seat> {
        loop {
            let (now, seen_until) = (self.now(), self.inside.lock().seen_until);
            let look = match self.admit(ip, seen_until) {
                Ok(seat) => return Some(seat),
                Err(Outside::Refused) => return None,
                Err(Outside::Waits(look)) => look.unwrap_or(now + AGAIN),
            };
            tokio::select! {
                () = self.room.notified() => (),
                // The runtime sees which sockets are ready before it fires timers, and a ready one is not silent.
                () = sleep(Duration::from_millis(look.saturating_sub(now).clamp(1, AGAIN))) => {
                    self.inside.lock().seen_until = now;
                }
            }
        }
    }

    /// Admits a connection if there is room, when all data that arrived before `now` was seen.
    pub(crate) fn admit(self: &Arc<Self>, ip: Option<IpAddr>, now: u64) -> Result<Seat, Outside> {
        let from = ip.map(network_of);
        let mut inside = self.inside.lock();
        if let Some(from) = from
            && inside.strangers.get(&from).is_some_and(|strangers| strangers.len() >= self.bounds.address)
        {
            let longest = inside.silent_from(from).ok_or(Outside::Refused)?;
            inside.send_away(longest);
        }
        if inside.open.len() >= self.bounds.all {
            let longest = inside.silent(now).map_err(Outside::Waits)?;
            inside.send_away(longest);
        }
        let id = inside.next;
        inside.next += 1;
        let (close, until) = (Arc::new(Notify::new()), Deadline::new());
        if let Some(from) = from {
            inside.strangers.entry(from).or_default().insert(id);
        }
        let entry =
            Entry { from, name: None, busy: 0, look: None, until: until.clone(), close: Arc::clone(&close) };
        inside.open.insert(id, entry);
        inside.look_at(id, Some(now));
        Ok(Seat { member: Member { crowd: Arc::clone(self), id, close }, until })
    }
}

/// A connection's place, until dropped.
#[derive(Debug)]
pub struct Seat {
    member: Member,
    until: Deadline,
}

impl Seat {
    pub(super) fn member(&self) -> Member {
        self.member.clone()
    }

    /// Wraps the connection to measure its silence from now on.
    pub(super) fn monitor(&self, stream: Stream) -> Stream {
        Box::new(Monitored::new(stream, self.until.clone(), self.member.crowd.begin))
    }

    /// Allows closing it after so long a silence, once there is no connection of a lower rank.
    pub fn may_go(&self, rank: u8, after: Duration) {
        let after = u64::try_from(after.as_millis()).unwrap_or(NEVER);
        self.until.set(rank, self.member.crowd.now().saturating_add(after));
    }

    /// Forbids closing it.
    pub fn may_stay(&self) {
        self.until.set(0, NEVER);
    }

    /// Returns a future that completes when it has to close.
    pub fn sent_away(&self) -> OwnedNotified {
        Arc::clone(&self.member.close).notified_owned()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.member.crowd.inside.lock().remove(self.member.id);
        self.member.crowd.room.notify_one();
    }
}

/// The connection of a request that is being answered.
#[derive(Debug, Clone)]
pub struct Member {
    crowd: Arc<Crowd>,
    id: u64,
    close: Arc<Notify>,
}

impl Member {
    /// Sets the client's name: from now on its connection is counted under it.
    ///
    /// # Errors
    /// When that name has reached its maximum.
    pub fn is_known_as(&self, name: &str) -> Result<(), TooMany> {
        let mut inside = self.crowd.inside.lock();
        let inside = &mut *inside;
        // It was closed meanwhile.
        let Some(entry) = inside.open.get_mut(&self.id) else { return Ok(()) };
        if entry.name.as_deref() == Some(name) {
            return Ok(());
        }
        let count = inside.known.get(name).copied().unwrap_or(0);
        if count >= self.crowd.bounds.known {
            return Err(TooMany);
        }
        let (name, from) = (Arc::<str>::from(name), entry.from);
        let before = entry.name.replace(Arc::clone(&name));
        inside.known.insert(name, count + 1);
        match before {
            // A proxy, whose connection several clients share.
            Some(before) => inside.forget_name(&before),
            None => {
                inside.look_at(self.id, None);
                inside.forget_stranger(self.id, from);
            }
        }
        Ok(())
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.close.notify_one();
    }

    /// Marks a request as being answered until the result is dropped: such a connection is not closed.
    #[must_use]
    pub fn busy(&self) -> Busy {
        let mut inside = self.crowd.inside.lock();
        if let Some(entry) = inside.open.get_mut(&self.id) {
            entry.busy += 1;
            inside.look_at(self.id, None);
        }
        Busy(self.clone())
    }
}

/// See [`Member::busy`].
#[derive(Debug)]
pub struct Busy(Member);

impl Drop for Busy {
    fn drop(&mut self) {
        let Member { crowd, id, .. } = &self.0;
        let mut inside = crowd.inside.lock();
        let Some(entry) = inside.open.get_mut(id) else { return };
        entry.busy -= 1;
        if entry.busy == 0 && entry.name.is_none() {
            let now = crowd.now();
            inside.look_at(*id, Some(now));
            drop(inside);
            crowd.room.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    fn away(seat: &Seat) -> bool {
        !seat.member.crowd.inside.lock().open.contains_key(&seat.member.id)
    }

    /// Admits a connection that is silent from this time on.
    fn silent(crowd: &Arc<Crowd>, ip: Option<IpAddr>, now: u64) -> Seat {
        let seat = crowd.admit(ip, now).unwrap();
        seat.until.set(0, now);
        seat
    }

    #[test]
    fn the_longest_silent_makes_room() {
        let crowd = Crowd::new(Bounds { all: 4, address: 2, known: 1 });
        let (first, second) = (silent(&crowd, ip(1), 1), silent(&crowd, ip(1), 2));
        let answered = first.member().busy();
        let third = silent(&crowd, ip(1), 3);
        assert_eq!([&first, &second, &third].map(away), [false, true, false]);
        let also = third.member().busy();
        assert_eq!(crowd.admit(ip(1), 4).err(), Some(Outside::Refused), "both are being answered");
        drop(second);
        let others = [2, 3].map(|n| silent(&crowd, ip(n), 4));
        // It came last, and sent data before the others.
        others[0].until.set(0, 5);
        let fifth = silent(&crowd, ip(4), 5);
        assert_eq!([&first, &third, &others[0], &others[1]].map(away), [false, false, false, true]);
        drop((also, answered));
        drop((first, third, others, fifth));
        let inside = crowd.inside.lock();
        assert!(inside.open.is_empty() && inside.silent.is_empty() && inside.strangers.is_empty());
    }

    /// A connection that just sent data keeps its place, and others wait until one has been silent for long enough.
    #[test]
    fn active_connections_are_not_closed() {
        let crowd = Crowd::new(Bounds { all: 2, address: 2, known: 1 });
        let (first, second) = (silent(&crowd, None, 0), silent(&crowd, None, 0));
        first.until.set(0, 900);
        second.until.set(0, NEVER);
        let waits = |now| crowd.admit(None, now).err();
        assert_eq!(waits(100), Some(Outside::Waits(Some(150))), "the second one may be silent by then");
        second.until.set(0, 300);
        assert_eq!(waits(200), Some(Outside::Waits(Some(300))));
        second.until.set(0, 700);
        assert_eq!(
            (waits(300), waits(699)),
            (Some(Outside::Waits(Some(700))), Some(Outside::Waits(Some(700))))
        );
        let third = silent(&crowd, None, 701);
        assert_eq!([&first, &second, &third].map(away), [false, true, false]);
        let busy = [&first, &third].map(|seat| seat.member().busy());
        assert_eq!(waits(5000), Some(Outside::Waits(None)));
        drop(busy);
        assert!(crowd.admit(None, 5000).is_ok(), "both are silent again");
        // An address with too many connections does not make others wait.
        let crowd = Crowd::new(Bounds { all: 9, address: 2, known: 1 });
        let [first, second, other] = [1, 1, 2].map(|n| silent(&crowd, ip(n), 0));
        first.until.set(0, 800);
        second.until.set(0, 700);
        let third = silent(&crowd, ip(1), 1);
        assert_eq!([&first, &second, &third, &other].map(away), [false, true, false, false]);
        // The first one was not checked; it may have sent something.
        first.until.set(0, NEVER);
        let fourth = silent(&crowd, ip(1), 2);
        assert_eq!([&first, &third, &fourth, &other].map(away), [false, true, false, false]);
    }

    #[test]
    fn known_clients_are_counted_by_name_and_never_closed() {
        let crowd = Crowd::new(Bounds { all: 3, address: 1, known: 2 });
        let known = [0, 1].map(|now| silent(&crowd, ip(1), now));
        assert!(away(&known[0]), "a stranger as yet");
        let again = silent(&crowd, ip(2), 2);
        assert_eq!(known[1].member().is_known_as("mx"), Ok(()));
        assert_eq!(known[1].member().is_known_as("mx"), Ok(()), "it is counted once");
        assert_eq!(again.member().is_known_as("mx"), Ok(()));
        let third = silent(&crowd, ip(1), 3);
        assert_eq!(third.member().is_known_as("mx"), Err(TooMany));
        assert_eq!(third.member().is_known_as("other"), Ok(()));
        assert_eq!(crowd.admit(ip(3), 9).err(), Some(Outside::Waits(None)), "nobody is silent");
        drop(known);
        assert_eq!(again.member().is_known_as("new"), Ok(()));
        let fourth = silent(&crowd, ip(1), 10);
        assert_eq!(fourth.member().is_known_as("mx"), Ok(()), "its places are free again");
        drop((again, third, fourth));
        assert!(crowd.inside.lock().known.is_empty());
    }

    #[tokio::test]
    async fn a_waiting_connection_gets_the_next_place() {
        let crowd = Crowd::new(Bounds { all: 1, address: 9, known: 9 });
        let seat = crowd.enter(None).await.unwrap();
        seat.member().is_known_as("mx").unwrap();
        let waits = tokio::spawn({
            let crowd = Arc::clone(&crowd);
            async move { crowd.enter(None).await.is_some() }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(seat);
        assert!(waits.await.unwrap());
    }
}
