// SPDX-License-Identifier: GPL-3.0-or-later
//! A server's exchange with other servers: their knowledge of its own counts, and histories that have expired.

use crate::history::past::Past;
use crate::history::refusal::Refusal;
use crate::history::vector::{Mark, Origin, Vector};
use crate::history::window::Calendar;
use crate::state::bounds::Bounds;
use crate::state::changes::{JournalEntry, NewWindow};
use crate::state::generations::Generations;
use crate::state::local::Local;
use crate::state::member::Member;
use crate::state::peer_check::HeldBack;
use crate::state::server::Server;
use bulkmark_filter::ParameterError;

/// A bound of the difference between the clocks of two servers, in seconds.
const CLOCKS: u64 = 600;

impl Server {
    /// Applies a peer's version vector. If the peer knows more of this server's origins than the server itself, the file is an old copy:
    /// the server continues under the origin `new`.
    ///
    /// # Errors
    /// If there is not enough memory; then memory and file do not agree any more.
    pub fn receive(
        &mut self,
        peer: &str,
        theirs: &Vector,
        now: u64,
        new: Origin,
    ) -> Result<(), ParameterError> {
        self.peer_check.receive(peer, theirs);
        if self.peer_check.waits()
            && let Some(known) = self.first_known_better(theirs)
        {
            self.log_restored(known);
            self.renew(now, new)?;
            self.peer_check.stop_waiting();
        }
        self.release()
    }

    /// An own origin of which the vector has more updates than there are here.
    fn first_known_better(&self, theirs: &Vector) -> Option<Origin> {
        let members = self.limited.iter().map(|(_, member)| (member.origin, member.mark));
        let local = (self.counts.local.origin(), self.counts.local.mark());
        let better = |&(origin, mark): &(Origin, Mark)| theirs.get(origin).version > mark.version;
        [local].into_iter().chain(members).find(better).map(|(origin, _)| origin)
    }

    /// Ends the wait for peers: the server continues under the origin `new`. Returns the peers that have not answered; `None` if it was not
    /// waiting.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub fn stop_waiting(&mut self, now: u64, new: Origin) -> Result<Option<Vec<String>>, ParameterError> {
        if !self.peer_check.waits() {
            return Ok(None);
        }
        self.renew(now, new)?;
        self.peer_check.stop_waiting();
        Ok(Some(self.peer_check.peers().map(str::to_owned).collect()))
    }

    /// Counts held reports that no peer knows, once all peers have answered. They count where they were acknowledged, in the next update of
    /// their origin.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn release(&mut self) -> Result<(), ParameterError> {
        for (origin, held) in self.peer_check.release() {
            if self.own_mark(origin).is_some() {
                held.entries.iter().try_for_each(|entry| self.count_again(entry))?;
            } else if self.counts.merged.vector().get(origin).version == held.version {
                self.finish(origin, &held)?;
            }
        }
        Ok(())
    }

    /// Counts a report of the journal under its origin, which is one of this server.
    fn count_again(&mut self, entry: &JournalEntry) -> Result<(), ParameterError> {
        let &JournalEntry { window, signature, times, client } = entry;
        if let Some(client) = client {
            let Some((member, bounds)) = self.limited.of_origin_mut(client) else { return Ok(()) };
            member.add(bounds, window, signature, times, true)?;
        } else {
            if let Some(capacity) = self.counts.local.generations.begin(window) {
                self.counts.changes.begun.push(NewWindow { window, first: self.counts.next, capacity });
            }
            self.counts.local.generations.add(window, self.counts.next, signature, times)?;
        }
        self.counts.journal(entry.clone());
        self.queue_if_bulk(signature, window.start);
        Ok(())
    }

    /// Makes the last update of a history that this server wrote before it continued under a new origin. It is made from a separate filter:
    /// such updates can be added to any counts.
    fn finish(&mut self, origin: Origin, held: &HeldBack) -> Result<(), ParameterError> {
        let mark = self.counts.merged.vector().get(origin);
        let of_client = held.entries.iter().any(|entry| entry.client.is_some());
        let last = if of_client {
            let capacity = self.limited.of_any_origin(origin).map(|member| member.capacity);
            let mut member = Member::new(origin, mark, Vec::new(), capacity.unwrap_or(1));
            for entry in held.entries.iter().filter(|_| capacity.is_some()) {
                member.add(&mut Bounds::default(), entry.window, entry.signature, entry.times, true)?;
            }
            // If the client's counts were withdrawn meanwhile, these are withdrawn too.
            if capacity.is_some() { member.cut() } else { Some(member.withdraw()) }
        } else {
            let mut local = Local::recording(Generations::new(&self.counts.settings), origin, mark);
            for entry in &held.entries {
                local.generations.add(entry.window, 0, entry.signature, entry.times)?;
            }
            local.cut()
        };
        let now = held.entries.iter().map(|entry| entry.window.start).max().unwrap_or_default();
        let Some((update, bytes)) = last else { return Ok(()) };
        match self.counts.apply(&update, bytes.into(), now.max(self.counts.clock)) {
            Ok(_) => Ok(()),
            Err(Refusal::Parameter { error, .. }) => Err(error),
            Err(refusal) => {
                // Its windows are over, or nobody counts in them.
                log::error!("held reports cannot be counted: {refusal}");
                Ok(())
            }
        }
    }

    /// Accepts that the beginnings of others' histories have expired: their missing updates are not needed any more.
    pub fn skip_past(&mut self, past: &[Past], now: u64) {
        self.counts.clock = now;
        for &past in past {
            let known = self.counts.merged.vector().get(past.origin);
            let counts = past.over_at > now.saturating_add(CLOCKS);
            if counts || self.own_mark(past.origin).is_some() || past.mark.version <= known.version {
                continue;
            }
            if known.version == 0 && self.counts.merged.vector().check_room(1).is_err() {
                // Nothing of it counts, and there is no room to remember it.
                continue;
            }
            log::warn!(
                "{} updates of the origin {} were missed while it was away; all that they counted is over",
                past.mark.version - known.version,
                past.origin
            );
            self.counts.merged.vector_mut().set(past.origin, past.mark);
            self.counts.changes.past.push(past);
            // A checkpoint writes the vector.
            self.counts.unwritten.part();
        }
        if self.counts.unwritten.is_apart() {
            self.drop_over(now);
        }
    }

    /// Drops all windows that are over, as they differ from those elsewhere. Two clocks agree on the time.
    fn drop_over(&mut self, now: u64) {
        self.cut(now);
        let calendar = Calendar::new(&self.counts.settings);
        self.limited.iter_mut().for_each(|member| member.layer.take_over(calendar, now));
        let local = self.counts.local.generations.take_over(now);
        let merged = self.counts.merged.take_over(now);
        self.counts.changes.over.extend(local.into_iter().chain(merged));
    }

    /// Checks whether a snapshot with the vector `theirs` could be adopted.
    ///
    /// # Errors
    /// The reason if not.
    pub fn may_adopt(&self, theirs: &Vector) -> Result<(), Refusal> {
        let own = [self.counts.local.origin()];
        let own = own.into_iter().chain(self.limited.iter().map(|(_, member)| member.origin));
        let mine = own.into_iter().find(|&origin| theirs.get(origin).version > 0);
        mine.map_or(Ok(()), |origin| Err(Refusal::Own { origin }))
    }
}
