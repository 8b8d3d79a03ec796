// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps a ledger in step with a server.

use super::backoff::{Backoff, Cooldown, jittered};
use super::clock::ClockGuard;
use super::code::Code;
use super::fetch::{Stopped, catch_up, decode, fetch_rows};
use super::follow_bulk::{self, BulkBound};
use super::peer;
use super::remote::{Remote, RemoteError, Stream};
use super::state::{Flow, Link, Links};
use super::wire::decode_alive;
use bulkmark_counts::{Applied, Vector};
use bulkmark_ledger::{Ledger, now};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one stream is followed.
const WAIT: Duration = Duration::from_secs(600);

/// How often servers that precede the followed one in the list are tried.
const LOOK_BACK: Duration = Duration::from_secs(30);

/// A stream that ends sooner is no better than none.
const SHORT: Duration = Duration::from_secs(1);

/// The part of a server's counts that is followed.
#[derive(Clone)]
pub enum FollowMode {
    /// All counts. With `snapshot_on_fork`, a snapshot is taken from a server that was restored from an old copy: for a milter, all of
    /// whose counts come from there.
    All {
        /// Whether a snapshot is taken then.
        snapshot_on_fork: bool,
    },
    /// Only bulk, from this count on.
    Bulk(BulkBound),
}

/// Follows the first of `remotes` that answers, forever: another one when it fails, and the first one again when it is back.
pub async fn follow(
    ledger: Ledger,
    settings: bulkmark_counts::Settings,
    remotes: Vec<Arc<Remote>>,
    links: Arc<Links>,
    mode: FollowMode,
) {
    let mut backoff = Backoff::default();
    let mut cooldowns: Vec<_> = remotes.iter().map(|_| Cooldown::default()).collect();
    loop {
        let mut any = false;
        for (i, remote) in remotes.iter().enumerate() {
            if cooldowns[i].is_active() && cooldowns.iter().any(|other| !other.is_active()) {
                continue;
            }
            let began = Instant::now();
            let active = || links.set_active(Some(i));
            let following = async {
                match mode {
                    FollowMode::All { snapshot_on_fork: false } => {
                        peer::follow_once(&ledger, &settings, remote, WAIT, active).await
                    }
                    _ => follow_once(&ledger, &settings, (remote, &links), &mode, active).await,
                }
            };
            let result = tokio::select! {
                result = following => result,
                () = better_one_answers(&ledger, &remotes, &cooldowns, i, &mode) => Ok(()),
            };
            cooldowns[i].note(matches!(result, Err(Stopped::Remote(RemoteError::Stuck))), began.elapsed());
            let problem = match result {
                Ok(()) if began.elapsed() >= SHORT => {
                    any = true;
                    break;
                }
                Ok(()) => "its updates ended at once".to_owned(),
                Err(e) => e.to_string(),
            };
            links.set_active(None);
            remote.link.set_failing(Flow::Updates, problem);
        }
        if any {
            backoff = Backoff::default();
        } else {
            backoff.wait().await;
        }
    }
}

/// Returns when one of the servers before number `followed` serves again. Also checks servers behind it that failed.
async fn better_one_answers(
    ledger: &Ledger,
    remotes: &[Arc<Remote>],
    cooldowns: &[Cooldown],
    followed: usize,
    mode: &FollowMode,
) {
    loop {
        tokio::time::sleep(jittered(LOOK_BACK)).await;
        for (i, remote) in remotes.iter().enumerate() {
            if i == followed
                || cooldowns[i].is_active()
                || i > followed && !remote.link.is_failing(Flow::Updates)
            {
                continue;
            }
            match serves(ledger, remote, mode).await {
                Ok(()) if i < followed => return,
                Ok(()) => remote.link.set_working(Flow::Updates),
                Err(e) => remote.link.set_failing(Flow::Updates, e.to_string()),
            }
        }
    }
}

/// Whether a server has updates for this ledger, or the same counts, or a snapshot.
async fn serves(ledger: &Ledger, remote: &Remote, mode: &FollowMode) -> Result<(), Stopped> {
    let on_fork = match mode {
        FollowMode::All { snapshot_on_fork } => *snapshot_on_fork,
        FollowMode::Bulk(bound) => return follow_bulk::serves(ledger, remote, bound()).await,
    };
    let ours = ledger.vector();
    let mut stream = match remote.updates(&ours, Duration::ZERO).await {
        Err(e) if needs_snapshot(&e, on_fork) => return Ok(()),
        other => other?,
    };
    while let Some(bytes) = stream.next().await? {
        let has_more = decode_alive(&bytes).map_or(bytes.is_empty(), |theirs| !ours.covers(&theirs));
        if !has_more {
            return Ok(());
        }
    }
    Err(Stopped::Invalid("neither updates nor its position".to_owned()))
}

