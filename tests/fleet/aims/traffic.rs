// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail through all milters of a fleet, and its true counts: how often each letter was certainly counted, and how often perhaps, since the
//! milter was killed before its answer.

use super::members::{BOUND, Member, Members};
use super::partial::{self, Known};
use bulkmark_testing::ends::Ends;
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Mail, try_session};
use bulkmark_testing::random::Random;
use bulkmark_testing::wait_until;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// The most different letters; small enough for exact counts in filters for a million signatures.
pub(crate) const LETTERS: usize = 2000;

/// The minimum number of messages per letter, if there are fewer letters: some are seen far more often than bulk, and some hardly ever.
const COPIES: usize = 40;

/// Concurrent SMTP sessions at each milter, and messages in each of them.
const SESSIONS: u64 = 3;
const BURST: usize = 40;

/// The pause of a session that has nothing to do yet.
const PAUSE: Duration = Duration::from_millis(2);

/// The messages that are being sent, or were.
pub(crate) struct Traffic {
    /// The number of messages allowed so far, and of those begun.
    allowed: AtomicUsize,
    begun: AtomicUsize,
    is_over: AtomicBool,
    /// By letter: messages that were answered with a count, and those for which it is unknown whether they were counted.
    certain: Vec<AtomicU32>,
    perhaps: Vec<AtomicU32>,
    /// Answers without a count.
    uncounted: AtomicU64,
    /// The most microseconds from a message's beginning to its answer: at milters with a full copy, and at partial ones.
    slowest: [AtomicU64; 2],
}

/// The longest time of a message: at milters with a full copy, and at those with a partial one, which may ask for other counts.
#[derive(Clone, Copy, Default)]
pub(crate) struct Slowest {
    pub(crate) full: Duration,
    pub(crate) partial: Duration,
}

impl Slowest {
    pub(crate) fn max(self, other: Self) -> Self {
        Self { full: self.full.max(other.full), partial: self.partial.max(other.partial) }
    }

    pub(crate) fn of_all(self) -> Duration {
        self.full.max(self.partial)
    }
}

impl Traffic {
    /// For this many messages.
    pub(crate) fn new(messages: usize) -> Self {
        let letters = (messages / COPIES).clamp(1, LETTERS);
        let none = || (0..letters).map(|_| AtomicU32::new(0)).collect();
        Self {
            allowed: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            certain: none(),
            perhaps: none(),
            uncounted: AtomicU64::new(0),
            slowest: Default::default(),
        }
    }

    /// Raises the total number of allowed messages to this.
    pub(crate) fn allow(&self, messages: usize) {
        self.allowed.store(messages, Ordering::Relaxed);
    }

    /// Allows `more` messages, up to `all`, and waits until half of them have begun: the next event then happens amid messages.
    pub(crate) fn begin_more(&self, more: usize, all: usize) {
        let begun = self.begun();
        let allowed = (self.allowed.load(Ordering::Relaxed).max(begun) + more).min(all);
        self.allow(allowed);
        let half = (begun + more / 2).min(allowed);
        while self.begun() < half && !self.is_over.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }

    /// Allows this many more each second, until the end.
    pub(crate) fn pour(&self, messages: usize) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.allowed.fetch_add(messages / 10, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// The number of messages begun.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// Stops new messages when it is dropped.
    pub(crate) fn end(&self) -> Ends<'_> {
        Ends(&self.is_over)
    }

    /// Allows new messages again after `end`.
    pub(crate) fn go_on(&self) {
        self.is_over.store(false, Ordering::Relaxed);
    }

    /// The longest times of messages since the last call.
    pub(crate) fn take_slowest(&self) -> Slowest {
        let [full, partial] =
            self.slowest.each_ref().map(|slowest| Duration::from_micros(slowest.swap(0, Ordering::Relaxed)));
        Slowest { full, partial }
    }

