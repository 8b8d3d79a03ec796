// SPDX-License-Identifier: GPL-3.0-or-later
//! Who is connected, and who has to go when there are too many: whoever is known is counted by name, and everybody else by
//! address. Where a stranger finds no room, the one that has been silent for longest makes room.

use super::network::network_of;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Notify;

/// Connections at a time, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub all: usize,
    /// Of strangers from one address.
    pub address: usize,
    /// Of somebody who is known.
    pub known: usize,
}

/// Too many connections for one who is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

/// All connections of a socket.
#[derive(Debug)]
pub struct Crowd {
    bounds: Bounds,
    inside: Mutex<Inside>,
    /// Told when somebody leaves, or may be sent away.
    room: Notify,
}

/// By their numbers, which grow: a lower one came earlier.
#[derive(Debug, Default)]
struct Inside {
    next: u64,
    /// All of them.
    open: HashMap<u64, Entry>,
    /// Strangers of whom no request is being answered.
    silent: BTreeMap<u64, Arc<Notify>>,
    /// Of each address, its strangers.
    strangers: HashMap<IpAddr, BTreeSet<u64>>,
    /// Of each who is known, how many there are.
    known: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Entry {
    /// The address by which it counts; none on a Unix socket.
    from: Option<IpAddr>,
    /// Who it is, once that is known.
    name: Option<Arc<str>>,
    /// Requests of it that are being answered.
    busy: usize,
    close: Arc<Notify>,
}

impl Inside {
    /// Takes one out.
    fn remove(&mut self, id: u64) {
        let Some(entry) = self.open.remove(&id) else { return };
        self.silent.remove(&id);
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

    /// Sends one away.
    fn send_away(&mut self, id: u64) {
        if let Some(close) = self.silent.get(&id) {
            close.notify_one();
        }
        self.remove(id);
    }

    /// The one from this address that has been silent for longest.
    fn silent_from(&self, from: IpAddr) -> Option<u64> {
        self.strangers.get(&from)?.iter().copied().find(|id| self.silent.contains_key(id))
    }
}

impl Crowd {
    /// With nobody in it.
    #[must_use]
    pub fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, inside: Mutex::default(), room: Notify::new() })
    }

    /// Is done when one more can come, though somebody may have to leave for it.
    pub(super) async fn room(&self) {
        loop {
            let there_is = {
                let inside = self.inside.lock();
                inside.open.len() < self.bounds.all || !inside.silent.is_empty()
            };
            if there_is {
                return;
            }
            self.room.notified().await;
        }
    }

    /// Lets one in; none when its address has as many as it may have, and all of them are being answered.
    pub(super) fn enter(self: &Arc<Self>, ip: Option<IpAddr>) -> Option<Seat> {
        let from = ip.map(network_of);
        let mut inside = self.inside.lock();
        if let Some(from) = from
            && inside.strangers.get(&from).is_some_and(|strangers| strangers.len() >= self.bounds.address)
        {
            let oldest = inside.silent_from(from)?;
            inside.send_away(oldest);
        }
        if inside.open.len() >= self.bounds.all {
            let oldest = *inside.silent.first_key_value()?.0;
            inside.send_away(oldest);
        }
        let id = inside.next;
        inside.next += 1;
        let close = Arc::new(Notify::new());
        inside.silent.insert(id, Arc::clone(&close));
        if let Some(from) = from {
            inside.strangers.entry(from).or_default().insert(id);
        }
        inside.open.insert(id, Entry { from, name: None, busy: 0, close: Arc::clone(&close) });
        Some(Seat(Member { crowd: Arc::clone(self), id, close }))
    }
}

/// A connection's place, until dropped.
pub(super) struct Seat(Member);

impl Seat {
    pub(super) fn member(&self) -> Member {
        self.0.clone()
    }

    /// Is done when it has to leave.
    pub(super) async fn sent_away(&self) {
        self.0.close.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.crowd.inside.lock().remove(self.0.id);
        self.0.crowd.room.notify_one();
    }
}

