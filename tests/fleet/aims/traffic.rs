// SPDX-License-Identifier: GPL-3.0-or-later
//! Mail through all milters of a fleet, and the truth about it: how often each letter was counted for certain, and how often perhaps,
//! since whoever was to answer was killed before it did.

use super::members::{BOUND, Member, Members};
use super::partial::{self, Known};
use bulkmark_testing::letters::letter;
use bulkmark_testing::milter::{Mail, try_session};
use bulkmark_testing::random::Random;
use bulkmark_testing::wait_until;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::{Duration, Instant};

/// Different letters at most; so few that their counts are exact in filters for a million signatures.
pub(crate) const LETTERS: usize = 2000;

/// Messages for each letter at least, where these are fewer: so that some are seen by far more often than bulk is, and some hardly ever.
const COPIES: usize = 40;

/// SMTP sessions at a time at each milter, and messages in each of them.
const SESSIONS: u64 = 3;
const BURST: usize = 40;

/// How long a session waits where there is nothing to do yet.
const PAUSE: Duration = Duration::from_millis(2);

/// Messages that are sent, or were.
pub(crate) struct Traffic {
    /// How many there may be so far, and how many were begun.
    allowed: AtomicUsize,
    begun: AtomicUsize,
    is_over: AtomicBool,
    /// By letter: those that were answered with a count, and those of which nobody knows whether they were counted.
    certain: Vec<AtomicU32>,
    perhaps: Vec<AtomicU32>,
    /// Answers without a count.
    uncounted: AtomicU64,
    /// Microseconds that a message took at most, from its beginning to the answer: at milters that hold all, and at partial ones.
    slowest: [AtomicU64; 2],
}

/// How long a message took at most: at milters that hold all, and at those that hold bulk alone and may ask for the rest.
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
    /// For so many messages.
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

    /// So many messages in all, from now on.
    pub(crate) fn allow(&self, messages: usize) {
        self.allowed.store(messages, Ordering::Relaxed);
    }

    /// Allows so many more, up to `all`, and waits until half of them have begun: what happens then happens amid messages.
    pub(crate) fn begin_more(&self, more: usize, all: usize) {
        let begun = self.begun();
        let allowed = (self.allowed.load(Ordering::Relaxed).max(begun) + more).min(all);
        self.allow(allowed);
        let half = (begun + more / 2).min(allowed);
        while self.begun() < half {
            std::thread::yield_now();
        }
    }

    /// Allows so many more each second, until the end.
    pub(crate) fn pour(&self, messages: usize) {
        while !self.is_over.load(Ordering::Relaxed) {
            self.allowed.fetch_add(messages / 10, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// How many were begun.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::Relaxed)
    }

    /// No more are begun.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// After an end: more may begin.
    pub(crate) fn go_on(&self) {
        self.is_over.store(false, Ordering::Relaxed);
    }

    /// The times that a message took at most since this was asked last.
    pub(crate) fn take_slowest(&self) -> Slowest {
        let [full, partial] =
            self.slowest.each_ref().map(|slowest| Duration::from_micros(slowest.swap(0, Ordering::Relaxed)));
        Slowest { full, partial }
    }

    /// Begins to send by all milters, what is allowed, until the end.
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

    /// Takes one of those that are allowed.
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
            // Some come often, and many seldom.
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

    /// Compares what all count with the truth: what they are found to count, or what is wrong.
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

/// What came of it.
pub(crate) struct Found {
    /// Different letters.
    pub(crate) letters: usize,
    /// Messages that were answered with a count: each was counted once.
    pub(crate) certain: u64,
    /// Those that were not, and how many of these were counted.
    pub(crate) perhaps: u64,
    pub(crate) counted: u64,
    /// Of these, answers without a count.
    pub(crate) uncounted: u64,
    /// How many hold all counts, and these.
    pub(crate) holders: usize,
    /// What the others know of them.
    pub(crate) partial: Option<Known>,
}

/// Sends a letter of its own by one milter, to so many readers that partial ones are to know of it, too, and waits until all others that
/// run count it.
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
