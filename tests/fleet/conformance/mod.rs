// SPDX-License-Identifier: GPL-3.0-or-later
//! The requirements for every engine of `sync::log`: the same cases for all of them, on real servers that are killed.
//!
//! An engine's test file implements [`Engine`] and calls `log_conformance!(ItsType)`, which makes a test of each case.

pub(crate) mod access;
pub(crate) mod batches;
pub(crate) mod ends;
pub(crate) mod faults;
pub(crate) mod members;
pub(crate) mod snapshots;
pub(crate) mod steps;

use bulkmark_sync::log::{Batch, BatchId, Client, Log, LogError, Place, Reader, Step};
use bulkmark_testing::PATIENCE;
use std::fmt::Debug;
use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Servers of an engine, private to the tests.
pub(crate) trait Engine: Sized + Send + Sync + 'static {
    /// The log under test.
    type Log: Log;

    /// An engine that runs, with an empty log that was set up for these clients and for aggregators. If it is missing, logs why and returns
    /// `None`, or panics in CI. Tests of one file run one after the other on the same servers, if that is quicker.
    fn fresh(clients: &[Client]) -> impl Future<Output = Option<Self>> + Send;

    /// A new connection of an aggregator.
    fn aggregator(&self) -> impl Future<Output = Self::Log> + Send;

    /// A new connection of one of the clients.
    fn client(&self, name: &str) -> impl Future<Output = Self::Log> + Send;

    /// Kills (`kill -9`) the server that matters most: the leader, or the only one.
    fn kill_leader(&self) -> impl Future<Output = ()> + Send;

    /// Kills all servers.
    fn kill_all(&self) -> impl Future<Output = ()> + Send;

    /// Starts the killed servers, without waiting until they are ready.
    fn restart(&self) -> impl Future<Output = ()> + Send;

    /// Cuts off all connections; servers go on.
    fn cut(&self) -> impl Future<Output = ()> + Send;

    /// Drops the steps before this place, as age or lack of room would.
    fn drop_steps_before(&self, place: Place) -> impl Future<Output = ()> + Send;

    /// Creates the place for batches again, empty.
    fn renew_batches(&self) -> impl Future<Output = ()> + Send;
}

/// Makes a test of each case for this engine.
#[macro_export]
macro_rules! log_conformance {
    ($engine:ty) => {
        $crate::log_conformance! { @each $engine;
            batches: come_in_order_with_their_clients, are_read_from_any_place_and_awaited,
                are_stored_once_when_repeated, may_be_as_large_as_promised, many_at_a_time_are_all_there;
            steps: of_two_writers_one_wins, are_read_from_any_place, beyond_the_end_are_gone, that_were_dropped_are_gone,
                reach_followers_who_wait;
            snapshots: are_gone_where_there_is_none, are_read_whole, are_never_mixed, that_end_early_are_none,
                of_two_writers_are_one_of_them;
            ends: tell_how_far_and_which_log, tell_a_log_that_was_made_anew;
            faults: a_killed_leader_loses_nothing, servers_killed_at_once_lose_nothing, cut_connections_lose_nothing,
                steps_survive_kills_in_one_chain, nobody_waits_for_ever_without_servers;
            access: clients_append_no_steps_and_no_snapshots, clients_read_no_batches, clients_are_told_with_their_limits;
            members: say_how_they_are_under_their_own_names, read_nothing_of_one_another;
        }
    };
    (@each $engine:ty; $($room:ident: $($case:ident),* $(,)?;)*) => {
        $(mod $room {
            use super::*;
            $(#[test] fn $case() { $crate::conformance::run($crate::conformance::$room::$case::<$engine>); })*
        })*
    };
}

/// Runs a case.
pub(crate) fn run<F: Future<Output = ()>>(case: impl FnOnce() -> F) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(case());
}

/// Own clients of these names.
pub(crate) fn own(names: &[&str]) -> Vec<Client> {
    names
        .iter()
        .map(|&name| Client { name: name.to_owned(), limits: None, withdrawn: 0, rate: None })
        .collect()
}

/// The result, which must come in time.
#[track_caller]
pub(crate) fn within<T>(what: &str, future: impl Future<Output = T>) -> impl Future<Output = T> {
    let place = std::panic::Location::caller();
    async move { timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("{place}: {what} did not come")) }
}

/// An answer or an error, which must come in time: no engine waits for ever.
#[track_caller]
pub(crate) fn bounded<T>(
    future: impl Future<Output = Result<T, LogError>>,
) -> impl Future<Output = Result<T, LogError>> {
    within("an answer, or an error", future)
}