/// Whose request it is that is being answered.
#[derive(Debug, Clone)]
pub struct Member {
    crowd: Arc<Crowd>,
    id: u64,
    close: Arc<Notify>,
}

impl Member {
    /// Says who it is: from now on its connection is counted by this name.
    ///
    /// # Errors
    /// When there are as many connections of that name as there may be.
    pub fn is_known_as(&self, name: &str) -> Result<(), TooMany> {
        let mut inside = self.crowd.inside.lock();
        let inside = &mut *inside;
        // One that was sent away meanwhile.
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
            // A proxy, by whose connections several ask.
            Some(before) => inside.forget_name(&before),
            None => {
                inside.silent.remove(&self.id);
                inside.forget_stranger(self.id, from);
            }
        }
        Ok(())
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.close.notify_one();
    }

    /// Notes that a request is being answered, until that is dropped: whoever is being answered is not sent away.
    #[must_use]
    pub fn busy(&self) -> Busy {
        let mut inside = self.crowd.inside.lock();
        if let Some(entry) = inside.open.get_mut(&self.id) {
            entry.busy += 1;
            inside.silent.remove(&self.id);
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
            let close = Arc::clone(&entry.close);
            inside.silent.insert(*id, close);
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
        !seat.0.crowd.inside.lock().open.contains_key(&seat.0.id)
    }

    #[test]
    fn the_oldest_that_is_silent_makes_room() {
        let crowd = Crowd::new(Bounds { all: 4, address: 2, known: 1 });
        let (first, second) = (crowd.enter(ip(1)).unwrap(), crowd.enter(ip(1)).unwrap());
        let answered = first.member().busy();
        let third = crowd.enter(ip(1)).unwrap();
        assert_eq!([&first, &second, &third].map(away), [false, true, false]);
        let also = third.member().busy();
        assert!(crowd.enter(ip(1)).is_none(), "both are being answered");
        drop(second);
        let others = [2, 3].map(|n| crowd.enter(ip(n)).unwrap());
        drop(also);
        let fifth = crowd.enter(ip(4)).unwrap();
        assert!(away(&third) && !others.iter().any(away) && !away(&fifth));
        drop(answered);
        drop((first, third, others, fifth));
        let inside = crowd.inside.lock();
        assert!(inside.open.is_empty() && inside.silent.is_empty() && inside.strangers.is_empty());
    }

    #[test]
    fn who_is_known_is_counted_by_name_and_never_sent_away() {
        let crowd = Crowd::new(Bounds { all: 3, address: 1, known: 2 });
        let known: Vec<_> = (0..2).map(|_| crowd.enter(ip(1)).unwrap()).collect();
        assert!(away(&known[0]), "a stranger as yet");
        let again = crowd.enter(ip(2)).unwrap();
        assert_eq!(known[1].member().is_known_as("mx"), Ok(()));
        assert_eq!(known[1].member().is_known_as("mx"), Ok(()), "it is counted once");
        assert_eq!(again.member().is_known_as("mx"), Ok(()));
        let third = crowd.enter(ip(1)).unwrap();
        assert_eq!(third.member().is_known_as("mx"), Err(TooMany));
        assert_eq!(third.member().is_known_as("other"), Ok(()));
        assert!(crowd.enter(ip(3)).is_none(), "nobody is silent");
        drop(known);
        assert_eq!(again.member().is_known_as("new"), Ok(()));
        let fourth = crowd.enter(ip(1)).unwrap();
        assert_eq!(fourth.member().is_known_as("mx"), Ok(()), "its places are free again");
        drop((again, third, fourth));
        assert!(crowd.inside.lock().known.is_empty());
    }

    #[tokio::test]
    async fn who_waits_for_room_is_told() {
        let crowd = Crowd::new(Bounds { all: 1, address: 9, known: 9 });
        let seat = crowd.enter(None).unwrap();
        crowd.room().await;
        seat.member().is_known_as("mx").unwrap();
        let waits = tokio::spawn({
            let crowd = Arc::clone(&crowd);
            async move { crowd.room().await }
        });
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(seat);
        waits.await.unwrap();
    }
}
