// SPDX-License-Identifier: GPL-3.0-or-later
//! Submitting user reports, judging their reporters later, and withdrawing all reports of one reporter.

use crate::state::cases::Case;
use crate::state::changes::Changes;
use crate::state::counts::Counts;
use crate::state::report::Addition;
use crate::state::roles::{State, WrongRole};
use crate::state::spool::Waiting;
use crate::state::submission::{Nominated, Submission, Tally};
use crate::state::trust::{Facts, weigh_new, withdrawn};
use crate::state::user_report::ReportKey;
use crate::state::user_reports::Proposed;
use bulkmark_types::{ReporterId, Signature, revocation, weigh};
use serde::{Deserialize, Serialize};

/// The most signatures that are judged in one call; the rest follows in the next.
const AT_A_TIME: usize = 2000;

/// The most rows of one reporter that are withdrawn in one call.
const FORGOTTEN_AT_A_TIME: usize = 5000;

/// Most signatures have at most so many votes.
const FEW: usize = 4;

const DAY: u64 = 86_400;

/// The result of withdrawing all reports of a reporter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// Signatures whose report was withdrawn.
    pub signatures: usize,
    /// Signatures whose report could not be withdrawn.
    pub left: usize,
}

/// The result of a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Signatures whose report was withdrawn.
    pub withdrawn: usize,
    /// Signatures whose report is still in effect.
    pub left: usize,
    /// The nomination to continue with, if there are more.
    pub next: Option<Signature>,
}

impl State {
    pub(crate) fn known(&self, of: Signature, nomination: Signature, thousandths: u32, now: u64) -> Facts {
        let own = |signature| self.counts().user_reports.own(signature).units;
        // A batch without an answer may be in the merged counts too. Counted twice, a revocation would leave nothing for the next one to take
        // back. Own reports are known without it, so at most others' are too low until the answer.
        let unanswered = |signature| self.spool().map_or(0, |spool| spool.unanswered(signature));
        let count = |signature| self.count(signature, now).saturating_sub(unanswered(signature));
        let weight = |signature| {
            let own = own(signature);
            i64::from(weigh(count(signature).max(own), own, thousandths))
        };
        Facts { seen: self.count(of, now), net: weight(nomination) - weight(revocation(nomination)) }
    }

    /// Counts a user's reports on a message.
    ///
    /// # Errors
    /// A server has no users.
    pub fn submit(&mut self, submission: &Submission) -> Result<Tally, WrongRole> {
        self.judge(submission.now);
        let thousandths = submission.weighing.thousandths;
        let known: Vec<Facts> = (submission.nominations.iter())
            .map(|nominated| self.known(nominated.of, nominated.nomination, thousandths, submission.now))
            .collect();
        let (counts, _) = self.of_milter()?;
        let (tally, raise) = counts.submit(submission, &known);
        raise.into_iter().for_each(|addition| self.add(addition, submission.now));
        Ok(tally)
    }

    /// Judges the reporters of signatures whose time has come, and drops standings without evidence once a day.
    pub fn judge(&mut self, now: u64) {
        let thousandths = self.counts().trust.weighing.thousandths;
        for nomination in self.counts().cases.due(now, AT_A_TIME) {
            let Some(of) = self.counts().cases.get(nomination).map(|case| case.of) else { continue };
            let known = self.known(of, nomination, thousandths, now);
            self.counts_mut().judge(nomination, known, now);
        }
        let Counts { trust, changes, .. } = self.counts_mut();
        if trust.swept != now / DAY {
            trust.swept = now / DAY;
            let gone = trust.standings.sweep(&trust.weighing.settings, now);
            changes.standings.extend(gone);
        }
    }

    /// Vouches for a reporter, who is then fully trusted until others contradict it. Returns false if there is no place for more reporters.
    ///
    /// # Errors
    /// A server has no users.
    pub fn vouch(&mut self, reporter: ReporterId, now: u64) -> Result<bool, WrongRole> {
        let (counts, _) = self.of_milter()?;
        let Counts { trust, changes, .. } = counts;
        let has_place = trust.standings.vouch(reporter, &trust.weighing.settings, now);
        if has_place {
            changes.standings.insert(reporter);
        }
        Ok(has_place)
    }

