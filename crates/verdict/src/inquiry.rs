// SPDX-License-Identifier: GPL-3.0-or-later
//! From the signatures of a message to its counts, by questions that the caller puts to a ledger.
//!
//! A new message takes one question. If some of its signatures were seen before, a second question asks for their strays, and the last one
//! reports the derived signatures. If they were seen often, a question in between asks for origins; these questions also ask for networks,
//! and one more may report one. docs/signatures.md has the reasons.

use super::old_key::OldKeyCounts;
use super::question::Question;
use super::sender::Sender;
use super::source_cache::SourceCache;
use super::source_inquiry::SourceInquiry;
use bulkmark_policy::{Backings, Counts, Range};
use bulkmark_signature::Signatures;
use bulkmark_signature::near::{FollowUp, Judgement, Seen, stray};
use bulkmark_types::{ClientNetwork, FederationKey, Provenance, Signature, message_count};

/// Whether a message is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is reported this many times, and its counts include these reports.
    Report(u32),
    /// It is only looked up; its counts are those of earlier messages.
    Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The body and the near signatures.
    Counts,
    /// The strays of its near signatures.
    Doubts,
    /// The origins of these.
    Origins,
    /// The strays of this message.
    FollowUp,
    /// The sources of its near signatures.
    Sources,
    Done,
}

/// The open question.
#[derive(Debug, Default)]
struct Open {
    /// The signatures besides the body's, in the order of the answer; for strays and origins, their anchors.
    near: Vec<Signature>,
    /// The number of signatures among them that a report reports; these come first.
    once: usize,
    /// The number of those that were reported.
    reported: usize,
    /// The anchors whose sources the end of the question asks for.
    anchors: Vec<Signature>,
}

/// The parts of a question.
#[derive(Debug, Default)]
struct Parts {
    reported: Vec<Signature>,
    once: Vec<Signature>,
    also: Vec<(Signature, u32)>,
    asked: Vec<Signature>,
    anchors: Vec<Signature>,
}

/// The questions about one message. Put each to a ledger and pass its answer to [`answer`](Self::answer), until there are no more.
#[derive(Debug)]
pub struct Inquiry<'a> {
    signatures: &'a Signatures,
    key: &'a FederationKey,
    mode: Mode,
    step: Step,
    open: Open,
    seen: Seen,
    body: Option<u32>,
    /// `None` until it is known.
    near: Option<Judgement>,
    reported: usize,
    /// Signatures in a message that may be a letter; they are reported last.
    unsure: Vec<Signature>,
    /// `None` if the sources of copies do not matter.
    sources: Option<SourceInquiry<'a>>,
    /// The sender.
    sender: Sender,
    is_outbound: bool,
    /// Whether the message was reported before, and only derived signatures are reported now.
    was_reported: bool,
    /// Counts below this bound are unknown.
    unknown_below: Option<u32>,
    /// Counts under the old key.
    old_key: OldKeyCounts,
}

impl<'a> Inquiry<'a> {
    /// An inquiry about a message with these signatures, which were made under `key`.
    #[must_use]
    pub fn new(signatures: &'a Signatures, key: &'a FederationKey, mode: Mode) -> Self {
        let step = if signatures.is_empty() { Step::Done } else { Step::Counts };
        Self {
            signatures,
            key,
            mode,
            step,
            open: Open::default(),
            seen: Seen::of_sender(true),
            body: None,
            near: None,
            reported: 0,
            unsure: Vec::new(),
            sources: None,
            sender: Sender::default(),
            is_outbound: false,
            was_reported: false,
            unknown_below: None,
            old_key: OldKeyCounts::default(),
        }
    }

    /// The same with counts under the old key, which are added to all counts.
    #[must_use]
    pub fn on_top_of(mut self, counts: OldKeyCounts) -> Self {
        self.old_key = counts;
        self
    }

    /// The same for mail that one's own users send: it is counted separately from incoming mail.
    #[must_use]
    pub const fn outbound(mut self) -> Self {
        self.is_outbound = true;
        self
    }

