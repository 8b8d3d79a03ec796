// SPDX-License-Identifier: GPL-3.0-or-later
//! Submitting user reports, judging their reporters later, and withdrawing all reports of one reporter.

use crate::state::cases::Case;
use crate::state::changes::Changes;
use crate::state::counts::Counts;
use crate::state::report::Addition;
use crate::state::roles::{State, WrongRole};
use crate::state::saying::{Nominated, Said, Saying};
use crate::state::spool::Waiting;
use crate::state::trusted::{Known, taken_back, weigh_new};
use crate::state::voices::Wanted;
use crate::state::words::VoiceKey;
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
pub struct TakenBack {
    /// Signatures whose report was withdrawn.
    pub signatures: usize,
    /// Signatures whose report could not be withdrawn.
    pub left: usize,
}

/// The result of a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Signatures whose report was withdrawn.
    pub taken_back: usize,
    /// Signatures whose report is still in effect.
    pub left: usize,
    /// The nomination to continue with, if there are more.
    pub next: Option<Signature>,
}

impl State {
    pub(crate) fn known(&self, of: Signature, nomination: Signature, thousandths: u32, now: u64) -> Known {
        let own = |signature| self.counts().voices.own(signature).units;
        let weight = |signature| i64::from(weigh(self.count(signature, now), own(signature), thousandths));
        Known { seen: self.count(of, now), net: weight(nomination) - weight(revocation(nomination)) }
    }

    /// Counts a user's reports on a message.
    ///
    /// # Errors
    /// A server has no users.
    pub fn say(&mut self, saying: &Saying) -> Result<Said, WrongRole> {
        self.judge(saying.now);
        let thousandths = saying.weighing.thousandths;
        let known: Vec<Known> = (saying.nominations.iter())
            .map(|said| self.known(said.of, said.nomination, thousandths, saying.now))
            .collect();
        let (counts, _) = self.of_milter()?;
        let (said, raise) = counts.hear(saying, &known);
        raise.into_iter().for_each(|addition| self.add(addition, saying.now));
        Ok(said)
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
        let mut rows = counts.voices.of_reporter(reporter, now);
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
        let saying = Saying { reporter, nominations, weighing, only_back: true, now, ..Saying::default() };
        let Said { taken_back, .. } = self.say(&saying)?;
        let Counts { trust, changes, .. } = self.counts_mut();
        if next.is_none() && trust.standings.forget(&reporter, &trust.weighing.settings, now) {
            changes.standings.insert(reporter);
        }
        Ok(Forgotten { taken_back, left: tried - taken_back, next })
    }
}

impl Counts {
    /// Records a submission, with the facts known about each signature. Returns its tally, and the tagged signatures to raise, each with
    /// the number of times and whether it is shared.
    pub fn hear(&mut self, saying: &Saying, known: &[Known]) -> (Said, Vec<Addition>) {
        self.clock = saying.now;
        let Self { voices, cases, trust, changes, .. } = self;
        trust.weighing = saying.weighing;
        let Changes { voices: changed, cases: changed_cases, .. } = changes;
        // A near-replica has some of its signatures in common with an earlier report.
        let known_of = saying.nominations.iter().find_map(|said| cases.get(said.nomination));
        let mailing = known_of
            .map(|case| case.mailing)
            .or_else(|| saying.nominations.first().map(|said| said.nomination));
        let parts = u8::try_from(saying.nominations.len()).unwrap_or(u8::MAX);
        let heard = voices.say(saying, changed, |at, wanted| {
            let (said, known) = (&saying.nominations[at], known.get(at).copied().unwrap_or_default());
            let begin = || Case {
                of: said.of,
                mailing: mailing.unwrap_or(said.nomination),
                first: saying.now,
                last: saying.now,
                parts,
                judged: false,
                subject: String::new(),
                voices: Vec::new(),
            };
            let of_before = cases.get(said.nomination).map_or(&[][..], |case| &case.voices);
            let is_back = matches!(wanted, Wanted::Back(_));
            let (units, voice) = match wanted {
                Wanted::Back(units) => (units, taken_back(known, of_before, saying, units)),
                Wanted::New(side, most) => weigh_new(trust, known, of_before, saying, (side, most)),
            };
            if units > 0 || is_back {
                let case = cases.entry(said.nomination, begin);
                case.last = saying.now;
                if Some(said.nomination) == mailing {
                    case.name(&saying.subject);
                }
                if let Some(voice) = voice {
                    case.voices.retain(|known| known.who != voice.who);
                    if case.voices.len() < FEW {
                        case.voices.reserve_exact(1);
                    }
                    case.voices.push(voice);
                }
                changed_cases.insert(said.nomination);
            }
            units
        });
        let evicted = voices.take_evicted();
        self.leave(evicted);
        heard
    }

    /// Removes the votes of rows that are gone.
    fn leave(&mut self, rows: impl IntoIterator<Item = VoiceKey>) {
        for (who, nomination) in rows {
            let is_last = !self.voices.is_spoken_of(nomination);
            self.cases.leave(who, nomination, is_last);
            self.changes.cases.insert(nomination);
        }
    }

    /// Marks these reports as unknown: they were sent, and no server will ever answer.
    pub fn doubt(&mut self, reports: &[Waiting]) {
        self.changes.voices.extend(self.voices.doubt(reports));
    }

    /// Records that a server has now counted these reports.
    pub fn counted(&mut self, reports: &[Waiting], now: u64) {
        self.changes.voices.extend(self.voices.counted(reports, now));
    }

    fn judge(&mut self, nomination: Signature, known: Known, now: u64) {
        let Self { cases, trust, changes, .. } = self;
        let Some(case) = cases.get(nomination) else { return };
        let (_, judgements) = known.case(&case.voices).judge();
        let changed = trust.standings.apply(&judgements, case.parts.into(), &trust.weighing.settings, now);
        changes.standings.extend(changed.into_iter().map(|(who, _)| who));
        cases.close(nomination);
        changes.cases.insert(nomination);
    }

    /// Removes signatures without any reports in effect.
    pub fn take_expired_words(&mut self, now: u64) {
        let gone = self.voices.take_expired(now);
        let left: Vec<VoiceKey> = gone.iter().filter(|key| self.voices.row(key).is_none()).copied().collect();
        self.leave(left);
        self.changes.voices.extend(gone);
    }
}
