// SPDX-License-Identifier: GPL-3.0-or-later
//! From the signatures of a message to its counts, by questions that the caller puts to a ledger.
//!
//! A message takes one question. Where the answer says that something of it was seen before, a second one asks what it was seen
//! with, and the last one reports what follows. Where it was seen often, one between asks by whom; they also ask from which networks, and
//! one more may report that. docs/signatures.md has the reasons.

use super::earlier::Earlier;
use super::question::Question;
use super::sender::Sender;
use super::settled::Settled;
use super::trail::Trail;
use bulkmark_policy::{Backings, Counts, Range};
use bulkmark_signature::Signatures;
use bulkmark_signature::near::{Afterwards, Judgement, Seen, stray};
use bulkmark_types::{ClientNetwork, FederationKey, Provenance, Signature, message_count};

/// Whether a message is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is reported so many times, and its counts include these.
    Report(u32),
    /// It is only asked for; its counts are those of messages before it.
    Ask,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// What the message says, and what it is like.
    Counts,
    /// Where what it is like was found.
    Doubts,
    /// By whom that was sent.
    Origins,
    /// What follows for others.
    Afterwards,
    /// From where what it is like came.
    Sources,
    Done,
}

/// What the open question is about.
#[derive(Debug, Default)]
struct Open {
    /// The signatures besides that of the body, in the order of the answer; of strays, those that they are about.
    near: Vec<Signature>,
    /// How many of them are reported with it, the first ones.
    reported: usize,
    /// Those whose sources are asked for at its end.
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

/// The questions about one message. Put each to a ledger, [`answer`](Self::answer) it, until there is none.
#[derive(Debug)]
pub struct Inquiry<'a> {
    signatures: &'a Signatures,
    key: &'a FederationKey,
    mode: Mode,
    step: Step,
    open: Open,
    seen: Seen,
    body: Option<u32>,
    /// None until they are known.
    near: Option<Judgement>,
    reported: usize,
    /// What stands in a message that may be a letter; it is reported last.
    unsure: Vec<Signature>,
    /// None where it does not matter from where copies come.
    trail: Option<Trail<'a>>,
    /// Who sent it.
    sender: Sender,
    is_apart: bool,
    /// Whether the message was reported before, and only what follows from all counts is reported now.
    is_late: bool,
    /// Counts below this are not known.
    unknown_below: Option<u32>,
    /// Counts under the key before.
    earlier: Earlier,
}

