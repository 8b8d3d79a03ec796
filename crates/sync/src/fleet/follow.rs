// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps a ledger in step with a fleet's log.

use super::ahead::{Ahead, Tip};
use super::cursor::{Cursor, Head, StepKind, own};
use super::snapshot;
use super::state::{Count, Fleet, Stopped};
use crate::backoff::Backoff;
use crate::log::{Ends, Log, LogError, Place, Reader as _, Step};
use crate::state::Flow;
use bulkmark_counts::{Applied, Mark, Settings, StepRefusal, other_step, step_head};
use bulkmark_ledger::{Ledger, LedgerError, now};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the log is asked for its ends: whether all of it is here, and whether it lost some.
const LOOK: Duration = Duration::from_secs(5);

/// The longest time between two attempts to reach the log. No new batches are sent before it is read again.
const LONGEST: Duration = Duration::from_secs(2);

/// After reading for this long, pauses are short again.
const LONG: Duration = Duration::from_secs(60);

/// Applies the log's steps to a ledger, in order, as long as it is open.
pub async fn follow<L: Log>(ledger: Ledger, settings: Settings, log: Arc<L>, fleet: Arc<Fleet>) {
    let mut follower = Follower {
        ledger,
        settings,
        log,
        fleet,
        doubted: Place(0),
        from: None,
        tip: None,
        ahead: Ahead::default(),
    };
    let (mut backoff, mut unlike) = (Backoff::up_to(LONGEST), Backoff::default());
    loop {
        let began = Instant::now();
        let result = follower.read().await;
        follower.fleet.stopped();
        if began.elapsed() >= LONG {
            (backoff, unlike) = (Backoff::up_to(LONGEST), Backoff::default());
        }
        match result {
            // It continues from another place.
            Ok(()) => (),
            Err(Stopped::Ledger(LedgerError::Closed)) => return,
            Err(e) => {
                follower.fleet.set_failing(Flow::Updates, &e);
                // The comparison may be incomplete.
                (follower.doubted, follower.from) = (Place(0), None);
                let patience = if matches!(e, Stopped::Unlike(_)) { &mut unlike } else { &mut backoff };
                patience.wait().await;
            }
        }
    }
}

struct Follower<L> {
    ledger: Ledger,
    settings: Settings,
    log: Arc<L>,
    fleet: Arc<Fleet>,
    /// Steps up to here that do not follow were compared with the snapshot and all behind it.
    doubted: Place,
    /// The start of the next reading, if not the ledger's place.
    from: Option<(Place, Option<Mark>)>,
    /// The last step of the log's chain that was read.
    tip: Option<Tip>,
    ahead: Ahead,
}

impl<L: Log> Follower<L> {
    async fn ends(&self) -> Result<Ends, Stopped> {
        let ends = self.log.ends().await?;
        self.fleet.set_ends(ends, self.ledger.fleet());
        Ok(ends)
    }

    /// Reads steps until an error, or until reading must continue from another place.
    async fn read(&mut self) -> Result<(), Stopped> {
        let (mut cursor, mut steps) = self.begin().await?;
        let mut look = tokio::time::interval(LOOK);
        loop {
            self.fleet.set_cursor(cursor);
            tokio::select! {
                step = steps.next() => {
                    let step = step.map_err(|e| self.cut(e))?;
                    if !self.take(step, &mut cursor).await? {
                        return Ok(());
                    }
                }
                _ = look.tick() => self.look(&cursor).await?,
            }
        }
    }

    /// Starts a reader behind the ledger's place or, if the log has no such place, where its chain can be compared.
    async fn begin(&mut self) -> Result<(Cursor, L::Steps), Stopped> {
        if self.ledger.fleet().version == 0 && self.from.is_none() {
            // An empty ledger is up to date sooner by a snapshot than by each step.
            match self.take_snapshot(false).await {
                // All steps may still be there.
                Err(e @ (Stopped::Unfit(_) | Stopped::Unlike(_))) => {
                    self.fleet.set_failing(Flow::Updates, &e)
                }
                taken => drop(taken?),
            }
        }
        let ends = self.ends().await?;
        let mark = self.ledger.fleet();
        let known = mark.version > 0;
        let (place, tip) = match self.from.take() {
            Some(from) => from,
            None if known && mark.place <= ends.steps.0 => (Place(mark.place), Some(own(mark))),
            // The log lost its end, and numbers new steps differently; its first step shows the position.
            None => (before(ends.first_step), None),
        };
        let cursor = Cursor::new(place, tip, self.doubted);
        match self.log.steps(place).await {
            Ok(steps) => Ok((cursor, steps)),
            Err(LogError::Gone(_)) => self.begin_at_first(ends).await,
            Err(e) => Err(e.into()),
        }
    }