    /// Withdraws all reports of a reporter, from the nomination `from` on. After the last part the reporter is a newcomer again.
    ///
    /// # Errors
    /// A server has no users.
    pub fn forget(
        &mut self,
        reporter: ReporterId,
        from: Option<Signature>,
        now: u64,
    ) -> Result<Forgotten, WrongRole> {
        let counts = self.counts();
        let mut rows = counts.user_reports.of_reporter(reporter, now);
        rows.retain(|nomination| from.is_none_or(|from| *nomination >= from));
        rows.sort_unstable();
        let nominated = |nomination: Signature| Nominated {
            of: counts.cases.get(nomination).map_or(nomination, |case| case.of),
            nomination,
            // A report that was not shared is not withdrawn at other servers.
            shared: false,
        };
        let nominations: Vec<_> = rows.iter().take(FORGOTTEN_AT_A_TIME).map(|&of| nominated(of)).collect();
        let next = rows.get(nominations.len()).copied();
        let (tried, weighing) = (nominations.len(), counts.trust.weighing);
        let submission = Submission {
            reporter,
            nominations,
            weighing,
            only_withdraws: true,
            now,
            ..Submission::default()
        };
        let Tally { withdrawn, .. } = self.submit(&submission)?;
        let Counts { trust, changes, .. } = self.counts_mut();
        if next.is_none() && trust.standings.forget(&reporter, &trust.weighing.settings, now) {
            changes.standings.insert(reporter);
        }
        Ok(Forgotten { withdrawn, left: tried - withdrawn, next })
    }
}

impl Counts {
    /// Records a submission, with the facts known about each signature. Returns its tally, and the tagged signatures to raise, each with
    /// the number of times and whether it is shared.
    pub fn submit(&mut self, submission: &Submission, known: &[Facts]) -> (Tally, Vec<Addition>) {
        self.clock = submission.now;
        let Self { user_reports, cases, trust, changes, .. } = self;
        trust.weighing = submission.weighing;
        let Changes { user_reports: changed, cases: changed_cases, .. } = changes;
        // A near-replica has some of its signatures in common with an earlier report.
        let known_of = submission.nominations.iter().find_map(|nominated| cases.get(nominated.nomination));
        let mailing = known_of
            .map(|case| case.mailing)
            .or_else(|| submission.nominations.first().map(|nominated| nominated.nomination));
        let parts = u8::try_from(submission.nominations.len()).unwrap_or(u8::MAX);
        let result = user_reports.submit(submission, changed, |at, proposed| {
            let (nominated, known) =
                (&submission.nominations[at], known.get(at).copied().unwrap_or_default());
            let begin = || Case {
                of: nominated.of,
                mailing: mailing.unwrap_or(nominated.nomination),
                first: submission.now,
                last: submission.now,
                parts,
                judged: false,
                subject: String::new(),
                votes: Vec::new(),
            };
            let of_before = cases.get(nominated.nomination).map_or(&[][..], |case| &case.votes);
            let is_withdrawal = matches!(proposed, Proposed::Withdrawal(_));
            let (units, vote) = match proposed {
                Proposed::Withdrawal(units) => (units, withdrawn(known, of_before, submission, units)),
                Proposed::New(side, most) => weigh_new(trust, known, of_before, submission, (side, most)),
            };
            if units > 0 || is_withdrawal {
                let case = cases.entry(nominated.nomination, begin);
                case.last = submission.now;
                if Some(nominated.nomination) == mailing {
                    case.name(&submission.subject);
                }
                if let Some(vote) = vote {
                    case.votes.retain(|known| known.reporter != vote.reporter);
                    if case.votes.len() < FEW {
                        case.votes.reserve_exact(1);
                    }
                    case.votes.push(vote);
                }
                changed_cases.insert(nominated.nomination);
            }
            units
        });
        let evicted = user_reports.take_evicted();
        self.leave(evicted);
        result
    }

    /// Removes the votes of rows that are gone.
    fn leave(&mut self, rows: impl IntoIterator<Item = ReportKey>) {
        for (reporter, nomination) in rows {
            let is_last = !self.user_reports.has_reports(nomination);
            self.cases.leave(reporter, nomination, is_last);
            self.changes.cases.insert(nomination);
        }
    }

    /// Marks these reports as unknown: they were sent, and no server will ever answer.
    pub fn mark_unknown(&mut self, reports: &[Waiting]) {
        self.changes.user_reports.extend(self.user_reports.mark_unknown(reports));
    }

    /// Records that a server has now counted these reports.
    pub fn mark_counted(&mut self, reports: &[Waiting], now: u64) {
        self.changes.user_reports.extend(self.user_reports.mark_counted(reports, now));
    }

    fn judge(&mut self, nomination: Signature, known: Facts, now: u64) {
        let Self { cases, trust, changes, .. } = self;
        let Some(case) = cases.get(nomination) else { return };
        let (_, judgements) = known.case(&case.votes).judge();
        let changed = trust.standings.apply(&judgements, case.parts.into(), &trust.weighing.settings, now);
        changes.standings.extend(changed.into_iter().map(|(reporter, _)| reporter));
        cases.close(nomination);
        changes.cases.insert(nomination);
    }

    /// Removes signatures without any reports in effect.
    pub fn take_expired_reports(&mut self, now: u64) {
        let gone = self.user_reports.take_expired(now);
        let left: Vec<ReportKey> =
            gone.iter().filter(|key| self.user_reports.row(key).is_none()).copied().collect();
        self.leave(left);
        self.changes.user_reports.extend(gone);
    }
}
