// SPDX-License-Identifier: GPL-3.0-or-later
//! Days of mail: copies, user reports, and the verdict for each copy.

use super::mailing::{Mailing, id};
use super::people::{Lie, opinion, opposite, trouble};
use crate::random::below;
use bulkmark_trust::{JUDGED_AFTER, Settings, Side, Standings};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// A midnight, when it begins.
const BEGIN: u64 = 20_000 * DAY;

/// Mailings that begin on one day, as many of spam as of ham.
const MAILINGS: u32 = 30;

/// The number of size classes of mailings.
const KINDS: u32 = 10;

/// Copies of a mailing, by a fair draw.
const COPIES: [u32; KINDS as usize] = [2, 3, 5, 10, 20, 30, 50, 100, 200, 500];

/// The hours in which all copies of a mailing arrive: spam trickles.
const SPAM_HOURS: u32 = 24;
const HAM_HOURS: u32 = 3;

/// The hours within which people read their mail.
const READ_HOURS: u32 = 8;

/// How many times accounts of one owner send each own mailing to themselves again.
const OWN_COPIES: u32 = 10;

/// A site, its people, and the length of the simulation.
#[derive(Debug, Clone, Copy)]
pub struct World {
    /// People who have accounts from the beginning.
    pub people: u32,
    /// The percentage of liars.
    pub liars: u32,
    /// The behaviour of liars.
    pub lie: Lie,
    /// Whether liars report every message that they get, while others report fewer.
    pub eager: bool,
    /// Honest people for whom the administrator vouches on the first day.
    pub vouched: u32,
    /// The number in a hundred spam mailings that reach a trap of this site.
    pub trapped: u32,
    /// Accounts that an attacker opens on a day, and their behaviour.
    pub accounts: Option<Accounts>,
    /// Days.
    pub days: u32,
    /// Whether standings change; if not, all weights are equal at all times.
    pub trust: bool,
    /// The weight of newcomers.
    pub settings: Settings,
    /// The seed of the random numbers.
    pub seed: u64,
}

/// Accounts of one owner, which receive each mailing and report it at once.
#[derive(Debug, Clone, Copy)]
pub struct Accounts {
    /// The number of accounts.
    pub number: u32,
    /// The day on which they are opened.
    pub day: u32,
    /// Their reports of others' mail.
    pub lie: Lie,
    /// Mailings a day that they send only to themselves, again and again, and report as spam.
    pub own: u32,
}

/// The verdicts of one day, in copies, and the reporters' weights at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Day {
    /// Copies of ham, and those marked as spam.
    pub ham: [u64; 2],
    /// Copies of spam, and those not marked as spam.
    pub spam: [u64; 2],
    /// The part of the latter that came when the mailing had been marked as spam before.
    pub taken_back: u64,
    /// The average weight of honest people, 0 to 1.
    pub honest: f64,
    /// The average weight of liars, accounts of one owner included.
    pub liars: f64,
}

impl Day {
    /// Ham marked as spam, in percent.
    #[must_use]
    pub fn false_spam(&self) -> f64 {
        percent(self.ham[1], self.ham[0])
    }

    /// Spam not marked as spam, in percent.
    #[must_use]
    pub fn missed(&self) -> f64 {
        percent(self.spam[1], self.spam[0])
    }

    /// Copies with a wrong verdict.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.ham[1] + self.spam[1]
    }

    /// Spam no longer marked as spam, in percent.
    #[must_use]
    pub fn taken_back(&self) -> f64 {
        percent(self.taken_back, self.spam[0])
    }

    /// All days as one; the weights are those of the last.
    #[must_use]
    pub fn sum(days: &[Self]) -> Self {
        let sum = days.iter().fold(Self::default(), |sum, day| sum.and(day));
        let last = days.last().copied().unwrap_or_default();
        Self { honest: last.honest, liars: last.liars, ..sum }
    }

    /// Adds both; weights are added, too.
    #[must_use]
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            ham: [self.ham[0] + other.ham[0], self.ham[1] + other.ham[1]],
            spam: [self.spam[0] + other.spam[0], self.spam[1] + other.spam[1]],
            taken_back: self.taken_back + other.taken_back,
            honest: self.honest + other.honest,
            liars: self.liars + other.liars,
        }
    }
}

fn percent(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}

/// The reporters' weights at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Weights {
    /// The average weight of honest people, 0 to 1.
    pub honest: f64,
    /// The average weight of liars, accounts of one owner included.
    pub liars: f64,
    /// The number of reporters with a trust of a half or more.
    pub established: u32,
}

