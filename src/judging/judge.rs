// SPDX-License-Identifier: GPL-3.0-or-later
//! Counts and judges a complete message, within its deadline.

use super::budget::Reservation;
use super::correspondents::{correspondences, remember};
use super::duplicates::{Aspect, Names};
use super::explain::counts_under_old_key;
use super::judgement::Judgement;
use super::log_line::{LOOKUP, log_message, target};
use super::message::Message;
use super::partial::{ServerCounts, ServerQuery, may_be_bulk, merged, wanted};
use super::recheck_queue::PartlyJudged;
use super::record::record;
use super::refusals::record_refusal;
use super::service::Service;
use super::shared::shared;
use super::traps::{nominate_for_traps, trap_recipients};
use super::user_reports::look_up;
use super::verification::verify_bulk;
use crate::activity::Interface;
use crate::lookup::Evidence;
use bulkmark_counts::{Report, RetryKey, Shared};
use bulkmark_ledger::{Ledger, LedgerError};
use bulkmark_mail::RawMessage;
use bulkmark_policy::{Action, Counts, OnFailure, Party, Per, Sent, Standing, TrapResult, Verdict, Weight};
use bulkmark_signature::Signatures;
use bulkmark_verdict::{
    Content, Counted, Envelope, Exempt, Finding, Inquiry, Mode, OldKeyCounts, Outcome, Question,
    ReportInquiry, Rules, Unknown, account_line, questions,
};
use log::Level;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Larger messages are read by the readers, so that small ones do not wait behind them. Reading a smaller one takes a few milliseconds at
/// worst, and most mail is smaller.
const LARGE: usize = 16 << 10;

/// A message that is judged, with all that this needs.
struct Case<'a> {
    rules: &'a Arc<Rules>,
    envelope: &'a Envelope,
    parties: Vec<Party<'a>>,
    service: &'a Service,
    /// Its Subject field, if it is recorded.
    subject: Option<&'a [u8]>,
    /// Whether it is only looked up.
    is_lookup: bool,
    /// The interface that it came through.
    interface: Interface,
    /// The time at its end, in seconds since 1970.
    now: u64,
    /// The deadline of the verdict.
    deadline: Instant,
    /// Its recipients that are traps.
    traps: Vec<&'a str>,
}

/// The known counts of a question.
enum Known {
    /// All of them, here.
    All,
    /// These at a server, and more here.
    WithServer(ServerCounts),
    /// Only those of bulk.
    Partial,
}

/// The reason why a message has no counts.
enum Uncounted {
    Timeout,
    Failed(LedgerError),
}

/// Judges a complete message. `mta` is the MTA's host name.
pub async fn judge(message: &mut Message, service: &Service, mta: Option<&str>) -> Judgement {
    let began = Instant::now();
    let (rules, now) = (Arc::clone(&message.rules), bulkmark_ledger::now());
    let deadline = began + rules.deadline;
    let (raw, reservation) = message.take_raw();
    (message.envelope.now, message.envelope.is_paused) = (now, service.orders.is_paused(now));
    let message = &*message;
    let (envelope, is_lookup) = (&message.envelope, message.is_lookup);
    let (parties, subject) = (rules.parties(envelope), message.subject.as_deref());
    // A look-up nominates nothing.
    let traps = if is_lookup { Vec::new() } else { trap_recipients(&rules, envelope) };
    let case = Case {
        rules: &rules,
        envelope,
        parties,
        service,
        subject,
        is_lookup,
        interface: message.interface,
        now,
        deadline,
        traps,
    };
    let (finding, content, reported) = match Case::unread(message) {
        Some(finding) => (finding, None, 0),
        None => case.read_and_count(raw, reservation).await,
    };
    let host = rules.hostname.as_deref().or(mta).unwrap_or("localhost");
    let mut outcome = Outcome::new(&rules, &message.envelope, &finding, host);
    if is_lookup {
        return case.answered(message, Judgement { finding, outcome, content, reported, mailing: None });
    }
    let names = case.names(content.as_ref());
    if let Some(standing) = case.account(&finding, outcome.verdict, names) {
        outcome = outcome.with_account(&rules, &message.envelope, standing, host);
    }
    if !case.traps.is_empty() {
        let trap_result = match &finding {
            Finding::Counted(Counted { trap, .. }) => trap.unwrap_or(TrapResult::Refused),
            _ => TrapResult::Refused,
        };
        if service.duplicates.uncounted(case.interface, (Aspect::Traps, names), 1, now) > 0 {
            service.activity.trap_sprung(trap_result);
        }
        outcome = outcome.with_traps(&rules, &message.envelope, &case.traps, trap_result);
    }
    remember(service, message, (&finding, &outcome), deadline).await;
    let mut judgement = Judgement { finding, outcome, content, reported, mailing: None };
    // A copy of a message that another interface counted is recorded there, and logged here only if an action is taken.
    let is_copy = reported == 0 && matches!(judgement.finding, Finding::Counted(_));
    let Outcome { verdict, action, account, .. } = judgement.outcome;
    if is_copy && action == Action::Mark && account.is_none() && case.traps.is_empty() {
        return case.answered(message, judgement);
    }
    if !is_copy {
        record_refusal(service, &rules, message, &judgement);
        judgement.mailing = record(&service.activity, &rules, envelope, subject, &judgement, began.elapsed());
    }
    let level = if matches!(judgement.finding, Finding::Unknown(..)) { Level::Warn } else { Level::Info };
    log_message(&rules, message, &judgement, (target(verdict), level));
    judgement
}

