// SPDX-License-Identifier: GPL-3.0-or-later
//! What somebody says of a message that was delivered: from the message to what the ledger is told.

use super::correspondents::{ended, forget};
use super::daily::MOST_A_DAY;
use super::service::Service;
use crate::ledger::{LedgerError, Nominated, Said, Saying, Shared, Side, Weighing};
use crate::mail::{RawMessage, Stored, TooLarge};
use crate::policy::Fraction;
use crate::signature::near::Seen;
use crate::signature::{LowInformation, ReporterId, nomination};
use crate::verdict::{Content, Envelope, Finding, Inquiry, Mode, Rules};
use std::sync::Arc;

/// What somebody says.
#[derive(Debug, Clone)]
pub struct Word {
    /// Who: the name, behind what kind of reporter it is, such as `user:`. Any bytes.
    pub reporter: Vec<u8>,
    /// What.
    pub side: Side,
    /// Whether it holds for mail of one's own, too.
    pub force: bool,
    /// Whether only what the reporter said before is taken back.
    pub only_back: bool,
}

/// Why nothing is counted.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It is over a bound.
    #[error("{0}")]
    TooLarge(#[from] TooLarge),
    /// It has no signature.
    #[error("it has no signature: {0}")]
    NoSignature(LowInformation),
    /// It is the test message.
    #[error("it is the canary, which is never counted")]
    Canary,
    /// It could not be read.
    #[error("it could not be read")]
    Unreadable,
    /// It comes from one's own users.
    #[error(
        "it is mail of your own: {address} is in {domain}, one of people.own-domains (--force reports it all the same)"
    )]
    Own {
        /// The address.
        address: String,
        /// Its domain.
        domain: String,
    },
    /// It comes from somebody to whom the recipient wrote, who is not the reporter.
    #[error("its recipient wrote to {0}, who is no stranger then (--force reports it all the same)")]
    Correspondent(String),
    /// The reporter said enough today.
    #[error("this reporter said something of {MOST_A_DAY} messages today, and may go on tomorrow")]
    TooMany,
    /// The ledger did not take it.
    #[error("{0}; nothing was counted, and it can be reported again")]
    Ledger(#[from] LedgerError),
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// By signatures.
    pub said: Said,
    /// Of these, in the message.
    pub signatures: usize,
    /// Whether other servers are told.
    pub is_shared: bool,
}

/// Counts what somebody says of the message in these bytes. What was answered is on disk, and counts once however often it is said.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub async fn take_report(service: &Service, raw: Vec<u8>, word: Word) -> Result<Taken, Refused> {
    let rules = service.rules.load_full();
    let of_rules = Arc::clone(&rules);
    let read = move || read(&raw, &of_rules);
    let (content, envelope, subject) =
        service.readers.read(None, read).await.map_err(|_| Refused::Unreadable)??;
    take(service, &rules, (&content, &envelope, subject), word, None).await
}

/// The same for a message that was read. A reporter with a weight, such as a trap, is trusted as that says, may say as much as it likes, and
/// is not judged.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub(super) async fn take(
    service: &Service,
    rules: &Rules,
    (content, envelope, subject): (&Content, &Envelope, String),
    word: Word,
    weight: Option<Fraction>,
) -> Result<Taken, Refused> {
    let now = crate::ledger::now();
    match Finding::uncounted(content) {
        Some(Finding::Canary(_)) => return Err(Refused::Canary),
        Some(_) => {
            let low = content.signatures.body.err();
            return Err(low.map_or(Refused::Unreadable, Refused::NoSignature));
        }
        None => (),
    }
    let seen = seen(service, rules, content, now).await?;
    // What is taken back is taken back of anything, and at any time.
    let all = word.only_back || word.side == Side::NotSpam;
    let mut correspondence = Vec::new();
    if !all && !word.force {
        check_own(rules, content, envelope)?;
        let reporter = String::from_utf8_lossy(word.reporter.strip_prefix(b"user:").unwrap_or_default());
        let ended = ended(service, rules, (content, envelope), &reporter);
        correspondence = ended.map_err(Refused::Correspondent)?;
    }
    let reporter = ReporterId::of(&rules.key, &word.reporter);
    if !all && weight.is_none() && !service.daily.admits(reporter, now) {
        return Err(Refused::TooMany);
    }
    let shared = shared(rules, envelope, content);
    let mut nominations: Vec<Nominated> = Vec::new();
    let body = content.signatures.body.ok().map(|body| (body, shared == Shared::All));
    let near = content.signatures.near.nominated(&seen, all).into_iter();
    for (of, is_shared) in body.into_iter().chain(near.map(|of| (of, shared != Shared::Nothing))) {
        let nomination = nomination(&rules.key, of);
        if !nominations.iter().any(|known| known.nomination == nomination) {
            nominations.push(Nominated { of, nomination, shared: is_shared });
        }
    }
    let signatures = nominations.len();
    let is_shared = !service.links.is_empty() && nominations.iter().any(|said| said.shared);
    let Word { side, only_back, .. } = word;
    let (fixed, weighing) = (weight.map(Fraction::units), weighing(rules));
    let subject = if service.activity.keeps_subjects() { subject } else { String::new() };
    let said = Saying { reporter, side, nominations, fixed, weighing, subject, only_back, now };
    let said = service.ledger.say(said).await?;
    forget(service, &correspondence).await;
    let side = if side == Side::Spam { "spam" } else { "not-spam" };
    log::info!(
        "reported: {side} by={reporter} counted={} taken-back={} known={} too-often={} no-room={} weightless={}",
        said.counted,
        said.taken_back,
        said.known,
        said.too_often,
        said.no_room,
        said.weightless
    );
    Ok(Taken { said, signatures, is_shared })
}

/// By which rules words are weighed.
#[must_use]
pub fn weighing(rules: &Rules) -> Weighing {
    let thousandths = rules.people.federation_weight.thousandths();
    // It was looked at when the configuration was read.
    let settings = rules.people.trust(rules.thresholds.spam).unwrap_or_default();
    Weighing { settings, thousandths }
}

fn read(raw: &[u8], rules: &Rules) -> Result<(Content, Envelope, String), Refused> {
    let message = RawMessage::from_bytes(raw)?;
    let stored = Stored::of(raw);
    let envelope = Envelope {
        sender: stored.return_path,
        recipients: stored.delivered_to.into_iter().collect(),
        ..Envelope::default()
    };
    Ok((Content::of(&message, rules), envelope, stored.subject))
}

/// Whether it comes from one's own users, as far as it says from whom it comes.
fn check_own(rules: &Rules, content: &Content, envelope: &Envelope) -> Result<(), Refused> {
    for address in content.from.iter().chain(&envelope.sender) {
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        if rules.people.owns(domain) {
            return Err(Refused::Own { address: address.clone(), domain: domain.to_owned() });
        }
    }
    Ok(())
}

/// How often its signatures were seen, as far as this mail server has it: what keeps coming with new text is not nominated.
async fn seen(service: &Service, rules: &Rules, content: &Content, now: u64) -> Result<Seen, LedgerError> {
    let mut inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Ask);
    while let Some(question) = inquiry.ask() {
        inquiry.answer(&service.ledger.counts(question.asked, now).await?);
    }
    Ok(inquiry.into_seen())
}

/// What of it other servers are told: as much as of the message itself.
fn shared(rules: &Rules, envelope: &Envelope, content: &Content) -> Shared {
    if !rules.people.share_nominations || rules.private.names(&content.facts(envelope, rules)) {
        Shared::Nothing
    } else if rules.shares_exact {
        Shared::All
    } else {
        Shared::Once
    }
}
