// SPDX-License-Identifier: GPL-3.0-or-later
//! What somebody says of a message that was delivered: from the message to what the ledger is told.

use super::correspondents::{Reported, Traces, ended, forget};
use super::daily::{Admitted, MOST_A_DAY};
use super::service::Service;
use crate::activity::Became;
use bulkmark_counts::{Nominated, Shared, Side, Submission, Tally, Weighing};
use bulkmark_ledger::LedgerError;
use bulkmark_mail::{RawMessage, Stored, TooLarge};
use bulkmark_policy::Fraction;
use bulkmark_signature::near::Seen;
use bulkmark_types::plain_bytes;
use bulkmark_types::{LowInformation, ReporterId, Signature, nomination};
use bulkmark_verdict::{Content, Envelope, Finding, Inquiry, Mode, Rules};
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
    pub only_withdraws: bool,
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
        "it is mail of your own: {address} is in {domain}, one of user-reports.own-domains (--force reports it all the same)"
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
    #[error("this reporter said so of {MOST_A_DAY} messages today, and may go on tomorrow")]
    TooMany,
    /// The ledger did not take it.
    #[error("{0}; nothing was counted, and it can be reported again")]
    Ledger(#[from] LedgerError),
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// By signatures.
    pub said: Tally,
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
    let read = service.readers.read(None, read).await.map_err(|_| Refused::Unreadable);
    match read.flatten() {
        Ok(read) => take(service, &rules, read.reported(), word, None).await,
        Err(refused) => {
            service.activity.words.add(word.side == Side::Spam, Became::Refused);
            Err(refused)
        }
    }
}

/// By which signatures the mailing of the message in these bytes is known: the body's first, then those by which near-replicas are.
///
/// # Errors
/// [`Refused`], where there are none.
pub async fn mailing_of(service: &Service, raw: Vec<u8>) -> Result<Vec<Signature>, Refused> {
    let rules = service.rules.load_full();
    let of_rules = Arc::clone(&rules);
    let read = move || read(&raw, &of_rules);
    let read = service.readers.read(None, read).await.map_err(|_| Refused::Unreadable).flatten()?;
    let signatures = &read.content.signatures;
    if signatures.canary {
        return Err(Refused::Canary);
    }
    if let (Err(low), true) = (signatures.body, signatures.is_empty()) {
        return Err(Refused::NoSignature(low));
    }
    let seen = seen(service, &rules, (&read.content, &read.envelope), bulkmark_ledger::now()).await?;
    let near = signatures.near.nominated(&seen, true);
    let mut all: Vec<Signature> = Vec::new();
    for signature in signatures.body.ok().into_iter().chain(near) {
        if !all.contains(&signature) {
            all.push(signature);
        }
    }
    Ok(all)
}

/// What became of a word, which is counted once for each message: if it counts by one of its signatures, it is counted. What the ledger
/// was not told, or did not take, was refused.
pub(super) fn became(said: Option<&Tally>) -> Became {
    let Some(said) = said else { return Became::Refused };
    let results = [
        (said.counted, Became::Counted),
        (said.withdrawn, Became::TakenBack),
        (said.known, Became::Known),
        (said.too_often, Became::TooOften),
        (said.no_room, Became::NoRoom),
    ];
    results.into_iter().find(|(number, _)| *number > 0).map_or(Became::Weightless, |(_, became)| became)
}

/// The same for a message that was read. A reporter with a weight is a trap, which may say as much as it likes.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub(super) async fn take(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    word: Word,
    weight: Option<Fraction>,
) -> Result<Taken, Refused> {
    let is_spam = word.side == Side::Spam;
    let taken = say(service, rules, message, word, weight).await;
    let became = match &taken {
        Err(Refused::TooMany) => Became::OverLimit,
        other => became(other.as_ref().ok().map(|taken| &taken.said)),
    };
    service.activity.words.add(is_spam, became);
    taken
}