impl Case<'_> {
    /// Logs a message that was only looked up or is already counted, at debug level.
    fn answered(&self, message: &Message, judgement: Judgement) -> Judgement {
        log_message(self.rules, message, &judgement, (LOOKUP, Level::Debug));
        judgement
    }

    /// The finding of a message that is not even read, if so.
    fn unread(message: &Message) -> Option<Finding> {
        if let Some(reason) = message.exempt {
            return Some(Finding::Exempt(reason));
        }
        message.unjudged.map(|reason| Finding::Unknown(reason, String::new()))
    }

    async fn read_and_count(
        &self,
        raw: RawMessage,
        reservation: Reservation,
    ) -> (Finding, Option<Content>, usize) {
        let (mut content, evidence) = match self.content(raw, reservation).await {
            Ok(content) => content,
            Err(finding) => return (finding, None, 0),
        };
        if let Some(finding) = Finding::uncounted(&content) {
            return (finding, Some(content), 0);
        }
        let evidence = evidence.as_ref().map(|(evidence, _)| evidence);
        let (finding, reported) = self.count(&mut content, evidence).await;
        (finding, Some(content), reported)
    }

    /// Reads it, and keeps the evidence for its signatures. A panic costs this message its verdict and nothing else.
    async fn content(
        &self,
        raw: RawMessage,
        reservation: Reservation,
    ) -> Result<(Content, Option<(Evidence, Reservation)>), Finding> {
        let rules = Arc::clone(self.rules);
        let large = raw.len() > LARGE;
        let (envelope, correspondents) = (self.envelope.clone(), Arc::clone(&self.service.correspondents));
        let read = move || {
            let mut content = Content::claiming(&raw, &rules, envelope.sender.as_deref());
            content.correspondences = correspondences(&correspondents, &rules, &envelope, &content);
            let is_lookup = rules.asks_for_signature(&content.claimed, &content.correspondences);
            let evidence = is_lookup.then(|| Evidence::of(&raw)).flatten();
            // Only now is its memory free, even if the result is no longer awaited.
            let mut smaller = reservation.new_empty();
            drop((raw, reservation));
            let keep = |evidence: Evidence| smaller.take(evidence.size()).then_some((evidence, smaller));
            (content, evidence.and_then(keep))
        };
        let content = if large {
            let read = self.service.readers.read(self.envelope.client, read);
            timeout_at(self.deadline, read).await.map_err(|_| self.timeout("reading it"))?
        } else {
            catch_unwind(AssertUnwindSafe(read)).map_err(|_| Unknown::InternalError)
        };
        content.map_err(|reason| {
            let detail = match reason {
                Unknown::Overloaded => "too many messages wait to be read",
                _ => "the message could not be read",
            };
            Finding::Unknown(reason, detail.to_owned())
        })
    }

    /// Counts and judges it; also returns the number of reported signatures.
    async fn count(&self, content: &mut Content, evidence: Option<&Evidence>) -> (Finding, usize) {
        let (Self { rules, envelope, traps, .. }, now, ledger) = (self, self.now, &self.service.ledger);
        // Keys cost a hash for each recipient; they are needed only if some mail is refused temporarily.
        let times = self.times(content);
        let is_lookup = times == 0;
        let is_retried = !is_lookup && (rules.has_tempfail() || ledger.remembers_refused());
        let keys = if is_retried { self.retry_keys(content) } else { Vec::new() };
        let mode = if is_lookup { Mode::Ask } else { Mode::Report(times) };
        let shared = shared(rules, envelope, content);
        let old_key = self.old_key(content, shared).await;
        let inquiry = Inquiry::new(&content.signatures, &rules.key, mode).on_top_of(old_key.clone());
        let inquiry = content.about(inquiry, envelope, rules);
        let mut inquiry = inquiry.with_cache(&self.service.source_cache, now);
        let (asked, reports) = self.ask_with_reports(&mut inquiry, &content.signatures, &keys, shared).await;
        if inquiry.is_in_part() && shared == Shared::All && !is_lookup {
            self.recheck(content, times);
        }
        let reported = inquiry.reported();
        let known = match asked {
            Ok(()) => {
                let spam = old_key.spam(reports.map(|reports| reports.weight(inquiry.seen())));
                (Counts { spam, ..inquiry.counts() }, inquiry.backings())
            }
            Err(Uncounted::Failed(e)) => {
                return (Finding::Unknown(Unknown::LedgerUnavailable, e.to_string()), reported);
            }
            Err(Uncounted::Timeout) => {
                if rules.on_failure == OnFailure::Tempfail && !is_lookup {
                    // The report may still be counted, and the message returns. The ledger handles requests in order.
                    let ledger = ledger.clone();
                    tokio::spawn(async move { ledger.record_refused(keys, now).await });
                }
                return (self.timeout("the ledger's answer"), reported);
            }
        };
        let unknown_below = inquiry.unknown_below();
        let (orders, seen) = (&self.service.orders, inquiry.seen());
        let known = (orders.without_forgotten(&content.signatures, &inquiry, known.0, now), known.1);
        content.allowed = content.allowed.take().or_else(|| orders.allows(&content.signatures, seen, now));
        // For a trap's mail, white lists are asked even if it is no bulk.
        let most = Counts { body: Some(u32::MAX), near: Some(u32::MAX), spam: None };
        let asked = if traps.is_empty() { known.0 } else { most };
        let answered = self.ask_tables(content, asked).await;
        let to = (answered.as_ref().unwrap_or(envelope), &self.parties[..]);
        let claims = (&mut *content, evidence);
        verify_bulk(self.service, rules, to, claims, asked, self.deadline).await;
        let Some(counted) = Counted::new(rules, to, content, known, self.service.links.staleness()) else {
            return (Finding::Exempt(Exempt::Policy), reported);
        };
        let mut counted = Counted { unknown_below, ..counted };
        if !traps.is_empty() {
            // At twice the threshold of spam, reports of more traps would only take room.
            let threshold = rules.terms(counted.decision.by).thresholds.spam;
            let has_enough =
                counted.counts.spam.is_some_and(|spam| Weight::of_units(spam.units() / 2).reaches(threshold));
            let (of, traps) = ((&*content, self.subject), (&**traps, has_enough));
            counted.trap = Some(nominate_for_traps(self.service, rules, to, of, traps, self.deadline).await);
        }
        if counted.decision.action == Action::Tempfail && !is_lookup {
            self.remember_refused(keys, ledger.clone()).await;
        }
        (Finding::Counted(counted), reported)
    }

    /// Its counts under the old key. Also sets `content.allowed`.
    async fn old_key(&self, content: &mut Content, shared: Shared) -> OldKeyCounts {
        let may_ask = (shared == Shared::All, self.deadline);
        let counts = counts_under_old_key(self.service, (self.rules, self.envelope), content, may_ask).await;
        content.allowed.clone_from(&counts.allowed);
        counts
    }

    /// The number of its reports: none if it is only looked up, or was counted at another interface.
    fn times(&self, content: &Content) -> u32 {
        if self.is_lookup {
            return 0;
        }
        let (of, times) = ((Aspect::Signatures, self.names(Some(content))), self.rules.times(&self.parties));
        self.service.duplicates.uncounted(self.interface, of, times, self.now)
    }

    /// The names of the message, by which it is recognized at another interface.
    fn names(&self, content: Option<&Content>) -> Names<'_> {
        let signatures = content.map(|content| &content.signatures);
        Names {
            queue_id: self.envelope.id.as_deref(),
            message_id: self.envelope.message_id.as_deref(),
            content: signatures.and_then(|all| all.body.ok().or_else(|| all.near.reported().next())),
        }
    }

    /// Queues it to be checked again when the rest of its counts is known.
    fn recheck(&self, content: &Content, times: u32) {
        let (signatures, range) = (content.signatures.clone(), self.rules.range());
        let provenance = content.provenance(self.envelope, self.rules);
        let judged = PartlyJudged { signatures, provenance, range, times, at: std::time::Instant::now() };
        self.service.recheck_queue.put(judged);
    }

    /// The envelope with the answers of remote tables, if the message is bulk, not yet wanted, and there are such tables.
    async fn ask_tables(&self, content: &Content, counts: Counts) -> Option<Envelope> {
        let Self { rules, envelope, service, .. } = self;
        let (questions, is_all) = questions(rules, &self.parties, envelope, content, counts);
        if questions.is_empty() {
            return None;
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        let mut answers = service.tables.ask(questions, rules.table_timeout.min(left)).await;
        if !is_all {
            answers
                .failed
                .get_or_insert_with(|| "there are more recipients than tables are asked for".to_owned());
        }
        if let Some(why) = &answers.failed {
            let then =
                if rules.despite.unanswered { "treated as wanted by nobody there" } else { "only marked" };
            log::warn!(
                "{}: bulk is {then}, since a table of the white list did not answer: {why}",
                envelope.id()
            );
        }
        Some(Envelope { answers, ..(*envelope).clone() })
    }

    /// Counts it and looks up its user reports at the same time. Outbound mail has no user reports.
    async fn ask_with_reports<'s>(
        &self,
        inquiry: &mut Inquiry<'_>,
        signatures: &'s Signatures,
        keys: &[RetryKey],
        shared: Shared,
    ) -> (Result<(), Uncounted>, Option<ReportInquiry<'s>>) {
        let Self { rules, service, now, deadline, .. } = self;
        if rules.is_outbound(self.envelope) || !service.ledger.has_user_reports() {
            return (self.ask(inquiry, keys, (shared, false)).await, None);
        }
        let reports = ReportInquiry::new(signatures, &rules.key);
        let reports = look_up(reports, &service.ledger, &rules.user_reports, (*now, *deadline));
        if service.asks.is_none() {
            return tokio::join!(self.ask(inquiry, keys, (shared, false)), reports);
        }
        // The rest of its counts is asked for depending on its user reports.
        let reports = reports.await;
        let has_reports = reports.as_ref().is_some_and(ReportInquiry::has_reports);
        (self.ask(inquiry, keys, (shared, has_reports)).await, reports)
    }

    /// Puts the questions of an inquiry to the ledger. The server is asked for counts that are not held here, if the message may be bulk, or
    /// has user reports.
    async fn ask(
        &self,
        inquiry: &mut Inquiry<'_>,
        keys: &[RetryKey],
        (shared, has_reports): (Shared, bool),
    ) -> Result<(), Uncounted> {
        // Outbound mail is counted here completely.
        let asks = self.service.asks.as_deref().filter(|_| !self.rules.is_outbound(self.envelope));
        let mut query = asks.map(|asks| ServerQuery::new(asks, shared, has_reports));
        while let Some(question) = inquiry.ask() {
            let server_counts = match &mut query {
                Some(query) => match self.ask_server(query, inquiry, &question).await {
                    Known::Partial if !inquiry.is_first() => {
                        inquiry.stop(query.bound());
                        return Ok(());
                    }
                    known => known,
                },
                None => Known::All,
            };
            let (keys, now) = (keys.to_vec(), self.now);
            let Question { reported, once, also, also_exact, asked, times, .. } = question.clone();
            let ledger = &self.service.ledger;
            let answer = async {
                if inquiry.only_asks() {
                    return ledger.counts(asked, now).await;
                }
                let report =
                    Report { signatures: reported, once, also, also_exact, asked, times, keys, shared, now };
                ledger.report(report).await
            };
            let uncounted = match timeout_at(self.deadline, answer).await {
                Ok(Ok(counts)) => {
                    match (&server_counts, &query) {
                        (Known::WithServer(server_counts), _) => {
                            inquiry.answer(&merged(&question, &counts, server_counts));
                        }
                        (Known::Partial, Some(query)) => {
                            inquiry.answer(&counts);
                            inquiry.stop(query.bound());
                        }
                        _ => inquiry.answer(&counts),
                    }
                    continue;
                }
                Ok(Err(e)) => Uncounted::Failed(e),
                Err(_) => Uncounted::Timeout,
            };
            if !inquiry.fail() {
                return Err(uncounted);
            }
        }
        Ok(())
    }

    /// For a milter with a partial copy: the server's counts for this question. For the first question, the server is asked only if the
    /// counts here show that the message may be bulk.
    async fn ask_server(
        &self,
        query: &mut ServerQuery<'_>,
        inquiry: &Inquiry<'_>,
        question: &Question,
    ) -> Known {
        if inquiry.is_first() {
            let held = self.service.ledger.counts(wanted(question), self.now);
            // If this fails, the report does too, and logs why.
            let Ok(Ok(held)) = timeout_at(self.deadline, held).await else { return Known::Partial };
            let may_be = inquiry.is_scattered() || may_be_bulk(question, &held, query.bound());
            if !may_be && !query.has_reports {
                return Known::Partial;
            }
        }
        query.ask(question).await.map_or(Known::Partial, Known::WithServer)
    }

    /// Tells the ledger that the message will return, within the deadline.
    async fn remember_refused(&self, keys: Vec<RetryKey>, ledger: Ledger) {
        let why = match timeout_at(self.deadline, ledger.record_refused(keys, self.now)).await {
            Ok(Ok(())) => return,
            Ok(Err(e)) => e.to_string(),
            Err(_) => "the ledger did not answer in time".to_owned(),
        };
        log::warn!("a message was refused temporarily and may be counted again when it returns: {why}");
    }

    /// The state of the account of an outbound message. Exempt and whitelisted mail is not added, and mail through several interfaces once.
    fn account(&self, finding: &Finding, verdict: Verdict, names: Names<'_>) -> Option<Standing> {
        let Self { rules, envelope, now, .. } = self;
        let is_added = match finding {
            Finding::Exempt(reason) => *reason == Exempt::LowInformation,
            Finding::Canary(_) => false,
            Finding::Unknown(..) | Finding::Counted(_) => verdict != Verdict::Whitelisted,
        };
        if !is_added || !rules.is_outbound(envelope) {
            return None;
        }
        let recipients = u32::try_from(rules.mailboxes(&self.parties).len()).unwrap_or(u32::MAX);
        let recipients =
            self.service.duplicates.uncounted(self.interface, (Aspect::Account, names), recipients, *now);
        let bulk = if verdict.is_unwanted() { recipients } else { 0 };
        let account = envelope.account();
        let limits = rules.outbound.limits(&account);
        let sent = Sent { bulk, recipients };
        let standing = self.service.activity.account_sent(&account, sent, limits, *now);
        if standing.must_notify {
            log::warn!("{}", account_line(rules, envelope, standing));
        }
        Some(standing)
    }

    /// One key for each recipient, or one for the message if it counts once.
    fn retry_keys(&self, content: &Content) -> Vec<RetryKey> {
        let Self { rules, envelope, parties, .. } = self;
        let first = content.signatures.reported().first().map_or([0; 16], |signature| signature.to_bytes());
        let ip = envelope.client.map(|ip| ip.to_string()).unwrap_or_default();
        let id = content.message_id.as_deref().unwrap_or_default();
        let sender = envelope.sender.as_deref().unwrap_or_default();
        let key = |recipient: &str| {
            RetryKey::new(&[id.as_bytes(), sender.as_bytes(), ip.as_bytes(), &first, recipient.as_bytes()])
        };
        match rules.per {
            Per::Recipient => rules.mailboxes(parties).iter().map(|mailbox| key(mailbox)).collect(),
            Per::Message => vec![key("")],
        }
    }

    fn timeout(&self, what: &str) -> Finding {
        let deadline = self.rules.deadline.as_secs_f64();
        Finding::Unknown(Unknown::Timeout, format!("{what} took longer than {deadline} s"))
    }
}
