// SPDX-License-Identifier: GPL-3.0-or-later
//! At the end of a message: has it counted, within its deadline, and judged.

use super::budget::Account;
use super::correspondents::{correspondences, remember};
use super::explain::earlier_here;
use super::judgement::Judgement;
use super::later::Judged;
use super::line::{ASKED, target, tell};
use super::message::Message;
use super::people::hear;
use super::proofs::prove;
use super::record::record;
use super::refused::note;
use super::service::Service;
use super::thin::{Asking, Elsewhere, may_be_bulk, together, wanted};
use super::traps::{spring, trapped};
use super::twice::{Names, Of};
use crate::activity::Door;
use crate::lookup::Evidence;
use bulkmark_counts::{Report, RetryKey, Shared};
use bulkmark_ledger::{Ledger, LedgerError};
use bulkmark_mail::RawMessage;
use bulkmark_policy::{Action, Counts, OnFailure, Party, Per, Sent, Sprung, Standing, Verdict, Weight};
use bulkmark_signature::Signatures;
use bulkmark_verdict::{
    Content, Counted, Earlier, Envelope, Exempt, Finding, Hearing, Inquiry, Mode, Outcome, Question, Rules,
    Unknown, account_line, questions,
};
use log::Level;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Messages above this size are read by the readers, so that small ones do not wait behind them. What remains takes a few
/// milliseconds at worst, and most mail is below it.
const LARGE: usize = 16 << 10;

/// A message that is judged, and what that takes.
struct Case<'a> {
    rules: &'a Arc<Rules>,
    envelope: &'a Envelope,
    parties: Vec<Party<'a>>,
    service: &'a Service,
    /// Its Subject field, where somebody wants to see it.
    subject: Option<&'a [u8]>,
    /// Whether it is only asked about.
    is_asked: bool,
    /// By which way it came.
    door: Door,
    /// The time at its end, in seconds since 1970.
    now: u64,
    /// When there must be a verdict.
    deadline: Instant,
    /// Its recipients that are traps.
    traps: Vec<&'a str>,
}

/// Where counts are known.
enum Known {
    /// All of them here.
    Here,
    /// These at a server, and more here.
    Elsewhere(Elsewhere),
    /// Only those of bulk.
    InPart,
}

/// Why a message has no counts.
enum Uncounted {
    Timeout,
    Failed(LedgerError),
}

/// Judges a complete message. `mta` is the MTA's host name.
pub async fn judge(message: &mut Message, service: &Service, mta: Option<&str>) -> Judgement {
    let began = Instant::now();
    let (rules, now) = (Arc::clone(&message.rules), bulkmark_ledger::now());
    let deadline = began + rules.deadline;
    let (raw, account) = message.take_raw();
    message.envelope.is_paused = service.orders.is_paused(now);
    let message = &*message;
    let (envelope, is_asked) = (&message.envelope, message.is_asked);
    let (parties, subject) = (rules.parties(envelope), message.subject.as_deref());
    // A message that is only asked about springs nothing.
    let traps = if is_asked { Vec::new() } else { trapped(&rules, envelope) };
    let case = Case {
        rules: &rules,
        envelope,
        parties,
        service,
        subject,
        is_asked,
        door: message.door,
        now,
        deadline,
        traps,
    };
    let (finding, content, reported) = match case.unread(message, &raw) {
        Some(finding) => (finding, None, 0),
        None => case.read_and_count(raw, account).await,
    };
    let host = rules.hostname.as_deref().or(mta).unwrap_or("localhost");
    let mut outcome = Outcome::new(&rules, &message.envelope, &finding, host);
    if is_asked {
        return case.answered(message, Judgement { finding, outcome, content, reported });
    }
    let names = case.names(content.as_ref());
    if let Some(standing) = case.account(&finding, outcome.verdict, names) {
        outcome = outcome.of_account(&rules, &message.envelope, standing, host);
    }
    if !case.traps.is_empty() {
        let sprung = match &finding {
            Finding::Counted(Counted { trap, .. }) => trap.unwrap_or(Sprung::Refused),
            _ => Sprung::Refused,
        };
        if service.twice.left(case.door, (Of::Traps, names), 1, now) > 0 {
            service.activity.trap_sprung(sprung);
        }
        outcome = outcome.of_traps(&rules, &message.envelope, &case.traps, sprung);
    }
    remember(service, message, (&finding, &outcome), deadline).await;
    let judgement = Judgement { finding, outcome, content, reported };
    // What was counted as it came through another door is recorded there, and told here only if more is done with it.
    let is_copy = reported == 0 && matches!(judgement.finding, Finding::Counted(_));
    let Outcome { verdict, action, account, .. } = judgement.outcome;
    if is_copy && action == Action::Mark && account.is_none() && case.traps.is_empty() {
        return case.answered(message, judgement);
    }
    if !is_copy {
        note(service, &rules, message, &judgement);
        record(&service.activity, &rules, &message.envelope, subject, &judgement, began.elapsed());
    }
    let level = if matches!(judgement.finding, Finding::Unknown(..)) { Level::Warn } else { Level::Info };
    tell(&rules, message, &judgement, (target(verdict), level));
    judgement
}

