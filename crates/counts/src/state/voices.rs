// SPDX-License-Identifier: GPL-3.0-or-later
//! The user reports of this mail server, by reporter and signature: each reporter counts once for a signature, and withdraws exactly its
//! own reports.
//!
//! The reports of one reporter on one signature are a row, each with the window in which it was counted. A report expires with that window,
//! as the count does: the sum of the remaining reports is the reporter's part of the counts.

use crate::history::window::{Calendar, Window};
use crate::settings::Settings;
use crate::state::report::Addition;
use crate::state::room::{Room, Rows};
use crate::state::saying::{Nominated, Said, Saying, Side};
use crate::state::spool::Waiting;
use crate::state::words::{Own, Told, VoiceKey, Word, ends, own_of, units};
use bulkmark_types::{ReporterId, Signature, UNIT, revocation};
use std::collections::{BTreeSet, HashMap};

/// The most reports of a row: a reporter who changes their mind repeatedly is ignored until one of the reports expires.
const MAX_WORDS: usize = 8;

/// A report that is about to be counted.
pub enum Wanted {
    /// A new report, with the most units that it may weigh.
    New(Side, u32),
    /// A withdrawal of so many units.
    Back(u32),
}

/// All rows.
pub struct Voices {
    calendar: Calendar,
    rows: HashMap<VoiceKey, Vec<Word>>,
    /// The sums of all local reports, by tagged signature.
    own: HashMap<Signature, Own>,
    room: Room,
    /// Rows of traps that were evicted since the last [`take_evicted`](Self::take_evicted).
    evicted: Vec<VoiceKey>,
}

impl Voices {
    /// Without any reports.
    pub fn new(settings: &Settings) -> Self {
        let (rows, own) = (HashMap::new(), HashMap::new());
        Self { calendar: Calendar::new(settings), rows, own, room: Room::default(), evicted: Vec::new() }
    }

    /// Restores a row that was read from disk.
    pub fn restore(&mut self, key: VoiceKey, words: Vec<Word>, is_trap: bool) {
        self.add_row(key.1, &words);
        self.room.take(key, is_trap, words.first().map_or(0, |word| word.window));
        self.rows.insert(key, words);
    }

    /// Whether the rows of this reporter are those of a trap.
    pub fn is_trap(&self, reporter: ReporterId) -> bool {
        self.room.is_trap(reporter)
    }

    /// The number of rows, by kind of reporter.
    pub const fn taken(&self) -> Rows {
        self.room.rows()
    }