    /// Steps behind the ledger's place are gone: a newer snapshot has them, unless none are missing.
    async fn begin_at_first(&mut self, ends: Ends) -> Result<(Cursor, L::Steps), Stopped> {
        let newer = self.take_snapshot(false).await?;
        let mark = self.ledger.fleet();
        if newer
            && mark.place <= ends.steps.0
            && let Ok(steps) = self.log.steps(Place(mark.place)).await
        {
            return Ok((Cursor::new(Place(mark.place), Some(own(mark)), self.doubted), steps));
        }
        let place = before(self.ends().await?.first_step);
        let steps = self.log.steps(place).await?;
        Ok((Cursor::new(place, None, self.doubted), steps))
    }

    /// Logs that the log has no more steps for this reader, and returns the error.
    fn cut(&mut self, error: LogError) -> Stopped {
        if let LogError::Gone(place) = error {
            log::info!("the log has no steps behind place {} any more; starting over", place.0);
        }
        error.into()
    }

    /// Checks whether the log still has its end, and whether all of it is here.
    async fn look(&mut self, cursor: &Cursor) -> Result<(), Stopped> {
        let ends = self.ends().await?;
        if ends.steps < cursor.place {
            return Err(Stopped::Unfit(format!(
                "the log ends at step {}, and was read up to {} before: it lost its end",
                ends.steps.0, cursor.place.0
            )));
        }
        let is_all = cursor.place >= ends.steps;
        if is_all && cursor.has_all(own(self.ledger.fleet())) && self.knows_bulk() {
            self.fleet.set_fresh();
        }
        let tip = self.tip.filter(|tip| is_all && self.is_milter() && cursor.tip == Some(tip.mark));
        let gives_up = self.ahead.gives_up(tip, own(self.ledger.fleet()), ends, Instant::now());
        if is_all && (self.fleet.take_forked() || gives_up) {
            self.fork().await?;
            return Err(Stopped::Unfit("the log's chain is another than the one known here".to_owned()));
        }
        Ok(())
    }

    const fn is_milter(&self) -> bool {
        self.settings.federation.fleet_client.is_some()
    }

    /// Whether a milter with a partial copy receives all bulk that it must hold.
    fn knows_bulk(&self) -> bool {
        let from = self.fleet.lacks_bulk(self.ledger.bulk().bound);
        if from > 0 {
            let error = Stopped::Unfit(format!(
                "the steps do not tell bulk from the count {from} on yet, and copy = \"partial\" needs that: it is asked for with the next \
                 own reports; a partner cannot ask, and aggregators of before tell nothing"
            ));
            self.fleet.set_failing(Flow::Updates, &error);
        }
        from == 0
    }