    /// Whether it is about mail that one's own users send.
    #[must_use]
    pub const fn is_outbound(&self) -> bool {
        self.is_outbound
    }

    /// The same for a message that was already reported and judged by a part of the counts. Now the signatures are reported that derive from
    /// all counts, which include this message.
    #[must_use]
    pub const fn already_reported(mut self) -> Self {
        self.was_reported = true;
        self
    }

    /// The same for a message of this provenance: the inquiry also asks whether its origins send its near signatures with different text each
    /// time.
    #[must_use]
    pub fn sent_by(mut self, provenance: Provenance) -> Self {
        self.seen = Seen::of_sender(provenance.origins().next().is_none());
        self.sender = Sender(provenance);
        self
    }

    /// The same for a message from this network; `None` if it is unknown. The inquiry also asks for the networks of copies and reports this
    /// one, if one of these thresholds needs that.
    #[must_use]
    pub fn from_network(mut self, client: Option<ClientNetwork>, range: impl Into<Range>) -> Self {
        let range = range.into();
        let times = if let Mode::Report(times) = self.mode { times } else { 0 };
        let is_wanted = !range.highest.min_sources.is_off();
        self.sources = is_wanted.then(|| SourceInquiry::new(self.key, client, range, times));
        self
    }

    /// Uses a cache: results for other messages within a minute of `now`, in seconds since 1970, are not looked up again.
    #[must_use]
    pub const fn with_cache(mut self, cache: &'a SourceCache, now: u64) -> Self {
        if let Some(sources) = &mut self.sources {
            sources.use_cache(cache, now);
        }
        self
    }

    /// The next question; `None` when the counts are known and all is reported.
    pub fn ask(&mut self) -> Option<Question> {
        loop {
            let Parts { reported, once, also, asked, anchors } = self.next()?;
            let near = [&once[..], &asked].concat();
            self.open = Open { near, once: once.len(), reported: once.len(), anchors };
            let mut asked = match self.step {
                Step::Doubts => asked.iter().map(|&signature| stray(self.key, signature)).collect(),
                Step::Origins => {
                    asked.iter().flat_map(|&signature| self.sender.ask(self.key, signature)).collect()
                }
                _ => asked,
            };
            let before = asked.len();
            if let Some(sources) = &self.sources {
                asked.extend(sources.questions(self.key, &self.open.anchors));
            }
            let asked_exact = if self.step == Step::Doubts { asked.len() - before } else { 0 };
            let question = match self.mode {
                Mode::Report(_) if self.was_reported && self.step == Step::Counts => {
                    Question { asked: [reported, once, asked].concat(), ..Question::default() }
                }
                Mode::Report(times) => {
                    let also_exact = self.step == Step::FollowUp && !also.is_empty();
                    Question { reported, once, also, also_exact, asked, asked_exact, times }
                }
                Mode::Ask => {
                    self.open.reported = 0;
                    Question { asked: [reported, once, asked].concat(), ..Question::default() }
                }
            };
            if !question.is_empty() {
                self.reported += question.reported.len() + question.once.len() + question.also.len();
                return Some(if self.is_outbound { question.outbound(self.key) } else { question });
            }
            self.answer(&[]);
        }
    }

