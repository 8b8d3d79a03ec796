// SPDX-License-Identifier: GPL-3.0-or-later
//! Reports of delivered messages: from the message to the ledger.

use super::correspondents::{Reported, SenderEvidence, ended_correspondences, forget};
use super::daily_limits::{Admitted, MOST_A_DAY};
use super::service::Service;
use super::shared::shared_reports;
use crate::activity::ReportResult;
use bulkmark_counts::{Nominated, Shared, Side, Submission, Tally, Weighing};
use bulkmark_ledger::LedgerError;
use bulkmark_mail::{RawMessage, Stored};
use bulkmark_policy::Fraction;
use bulkmark_signature::near::Seen;
use bulkmark_types::plain_bytes;
use bulkmark_types::{LowInformation, ReporterId, Signature, nomination};
use bulkmark_verdict::{Content, Envelope, Finding, Inquiry, Mode, Rules};
use std::sync::Arc;

/// A user report.
#[derive(Debug, Clone)]
pub struct UserReport {
    /// The reporter: the prefix of its kind, such as `user:`, and its name. Any bytes.
    pub reporter: Vec<u8>,
    /// Spam or not spam.
    pub side: Side,
    /// Whether it also holds for mail of one's own.
    pub force: bool,
    /// Whether it only withdraws the reporter's earlier report.
    pub only_withdraws: bool,
}

/// The reason why nothing is counted.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
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
    /// It comes from a correspondent of the recipient, who is not the reporter.
    #[error("its recipient wrote to {0}, so it is from a correspondent (--force reports it nevertheless)")]
    Correspondent(String),
    /// The reporter has reached the daily limit.
    #[error("this reporter reported {MOST_A_DAY} messages in this way today; the next ones count tomorrow")]
    TooMany,
    /// The ledger did not accept it.
    #[error("{0}; nothing was counted, and it can be reported again")]
    Ledger(#[from] LedgerError),
}

/// A counted report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The results for its signatures.
    pub tally: Tally,
    /// The number of signatures in the message.
    pub signatures: usize,
    /// Whether it is sent to other servers.
    pub is_shared: bool,
}

/// Counts a report of the message in these bytes. On return it is on disk, and counts once however often it is repeated.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub async fn take_report(service: &Service, raw: Vec<u8>, report: UserReport) -> Result<Taken, Refused> {
    let rules = service.rules.load_full();
    let of_rules = Arc::clone(&rules);
    let read = move || read(&raw, &of_rules);
    let Ok(read) = service.readers.read(None, read).await else {
        service.activity.user_reports.add(report.side == Side::Spam, ReportResult::Refused);
        return Err(Refused::Unreadable);
    };
    take(service, &rules, read.reported(), report, None).await
}

/// The signatures of the mailing of the message in these bytes: the body's first, then the near signatures that identify it; and whether no
/// server may receive them.
///
/// # Errors
/// [`Refused`] if there are none.
pub async fn mailing_of(service: &Service, raw: Vec<u8>) -> Result<(Vec<Signature>, bool), Refused> {
    let rules = service.rules.load_full();
    let of_rules = Arc::clone(&rules);
    let read = move || read(&raw, &of_rules);
    let read = service.readers.read(None, read).await.map_err(|_| Refused::Unreadable)?;
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
    Ok((all, rules.private.names(&read.content.facts(&read.envelope, &rules))))
}

/// The result of a report, which counts once for each message: it is counted if one of its signatures is. A report that did not reach the
/// ledger was refused.
pub(super) fn became(tally: Option<&Tally>) -> ReportResult {
    let Some(tally) = tally else { return ReportResult::Refused };
    let results = [
        (tally.counted, ReportResult::Counted),
        (tally.withdrawn, ReportResult::TakenBack),
        (tally.known, ReportResult::Known),
        (tally.too_often, ReportResult::TooOften),
        (tally.no_room, ReportResult::NoRoom),
    ];
    results.into_iter().find(|(number, _)| *number > 0).map_or(ReportResult::Weightless, |(_, became)| became)
}

/// The same for a message that was read. A reporter with a weight is a trap, which has no daily limit.
///
/// # Errors
/// [`Refused`]; nothing is counted then.
pub(super) async fn take(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    report: UserReport,
    weight: Option<Fraction>,
) -> Result<Taken, Refused> {
    let is_spam = report.side == Side::Spam;
    let taken = submit(service, rules, message, report, weight).await;
    let became = match &taken {
        Err(Refused::TooMany) => ReportResult::OverLimit,
        other => became(other.as_ref().ok().map(|taken| &taken.tally)),
    };
    service.activity.user_reports.add(is_spam, became);
    taken
}