/// Repeats the question until there is an answer, as daemons do. Each attempt must end within its bound.
pub(crate) async fn insist<T, F: Future<Output = Result<T, LogError>>>(mut ask: impl FnMut() -> F) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match bounded(ask()).await {
            Ok(answer) => return answer,
            Err(error) => assert!(Instant::now() < deadline, "it does not recover: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Repeats the question until the answer is the expected one. Any node of the log answers, and may lag behind the others for a moment.
#[track_caller]
pub(crate) fn becomes<T, F: Future<Output = Result<T, LogError>>>(
    mut ask: impl FnMut() -> F,
    is_expected: impl Fn(&T) -> bool,
) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let deadline = Instant::now() + PATIENCE;
        while !is_expected(&insist(&mut ask).await) {
            assert!(Instant::now() < deadline, "{place}: the answer does not become the expected one");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The reason of a refusal. Repeats the question while servers do not answer in time.
pub(crate) async fn refused<T: Debug, F: Future<Output = Result<T, LogError>>>(
    mut ask: impl FnMut() -> F,
) -> LogError {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match bounded(ask()).await.expect_err("it is not refused") {
            LogError::Unavailable(_) if Instant::now() < deadline => (),
            error => return error,
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Appends until it is acknowledged, with another attempt if the log does not store it.
pub(crate) async fn append(log: &impl Log, id: BatchId, bytes: &[u8]) -> Place {
    let attempt = &AtomicU32::new(id.attempt);
    let place = insist(|| async move {
        let id = BatchId { attempt: attempt.load(Ordering::Relaxed), ..id };
        log.append(id, bytes.to_vec()).await.inspect_err(|error| {
            let unstored = matches!(error, LogError::NotStored(_));
            attempt.fetch_add(unstored.into(), Ordering::Relaxed);
        })
    })
    .await;
    assert!(place > Place(0), "place 0 is no place");
    place
}

/// The first attempt of a batch.
pub(crate) fn batch(spool: u64, number: u64) -> BatchId {
    BatchId { spool, number, attempt: 0 }
}

/// Appends a step at the end, and returns its place.
pub(crate) async fn append_step(log: &impl Log, bytes: &[u8]) -> Place {
    let after = insist(|| log.ends()).await.steps;
    insist(|| log.append_step(after, bytes.to_vec())).await.expect("nobody else appends")
}

/// The next `count` items of a reader.
pub(crate) async fn take<R: Reader<Item: Debug>>(reader: &mut R, count: usize) -> Vec<R::Item> {
    let mut items = Vec::new();
    for i in 0..count {
        let next = within(&format!("item {i} of {count}"), reader.next()).await;
        items.push(next.unwrap_or_else(|e| panic!("item {i} of {count}: {e}")));
    }
    items
}

/// The first `count` batches behind a place, in spite of errors: it resumes behind the last one received.
pub(crate) async fn batches_behind(log: &impl Log, mut after: Place, count: usize) -> Vec<Batch> {
    let mut all: Vec<Batch> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while all.len() < count {
        assert!(Instant::now() < deadline, "only {} of {count} batches came", all.len());
        let mut reader = insist(|| log.batches(after)).await;
        while all.len() < count {
            match timeout(PATIENCE, reader.next()).await {
                Ok(Ok(batch)) => {
                    assert!(batch.place > after, "{:?} behind {after:?}", batch.place);
                    after = batch.place;
                    all.push(batch);
                }
                Ok(Err(_)) => break,
                Err(_) => panic!("only {} of {count} batches came", all.len()),
            }
        }
    }
    all
}

/// The same for steps.
pub(crate) async fn steps_behind(log: &impl Log, mut after: Place, count: usize) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    while all.len() < count {
        assert!(Instant::now() < deadline, "only {} of {count} steps came", all.len());
        let mut reader = insist(|| log.steps(after)).await;
        while all.len() < count {
            match timeout(PATIENCE, reader.next()).await {
                Ok(Ok(step)) => {
                    assert!(step.place > after, "{:?} behind {after:?}", step.place);
                    after = step.place;
                    all.push(step);
                }
                Ok(Err(LogError::Gone(place))) => panic!("steps behind {place:?} are gone"),
                Ok(Err(_)) => break,
                Err(_) => panic!("only {} of {count} steps came", all.len()),
            }
        }
    }
    all
}