impl Case<'_> {
    /// A message that was only asked about, or is counted already: the log has it for whoever looks closely.
    fn answered(&self, message: &Message, judgement: Judgement) -> Judgement {
        tell(self.rules, message, &judgement, (ASKED, Level::Debug));
        judgement
    }

    /// What is found of a message that is not even read, if that is so.
    fn unread(&self, message: &Message, raw: &RawMessage) -> Option<Finding> {
        if let Some(reason) = message.exempt {
            return Some(Finding::Exempt(reason));
        }
        if let Some(over) = raw.over() {
            return Some(Finding::Unknown(Unknown::TooLarge, over.to_string()));
        }
        message.unjudged.map(|reason| Finding::Unknown(reason, String::new()))
    }

    async fn read_and_count(&self, raw: RawMessage, account: Account) -> (Finding, Option<Content>, usize) {
        let (mut content, evidence) = match self.content(raw, account).await {
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

    /// Reads it, and keeps what its signatures may be held against. A panic costs this message its verdict and nothing else.
    async fn content(
        &self,
        raw: RawMessage,
        account: Account,
    ) -> Result<(Content, Option<(Evidence, Account)>), Finding> {
        let rules = Arc::clone(self.rules);
        let large = raw.len() > LARGE;
        let (envelope, correspondents) = (self.envelope.clone(), Arc::clone(&self.service.correspondents));
        let read = move || {
            let mut content = Content::claiming(&raw, &rules, envelope.sender.as_deref());
            content.correspondences = correspondences(&correspondents, &rules, &envelope, &content);
            let is_asked = rules.asks_for_signature(&content.claimed, &content.correspondences);
            let evidence = is_asked.then(|| Evidence::of(&raw)).flatten();
            // Its memory is not free before, even if nobody waits for the result any more.
            let mut smaller = account.of_same();
            drop((raw, account));
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

    /// Counts and judges it; also says how many signatures were reported.
    async fn count(&self, content: &mut Content, evidence: Option<&Evidence>) -> (Finding, usize) {
        let (Self { rules, envelope, traps, .. }, now) = (self, self.now);
        let ledger = &self.service.ledger;
        // Keys cost a hash for each recipient; they are needed only where something is ever refused temporarily.
        let times = self.times(content);
        let is_asked = times == 0;
        let is_retried = !is_asked && (rules.has_tempfail() || ledger.remembers_refused());
        let keys = if is_retried { self.retry_keys(content) } else { Vec::new() };
        let mode = if is_asked { Mode::Ask } else { Mode::Report(times) };
        let shared = shared(rules, envelope, content);
        let earlier = self.earlier(content, shared).await;
        let inquiry = Inquiry::new(&content.signatures, &rules.key, mode).on_top_of(earlier);
        let inquiry = content.about(inquiry, envelope, rules);
        let mut inquiry = inquiry.recalling(&self.service.settled, now);
        let (asked, hearing) = self.ask_and_hear(&mut inquiry, &content.signatures, &keys, shared).await;
        if inquiry.is_in_part() && shared == Shared::All && !is_asked {
            self.look_back(content, times);
        }
        let reported = inquiry.reported();
        let known = match asked {
            Ok(()) => {
                let spam = earlier.spam(hearing.map(|hearing| hearing.weight(inquiry.seen())));
                (Counts { spam, ..inquiry.counts() }, inquiry.backings())
            }
            Err(Uncounted::Failed(e)) => {
                return (Finding::Unknown(Unknown::LedgerUnavailable, e.to_string()), reported);
            }
            Err(Uncounted::Timeout) => {
                if rules.on_failure == OnFailure::Tempfail && !is_asked {
                    // The report may still be counted, and the message comes again. The ledger takes one after the other.
                    let ledger = ledger.clone();
                    tokio::spawn(async move { ledger.refused(keys, now).await });
                }
                return (self.timeout("the ledger's answer"), reported);
            }
        };
        let unknown_below = inquiry.unknown_below();
        let counts = self.service.orders.without_forgotten(&content.signatures, inquiry.seen(), known.0, now);
        let known = (counts, known.1);
        content.is_allowed |= self.service.orders.allow_message(&content.signatures, inquiry.seen(), now);
        // Of what a trap gets it is asked whether it is wanted, even if it is no bulk.
        let most = Counts { body: Some(u32::MAX), near: Some(u32::MAX), spam: None };
        let asked = if traps.is_empty() { known.0 } else { most };
        let answered = self.ask_tables(content, asked).await;
        let to = (answered.as_ref().unwrap_or(envelope), &self.parties[..]);
        let claims = (&mut *content, evidence);
        prove(self.service, rules, to, claims, asked, self.deadline).await;
        let Some(counted) = Counted::new(rules, to, content, known, self.service.links.staleness()) else {
            return (Finding::Exempt(Exempt::Policy), reported);
        };
        let mut counted = Counted { unknown_below, ..counted };
        if !traps.is_empty() {
            // Twice what makes it spam: the words of more traps would only take the room of others.
            let threshold = rules.terms(counted.decision.by).thresholds.spam;
            let is_said =
                counted.counts.spam.is_some_and(|spam| Weight::of_units(spam.units() / 2).reaches(threshold));
            let (of, traps) = ((&*content, self.subject), (&**traps, is_said));
            counted.trap = Some(spring(self.service, rules, to, of, traps, self.deadline).await);
        }
        if counted.decision.action == Action::Tempfail && !is_asked {
            self.remember_refused(keys, ledger.clone()).await;
        }
        (Finding::Counted(counted), reported)
    }

    /// What was counted of it under the key before. Whether that is allowed is kept in `content`.
    async fn earlier(&self, content: &mut Content, shared: Shared) -> Earlier {
        let may_ask = (shared == Shared::All, self.deadline);
        let earlier = earlier_here(self.service, (self.rules, self.envelope), content, may_ask).await;
        content.is_allowed = earlier.is_allowed;
        earlier
    }

    /// How often it is reported: not at all if it is only asked about, or was counted as it came through another door.
    fn times(&self, content: &Content) -> u32 {
        if self.is_asked {
            return 0;
        }
        let (of, times) = ((Of::Signatures, self.names(Some(content))), self.rules.times(&self.parties));
        self.service.twice.left(self.door, of, times, self.now)
    }

    /// What names the message, so that it is known again as it comes through another door.
    fn names(&self, content: Option<&Content>) -> Names<'_> {
        let signatures = content.map(|content| &content.signatures);
        Names {
            queue_id: self.envelope.id.as_deref(),
            message_id: self.envelope.message_id.as_deref(),
            content: signatures.and_then(|all| all.body.ok().or_else(|| all.near.reported().next())),
        }
    }

    /// Has it looked at again once the rest of its counts is known.
    fn look_back(&self, content: &Content, times: u32) {
        let (signatures, range) = (content.signatures.clone(), self.rules.range());
        let provenance = content.provenance(self.envelope, self.rules);
        let judged = Judged { signatures, provenance, range, times, at: std::time::Instant::now() };
        self.service.later.put(judged);
    }

    /// The envelope with what tables elsewhere say of it, if the message is bulk and wanted by nobody yet, and there are such
    /// tables.
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

    /// Counts it, and hears what people say of it, at the same time. What one's own users send nobody is asked about.
    async fn ask_and_hear<'s>(
        &self,
        inquiry: &mut Inquiry<'_>,
        signatures: &'s Signatures,
        keys: &[RetryKey],
        shared: Shared,
    ) -> (Result<(), Uncounted>, Option<Hearing<'s>>) {
        let Self { rules, service, now, deadline, .. } = self;
        if rules.is_outbound(self.envelope) || !service.ledger.has_people() {
            return (self.ask(inquiry, keys, (shared, false)).await, None);
        }
        let hearing = Hearing::new(signatures, &rules.key);
        let hearing = hear(hearing, &service.ledger, &rules.people, (*now, *deadline));
        if service.asks.is_none() {
            return tokio::join!(self.ask(inquiry, keys, (shared, false)), hearing);
        }
        // Whether the rest of its counts is asked for depends on what is said.
        let hearing = hearing.await;
        let is_said = hearing.as_ref().is_some_and(Hearing::is_said);
        (self.ask(inquiry, keys, (shared, is_said)).await, hearing)
    }

    /// Puts the questions of an inquiry to the ledger. Others are asked for what is not held here, where it may be bulk, or `is_said` to be
    /// spam.
    async fn ask(
        &self,
        inquiry: &mut Inquiry<'_>,
        keys: &[RetryKey],
        (shared, is_said): (Shared, bool),
    ) -> Result<(), Uncounted> {
        // What goes to nobody is counted here, all of it.
        let asks = self.service.asks.as_deref().filter(|_| !self.rules.is_outbound(self.envelope));
        let mut asking = asks.map(|asks| Asking::new(asks, shared, is_said));
        while let Some(question) = inquiry.ask() {
            let elsewhere = match &mut asking {
                Some(asking) => match self.ask_elsewhere(asking, inquiry, &question).await {
                    Known::InPart if !inquiry.is_first() => {
                        inquiry.stop(asking.bound());
                        return Ok(());
                    }
                    known => known,
                },
                None => Known::Here,
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
                    match (&elsewhere, &asking) {
                        (Known::Elsewhere(elsewhere), _) => {
                            inquiry.answer(&together(&question, &counts, elsewhere));
                        }
                        (Known::InPart, Some(asking)) => {
                            inquiry.answer(&counts);
                            inquiry.stop(asking.bound());
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

    /// At a thin milter: what others counted of this question. The first one asks them only where what is held here says that the message
    /// may be bulk.
    async fn ask_elsewhere(
        &self,
        asking: &mut Asking<'_>,
        inquiry: &Inquiry<'_>,
        question: &Question,
    ) -> Known {
        if inquiry.is_first() {
            let held = self.service.ledger.counts(wanted(question), self.now);
            // Where this fails the report does, too, and says why.
            let Ok(Ok(held)) = timeout_at(self.deadline, held).await else { return Known::InPart };
            let may_be = inquiry.is_scattered() || may_be_bulk(question, &held, asking.bound());
            if !may_be && !asking.is_said {
                return Known::InPart;
            }
        }
        asking.ask(question).await.map_or(Known::InPart, Known::Elsewhere)
    }

    /// Has the ledger remember that the message will come again; its verdict does not wait longer for that than it may.
    async fn remember_refused(&self, keys: Vec<RetryKey>, ledger: Ledger) {
        let why = match timeout_at(self.deadline, ledger.refused(keys, self.now)).await {
            Ok(Ok(())) => return,
            Ok(Err(e)) => e.to_string(),
            Err(_) => "the ledger did not answer in time".to_owned(),
        };
        log::warn!("a message was refused temporarily and may be counted again when it returns: {why}");
    }

    /// How the account stands whose message that is, where it is outbound. What is exempt or wanted is not added up, and what came through
    /// several doors once.
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
        let recipients = self.service.twice.left(self.door, (Of::Account, names), recipients, *now);
        let bulk = if verdict.is_unwanted() { recipients } else { 0 };
        let account = envelope.account();
        let limits = rules.outbound.limits(&account);
        let sent = Sent { bulk, recipients };
        let standing = self.service.activity.account_sent(&account, sent, limits, *now);
        if standing.is_news {
            log::warn!("{}", account_line(rules, envelope, standing));
        }
        Some(standing)
    }

    /// One key for each recipient, or one for the message where it counts once.
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

/// What other servers are told of a message.
fn shared(rules: &Rules, envelope: &Envelope, content: &Content) -> Shared {
    if rules.is_outbound(envelope) || rules.private.names(&content.facts(envelope, rules)) {
        Shared::Nothing
    } else if rules.shares_exact {
        Shared::All
    } else {
        Shared::Once
    }
}
