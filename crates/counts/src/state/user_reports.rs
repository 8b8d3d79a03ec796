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
use crate::state::spool::Waiting;
use crate::state::submission::{Nominated, Side, Submission, Tally};
use crate::state::user_report::{Counted, ReportKey, ReportSum, UserReport, end_sums, own_of, units};
use bulkmark_types::{ReporterId, Signature, UNIT, revocation};
use std::collections::{BTreeSet, HashMap};

/// The most reports of a row: a reporter who changes their mind repeatedly is ignored until one of the reports expires.
const MAX_REPORTS: usize = 8;

/// A report that is about to be counted.
pub enum Proposed {
    /// A new report, with the most units that it may weigh.
    New(Side, u32),
    /// A withdrawal of so many units.
    Withdrawal(u32),
}

/// All rows.
pub struct UserReports {
    calendar: Calendar,
    rows: HashMap<ReportKey, Vec<UserReport>>,
    /// The sums of all local reports, by tagged signature.
    own: HashMap<Signature, ReportSum>,
    room: Room,
    /// Rows of traps that were evicted since the last [`take_evicted`](Self::take_evicted).
    evicted: Vec<ReportKey>,
}

impl UserReports {
    /// Without any reports.
    pub fn new(settings: &Settings) -> Self {
        let (rows, own) = (HashMap::new(), HashMap::new());
        Self { calendar: Calendar::new(settings), rows, own, room: Room::default(), evicted: Vec::new() }
    }