    /// The reports and look-ups of this step.
    fn next(&mut self) -> Option<Parts> {
        let near = &self.signatures.near;
        let counts = self.counts();
        Some(match self.step {
            Step::Counts => {
                let reported = self.signatures.body.ok().into_iter().collect();
                let once = distinct(near.reported().chain(near.reported_beside()).chain(self.message()));
                let asked = near.looked_up().into_iter().filter(|signature| !once.contains(signature));
                let asked = distinct(asked);
                Parts { reported, once, asked, ..Parts::default() }
            }
            Step::Doubts => {
                let body = self.signatures.body.ok();
                let anchors = self.sources.as_mut().map(|sources| sources.ask_body(body, self.body));
                let (asked, anchors) =
                    (distinct(near.stray_lookups(&self.seen)), anchors.unwrap_or_default());
                let once = self.message_of_copies().into_iter().collect();
                Parts { once, asked, anchors, ..Parts::default() }
            }
            Step::Origins => Parts { asked: near.unsure_lookups(&self.seen), ..Parts::default() },
            Step::FollowUp => {
                let carriers = |judgement| near.carriers(judgement, &self.seen);
                let carriers = || self.near.as_ref().map(carriers).unwrap_or_default();
                let anchors = self.sources.as_mut().map(|sources| sources.ask_near(carriers, counts));
                let anchors = anchors.unwrap_or_default();
                // A look-up adds nothing.
                if self.mode == Mode::Ask {
                    return Some(Parts { anchors, ..Parts::default() });
                }
                let FollowUp { reported, strays, unsure } = near.follow_up(&self.seen);
                self.unsure = distinct(unsure.into_iter());
                let strays = strays.into_iter().map(|of| stray(self.key, of));
                let once = distinct(strays.chain(reported));
                let also = self.sources.as_ref().map(|sources| sources.report_body(self.key, self.body));
                Parts { once, also: also.unwrap_or_default(), anchors, ..Parts::default() }
            }
            Step::Sources => {
                let also = self.sources.as_ref().map(|sources| sources.report_near(self.key, counts));
                let mut also = also.unwrap_or_default();
                let unsure = std::mem::take(&mut self.unsure);
                also.extend(unsure.into_iter().flat_map(|of| self.sender.report(self.key, of)));
                Parts { also, ..Parts::default() }
            }
            Step::Done => return None,
        })
    }

    /// Takes the answer to the last question of [`ask`](Self::ask).
    pub fn answer(&mut self, counts: &[u32]) {
        let Open { near, once, reported, anchors } = std::mem::take(&mut self.open);
        let mut counts = counts;
        if self.step == Step::Counts && self.signatures.body.is_ok() {
            self.body = self.old_key.body(counts.split_off_first().copied());
        }
        let each = if self.step == Step::Origins { self.sender.questions() } else { 1 };
        let (counts, of_sources) = counts.split_at((each * near.len()).min(counts.len()));
        // Without this report: near-replicas are judged by the counts before it.
        let before = |(i, &count): (usize, &u32)| if i < reported { count.saturating_sub(1) } else { count };
        let before: Vec<u32> = counts.iter().enumerate().map(before).collect();
        let sources = self.sources.as_mut().filter(|_| !anchors.is_empty());
        match self.step {
            Step::Counts => {
                self.seen.add(&near, &before);
                self.step = Step::Doubts;
            }
            Step::Doubts => {
                if let Some(sources) = sources {
                    sources.answer_body(anchors, of_sources);
                }
                let (messages, strays) = near.split_at(once);
                let (of_messages, of_strays) = before.split_at(once.min(before.len()));
                self.seen.add(messages, of_messages);
                self.seen.add_strays(strays, of_strays);
                self.step = Step::Origins;
            }
            Step::Origins => {
                for (&signature, counts) in near.iter().zip(counts.chunks_exact(each)) {
                    self.seen.add_unsure(signature, self.sender.evidence(counts));
                }
                let all = &self.signatures.near;
                self.near = (!all.is_empty()).then(|| all.judge(&self.seen));
                self.step = Step::FollowUp;
            }
            Step::FollowUp => {
                if let Some(sources) = sources {
                    sources.answer_near(anchors, of_sources);
                }
                self.step = Step::Sources;
            }
            Step::Sources | Step::Done => self.step = Step::Done,
        }
    }

    /// The open question will have no answer. Returns true if the message can still be judged by the known counts. Its near-replicas may be
    /// missing, since a partial judgement of them may be too high. The sources are then unknown.
    pub fn fail(&mut self) -> bool {
        self.step = Step::Done;
        if let Some(sources) = &mut self.sources {
            sources.fail();
        }
        self.body.is_some() || self.near.is_some()
    }