async fn submit(
    service: &Service,
    rules: &Rules,
    message: Reported<'_>,
    report: UserReport,
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
    // Withdrawals are accepted for any mail and at any time.
    let all = report.only_withdraws || report.side == Side::NotSpam;
    let mut ended_pairs = Vec::new();
    if !all && !report.force {
        check_own(rules, content, envelope)?;
        let reporter = String::from_utf8_lossy(report.reporter.strip_prefix(b"user:").unwrap_or_default());
        let ended = ended_correspondences(service, rules, message, &reporter).await;
        ended_pairs = ended.map_err(Refused::Correspondent)?;
    }
    let reporter = ReporterId::of(&rules.key, &report.reporter);
    // A reporter at the daily limit may still withdraw reports.
    let is_admitted = report.only_withdraws
        || weight.is_some()
        || is_admitted(service, rules, (reporter, &report.reporter), report.side, now);
    let shared = shared_reports(rules, envelope, content);
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
    let is_shared = !service.links.is_empty() && nominations.iter().any(|nominated| nominated.shared);
    let UserReport { side, only_withdraws, .. } = report;
    let (trap, weighing) = (weight.map(Fraction::units), weighing(rules));
    let subject = if service.activity.keeps_subjects() { message.subject } else { "" }.to_owned();
    let nothing_new = !is_admitted;
    let submission =
        Submission { reporter, side, nominations, trap, weighing, subject, only_withdraws, nothing_new, now };
    let tally = service.ledger.submit(submission).await?;
    if tally.left_out > 0 && tally.withdrawn == 0 {
        return Err(Refused::TooMany);
    }
    forget(service, &ended_pairs).await;
    let side = if side == Side::Spam { "spam" } else { "not-spam" };
    log::info!(
        "reported: {side} by={reporter} counted={} taken-back={} known={} too-often={} no-room={} weightless={}{}",
        tally.counted,
        tally.withdrawn,
        tally.known,
        tally.too_often,
        tally.no_room,
        tally.weightless,
        name_field(rules, &report.reporter)
    );
    Ok(Taken { tally, signatures, is_shared })
}

/// Whether a reporter may report one more message today. The limit is logged once a day.
pub(super) fn is_admitted(
    service: &Service,
    rules: &Rules,
    (reporter, name): (ReporterId, &[u8]),
    side: Side,
    now: u64,
) -> bool {
    let Admitted::No { is_first } = service.daily_limits.admits(reporter, side, now) else { return true };
    if is_first {
        let side = if side == Side::Spam { "spam" } else { "not-spam" };
        log::warn!(
            "reported: {side} by={reporter} of {MOST_A_DAY} messages today; further ones are not counted until tomorrow{}",
            name_field(rules, name)
        );
    }
    false
}

/// The rules by which reports are weighed.
#[must_use]
pub fn weighing(rules: &Rules) -> Weighing {
    let thousandths = rules.user_reports.trust.federation_weight.thousandths();
    // It was checked when the configuration was read.
    let settings = rules.user_reports.trust(rules.thresholds.spam).unwrap_or_default();
    Weighing { settings, thousandths, trap: rules.traps.weight().units() }
}

/// The log field with a reporter's name, if names may be logged.
pub(super) fn name_field(rules: &Rules, name: &[u8]) -> String {
    if rules.user_reports.log_names { format!(" name={}", plain_bytes(name)) } else { String::new() }
}

/// A delivered message that was read.
struct Read {
    content: Content,
    envelope: Envelope,
    subject: String,
    evidence: SenderEvidence,
}

impl Read {
    fn reported(&self) -> Reported<'_> {
        let Self { content, envelope, subject, evidence } = self;
        Reported { content, envelope, subject, evidence }
    }
}

fn read(raw: &[u8], rules: &Rules) -> Read {
    let from_bytes = if rules.verifies() { RawMessage::exact_from_bytes } else { RawMessage::from_bytes };
    let message = from_bytes(raw);
    let stored = Stored::of(raw);
    let envelope = Envelope {
        sender: stored.return_path,
        recipients: stored.delivered_to.into_iter().collect(),
        ..Envelope::default()
    };
    let content = Content::claiming(&message, rules, envelope.sender.as_deref());
    Read { content, envelope, subject: stored.subject, evidence: SenderEvidence::of(&message, raw, rules) }
}

/// Checks that it does not claim to come from one's own users.
fn check_own(rules: &Rules, content: &Content, envelope: &Envelope) -> Result<(), Refused> {
    for address in content.from.iter().chain(&envelope.sender) {
        let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
        if rules.user_reports.owns(domain) {
            return Err(Refused::Own { address: address.clone(), domain: domain.to_owned() });
        }
    }
    Ok(())
}

/// The counts of its signatures at this mail server: text that keeps coming with new text is not nominated.
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