async fn follow_once(
    ledger: &Ledger,
    settings: &bulkmark_counts::Settings,
    (remote, links): (&Remote, &Links),
    mode: &FollowMode,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    let answers = || {
        answered();
        remote.link.set_working(Flow::Updates);
    };
    let snapshot_on_fork = match mode {
        FollowMode::All { snapshot_on_fork } => *snapshot_on_fork,
        FollowMode::Bulk(bound) => {
            return follow_bulk::follow_once(ledger, settings, (remote, links), bound(), answers).await;
        }
    };
    // Before any request: the position that the server sends now is newer than these receipts.
    let expected = ledger.expected(remote.url().to_owned()).await?;
    if ledger.vector().iter().all(|(_, mark)| mark.version == 0) {
        // An empty ledger is up to date sooner by a snapshot than by each update.
        take_snapshot(ledger, settings, (remote, links), false).await?;
    }
    let vector = ledger.vector();
    let stream = match remote.updates(&vector, WAIT).await {
        Err(e) if needs_snapshot(&e, snapshot_on_fork) => {
            take_snapshot(ledger, settings, (remote, links), e.code() == Some(Code::OtherHistory)).await?;
            let vector = ledger.vector();
            remote.updates(&vector, WAIT).await
        }
        other => other,
    }?;
    apply_all(ledger, (&remote.link, links), stream, expected, answers).await
}

/// Whether a server has no updates for this ledger, and a snapshot instead.
fn needs_snapshot(error: &RemoteError, on_fork: bool) -> bool {
    match error.code() {
        Some(Code::UpdatesGone) => true,
        Some(Code::OtherHistory) => on_fork,
        _ => false,
    }
}

/// Applies the stream. Calls `answers` at the first useful frame, which comes at once, since a stream begins with the server's position.
/// That position shows which of the `expected` batches the server forgot.
async fn apply_all(
    ledger: &Ledger,
    (link, links): (&Link, &Links),
    mut stream: Stream,
    mut expected: Vec<u64>,
    answers: impl Fn(),
) -> Result<(), Stopped> {
    let (clock, mut first, mut known) = (ClockGuard::begin(), true, Vector::new());
    while let Some(bytes) = stream.next().await? {
        if !clock.is_steady() {
            return Err(
                RemoteError::Clock("the clock of this machine was set; asking again".to_owned()).into()
            );
        }
        let theirs = decode_alive(&bytes);
        if theirs.is_none() && bytes.is_empty() {
            continue;
        }
        if std::mem::take(&mut first) {
            answers();
        }
        let news = match theirs {
            // A ledger that is behind it receives the missing updates now.
            Some(moved) => {
                known.follow(&moved);
                let covered = ledger.vector().covers(&known);
                if !expected.is_empty() {
                    ledger.drop_forgotten(std::mem::take(&mut expected), known.clone()).await?;
                }
                covered
            }
            None => {
                let bytes: Arc<[u8]> = bytes.into();
                let update = decode(Arc::clone(&bytes)).await?;
                let _after_answers = links.answers().write().await;
                ledger.apply(update, bytes, now()).await?? == Applied::New
            }
        };
        if news {
            link.set_fresh();
            stream.progressed();
        }
    }
    Ok(())
}

/// Fetches a snapshot and replaces the others' counts with it: in any case if the server's history forked from the one known here,
/// otherwise only if it is not older.
async fn take_snapshot(
    ledger: &Ledger,
    settings: &bulkmark_counts::Settings,
    (remote, links): (&Remote, &Links),
    forked: bool,
) -> Result<(), Stopped> {
    let (mut assembly, rows) = fetch_rows(settings, remote).await?;
    let of_nothing = assembly.vector().iter().all(|(_, mark)| mark.version == 0);
    if rows == 0 && of_nothing && !forked {
        return Ok(());
    }
    if !assembly.vector().covers(&ledger.vector()) {
        // A snapshot is as old as the server's last checkpoint; later updates may be known here.
        catch_up(&mut assembly, remote).await?;
    }
    let _after_answers = links.answers().write().await;
    if forked {
        ledger.adopt_fork(assembly).await??;
    } else {
        ledger.adopt(assembly).await??;
    }
    log::info!("{}: a snapshot of {rows} rows was taken over", remote.url());
    Ok(())
}