    /// Ends the inquiry; answered counts below `bound` may be too low. So the near count stays below the bound, and the sources are unknown.
    pub fn stop(&mut self, bound: u32) {
        let near = self.near.take().unwrap_or_else(|| self.signatures.near.judge(&self.seen));
        let near = Judgement { count: near.count.min(bound.saturating_sub(2)), ..near };
        self.near = (!self.signatures.near.is_empty()).then_some(near);
        // A partial copy has the counts before this message.
        let this = if let Mode::Report(times) = self.mode { times } else { 0 };
        self.unknown_below = Some(bound.saturating_add(this));
        self.step = Step::Done;
        if let Some(sources) = &mut self.sources {
            sources.fail();
        }
    }

    /// Whether only some counts under the current key are known, so that the reports that depend on all of them were not made.
    #[must_use]
    pub const fn is_in_part(&self) -> bool {
        self.unknown_below.is_some()
    }

    /// The bound below which its counts may be too low; `None` if all are known.
    #[must_use]
    pub fn unknown_below(&self) -> Option<u32> {
        self.unknown_below.max(self.old_key.unknown_below)
    }

    /// Whether several of its signatures, or those under two keys, are counted together, so that each count may be low although their sum
    /// is not.
    #[must_use]
    pub fn is_scattered(&self) -> bool {
        let old = self.old_key.body(None).max(self.old_key.near(None));
        !self.signatures.near.unsure.is_empty() || old.is_some_and(|count| count > 0)
    }

    /// Whether nothing is reported.
    #[must_use]
    pub fn only_asks(&self) -> bool {
        self.mode == Mode::Ask
    }

    /// Whether its first question has no answer yet.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.step == Step::Counts
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let this = u32::from(self.mode != Mode::Ask);
        Counts {
            body: self.body,
            near: self.old_key.near(self.near.as_ref().map(|near| near.count.saturating_add(this))),
            spam: None,
        }
    }

    /// The sources of the copies, as far as they matter.
    #[must_use]
    pub fn backings(&self) -> Backings {
        let backings =
            self.sources.as_ref().map(|sources| sources.backings(self.counts())).unwrap_or_default();
        self.old_key.backings(Backings { messages: self.messages(), ..backings })
    }

    /// The signature that counts messages, regardless of recipients, if no other signature of the message does.
    fn message(&self) -> Option<Signature> {
        let body = self.signatures.body.ok().filter(|_| self.signatures.near.reported().next().is_none());
        body.map(|body| message_count(self.key, body))
    }

    /// The same for a message with near signatures, if its body came so often that its sources matter: a program that only moves blanks leaves
    /// the body as it is, and no near signature.
    fn message_of_copies(&self) -> Option<Signature> {
        let wants = self.sources.as_ref().is_some_and(|sources| sources.wants_body(self.body));
        let body = self.signatures.body.ok().filter(|_| wants && self.message().is_none());
        body.map(|body| message_count(self.key, body))
    }

    /// The number of messages, this one included, that reported all of these signatures, as identical ones do, or that had the same body.
    fn messages(&self) -> Option<u32> {
        let count = |signature| self.seen.known(signature).count;
        let least = self.signatures.near.reported().chain(self.message()).map(count).min()?;
        let of_body = self.message_of_copies().map_or(0, count);
        Some(least.max(of_body).saturating_add(u32::from(self.mode != Mode::Ask)))
    }

    /// The judgement of its near signatures, once it is known.
    #[must_use]
    pub const fn near(&self) -> Option<&Judgement> {
        self.near.as_ref()
    }

    /// The counts of its signatures and their strays; `None` if they are known only in part.
    #[must_use]
    pub fn seen(&self) -> Option<&Seen> {
        self.unknown_below.is_none().then_some(&self.seen)
    }

    /// The same, as far as it is known.
    #[must_use]
    pub fn into_seen(self) -> Seen {
        self.seen
    }

    /// The number of reported signatures.
    #[must_use]
    pub const fn reported(&self) -> usize {
        self.reported
    }
}

/// The signatures without duplicates: one message reports each once.
fn distinct(signatures: impl Iterator<Item = Signature>) -> Vec<Signature> {
    let mut seen = Vec::with_capacity(signatures.size_hint().0);
    for signature in signatures {
        if !seen.contains(&signature) {
            seen.push(signature);
        }
    }
    seen
}
