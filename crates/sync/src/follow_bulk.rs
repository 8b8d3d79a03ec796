// SPDX-License-Identifier: GPL-3.0-or-later
//! Follows a server's bulk. A milter with a partial copy holds it; a server adds its peers' bulk to the list for its own followers.

use super::backoff::Backoff;
use super::bulk_frame::{BulkFrame, ListHead};
use super::clock::ClockGuard;
use super::fetch::Stopped;
use super::remote::{Remote, RemoteError, Stream};
use super::state::Links;
use bulkmark_counts::{BulkAssembly, BulkMark};
use bulkmark_ledger::{Ledger, now};
use reqwest::StatusCode;
use std::sync::Arc;
use std::time::Duration;

/// How long one stream is followed.
const WAIT: Duration = Duration::from_secs(600);

/// The count from which a milter must hold bulk. Called at the start of each stream, since a reload may change it.
pub type BulkBound = Arc<dyn Fn() -> u32 + Send + Sync>;

/// How often a server without a list checks whether it has one.
const LOOK: Duration = Duration::from_secs(1);

/// Explains the refusal of a server that has no stream of bulk, and how to mend it.
fn explained(error: RemoteError) -> Stopped {
    match error {
        RemoteError::Refused { status: StatusCode::NOT_FOUND, .. } => Stopped::Invalid(
            "no bulk: copy = \"partial\" needs a server that tells bulk apart (/v1/bulk), and this one is older; upgrade it, \
             or set copy = \"full\""
                .to_owned(),
        ),
        other => other.into(),
    }
}

/// Returns the next frame; none at the end.
async fn next(stream: &mut Stream, clock: &ClockGuard) -> Result<Option<BulkFrame>, Stopped> {
    while let Some(bytes) = stream.next().await? {
        if !clock.is_steady() {
            let text = "the clock of this machine was set; asking again".to_owned();
            return Err(RemoteError::Clock(text).into());
        }
        if !bytes.is_empty() {
            let frame = BulkFrame::decode(&bytes);
            return frame.map(Some).ok_or_else(|| Stopped::Invalid("bulk that cannot be read".to_owned()));
        }
    }
    Ok(None)
}

/// Checks that a server sends all bulk that this milter must hold.
fn check(mark: BulkMark, bound: u32) -> Result<(), Stopped> {
    if mark.bound <= bound {
        return Ok(());
    }
    Err(Stopped::Invalid(format!(
        "bulk from the count {} on, and the thresholds of this milter need {bound}",
        mark.bound
    )))
}

/// Whether a server has bulk for this milter, or the same as it.
pub(super) async fn serves(ledger: &Ledger, remote: &Remote, bound: u32) -> Result<(), Stopped> {
    let clock = ClockGuard::begin();
    let mut stream = remote.bulk(ledger.bulk(), bound, Duration::ZERO).await.map_err(explained)?;
    match next(&mut stream, &clock).await? {
        Some(BulkFrame::Alive(mark)) => check(mark, bound),
        _ => Err(Stopped::Invalid("no position of its bulk".to_owned())),
    }
}

/// Holds the bulk that a server sends, until its stream ends. Calls `answered` at the first frame.
pub(super) async fn follow_once(
    ledger: &Ledger,
    settings: &bulkmark_counts::Settings,
    (remote, links): (&Remote, &Links),
    bound: u32,
    answered: impl Fn(),
) -> Result<(), Stopped> {
    let clock = ClockGuard::begin();
    // Before any request: the position that the server sends now is newer than these receipts.
    let (mut expected, mut goal) = (ledger.expected(remote.url().to_owned()).await?, BulkMark::default());
    let mut stream = remote.bulk(ledger.bulk(), bound, WAIT).await.map_err(explained)?;
    let mut assembly: Option<(BulkAssembly, ListHead)> = None;
    while let Some(frame) = next(&mut stream, &clock).await? {
        let mut is_new = match frame {
            BulkFrame::Alive(theirs) => {
                check(theirs, bound)?;
                answered();
                goal = theirs;
                let ours = ledger.bulk();
                (ours.list, ours.number) == (theirs.list, theirs.number)
            }
            BulkFrame::Head(_) if assembly.is_some() => {
                return Err(Stopped::Invalid("a list that begins before the last one ended".to_owned()));
            }
            BulkFrame::Head(list_head) => {
                let new = BulkAssembly::new(settings, list_head.mark, list_head.versions.clone());
                assembly = Some((new, list_head));
                false
            }
            BulkFrame::Row(section) => {
                let Some((assembly, left)) = assembly.as_mut().filter(|(_, left)| left.rows > 0) else {
                    return Err(Stopped::Invalid("a part of a list that did not begin".to_owned()));
                };
                left.rows -= 1;
                // A server could send the same row forever.
                if assembly.add(&section, now()) {
                    stream.progressed();
                }
                false
            }
            BulkFrame::Note(note, bytes) => {
                let _after_answers = links.answers().write().await;
                let taken = ledger.take_note(ledger.bulk().list, note, bytes.into(), now()).await?;
                taken.map_err(|e| Stopped::Invalid(e.to_string()))?
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
            // The local list has now reached the position that the server sent.
            ledger.drop_forgotten(std::mem::take(&mut expected), (*ledger.vector()).clone()).await?;
        }
        if is_new {
            remote.link.set_fresh();
            stream.progressed();
        }
    }
    Ok(())
}

/// Adds a peer's bulk to the local list, forever, once a client has asked for that list. The position at the peer is not stored: after a
/// start, the whole list is read again and merged by maximum.
pub async fn follow_peer_bulk(ledger: Ledger, remote: Arc<Remote>) {
    let (mut known, mut backoff, mut was_logged) = (BulkMark::default(), Backoff::default(), false);
    loop {
        let ours = ledger.bulk();
        if !ours.is_begun() {
            tokio::time::sleep(LOOK).await;
            continue;
        }
        match follow_peer_once(&ledger, &remote, ours.bound, &mut known).await {
            Ok(()) => backoff = Backoff::default(),
            // The task that follows its updates logs that it cannot be reached.
            Err(Stopped::Invalid(why)) if !std::mem::replace(&mut was_logged, true) => {
                log::warn!(
                    "{}: it sent {why}; milters with a partial copy here do not receive its bulk",
                    remote.url()
                );
            }
            Err(_) => (),
        }
        backoff.wait().await;
    }
}

async fn follow_peer_once(
    ledger: &Ledger,
    remote: &Remote,
    bound: u32,
    known: &mut BulkMark,
) -> Result<(), Stopped> {
    let clock = ClockGuard::begin();
    let mut stream = remote.bulk(*known, bound, WAIT).await.map_err(explained)?;
    let mut coming: Option<ListHead> = None;
    while let Some(frame) = next(&mut stream, &clock).await? {
        match frame {
            BulkFrame::Alive(_) => (),
            BulkFrame::Head(list_head) => coming = Some(list_head),
            BulkFrame::Row(section) => {
                ledger.receive_bulk(vec![section], now()).await?;
                if let Some(left) = &mut coming {
                    left.rows = left.rows.saturating_sub(1);
                }
            }
            BulkFrame::Note(note, bytes) => {
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