    /// The reports of one reporter on one signature, oldest first.
    pub fn row(&self, key: &VoiceKey) -> Option<&[Word]> {
        self.rows.get(key).map(Vec::as_slice)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The sum of the local reports of a tagged signature.
    pub fn own(&self, signature: Signature) -> Own {
        self.own.get(&signature).copied().unwrap_or_default()
    }

    /// Applies a submission. Returns its tally, and the tagged signatures to raise in the counts, each with the number of times and whether
    /// it is shared with other servers. Adds the keys of changed rows to `changed`.
    pub fn say(
        &mut self,
        saying: &Saying,
        changed: &mut BTreeSet<VoiceKey>,
        mut weigh: impl FnMut(usize, Wanted) -> u32,
    ) -> (Said, Vec<Addition>) {
        let (mut said, mut raise) = (Said::default(), Vec::new());
        for (at, &Nominated { nomination, shared, .. }) in saying.nominations.iter().enumerate() {
            let key = (saying.reporter, nomination);
            if self.make_void(&key, saying) {
                weigh(at, Wanted::Back(0));
                changed.insert(key);
                said.taken_back += 1;
                continue;
            }
            let next = self.next_word(&key, saying, |wanted| weigh(at, wanted));
            let outcome = match next {
                Ok((units, is_back)) => {
                    // A report that was not shared must not be withdrawn at other servers, nor the other way round.
                    let told = self.row(&key).and_then(<[Word]>::last).filter(|_| is_back);
                    let shared = told.map_or(shared, |word| word.told != Told::Here);
                    said.units += u32::from(units.unsigned_abs());
                    let signature = if units > 0 { nomination } else { revocation(nomination) };
                    raise.push(Addition { signature, times: units.unsigned_abs().into(), shared });
                    let window = self.calendar.of_user_reports(saying.now).start;
                    if !self.rows.contains_key(&key) {
                        self.room.take(key, saying.trap.is_some(), window);
                    }
                    // Most rows have one report.
                    let row = self.rows.entry(key).or_insert_with(|| Vec::with_capacity(1));
                    let is_first = !row.iter().any(|word| word.units.signum() == units.signum());
                    row.push(Word { window, units, told: if shared { Told::All } else { Told::Here } });
                    self.add_own(nomination, units, is_first);
                    changed.insert(key);
                    self.make_place(changed);
                    if is_back { &mut said.taken_back } else { &mut said.counted }
                }
                Err(NoWord::Known) => &mut said.known,
                Err(NoWord::TooOften) => &mut said.too_often,
                Err(NoWord::NoRoom) => &mut said.no_room,
                Err(NoWord::Weightless) => &mut said.weightless,
                Err(NoWord::NotNew) => &mut said.left_out,
            };
            *outcome += 1;
        }
        (said, raise)
    }

    /// Returns the units of the reporter's next report (negative against spam), and whether it is a withdrawal.
    fn next_word(
        &self,
        key: &VoiceKey,
        saying: &Saying,
        weigh: impl FnOnce(Wanted) -> u32,
    ) -> Result<(i8, bool), NoWord> {
        let words = self.row(key).unwrap_or_default();
        let live = || words.iter().filter(|word| !self.is_over(word, saying.now));
        let stands = self.stands(words, saying.now);
        let wanted = wanted(saying, stands);
        if wanted == 0 || stands.signum() == wanted {
            return Err(NoWord::Known);
        }
        if stands == 0 && saying.nothing_new {
            return Err(NoWord::NotNew);
        }
        // A withdrawal is always possible.
        if words.len() >= MAX_WORDS && !saying.only_back {
            return Err(NoWord::TooOften);
        }
        if words.is_empty() && !self.room.admits(key.0, saying.trap.is_some()) {
            return Err(NoWord::NoRoom);
        }
        // The oldest reports expire first, with their windows, so what remains later is an end of the row: no end may weigh more than one
        // report either.
        let window = self.calendar.of_user_reports(saying.now).start;
        let most = ends(live, window).map(|end| wanted * end).max().unwrap_or(0).max(0);
        let most = u32::try_from(i32::try_from(UNIT).unwrap_or(0) - most).unwrap_or(0);
        if most == 0 {
            return Err(NoWord::Known);
        }
        let side = if wanted > 0 { Side::Spam } else { Side::NotSpam };
        let units = match stands.unsigned_abs() {
            0 => weigh(Wanted::New(side, most)),
            stands => weigh(Wanted::Back(stands.min(most))),
        };
        match i8::try_from(units).unwrap_or(0) {
            0 => Err(NoWord::Weightless),
            units => Ok((if wanted > 0 { units } else { -units }, stands != 0)),
        }
    }

    fn is_over(&self, word: &Word, now: u64) -> bool {
        self.calendar.is_over(Window { start: word.window, ..self.calendar.of_user_reports(now) }, now)
    }

    fn add_own(&mut self, nomination: Signature, units: i8, is_first: bool) {
        let signature = if units > 0 { nomination } else { revocation(nomination) };
        let own = self.own.entry(signature).or_default();
        own.units = own.units.saturating_add(u32::from(units.unsigned_abs()));
        own.reporters += u32::from(is_first);
    }

    fn add_row(&mut self, nomination: Signature, words: &[Word]) {
        for (signature, Own { units, reporters }) in own_of(nomination, words) {
            let own = self.own.entry(signature).or_default();
            own.units = own.units.saturating_add(units);
            own.reporters += reporters;
        }
    }

    fn take_own(&mut self, nomination: Signature, words: &[Word]) {
        for (signature, Own { units, reporters }) in own_of(nomination, words) {
            let Some(own) = self.own.get_mut(&signature) else { continue };
            own.units = own.units.saturating_sub(units);
            own.reporters = own.reporters.saturating_sub(reporters);
            if *own == Own::default() {
                self.own.remove(&signature);
            }
        }
    }

    fn count_own(&mut self) {
        self.own.clear();
        let rows = std::mem::take(&mut self.rows);
        rows.iter().for_each(|((_, nomination), words)| self.add_row(*nomination, words));
        self.rows = rows;
    }

    /// The nominations for which this reporter has reports in effect.
    pub fn of_reporter(&self, reporter: ReporterId, now: u64) -> Vec<Signature> {
        let rows = self.rows.iter().filter(|((who, _), _)| *who == reporter);
        let stand = rows.filter(|(_, words)| self.stands(words, now) != 0);
        stand.map(|((_, nomination), _)| *nomination).collect()
    }

    /// The net units of these reports that are in effect: above zero for spam, below for not spam.
    pub fn stands(&self, words: &[Word], now: u64) -> i32 {
        let live = words.iter().filter(|word| !self.is_over(word, now) && word.told != Told::Void);
        live.map(|word| i32::from(word.units)).sum()
    }

    /// Withdraws reports of which it is unknown whether they were counted, if no others are in effect: nothing is counted for this.
    fn make_void(&mut self, key: &VoiceKey, saying: &Saying) -> bool {
        let Some(words) = self.row(key) else { return false };
        let stands = self.stands(words, saying.now);
        let wanted = wanted(saying, stands);
        if wanted == 0 || stands.signum() != -wanted {
            return false;
        }
        let known: i32 = words
            .iter()
            .filter(|word| word.told.is_known() && !self.is_over(word, saying.now))
            .map(units)
            .sum();
        for word in self.rows.get_mut(key).into_iter().flatten().filter(|word| word.told == Told::Unknown) {
            word.told = Told::Void;
        }
        // Reports that are known to count are withdrawn by an opposite report.
        known.signum() != -wanted
    }

    /// Evicts the oldest rows of traps that have too many.
    fn make_place(&mut self, changed: &mut BTreeSet<VoiceKey>) {
        while let Some(key) = self.room.too_many() {
            if let Some(words) = self.rows.remove(&key) {
                self.take_own(key.1, &words);
                self.room.leave(key.0);
                changed.insert(key);
                self.evicted.push(key);
            }
        }
    }

    /// Takes the rows of traps that were evicted since the last call.
    pub fn take_evicted(&mut self) -> Vec<VoiceKey> {
        std::mem::take(&mut self.evicted)
    }

    /// Marks these reports as unknown: no server will ever answer whether they were counted. Returns the changed rows.
    pub fn doubt(&mut self, reports: &[Waiting]) -> BTreeSet<VoiceKey> {
        self.change(reports, |word| word.told = Told::Unknown)
    }

    /// Moves these reports into the window of `now`, in which a server counted them and with which they expire. Returns the changed rows.
    pub fn counted(&mut self, reports: &[Waiting], now: u64) -> BTreeSet<VoiceKey> {
        let window = self.calendar.of_user_reports(now).start;
        let late: Vec<Waiting> = (reports.iter().copied())
            .filter(|report| self.calendar.of_user_reports(report.at).start < window)
            .collect();
        self.change(&late, |word| word.window = window)
    }

    /// Changes one report like each of these. If several reporters have such a report, any of them is correct for the counts.
    fn change(&mut self, reports: &[Waiting], change: impl Fn(&mut Word)) -> BTreeSet<VoiceKey> {
        let mut wanted: HashMap<(Signature, u64, u32), usize> = HashMap::new();
        for report in reports.iter().filter(|report| report.signature.is_user_report()) {
            let window = self.calendar.of_user_reports(report.at).start;
            *wanted.entry((report.signature, window, report.times)).or_default() += 1;
        }
        if wanted.is_empty() {
            return BTreeSet::new();
        }
        let place = |nomination: Signature, word: &Word| {
            let signature = if word.units > 0 { nomination } else { revocation(nomination) };
            (signature, word.window, u32::from(word.units.unsigned_abs()))
        };
        let is_like =
            |key: &VoiceKey, word: &Word| word.told == Told::All && wanted.contains_key(&place(key.1, word));
        let rows = self.rows.iter().filter(|(key, words)| words.iter().any(|word| is_like(key, word)));
        let keys: BTreeSet<VoiceKey> = rows.map(|(key, _)| *key).collect();
        let mut changed = BTreeSet::new();
        for key in keys {
            for word in self.rows.get_mut(&key).into_iter().flatten().filter(|word| word.told == Told::All) {
                if let Some(left @ 1..) = wanted.get_mut(&place(key.1, word)) {
                    *left -= 1;
                    change(word);
                    changed.insert(key);
                }
            }
        }
        self.count_own();
        changed
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = (&VoiceKey, &[Word])> {
        self.rows.iter().map(|(key, words)| (key, &**words))
    }

    /// Whether there are reports for or against this nomination.
    pub fn is_spoken_of(&self, nomination: Signature) -> bool {
        [nomination, revocation(nomination)].iter().any(|signature| self.own.contains_key(signature))
    }

    /// Removes expired reports. Returns the changed rows.
    pub fn take_expired(&mut self, now: u64) -> BTreeSet<VoiceKey> {
        let mut changed = BTreeSet::new();
        let over: Vec<VoiceKey> = self
            .rows
            .iter()
            .filter(|(_, words)| words.iter().any(|word| self.is_over(word, now)))
            .map(|(key, _)| *key)
            .collect();
        for key in over {
            let Some(mut words) = self.rows.remove(&key) else { continue };
            words.retain(|word| !self.is_over(word, now));
            if words.is_empty() {
                self.room.leave(key.0);
            } else {
                self.rows.insert(key, words);
            }
            changed.insert(key);
        }
        if !changed.is_empty() {
            self.count_own();
            let rows = &self.rows;
            self.room.sweep(|key| rows.contains_key(key));
        }
        changed
    }
}

/// The sign of the next report, given the net units in effect: 1 for spam, -1 for not spam, 0 for none.
fn wanted(saying: &Saying, stands: i32) -> i32 {
    match saying.side {
        _ if saying.only_back => -stands.signum(),
        Side::Spam => 1,
        Side::NotSpam => -1,
    }
}

/// The reason why a report is not counted.
enum NoWord {
    Known,
    TooOften,
    NoRoom,
    Weightless,
    NotNew,
}