    /// Handles a step; false if reading must continue from another place.
    async fn take(&mut self, step: Step, cursor: &mut Cursor) -> Result<bool, Stopped> {
        let Step { place, bytes } = step;
        let parsed = step_head(&bytes);
        let head = parsed.map(|(head, mark)| Head {
            version: mark.version,
            before: head.before,
            chain: mark.chain,
            time: head.time,
        });
        let kind = cursor.classify(place, head, own(self.ledger.fleet()));
        if let (StepKind::Known | StepKind::Next, Some((head, mark))) = (kind, parsed) {
            self.tip = Some(Tip { mark, made: head.made, covers: head.covers });
        }
        match kind {
            StepKind::Known => Ok(true),
            StepKind::Junk if let Some(other) = other_step(&bytes) => {
                self.fleet.count(Count::JunkSteps, 1);
                self.fleet.skipped_step(place, other);
                Ok(true)
            }
            StepKind::Junk => {
                self.junk(place, &"it cannot be read, or does not follow the chain");
                Ok(true)
            }
            StepKind::Next => {
                match self.ledger.apply_step(bytes.into(), place.0, now()).await? {
                    Ok(Applied::New) => {
                        cursor.applied(own(self.ledger.fleet()));
                        self.fleet.stepped(self.knows_bulk());
                    }
                    Ok(_) => (),
                    Err(refusal @ StepRefusal::Unlike { .. }) => {
                        cursor.refuse();
                        self.fleet.count(Count::JunkSteps, 1);
                        self.fleet.set_failing(Flow::Updates, &refusal);
                    }
                    Err(refusal) => self.junk(place, &refusal),
                }
                Ok(true)
            }
            StepKind::Seed => self.begin_with_seed().await.map(|()| false),
            StepKind::Doubt => self.doubt(place, cursor).await.map(|()| false),
            StepKind::Fork => self.fork().await.map(|()| false),
        }
    }

    fn junk(&self, place: Place, why: &dyn std::fmt::Display) {
        self.fleet.count(Count::JunkSteps, 1);
        log::warn!("the entry at place {} of the log's steps is skipped: {why}", place.0);
    }

    /// A step does not follow: the newest snapshot shows the log's chain. Steps that still do not follow are junk.
    async fn doubt(&mut self, place: Place, cursor: &Cursor) -> Result<(), Stopped> {
        self.doubted = cursor.doubted_with(place);
        let here = self.ledger.fleet();
        log::info!(
            "the step at place {} does not follow the one known here; comparing with the snapshot",
            place.0
        );
        let snapshot = match snapshot::mark(&self.ledger, &self.settings, &*self.log).await {
            // Aggregators replace it once they have read all steps.
            Err(e @ Stopped::Unfit(_)) if !self.is_milter() => {
                log::warn!("{e}; the steps alone say what the log's chain is");
                None
            }
            there => there?,
        };
        match snapshot {
            Some(mark) if mark.version > here.version => drop(self.take_snapshot(false).await?),
            Some(mark) => {
                self.from = Some((Place(mark.place), Some(own(mark))));
                self.tip = Some(Tip::of(mark));
            }
            None if cursor.tip.is_some_and(|tip| tip.version > here.version) => {
                return Err(Stopped::Unfit(
                    "steps are missing here that the log does not keep any more, and it has no snapshot yet"
                        .to_owned(),
                ));
            }
            None => self.from = Some((before(self.ends().await?.first_step), None)),
        }
        Ok(())
    }

    /// Takes a snapshot, since the chain begins with a server's counts.
    async fn begin_with_seed(&mut self) -> Result<(), Stopped> {
        if self.take_snapshot(false).await? {
            return Ok(());
        }
        Err(Stopped::Unfit(
            "a server's counts are being moved into this log, and are not all there yet: see bulkmark fleet import to its end"
                .to_owned(),
        ))
    }

    /// The log's chain differs from the local one: the log's is taken over.
    async fn fork(&mut self) -> Result<(), Stopped> {
        log::warn!(
            "the log was put back to an older state and went on from there; its counts are taken over as they are"
        );
        if !self.take_snapshot(true).await? {
            return Err(Stopped::Unfit(
                "the log's chain is another, and it has no snapshot of it yet".to_owned(),
            ));
        }
        let mark = self.ledger.fleet();
        self.from = Some((Place(mark.place), Some(own(mark))));
        Ok(())
    }

    /// Takes over the newest snapshot if it is newer than the local state, or in any case with `as_it_is`. False if there was none.
    async fn take_snapshot(&self, as_it_is: bool) -> Result<bool, Stopped> {
        let taken = snapshot::take(&self.ledger, &self.settings, &*self.log, as_it_is).await?;
        if taken {
            self.fleet.count(Count::Snapshots, 1);
            let mark = self.ledger.fleet();
            log::info!("the log's snapshot of step {} was taken over", mark.version);
        }
        Ok(taken)
    }
}

/// Returns the place before another one.
fn before(place: Place) -> Place {
    Place(place.0.saturating_sub(1))
}