impl<'a> Inquiry<'a> {
    /// About a message with these signatures, which were made under `key`.
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
            trail: None,
            sender: Sender::default(),
            is_apart: false,
            is_late: false,
            unknown_below: None,
            earlier: Earlier::default(),
        }
    }

    /// The same where this was counted under the key before: all counts include it.
    #[must_use]
    pub const fn on_top_of(mut self, earlier: Earlier) -> Self {
        self.earlier = earlier;
        self
    }

    /// The same for mail that one's own users send: it is counted apart from what comes to them.
    #[must_use]
    pub const fn apart(mut self) -> Self {
        self.is_apart = true;
        self
    }

    /// The same for a message that was reported, and judged by a part of the counts: what follows from all of them, which include it, is
    /// reported now.
    #[must_use]
    pub const fn afterwards(mut self) -> Self {
        self.is_late = true;
        self
    }

    /// The same for a message that these sent: it is also asked whether they send what it is like with ever other text.
    #[must_use]
    pub fn sent_by(mut self, provenance: Provenance) -> Self {
        self.seen = Seen::of_sender(provenance.whose().next().is_none());
        self.sender = Sender(provenance);
        self
    }

    /// The same for a message from this network, none if it is not known: it is also asked from which networks copies came, and
    /// that it came from this one is reported, where one of these thresholds wants to know.
    #[must_use]
    pub fn from_network(mut self, client: Option<ClientNetwork>, range: impl Into<Range>) -> Self {
        let range = range.into();
        let times = if let Mode::Report(times) = self.mode { times } else { 0 };
        let is_wanted = !range.highest.min_sources.is_off();
        self.trail = is_wanted.then(|| Trail::new(self.key, client, range, times));
        self
    }

    /// What was settled for other messages within a minute of `now`, in seconds since 1970, is not asked again.
    #[must_use]
    pub const fn recalling(mut self, settled: &'a Settled, now: u64) -> Self {
        if let Some(trail) = &mut self.trail {
            trail.recall(settled, now);
        }
        self
    }

    /// The next question; none when the counts are known and all is said.
    pub fn ask(&mut self) -> Option<Question> {
        loop {
            let Parts { reported, once, also, asked, anchors } = self.next()?;
            self.open = Open { near: [&once[..], &asked].concat(), reported: once.len(), anchors };
            let mut asked = match self.step {
                Step::Doubts => asked.iter().map(|&signature| stray(self.key, signature)).collect(),
                Step::Origins => {
                    asked.iter().flat_map(|&signature| self.sender.ask(self.key, signature)).collect()
                }
                _ => asked,
            };
            let before = asked.len();
            if let Some(trail) = &self.trail {
                asked.extend(trail.questions(self.key, &self.open.anchors));
            }
            let asked_exact = if self.step == Step::Doubts { asked.len() - before } else { 0 };
            let question = match self.mode {
                Mode::Report(_) if self.is_late && self.step == Step::Counts => {
                    Question { asked: [reported, once, asked].concat(), ..Question::default() }
                }
                Mode::Report(times) => {
                    let also_exact = self.step == Step::Afterwards && !also.is_empty();
                    Question { reported, once, also, also_exact, asked, asked_exact, times }
                }
                Mode::Ask => {
                    self.open.reported = 0;
                    Question { asked: [reported, once, asked].concat(), ..Question::default() }
                }
            };
            if !question.is_empty() {
                self.reported += question.reported.len() + question.once.len() + question.also.len();
                return Some(if self.is_apart { question.apart(self.key) } else { question });
            }
            self.answer(&[]);
        }
    }

    /// What is to be reported and asked in this step.
    fn next(&mut self) -> Option<Parts> {
        let near = &self.signatures.near;
        let counts = self.counts();
        Some(match self.step {
            Step::Counts => {
                let reported = self.signatures.body.ok().into_iter().collect();
                let once = distinct(near.reported().chain(near.reported_beside()).chain(self.message()));
                let asked = near.asked().into_iter().filter(|signature| !once.contains(signature));
                let asked = distinct(asked);
                Parts { reported, once, asked, ..Parts::default() }
            }
            Step::Doubts => {
                let body = self.signatures.body.ok();
                let anchors = self.trail.as_mut().map(|trail| trail.ask_body(body, self.body));
                let (asked, anchors) = (distinct(near.doubts(&self.seen)), anchors.unwrap_or_default());
                Parts { asked, anchors, ..Parts::default() }
            }
            Step::Origins => Parts { asked: near.further_doubts(&self.seen), ..Parts::default() },
            Step::Afterwards => {
                let carriers = |judgement| near.carriers(judgement, &self.seen);
                let carriers = || self.near.as_ref().map(carriers).unwrap_or_default();
                let anchors = self.trail.as_mut().map(|trail| trail.ask_near(carriers, counts));
                let anchors = anchors.unwrap_or_default();
                // Who only asks adds nothing.
                if self.mode == Mode::Ask {
                    return Some(Parts { anchors, ..Parts::default() });
                }
                let Afterwards { reported, strays, unsure } = near.afterwards(&self.seen);
                self.unsure = distinct(unsure.into_iter());
                let strays = strays.into_iter().map(|of| stray(self.key, of));
                let once = distinct(strays.chain(reported));
                let also = self.trail.as_ref().map(|trail| trail.report_body(self.key, self.body));
                Parts { once, also: also.unwrap_or_default(), anchors, ..Parts::default() }
            }
            Step::Sources => {
                let also = self.trail.as_ref().map(|trail| trail.report_near(self.key, counts));
                let mut also = also.unwrap_or_default();
                let unsure = std::mem::take(&mut self.unsure);
                also.extend(unsure.into_iter().flat_map(|of| self.sender.report(self.key, of)));
                Parts { also, ..Parts::default() }
            }
            Step::Done => return None,
        })
    }

    /// Takes the answer to the question that [`ask`](Self::ask) gave last.
    pub fn answer(&mut self, counts: &[u32]) {
        let Open { near, reported, anchors } = std::mem::take(&mut self.open);
        let mut counts = counts;
        if self.step == Step::Counts && self.signatures.body.is_ok() {
            self.body = self.earlier.body(counts.split_off_first().copied());
        }
        let each = if self.step == Step::Origins { self.sender.questions() } else { 1 };
        let (counts, of_sources) = counts.split_at((each * near.len()).min(counts.len()));
        // What this report added is taken off again: near-replicas are judged by what was seen before.
        let before = |(i, &count): (usize, &u32)| if i < reported { count.saturating_sub(1) } else { count };
        let before: Vec<u32> = counts.iter().enumerate().map(before).collect();
        let trail = self.trail.as_mut().filter(|_| !anchors.is_empty());
        match self.step {
            Step::Counts => {
                self.seen.add(&near, &before);
                self.step = Step::Doubts;
            }
            Step::Doubts => {
                if let Some(trail) = trail {
                    trail.answer_body(anchors, of_sources);
                }
                self.seen.add_strays(&near, &before);
                self.step = Step::Origins;
            }
            Step::Origins => {
                for (&signature, counts) in near.iter().zip(counts.chunks_exact(each)) {
                    self.seen.add_unsure(signature, self.sender.told(counts));
                }
                let all = &self.signatures.near;
                self.near = (!all.is_empty()).then(|| all.judge(&self.seen));
                self.step = Step::Afterwards;
            }
            Step::Afterwards => {
                if let Some(trail) = trail {
                    trail.answer_near(anchors, of_sources);
                }
                self.step = Step::Sources;
            }
            Step::Sources | Step::Done => self.step = Step::Done,
        }
    }

    /// The open question has no answer and will have none. True when the message can be judged nevertheless, by what is known
    /// by now: of its near-replicas that may be nothing, since what is known of them in part may be too much. From where copies
    /// came is not known then.
    pub fn fail(&mut self) -> bool {
        self.step = Step::Done;
        if let Some(trail) = &mut self.trail {
            trail.fail();
        }
        self.body.is_some() || self.near.is_some()
    }

    /// Nothing more is asked, and what was answered are counts of which those below `bound` may be too low: such a message is not known
    /// to be like others, whatever they say of that. From where copies came is not known, either.
    pub fn stop(&mut self, bound: u32) {
        let near = self.near.take().unwrap_or_else(|| self.signatures.near.judge(&self.seen));
        let near = Judgement { count: near.count.min(bound.saturating_sub(2)), ..near };
        self.near = (!self.signatures.near.is_empty()).then_some(near);
        // What is held is known as it was before this message.
        let this = if let Mode::Report(times) = self.mode { times } else { 0 };
        self.unknown_below = Some(bound.saturating_add(this));
        self.step = Step::Done;
        if let Some(trail) = &mut self.trail {
            trail.fail();
        }
    }

    /// Whether what follows from all counts was not reported, since they are known in part.
    #[must_use]
    pub const fn is_in_part(&self) -> bool {
        self.unknown_below.is_some()
    }

    /// Below which count those of this message may be too low; none where all are known.
    #[must_use]
    pub fn unknown_below(&self) -> Option<u32> {
        self.unknown_below.max(self.earlier.unknown_below)
    }

    /// Whether several of its signatures, or those under two keys, are counted together, so that each may be low where their sum is not.
    #[must_use]
    pub fn is_scattered(&self) -> bool {
        let earlier = self.earlier.body(None).max(self.earlier.near(None));
        !self.signatures.near.unsure.is_empty() || earlier.is_some_and(|count| count > 0)
    }

    /// Whether nothing is reported.
    #[must_use]
    pub fn only_asks(&self) -> bool {
        self.mode == Mode::Ask
    }

    /// Whether its first question was asked, and has no answer yet.
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
            near: self.earlier.near(self.near.as_ref().map(|near| near.count.saturating_add(this))),
            spam: None,
        }
    }

    /// From where the copies came, as far as it matters.
    #[must_use]
    pub fn backings(&self) -> Backings {
        let backings = self.trail.as_ref().map(|trail| trail.backings(self.counts())).unwrap_or_default();
        self.earlier.backings(Backings { messages: self.messages(), ..backings })
    }

    /// The signature by which messages are counted of which nothing else is reported once, however many recipients they have.
    fn message(&self) -> Option<Signature> {
        let body = self.signatures.body.ok().filter(|_| self.signatures.near.reported().next().is_none());
        body.map(|body| message_count(self.key, body))
    }

    /// How many messages had all that this one reports, this one included. Those that are the same did.
    fn messages(&self) -> Option<u32> {
        let once = self.signatures.near.reported().chain(self.message());
        let least = once.map(|signature| self.seen.known(signature).count).min()?;
        Some(least.saturating_add(u32::from(self.mode != Mode::Ask)))
    }

    /// What is known of its near-replicas, once it is.
    #[must_use]
    pub const fn near(&self) -> Option<&Judgement> {
        self.near.as_ref()
    }

    /// How often its signatures were seen, and with what; none where that is known in part only.
    #[must_use]
    pub fn seen(&self) -> Option<&Seen> {
        self.unknown_below.is_none().then_some(&self.seen)
    }

    /// The same, as far as it is known.
    #[must_use]
    pub fn into_seen(self) -> Seen {
        self.seen
    }

    /// How many signatures were reported.
    #[must_use]
    pub const fn reported(&self) -> usize {
        self.reported
    }
}

/// The same without what stands there a second time: one message says everything once.
fn distinct(signatures: impl Iterator<Item = Signature>) -> Vec<Signature> {
    let mut seen = Vec::with_capacity(signatures.size_hint().0);
    for signature in signatures {
        if !seen.contains(&signature) {
            seen.push(signature);
        }
    }
    seen
}