/// An event at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives { mailing: usize, person: u32 },
    Reads { mailing: usize, person: u32, in_junk: bool },
    Speaks { mailing: usize, account: u32 },
    Trapped { mailing: usize },
    Repeated { mailing: usize },
    Weighed,
    Judged { mailing: usize },
}

struct Run<'a> {
    world: &'a World,
    random: Xoshiro256PlusPlus,
    /// By time, then in the order in which they were planned.
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    planned: usize,
    mailings: Vec<Mailing>,
    /// The number in a hundred messages that each person reports.
    trouble: Vec<u32>,
    standings: Standings,
    days: Vec<Day>,
    weights: Vec<Weights>,
}

impl World {
    /// Runs the days.
    #[must_use]
    pub fn run(&self) -> Vec<Day> {
        self.watch(&[]).0
    }

    /// The same, with the weights after so many hours.
    #[must_use]
    pub fn watch(&self, hours: &[u64]) -> (Vec<Day>, Vec<Weights>) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let trouble = (0..self.people).map(|_| trouble(&mut random)).collect();
        let mut run = Run {
            world: self,
            random,
            events: BinaryHeap::new(),
            planned: 0,
            mailings: Vec::new(),
            trouble,
            standings: Standings::default(),
            days: vec![Day::default(); self.days as usize],
            weights: Vec::new(),
        };
        hours.iter().for_each(|hour| run.plan(BEGIN + hour * HOUR, Event::Weighed));
        let honest = (0..self.people).filter(|&person| !self.lies(person));
        for person in honest.take(self.vouched as usize) {
            run.standings.vouch(id(person), &self.settings, BEGIN);
        }
        (0..self.days).for_each(|day| run.day(day));
        (run.days, run.weights)
    }

    /// Liars are spread evenly.
    const fn lies(&self, person: u32) -> bool {
        person >= self.people || person * self.liars % 100 < self.liars
    }
}

