// SPDX-License-Identifier: GPL-3.0-or-later
//! Follows what a server tells of bulk: a milter with a partial copy holds it, and a server tells its own followers what its peers tell.

use super::backoff::Backoff;
use super::clock::ClockGuard;
use super::fetch::Stopped;
use super::remote::{Remote, RemoteError, Stream};
use super::state::Links;
use super::told::{Beginning, Told};
use bulkmark_counts::{BulkAssembly, BulkMark};
use bulkmark_ledger::{Ledger, now};
use reqwest::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// How long one stream is followed.
const WAIT: Duration = Duration::from_secs(600);

/// From which count on a milter must hold bulk; asked at each beginning of a stream, since a reload may change it.
pub type BulkBound = Arc<dyn Fn() -> u32 + Send + Sync>;

/// How often a server that has no list yet looks whether it has.
const LOOK: Duration = Duration::from_secs(1);

/// A server of before, or one that does not tell this machine, in words that say what to do.
fn explained(error: RemoteError) -> Stopped {
    match error {
        RemoteError::Refused { status: StatusCode::NOT_FOUND, .. } => Stopped::Nonsense(
            "nothing of bulk: copy = \"partial\" needs a server that tells bulk apart (/v1/bulk), and this one is older; upgrade it, \
             or set copy = \"full\""
                .to_owned(),
        ),
        other => other.into(),
    }
}

/// The next thing that is told; none at the end.
async fn next(stream: &mut Stream, clock: &ClockGuard) -> Result<Option<Told>, Stopped> {
    while let Some(bytes) = stream.next().await? {
        if !clock.is_steady() {
            let text = "the clock of this machine was set; asking again".to_owned();
            return Err(RemoteError::Clock(text).into());
        }
        if !bytes.is_empty() {
            let told = Told::decode(&bytes);
            return told.map(Some).ok_or_else(|| Stopped::Nonsense("bulk that cannot be read".to_owned()));
        }
    }
    Ok(None)
}

/// Whether a server tells what this milter must hold.
fn check(mark: BulkMark, bound: u32) -> Result<(), Stopped> {
    if mark.bound <= bound {
        return Ok(());
    }
    Err(Stopped::Nonsense(format!(
        "that it tells bulk from the count {} on, and the thresholds of this milter need {bound}",
        mark.bound
    )))
}

/// Whether a server has something of bulk for us, or the same as we.
pub(super) async fn serves(ledger: &Ledger, remote: &Remote, bound: u32) -> Result<(), Stopped> {
    let clock = ClockGuard::begin();
    let mut stream = remote.bulk(ledger.bulk(), bound, Duration::ZERO).await.map_err(explained)?;
    match next(&mut stream, &clock).await? {
        Some(Told::Alive(mark)) => check(mark, bound),
        _ => Err(Stopped::Nonsense("nothing of how far its bulk is".to_owned())),
    }
}

/// Holds what a server tells, until its stream ends; `answered` is told once it does.
pub(super) async fn follow_once(
    ledger: &Ledger,
    settings: &bulkmark_counts::Settings,
    (remote, links): (&Remote, &Links),
    bound: u32,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    let clock = ClockGuard::begin();
    // Before anything is asked: what a server says now of how far it is comes after these receipts.
    let (mut expected, mut goal) = (ledger.expected(remote.url().to_owned()).await?, BulkMark::default());
    let mut stream = remote.bulk(ledger.bulk(), bound, WAIT).await.map_err(explained)?;
    let mut assembly: Option<(BulkAssembly, Beginning)> = None;
    while let Some(told) = next(&mut stream, &clock).await? {
        let mut is_new = match told {
            Told::Alive(theirs) => {
                check(theirs, bound)?;
                answered();
                goal = theirs;
                let ours = ledger.bulk();
                (ours.list, ours.number) == (theirs.list, theirs.number)
            }
            Told::Begins(_) if assembly.is_some() => {
                return Err(Stopped::Nonsense("a list that begins before the last one ended".to_owned()));
            }
            Told::Begins(beginning) => {
                let new = BulkAssembly::new(settings, beginning.mark, beginning.versions.clone());
                assembly = Some((new, beginning));
                false
            }
            Told::Row(section) => {
                let Some((assembly, left)) = assembly.as_mut().filter(|(_, left)| left.rows > 0) else {
                    return Err(Stopped::Nonsense("a part of a list that did not begin".to_owned()));
                };
                left.rows -= 1;
                // The same row can come for ever.
                if assembly.add(&section, now()) {
                    stream.progressed();
                }
                false
            }
            Told::Note(note, bytes) => {
                let _after_answers = links.answers().write().await;
                let taken = ledger.take_note(ledger.bulk().list, note, bytes.into(), now()).await?;
                taken.map_err(|e| Stopped::Nonsense(e.to_string()))?
            }
        };
        if let Some((whole, _)) = assembly.take_if(|(_, left)| left.rows == 0) {
            let _after_answers = links.answers().write().await;
            let before = ledger.bulk();
            ledger.adopt_bulk(whole).await?;
            is_new = ledger.bulk() != before;
            log::info!("{}: its list of bulk was taken over", remote.url());
        }
        let ours = ledger.bulk();
        if !expected.is_empty() && (ours.list, ours.number, ours.hash) == (goal.list, goal.number, goal.hash)
        {
            // Here is now all that the server was at when it said so.
            ledger.drop_forgotten(std::mem::take(&mut expected), (*ledger.vector()).clone()).await?;
        }
        if is_new {
            remote.link.is_fresh();
            stream.progressed();
        }
    }
    Ok(())
}

/// Tells on what a peer tells of bulk, for ever, once anybody wants to hear of it here. What is known of a peer is asked anew after each
/// start: it is merged by its maximum.
pub async fn hear(ledger: Ledger, remote: Arc<Remote>) {
    let (mut known, mut backoff, mut was_told) = (BulkMark::default(), Backoff::default(), false);
    loop {
        let ours = ledger.bulk();
        if !ours.is_begun() {
            tokio::time::sleep(LOOK).await;
            continue;
        }
        match hear_once(&ledger, &remote, ours.bound, &mut known).await {
            Ok(()) => backoff = Backoff::default(),
            // That it cannot be reached is said by those who follow its updates.
            Err(Stopped::Nonsense(why)) if !std::mem::replace(&mut was_told, true) => {
                log::warn!(
                    "{}: it sent {why}; milters with a partial copy here do not hear what it knows of bulk",
                    remote.url()
                );
            }
            Err(_) => (),
        }
        backoff.wait().await;
    }
}

async fn hear_once(
    ledger: &Ledger,
    remote: &Remote,
    bound: u32,
    known: &mut BulkMark,
) -> Result<(), Stopped> {
    let clock = ClockGuard::begin();
    let mut stream = remote.bulk(*known, bound, WAIT).await.map_err(explained)?;
    let mut coming: Option<Beginning> = None;
    while let Some(told) = next(&mut stream, &clock).await? {
        match told {
            Told::Alive(_) => (),
            Told::Begins(beginning) => coming = Some(beginning),
            Told::Row(section) => {
                ledger.receive_bulk(vec![section], now()).await?;
                if let Some(left) = &mut coming {
                    left.rows = left.rows.saturating_sub(1);
                }
            }
            Told::Note(note, bytes) => {
                *known = known.after(note.number(), &bytes);
                ledger.receive_bulk(note.sections, now()).await?;
            }
        }
        if let Some(whole) = coming.take_if(|left| left.rows == 0) {
            *known = whole.mark;
        }
        stream.progressed();
    }
    Ok(())
}