    /// Starts to send the allowed messages through all milters, until the end.
    pub(crate) fn flow<'s>(&'s self, scope: &'s Scope<'s, '_>, members: &'s Members, seed: u64) {
        for (milter, number) in members.milters.iter().zip(0..) {
            for session in 0..SESSIONS {
                let mut random = Random::new(seed ^ (number << 32) ^ (session << 48) ^ 1);
                scope.spawn(move || {
                    while !self.is_over.load(Ordering::Relaxed) {
                        self.session(milter, &mut random);
                        std::thread::sleep(PAUSE);
                    }
                });
            }
        }
    }

    /// Takes one of the allowed messages.
    fn begin(&self) -> bool {
        let allowed = self.allowed.load(Ordering::Relaxed);
        let next = |begun| (begun < allowed).then_some(begun + 1);
        !self.is_over.load(Ordering::Relaxed)
            && self.begun.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// One SMTP session, which ends early when the milter is killed.
    fn session(&self, milter: &Member, random: &mut Random) {
        let Some(mut client) = milter.address().and_then(|address| try_session(&address)) else { return };
        for _ in 0..BURST {
            if !self.begin() {
                return;
            }
            // Some letters come often, and many seldom.
            let letters = self.certain.len();
            let n = random.below(letters) * random.below(letters) / letters;
            let began = Instant::now();
            let Some(answer) = client.try_message(&Mail::raw(&letter(n))) else {
                self.perhaps[n].fetch_add(1, Ordering::Relaxed);
                return;
            };
            let took = u64::try_from(began.elapsed().as_micros()).unwrap();
            self.slowest[usize::from(milter.is_partial)].fetch_max(took, Ordering::Relaxed);
            if answer.count().is_some() {
                self.certain[n].fetch_add(1, Ordering::Relaxed);
            } else {
                self.uncounted.fetch_add(1, Ordering::Relaxed);
                self.perhaps[n].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Compares all counts with the true ones. Returns the counts found, or the error.
    pub(crate) fn check(&self, members: &Members) -> Result<Found, String> {
        let all = |of: &[AtomicU32]| of.iter().map(|n| n.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let (certain, perhaps) = (all(&self.certain), all(&self.perhaps));
        let mut first: Option<Vec<u32>> = None;
        for member in members.full() {
            let counts = member.counts(0..certain.len())?;
            let wrong: Vec<_> = (0..counts.len())
                .filter(|&n| counts[n] < certain[n] || counts[n] > certain[n] + perhaps[n])
                .map(|n| format!("letter {n}: {} instead of {} (+{})", counts[n], certain[n], perhaps[n]))
                .collect();
            if !wrong.is_empty() {
                return Err(format!("{} letters; {}", wrong.len(), wrong[..wrong.len().min(5)].join("; ")));
            }
            if first.as_ref().is_some_and(|first| *first != counts) {
                return Err("two of them count differently what was not answered".to_owned());
            }
            first = Some(counts);
        }
        let counts = first.ok_or("nobody holds all counts")?;
        let sum = |of: &[u32]| of.iter().map(|&n| u64::from(n)).sum::<u64>();
        Ok(Found {
            letters: counts.len(),
            certain: sum(&certain),
            perhaps: sum(&perhaps),
            counted: sum(&counts) - sum(&certain),
            uncounted: self.uncounted.load(Ordering::Relaxed),
            holders: members.full().count(),
            partial: partial::check(members.partial(), &counts)?,
        })
    }
}

/// The result of the comparison.
pub(crate) struct Found {
    /// The number of different letters.
    pub(crate) letters: usize,
    /// Messages that were answered with a count: each was counted once.
    pub(crate) certain: u64,
    /// Messages that were not answered with a count, and the number of these that were counted.
    pub(crate) perhaps: u64,
    pub(crate) counted: u64,
    /// Of these, answers without a count.
    pub(crate) uncounted: u64,
    /// The number of full copies, which have all these counts.
    pub(crate) holders: usize,
    /// The comparison of partial copies.
    pub(crate) partial: Option<Known>,
}

/// Sends its own letter through one milter, to enough readers for partial copies to hold it, and waits until all other running members
/// count it.
pub(crate) fn probe(members: &Members, from: usize, n: usize) {
    let address = members.milters[from].address().expect("it runs");
    let mut client = try_session(&address).expect("it runs");
    let mut mail = Mail::raw(&letter(n));
    mail.recipients = (0..BOUND).map(|n| format!("reader{n}@example.net")).collect();
    client.message(&mail);
    for (i, milter) in members.milters.iter().enumerate() {
        if i != from && milter.address().is_some() {
            wait_until("a probe", || match milter.counts([n].into_iter())?[..] {
                [BOUND] => Ok(()),
                ref other => Err(format!("{}: counted {other:?}", milter.name)),
            });
        }
    }
}
