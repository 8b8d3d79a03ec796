// SPDX-License-Identifier: GPL-3.0-or-later
//! What a server hears of other servers: how far they know what it counted itself, and what counts nowhere any more.

use crate::history::past::Past;
use crate::history::refusal::Refusal;
use crate::history::vector::{MAX_ORIGINS, Mark, Origin, Vector};
use crate::history::window::Calendar;
use crate::state::bounds::Bounds;
use crate::state::changes::{Begun, JournalEntry};
use crate::state::generations::Generations;
use crate::state::local::Local;
use crate::state::member::Member;
use crate::state::server::Server;
use crate::state::unheard::HeldBack;
use bulkmark_filter::ParameterError;

/// Seconds by which the clocks of two servers may differ, and more.
const CLOCKS: u64 = 600;

impl Server {
    /// A peer says how far it knows each origin. If it knows more of this server's own than the server itself, the file is an old
    /// copy: all goes on under the name `new`.
    ///
    /// # Errors
    /// When there is no memory; then memory and file do not agree any more.
    pub fn hear(&mut self, peer: &str, theirs: &Vector, now: u64, new: Origin) -> Result<(), ParameterError> {
        self.unheard.hear(peer, theirs);
        if self.unheard.waits()
            && let Some(known) = self.first_known_better(theirs)
        {
            self.say_restored(known);
            self.renew(now, new)?;
            self.unheard.go_on();
        }
        self.release()
    }

    /// An own origin of which somebody knows more updates than there are here.
    fn first_known_better(&self, theirs: &Vector) -> Option<Origin> {
        let members = self.limited.iter().map(|(_, member)| (member.origin, member.mark));
        let local = (self.counts.local.origin(), self.counts.local.mark());
        let better = |&(origin, mark): &(Origin, Mark)| theirs.get(origin).version > mark.version;
        [local].into_iter().chain(members).find(better).map(|(origin, _)| origin)
    }

    /// Does not wait for peers any longer: all goes on under the name `new`, whatever they know. Returns those that said nothing; none
    /// when nothing waits.
    ///
    /// # Errors
    /// As [`hear`](Self::hear).
    pub fn go_on(&mut self, now: u64, new: Origin) -> Result<Option<Vec<String>>, ParameterError> {
        if !self.unheard.waits() {
            return Ok(None);
        }
        self.renew(now, new)?;
        self.unheard.go_on();
        Ok(Some(self.unheard.peers().map(str::to_owned).collect()))
    }

    /// Counts what was held back and nobody knows, once all peers were heard: where it was acknowledged, which is in the next update
    /// of its origin.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn release(&mut self) -> Result<(), ParameterError> {
        for (origin, held) in self.unheard.release() {
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
                self.counts.changes.begun.push(Begun { window, first: self.counts.next, capacity });
            }
            self.counts.local.generations.add(window, self.counts.next, signature, times)?;
        }
        self.counts.journal(entry.clone());
        self.look_for_bulk(signature, window.start);
        Ok(())
    }

    /// Makes the last update of a history that this server wrote before it went on under another name. It is of a filter of its own:
    /// such can be added to whatever there is.
    fn finish(&mut self, origin: Origin, held: &HeldBack) -> Result<(), ParameterError> {
        let mark = self.counts.merged.vector().get(origin);
        let of_client = held.entries.iter().any(|entry| entry.client.is_some());
        let last = if of_client {
            let capacity = self.limited.of_any_origin(origin).map(|member| member.capacity);
            let mut member = Member::new(origin, mark, Vec::new(), capacity.unwrap_or(1));
            for entry in held.entries.iter().filter(|_| capacity.is_some()) {
                member.add(&mut Bounds::default(), entry.window, entry.signature, entry.times, true)?;
            }
            // Of a client whose counts were taken back meanwhile, these are, too.
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
                // It is of windows that are over, or in which nobody counts.
                log::error!("what was held back cannot be counted: {refusal}");
                Ok(())
            }
        }
    }

    /// Takes over that the beginnings of others' histories count nowhere any more: what is missing of them here is not missed.
    pub fn pass_over(&mut self, past: &[Past], now: u64) {
        self.counts.clock = now;
        for &past in past {
            let known = self.counts.merged.vector().get(past.origin);
            let counts = past.over_at > now.saturating_add(CLOCKS);
            if counts || self.own_mark(past.origin).is_some() || past.mark.version <= known.version {
                continue;
            }
            if known.version == 0 && self.counts.merged.vector().len() >= MAX_ORIGINS {
                // Nothing of it counts, and there is no room to know that.
                continue;
            }
            log::warn!(
                "{} updates of the origin {} were missed while it was away; all that they counted is over",
                past.mark.version - known.version,
                past.origin
            );
            self.counts.merged.vector_mut().set(past.origin, past.mark);
            self.counts.changes.past.push(past);
            // The vector goes to disk with a checkpoint.
            self.counts.unwritten.part();
        }
        if self.counts.unwritten.is_apart() {
            self.forget_over(now);
        }
    }

    /// Forgets all windows that are over: here they are not what they are elsewhere. Two clocks agree in the time.
    fn forget_over(&mut self, now: u64) {
        self.cut(now);
        let calendar = Calendar::new(&self.counts.settings);
        self.limited.iter_mut().for_each(|member| member.layer.take_over(calendar, now));
        let local = self.counts.local.generations.take_over(now);
        let merged = self.counts.merged.take_over(now);
        self.counts.changes.over.extend(local.into_iter().chain(merged));
    }

    /// Whether a snapshot of what `theirs` says could be taken.
    ///
    /// # Errors
    /// Why not.
    pub fn may_adopt(&self, theirs: &Vector) -> Result<(), Refusal> {
        let own = [self.counts.local.origin()];
        let own = own.into_iter().chain(self.limited.iter().map(|(_, member)| member.origin));
        let mine = own.into_iter().find(|&origin| theirs.get(origin).version > 0);
        mine.map_or(Ok(()), |origin| Err(Refusal::Own { origin }))
    }
}
