// SPDX-License-Identifier: GPL-3.0-or-later
//! Keeps a ledger in step with a server.

use super::backoff::{Backoff, Left, apart};
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

/// How often it is seen whether a server that comes before the one that is followed answers again.
const LOOK_BACK: Duration = Duration::from_secs(30);

/// A stream that ends sooner is no better than none.
const SHORT: Duration = Duration::from_secs(1);

/// What is taken of a server.
#[derive(Clone)]
pub enum Way {
    /// All counts. With `snapshot_on_fork` a snapshot is taken of a server that was restored from an old copy: at a milter, whose counts
    /// are all from there.
    All {
        /// Whether that is done.
        snapshot_on_fork: bool,
    },
    /// Bulk, from this count on.
    Bulk(BulkBound),
}

/// Follows the first of `remotes` that answers, for ever: another when it fails, and the first again when that is back.
pub async fn follow(
    ledger: Ledger,
    settings: bulkmark_counts::Settings,
    remotes: Vec<Arc<Remote>>,
    links: Arc<Links>,
    way: Way,
) {
    let mut backoff = Backoff::default();
    let mut left: Vec<_> = remotes.iter().map(|_| Left::default()).collect();
    loop {
        let mut any = false;
        for (i, remote) in remotes.iter().enumerate() {
            if left[i].is_alone() && left.iter().any(|other| !other.is_alone()) {
                continue;
            }
            let began = Instant::now();
            let active = || links.set_active(Some(i));
            let following = async {
                match way {
                    Way::All { snapshot_on_fork: false } => {
                        peer::follow_once(&ledger, &settings, remote, WAIT, active).await
                    }
                    _ => follow_once(&ledger, &settings, (remote, &links), &way, active).await,
                }
            };
            let result = tokio::select! {
                result = following => result,
                () = better_one_answers(&ledger, &remotes, &left, i, &way) => Ok(()),
            };
            left[i].tried(matches!(result, Err(Stopped::Remote(RemoteError::Stuck))), began.elapsed());
            let problem = match result {
                Ok(()) if began.elapsed() >= SHORT => {
                    any = true;
                    break;
                }
                Ok(()) => "its updates ended at once".to_owned(),
                Err(e) => e.to_string(),
            };
            links.set_active(None);
            remote.link.fails(Flow::Updates, problem);
        }
        if any {
            backoff = Backoff::default();
        } else {
            backoff.wait().await;
        }
    }
}

/// Is done when one of the servers before number `followed` answers as it should. Of those behind it that did not, it sees
/// whether they do.
async fn better_one_answers(
    ledger: &Ledger,
    remotes: &[Arc<Remote>],
    left: &[Left],
    followed: usize,
    way: &Way,
) {
    loop {
        tokio::time::sleep(apart(LOOK_BACK)).await;
        for (i, remote) in remotes.iter().enumerate() {
            if i == followed || left[i].is_alone() || i > followed && !remote.link.is_failing(Flow::Updates) {
                continue;
            }
            match serves(ledger, remote, way).await {
                Ok(()) if i < followed => return,
                Ok(()) => remote.link.works(Flow::Updates),
                Err(e) => remote.link.fails(Flow::Updates, e.to_string()),
            }
        }
    }
}

/// Whether a server has updates for us, or the same counts as we, or a snapshot.
async fn serves(ledger: &Ledger, remote: &Remote, way: &Way) -> Result<(), Stopped> {
    let on_fork = match way {
        Way::All { snapshot_on_fork } => *snapshot_on_fork,
        Way::Bulk(bound) => return follow_bulk::serves(ledger, remote, bound()).await,
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
    Err(Stopped::Nonsense("neither updates nor how far it is".to_owned()))
}

async fn follow_once(
    ledger: &Ledger,
    settings: &bulkmark_counts::Settings,
    (remote, links): (&Remote, &Links),
    way: &Way,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    let answers = || {
        answered();
        remote.link.works(Flow::Updates);
    };
    let snapshot_on_fork = match way {
        Way::All { snapshot_on_fork } => *snapshot_on_fork,
        Way::Bulk(bound) => {
            return follow_bulk::follow_once(ledger, settings, (remote, links), bound(), answers).await;
        }
    };
    // Before anything is asked: what a server says now of how far it is comes after these receipts.
    let expected = ledger.expected(remote.url().to_owned()).await?;
    if ledger.vector().iter().all(|(_, mark)| mark.version == 0) {
        // Whoever knows nothing yet is sooner up to date by what all updates together made than by each of them.
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

/// Whether a server has no updates for us, and a snapshot instead.
fn needs_snapshot(error: &RemoteError, on_fork: bool) -> bool {
    match error.code() {
        Some(Code::UpdatesGone) => true,
        Some(Code::OtherHistory) => on_fork,
        _ => false,
    }
}

/// Applies what comes; `answers` is told that something of use did: that is so at once, since a stream begins with how far the server is.
/// By that it is seen which of the `expected` batches it forgot.
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
            // Whoever is behind it gets what is missing now.
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
            link.is_fresh();
            stream.progressed();
        }
    }
    Ok(())
}

/// Fetches a snapshot and takes it for the counts of others: as it is when the server's history forked from the one that is
/// known here, and else only if it is no step back.
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
        // A snapshot is as old as the server's last checkpoint; what came since may be known here.
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