    /// Restores a row that was read from disk.
    pub fn restore(&mut self, key: ReportKey, reports: Vec<UserReport>, is_trap: bool) {
        self.add_row(key.1, &reports);
        self.room.take(key, is_trap, reports.first().map_or(0, |report| report.window));
        self.rows.insert(key, reports);
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
    pub fn row(&self, key: &ReportKey) -> Option<&[UserReport]> {
        self.rows.get(key).map(Vec::as_slice)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The sum of the local reports of a tagged signature.
    pub fn own(&self, signature: Signature) -> ReportSum {
        self.own.get(&signature).copied().unwrap_or_default()
    }

    /// Applies a submission. Returns its tally, and the tagged signatures to raise in the counts, each with the number of times and whether
    /// it is shared with other servers. Adds the keys of changed rows to `changed`.
    pub fn submit(
        &mut self,
        submission: &Submission,
        changed: &mut BTreeSet<ReportKey>,
        mut weigh: impl FnMut(usize, Proposed) -> u32,
    ) -> (Tally, Vec<Addition>) {
        let (mut tally, mut raise) = (Tally::default(), Vec::new());
        for (at, &Nominated { nomination, shared, .. }) in submission.nominations.iter().enumerate() {
            let key = (submission.reporter, nomination);
            if self.void_unknown(&key, submission) {
                weigh(at, Proposed::Withdrawal(0));
                changed.insert(key);
                tally.withdrawn += 1;
                continue;
            }
            let next = self.next_report(&key, submission, |proposed| weigh(at, proposed));
            let outcome = match next {
                Ok((units, is_withdrawal)) => {
                    // A report that was not shared must not be withdrawn at other servers, nor the other way round.
                    let before = self.row(&key).and_then(<[UserReport]>::last).filter(|_| is_withdrawal);
                    let shared = before.map_or(shared, |report| report.counted != Counted::Here);
                    tally.units += u32::from(units.unsigned_abs());
                    let signature = if units > 0 { nomination } else { revocation(nomination) };
                    raise.push(Addition { signature, times: units.unsigned_abs().into(), shared });
                    let window = self.calendar.of_user_reports(submission.now).start;
                    if !self.rows.contains_key(&key) {
                        self.room.take(key, submission.trap.is_some(), window);
                    }
                    // Most rows have one report.
                    let row = self.rows.entry(key).or_insert_with(|| Vec::with_capacity(1));
                    let is_first = !row.iter().any(|report| report.units.signum() == units.signum());
                    let counted = if shared { Counted::Everywhere } else { Counted::Here };
                    row.push(UserReport { window, units, counted });
                    self.add_own(nomination, units, is_first);
                    changed.insert(key);
                    self.evict(changed);
                    if is_withdrawal { &mut tally.withdrawn } else { &mut tally.counted }
                }
                Err(Skipped::Known) => &mut tally.known,
                Err(Skipped::TooOften) => &mut tally.too_often,
                Err(Skipped::NoRoom) => &mut tally.no_room,
                Err(Skipped::Weightless) => &mut tally.weightless,
                Err(Skipped::NotNew) => &mut tally.left_out,
            };
            *outcome += 1;
        }
        (tally, raise)
    }

    /// Returns the units of the reporter's next report (negative against spam), and whether it is a withdrawal.
    fn next_report(
        &self,
        key: &ReportKey,
        submission: &Submission,
        weigh: impl FnOnce(Proposed) -> u32,
    ) -> Result<(i8, bool), Skipped> {
        let reports = self.row(key).unwrap_or_default();
        let live = || reports.iter().filter(|report| !self.is_over(report, submission.now));
        let net = self.net_of(reports, submission.now);
        let sign = next_sign(submission, net);
        if sign == 0 || net.signum() == sign {
            return Err(Skipped::Known);
        }
        if net == 0 && submission.nothing_new {
            return Err(Skipped::NotNew);
        }
        // A withdrawal is always possible.
        if reports.len() >= MAX_REPORTS && !submission.only_withdraws {
            return Err(Skipped::TooOften);
        }
        if reports.is_empty() && !self.room.admits(key.0, submission.trap.is_some()) {
            return Err(Skipped::NoRoom);
        }
        // The oldest reports expire first, with their windows, so what remains later is an end of the row: no end may weigh more than one
        // report either.
        let window = self.calendar.of_user_reports(submission.now).start;
        let most = end_sums(live, window).map(|end| sign * end).max().unwrap_or(0).max(0);
        let most = u32::try_from(i32::try_from(UNIT).unwrap_or(0) - most).unwrap_or(0);
        if most == 0 {
            return Err(Skipped::Known);
        }
        let side = if sign > 0 { Side::Spam } else { Side::NotSpam };
        let units = match net.unsigned_abs() {
            0 => weigh(Proposed::New(side, most)),
            net => weigh(Proposed::Withdrawal(net.min(most))),
        };
        match i8::try_from(units).unwrap_or(0) {
            0 => Err(Skipped::Weightless),
            units => Ok((if sign > 0 { units } else { -units }, net != 0)),
        }
    }

    fn is_over(&self, report: &UserReport, now: u64) -> bool {
        self.calendar.is_over(Window { start: report.window, ..self.calendar.of_user_reports(now) }, now)
    }

    fn add_own(&mut self, nomination: Signature, units: i8, is_first: bool) {
        let signature = if units > 0 { nomination } else { revocation(nomination) };
        let own = self.own.entry(signature).or_default();
        own.units = own.units.saturating_add(u32::from(units.unsigned_abs()));
        own.reporters += u32::from(is_first);
    }

    fn add_row(&mut self, nomination: Signature, reports: &[UserReport]) {
        for (signature, ReportSum { units, reporters }) in own_of(nomination, reports) {
            let own = self.own.entry(signature).or_default();
            own.units = own.units.saturating_add(units);
            own.reporters += reporters;
        }
    }

    fn subtract_own(&mut self, nomination: Signature, reports: &[UserReport]) {
        for (signature, ReportSum { units, reporters }) in own_of(nomination, reports) {
            let Some(own) = self.own.get_mut(&signature) else { continue };
            own.units = own.units.saturating_sub(units);
            own.reporters = own.reporters.saturating_sub(reporters);
            if *own == ReportSum::default() {
                self.own.remove(&signature);
            }
        }
    }

    fn recount_own(&mut self) {
        self.own.clear();
        let rows = std::mem::take(&mut self.rows);
        rows.iter().for_each(|((_, nomination), reports)| self.add_row(*nomination, reports));
        self.rows = rows;
    }

    /// The nominations for which this reporter has reports in effect.
    pub fn of_reporter(&self, reporter: ReporterId, now: u64) -> Vec<Signature> {
        let rows = self.rows.iter().filter(|((of, _), _)| *of == reporter);
        let in_effect = rows.filter(|(_, reports)| self.net_of(reports, now) != 0);
        in_effect.map(|((_, nomination), _)| *nomination).collect()
    }

    /// The net units of these reports that are in effect: above zero for spam, below for not spam.
    pub fn net_of(&self, reports: &[UserReport], now: u64) -> i32 {
        let live =
            reports.iter().filter(|report| !self.is_over(report, now) && report.counted != Counted::Void);
        live.map(|report| i32::from(report.units)).sum()
    }

    /// Withdraws reports of which it is unknown whether they were counted, if no others are in effect: nothing is counted for this.
    fn void_unknown(&mut self, key: &ReportKey, submission: &Submission) -> bool {
        let Some(reports) = self.row(key) else { return false };
        let net = self.net_of(reports, submission.now);
        let sign = next_sign(submission, net);
        if sign == 0 || net.signum() != -sign {
            return false;
        }
        let known: i32 = reports
            .iter()
            .filter(|report| report.counted.is_known() && !self.is_over(report, submission.now))
            .map(units)
            .sum();
        for report in
            self.rows.get_mut(key).into_iter().flatten().filter(|report| report.counted == Counted::Unknown)
        {
            report.counted = Counted::Void;
        }
        // Reports that are known to count are withdrawn by an opposite report.
        known.signum() != -sign
    }

    /// Evicts the oldest rows of traps that have too many.
    fn evict(&mut self, changed: &mut BTreeSet<ReportKey>) {
        while let Some(key) = self.room.too_many() {
            if let Some(reports) = self.rows.remove(&key) {
                self.subtract_own(key.1, &reports);
                self.room.leave(key.0);
                changed.insert(key);
                self.evicted.push(key);
            }
        }
    }

    /// Takes the rows of traps that were evicted since the last call.
    pub fn take_evicted(&mut self) -> Vec<ReportKey> {
        std::mem::take(&mut self.evicted)
    }

    /// Marks these reports as unknown: no server will ever answer whether they were counted. Returns the changed rows.
    pub fn mark_unknown(&mut self, reports: &[Waiting]) -> BTreeSet<ReportKey> {
        self.change(reports, |report| report.counted = Counted::Unknown)
    }

    /// Moves these reports into the window of `now`, in which a server counted them and with which they expire. Returns the changed rows.
    pub fn mark_counted(&mut self, reports: &[Waiting], now: u64) -> BTreeSet<ReportKey> {
        let window = self.calendar.of_user_reports(now).start;
        let late: Vec<Waiting> = (reports.iter().copied())
            .filter(|report| self.calendar.of_user_reports(report.at).start < window)
            .collect();
        self.change(&late, |report| report.window = window)
    }

    /// Changes one report like each of these. If several reporters have such a report, any of them is correct for the counts.
    fn change(&mut self, reports: &[Waiting], change: impl Fn(&mut UserReport)) -> BTreeSet<ReportKey> {
        let mut wanted: HashMap<(Signature, u64, u32), usize> = HashMap::new();
        for report in reports.iter().filter(|report| report.signature.is_user_report()) {
            let window = self.calendar.of_user_reports(report.at).start;
            *wanted.entry((report.signature, window, report.times)).or_default() += 1;
        }
        if wanted.is_empty() {
            return BTreeSet::new();
        }
        let place = |nomination: Signature, report: &UserReport| {
            let signature = if report.units > 0 { nomination } else { revocation(nomination) };
            (signature, report.window, u32::from(report.units.unsigned_abs()))
        };
        let is_like = |key: &ReportKey, report: &UserReport| {
            report.counted == Counted::Everywhere && wanted.contains_key(&place(key.1, report))
        };
        let rows =
            self.rows.iter().filter(|(key, reports)| reports.iter().any(|report| is_like(key, report)));
        let keys: BTreeSet<ReportKey> = rows.map(|(key, _)| *key).collect();
        let mut changed = BTreeSet::new();
        for key in keys {
            for report in self
                .rows
                .get_mut(&key)
                .into_iter()
                .flatten()
                .filter(|report| report.counted == Counted::Everywhere)
            {
                if let Some(left @ 1..) = wanted.get_mut(&place(key.1, report)) {
                    *left -= 1;
                    change(report);
                    changed.insert(key);
                }
            }
        }
        self.recount_own();
        changed
    }

    /// All rows.
    pub fn iter(&self) -> impl Iterator<Item = (&ReportKey, &[UserReport])> {
        self.rows.iter().map(|(key, reports)| (key, &**reports))
    }

    /// Whether there are reports for or against this nomination.
    pub fn has_reports(&self, nomination: Signature) -> bool {
        [nomination, revocation(nomination)].iter().any(|signature| self.own.contains_key(signature))
    }

    /// Removes expired reports. Returns the changed rows.
    pub fn take_expired(&mut self, now: u64) -> BTreeSet<ReportKey> {
        let mut changed = BTreeSet::new();
        let over: Vec<ReportKey> = self
            .rows
            .iter()
            .filter(|(_, reports)| reports.iter().any(|report| self.is_over(report, now)))
            .map(|(key, _)| *key)
            .collect();
        for key in over {
            let Some(mut reports) = self.rows.remove(&key) else { continue };
            reports.retain(|report| !self.is_over(report, now));
            if reports.is_empty() {
                self.room.leave(key.0);
            } else {
                self.rows.insert(key, reports);
            }
            changed.insert(key);
        }
        if !changed.is_empty() {
            self.recount_own();
            let rows = &self.rows;
            self.room.sweep(|key| rows.contains_key(key));
        }
        changed
    }
}

/// The sign of the next report, given the net units in effect: 1 for spam, -1 for not spam, 0 for none.
fn next_sign(submission: &Submission, net: i32) -> i32 {
    match submission.side {
        _ if submission.only_withdraws => -net.signum(),
        Side::Spam => 1,
        Side::NotSpam => -1,
    }
}

/// The reason why a report is not counted.
enum Skipped {
    Known,
    TooOften,
    NoRoom,
    Weightless,
    NotNew,
}