async fn say(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    word: Word,
    weight: Option<Fraction>,
) -> Result<Taken, Refused> {
    let (Reported { content, envelope, .. }, now) = (message, bulkmark_ledger::now());
    match Finding::uncounted(content) {
        Some(Finding::Canary(_)) => return Err(Refused::Canary),
        Some(_) => {
            let low = content.signatures.body.err();
            return Err(low.map_or(Refused::Unreadable, Refused::NoSignature));
        }
        None => (),
    }
    let seen = seen(service, rules, (content, envelope), now).await?;
    // What is taken back is taken back of anything, and at any time.
    let all = word.only_withdraws || word.side == Side::NotSpam;
    let mut correspondence = Vec::new();
    if !all && !word.force {
        check_own(rules, content, envelope)?;
        let reporter = String::from_utf8_lossy(word.reporter.strip_prefix(b"user:").unwrap_or_default());
        let ended = ended(service, rules, message, &reporter).await;
        correspondence = ended.map_err(Refused::Correspondent)?;
    }
    let reporter = ReporterId::of(&rules.key, &word.reporter);
    // Who said enough today may still take back what they said.
    let is_heard = word.only_withdraws
        || weight.is_some()
        || is_heard(service, rules, (reporter, &word.reporter), word.side, now);
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
    let Word { side, only_withdraws, .. } = word;
    let (trap, weighing) = (weight.map(Fraction::units), weighing(rules));
    let subject = if service.activity.keeps_subjects() { message.subject } else { "" }.to_owned();
    let nothing_new = !is_heard;
    let said =
        Submission { reporter, side, nominations, trap, weighing, subject, only_withdraws, nothing_new, now };
    let said = service.ledger.submit(said).await?;
    if said.left_out > 0 && said.withdrawn == 0 {
        return Err(Refused::TooMany);
    }
    forget(service, &correspondence).await;
    let side = if side == Side::Spam { "spam" } else { "not-spam" };
    log::info!(
        "reported: {side} by={reporter} counted={} taken-back={} known={} too-often={} no-room={} weightless={}{}",
        said.counted,
        said.withdrawn,
        said.known,
        said.too_often,
        said.no_room,
        said.weightless,
        named(rules, &word.reporter)
    );
    Ok(Taken { said, signatures, is_shared })
}

/// Whether a reporter may say something new of one more message today. The log tells once a day that it may not.
pub(super) fn is_heard(
    service: &Service,
    rules: &Rules,
    (reporter, name): (ReporterId, &[u8]),
    side: Side,
    now: u64,
) -> bool {
    let Admitted::No { is_news } = service.daily.admits(reporter, side, now) else { return true };
    if is_news {
        let told = if side == Side::Spam { "spam" } else { "not-spam" };
        log::warn!(
            "reported: {told} by={reporter} of {MOST_A_DAY} messages today; what more it says so of is not counted until tomorrow{}",
            named(rules, name)
        );
    }
    false
}

/// By which rules words are weighed.
#[must_use]
pub fn weighing(rules: &Rules) -> Weighing {
    let thousandths = rules.user_reports.trust.federation_weight.thousandths();
    // It was looked at when the configuration was read.
    let settings = rules.user_reports.trust(rules.thresholds.spam).unwrap_or_default();
    Weighing { settings, thousandths, trap: rules.traps.weight().units() }
}

/// The field of a log line that names a reporter, where names may be logged.
pub(super) fn named(rules: &Rules, name: &[u8]) -> String {
    if rules.user_reports.log_names { format!(" name={}", plain_bytes(name)) } else { String::new() }
}

/// A message that was delivered, as it was read.
struct Read {
    content: Content,
    envelope: Envelope,
    subject: String,
    traces: Traces,
}

impl Read {
    fn reported(&self) -> Reported<'_> {
        let Self { content, envelope, subject, traces } = self;
        Reported { content, envelope, subject, traces }
    }
}

fn read(raw: &[u8], rules: &Rules) -> Result<Read, Refused> {
    let from_bytes = if rules.verifies() { RawMessage::exact_from_bytes } else { RawMessage::from_bytes };
    let message = from_bytes(raw)?;
    let stored = Stored::of(raw);
    let envelope = Envelope {
        sender: stored.return_path,
        recipients: stored.delivered_to.into_iter().collect(),
        ..Envelope::default()
    };
    let content = Content::claiming(&message, rules, envelope.sender.as_deref());
    Ok(Read { content, envelope, subject: stored.subject, traces: Traces::of(&message, raw, rules) })
}

/// Whether it comes from one's own users, as far as it says from whom it comes.
fn check_own(rules: &Rules, content: &Content, envelope: &Envelope) -> Result<(), Refused> {
    for address in content.from.iter().chain(&envelope.sender) {
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        if rules.user_reports.owns(domain) {
            return Err(Refused::Own { address: address.clone(), domain: domain.to_owned() });
        }
    }
    Ok(())
}

/// How often its signatures were seen, as far as this mail server has it: what keeps coming with new text is not nominated.
async fn seen(
    service: &Service,
    rules: &Rules,
    (content, envelope): (&Content, &Envelope),
    now: u64,
) -> Result<Seen, LedgerError> {
    let inquiry = Inquiry::new(&content.signatures, &rules.key, Mode::Ask);
    let mut inquiry = inquiry.sent_by(content.provenance(envelope, rules));
    while let Some(question) = inquiry.ask() {
        inquiry.answer(&service.ledger.counts(question.asked, now).await?);
    }
    Ok(inquiry.into_seen())
}

/// What of it other servers are told: as much as of the message itself.
fn shared(rules: &Rules, envelope: &Envelope, content: &Content) -> Shared {
    if !rules.user_reports.share_nominations || rules.private.names(&content.facts(envelope, rules)) {
        Shared::Nothing
    } else if rules.shares_exact {
        Shared::All
    } else {
        Shared::Once
    }
}