impl Run<'_> {
    fn day(&mut self, day: u32) {
        let begin = BEGIN + u64::from(day) * DAY;
        for number in 0..2 * MAILINGS {
            let truth = if number % 2 == 0 { Side::Spam } else { Side::NotSpam };
            let time = begin + self.within(24);
            self.begin(truth, time, day);
        }
        if let Some(accounts) = self.world.accounts.filter(|accounts| day >= accounts.day) {
            (0..accounts.own).for_each(|_| self.begin_own(accounts.number, begin));
        }
        while self.events.peek().is_some_and(|Reverse((time, ..))| *time < begin + DAY) {
            let Some(Reverse((time, _, event))) = self.events.pop() else { break };
            self.happens(event, time, day);
        }
        self.weigh(day, begin + DAY);
    }

    /// A random time within so many hours.
    fn within(&mut self, hours: u32) -> u64 {
        below(&mut self.random, hours * 3_600).into()
    }

    fn plan(&mut self, time: u64, event: Event) {
        self.events.push(Reverse((time, self.planned, event)));
        self.planned += 1;
    }

    fn begin(&mut self, truth: Side, time: u64, day: u32) {
        let mailing = self.mailings.len();
        self.mailings.push(Mailing::new(truth));
        let copies = COPIES[below(&mut self.random, KINDS) as usize].min(self.world.people);
        let hours = if truth == Side::Spam { SPAM_HOURS } else { HAM_HOURS };
        // A stride without a common factor with the number of people selects nobody twice.
        let (first, stride) = (below(&mut self.random, self.world.people), self.stride());
        for copy in 0..u64::from(copies) {
            let person = (u64::from(first) + copy * stride) % u64::from(self.world.people);
            let arrives = time + self.within(hours);
            let person = u32::try_from(person).unwrap_or(0);
            self.plan(arrives, Event::Arrives { mailing, person });
        }
        if truth == Side::Spam && below(&mut self.random, 100) < self.world.trapped {
            let caught = time + self.within(hours);
            self.plan(caught, Event::Trapped { mailing });
        }
        if let Some(accounts) = self.world.accounts.filter(|accounts| day >= accounts.day) {
            for account in 0..accounts.number {
                self.plan(time, Event::Speaks { mailing, account });
            }
        }
    }

    /// Accounts of one owner get their own mailing, report it as spam, and receive it [`OWN_COPIES`] times more.
    fn begin_own(&mut self, accounts: u32, day: u64) {
        let (mailing, time) = (self.mailings.len(), day + self.within(24));
        self.mailings.push(Mailing::own(accounts));
        (0..accounts).for_each(|account| self.plan(time, Event::Speaks { mailing, account }));
        (0..OWN_COPIES * accounts).for_each(|_| self.plan(time, Event::Repeated { mailing }));
    }

    fn stride(&mut self) -> u64 {
        loop {
            let (mut a, b) = (self.world.people, below(&mut self.random, self.world.people) + 1);
            let mut rest = b;
            while rest != 0 {
                (a, rest) = (rest, a % rest);
            }
            if a == 1 {
                return b.into();
            }
        }
    }

    fn happens(&mut self, event: Event, time: u64, day: u32) {
        match event {
            Event::Arrives { mailing, person } => self.arrives(mailing, person, time, day),
            Event::Reads { mailing, person, in_junk } => {
                if let Some(side) = self.reaction(mailing, person, in_junk, day) {
                    self.says(mailing, person, side, time);
                }
            }
            Event::Speaks { mailing, account } => {
                if let Some(accounts) = self.world.accounts {
                    let found = &self.mailings[mailing];
                    let said = if found.is_own {
                        Some(Side::Spam)
                    } else {
                        accounts.lie.says(found.truth, day, &mut self.random)
                    };
                    if let Some(side) = said {
                        self.says(mailing, self.world.people + account, side, time);
                    }
                }
            }
            Event::Trapped { mailing } => {
                let first = self.mailings[mailing].trapped(&self.world.settings);
                self.spoken_of(mailing, first, time);
            }
            Event::Repeated { mailing } => self.mailings[mailing].seen += 1,
            Event::Weighed => {
                let weights = self.weights(day, time);
                self.weights.push(weights);
            }
            Event::Judged { mailing } => {
                let judgements = self.mailings[mailing].judge();
                self.standings.apply(&judgements, 1, &self.world.settings, time);
            }
        }
    }

    /// The verdict counts when a copy arrives.
    fn arrives(&mut self, mailing: usize, person: u32, time: u64, day: u32) {
        let found = &mut self.mailings[mailing];
        let in_junk = found.is_spam(&self.world.settings);
        found.seen += 1;
        let verdicts = &mut self.days[day as usize];
        match found.truth {
            Side::NotSpam => {
                verdicts.ham[0] += 1;
                verdicts.ham[1] += u64::from(in_junk);
            }
            Side::Spam => {
                verdicts.spam[0] += 1;
                verdicts.spam[1] += u64::from(!in_junk);
                verdicts.taken_back += u64::from(!in_junk && found.was_spam());
            }
        }
        let read = time + self.within(READ_HOURS);
        self.plan(read, Event::Reads { mailing, person, in_junk });
    }

    /// A reader's report of a message: honest people sometimes move messages out of the wrong folder; liars lie.
    fn reaction(&mut self, mailing: usize, person: u32, in_junk: bool, day: u32) -> Option<Side> {
        let (truth, lies) = (self.mailings[mailing].truth, self.world.lies(person));
        let trouble = if lies && self.world.eager { 100 } else { self.trouble[person as usize] };
        if below(&mut self.random, 100) >= trouble {
            return None;
        }
        if lies {
            return self.world.lie.says(truth, day, &mut self.random);
        }
        let folder = if in_junk { Side::Spam } else { Side::NotSpam };
        let thinks = opinion(truth, &mut self.random);
        (thinks == opposite(folder)).then_some(thinks)
    }

    fn says(&mut self, mailing: usize, person: u32, side: Side, time: u64) {
        let standing = self.standings.of(&id(person));
        let settings = (&self.world.settings, self.standings.established());
        let first = self.mailings[mailing].says(person, side, &standing, settings, time);
        self.spoken_of(mailing, first, time);
    }

    fn spoken_of(&mut self, mailing: usize, first: bool, time: u64) {
        if first && self.world.trust {
            self.plan(time + JUDGED_AFTER, Event::Judged { mailing });
        }
    }

    /// The reporters' weights at the end of a day.
    fn weigh(&mut self, day: u32, now: u64) {
        let Weights { honest, liars, .. } = self.weights(day, now);
        (self.days[day as usize].honest, self.days[day as usize].liars) = (honest, liars);
    }

    fn weights(&mut self, day: u32, now: u64) -> Weights {
        let settings = &self.world.settings;
        let (mut units, mut number) = ([0u32; 2], [0u32; 2]);
        let opened = |accounts: Accounts| if day >= accounts.day { accounts.number } else { 0 };
        let people = self.world.people + self.world.accounts.map_or(0, opened);
        self.standings.sweep(settings, now);
        for person in 0..people {
            let standing = self.standings.of(&id(person));
            let of = usize::from(self.world.lies(person));
            units[of] += u32::from(standing.units(settings, now));
            number[of] += 1;
        }
        let mean = |of: usize| f64::from(units[of]) / f64::from(8 * number[of].max(1));
        Weights { honest: mean(0), liars: mean(1), established: self.standings.established() }
    }
}
