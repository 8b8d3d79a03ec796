// SPDX-License-Identifier: GPL-3.0-or-later
//! The effects of user reports that users and other servers rely on.

use super::counts::Counts;
use super::generations::Generations;
use super::limited::{Limited, Limits};
use super::local::Local;
use super::merged::MergedCounts;
use super::note_queue::NoteQueue;
use super::peer_check::PeerCheck;
use super::receipts::{Receipts, Reporter};
use super::report::Addition;
use super::retries::Retries;
use super::roles::{Site, State};
use super::server::Server;
use super::spool::Spool;
use super::submission::{Nominated, Side, Submission, Tally, Weighing};
use super::submit::Forgotten;
use super::user_report::{ReportSum, UserReport};
use super::user_reports::UserReports;
use crate::history::update::Update;
use crate::history::vector::{Mark, Origin};
use crate::history::window::{Calendar, USER_REPORT_WINDOW, Window};
use crate::settings::Settings;
use bulkmark_types::{FederationKey, ReporterId, Signature, UNIT, nomination, revocation};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

pub(super) const DAY: u64 = 86_400;
pub(super) const NOW: u64 = 20_000 * DAY + 1000;

pub(super) fn counts(settings: &Settings) -> Counts {
    let local = Local::recording(Generations::new(settings), Origin(1), Mark::default());
    Counts::new(local, MergedCounts::new(settings), 0, settings)
}

pub(super) fn site(settings: &Settings) -> Ledger {
    let site = Site { counts: counts(settings), retries: Retries::default(), left: Spool::new(1) };
    Ledger(State::Site(site))
}

/// A ledger, as the writer has it.
pub(super) struct Ledger(pub(super) State);

impl Ledger {
    pub(super) fn submit(&mut self, submission: &Submission) -> Tally {
        Tally { units: 0, ..self.0.submit(submission).unwrap() }
    }

    pub(super) const fn counts(&self) -> &Counts {
        self.0.counts()
    }

    pub(super) const fn counts_mut(&mut self) -> &mut Counts {
        self.0.counts_mut()
    }
}

pub(super) fn of(n: u8) -> Signature {
    nomination(&FederationKey::public(), Signature::from_bytes([n; 16]))
}

/// A user of the mail server.
pub(super) fn user(n: u8) -> ReporterId {
    let mut bytes = [n; 16];
    bytes[15] = 1;
    ReporterId::from_bytes(bytes)
}

pub(super) fn submission(reporter: u8, n: u8, side: Side, units: u32, now: u64) -> Submission {
    let nominations = vec![Nominated { of: Signature::from_bytes([n; 16]), nomination: of(n), shared: true }];
    let reporter = user(reporter);
    let weighing = Weighing { thousandths: 1000, ..Weighing::default() };
    Submission { reporter, side, nominations, trap: Some(units), weighing, now, ..Submission::default() }
}

/// The net weight for a signature: nominations less revocations.
pub(super) fn net(site: &Ledger, n: u8, now: u64) -> i64 {
    let count = |signature| i64::from(site.counts().count(signature, now));
    count(of(n)) - count(revocation(of(n)))
}

#[test]
fn one_reporter_counts_once_and_withdraws_its_full_weight() {
    let mut site = site(&Settings::default());
    let counted = Tally { counted: 1, ..Tally::default() };
    let known = Tally { known: 1, ..Tally::default() };
    assert_eq!(site.submit(&submission(1, 1, Side::Spam, 5, NOW)), counted);
    for later in [0, DAY, 20 * DAY] {
        assert_eq!(site.submit(&submission(1, 1, Side::Spam, 5, NOW + later)), known);
        assert_eq!(net(&site, 1, NOW + later), 5);
    }
    // Its trust has grown since; a withdrawal has the weight of the report.
    let withdrawn = Tally { withdrawn: 1, ..Tally::default() };
    assert_eq!(site.submit(&submission(1, 1, Side::NotSpam, UNIT, NOW + 20 * DAY)), withdrawn);
    assert_eq!(net(&site, 1, NOW + 20 * DAY), 0);
    // A revocation without nominations has no weight.
    let weightless = Tally { weightless: 1, ..Tally::default() };
    assert_eq!(site.submit(&submission(2, 1, Side::NotSpam, 3, NOW + 20 * DAY)), weightless);
    assert_eq!(site.submit(&submission(3, 1, Side::Spam, UNIT, NOW + 20 * DAY)), counted);
    assert_eq!(site.submit(&submission(2, 1, Side::NotSpam, 3, NOW + 20 * DAY)), counted);
    assert_eq!(net(&site, 1, NOW + 20 * DAY), 5);
    let own = ReportSum { units: 8, reporters: 2 };
    assert_eq!(site.counts().user_reports.own(revocation(of(1))), own);
}

#[test]
fn a_withdrawal_counts_nothing_else() {
    let mut site = site(&Settings::default());
    let back =
        |reporter| Submission { only_withdraws: true, ..submission(reporter, 1, Side::Spam, UNIT, NOW) };
    assert_eq!(site.submit(&back(1)), Tally { known: 1, ..Tally::default() });
    site.submit(&submission(1, 1, Side::Spam, UNIT, NOW));
    site.submit(&submission(2, 1, Side::NotSpam, UNIT, NOW));
    assert_eq!(site.submit(&back(1)), Tally { withdrawn: 1, ..Tally::default() });
    assert_eq!(net(&site, 1, NOW), -8);
    assert_eq!(site.submit(&back(2)), Tally { withdrawn: 1, ..Tally::default() });
    assert_eq!(site.submit(&back(2)), Tally { known: 1, ..Tally::default() });
    assert_eq!(net(&site, 1, NOW), 0);
}

/// A reporter who changes their mind repeatedly is ignored until a report expires; others are not.
#[test]
fn reporters_who_change_their_mind_too_often_are_ignored() {
    let mut site = site(&Settings::default());
    for n in 0..8 {
        let side = if n % 2 == 0 { Side::Spam } else { Side::NotSpam };
        let tally = site.submit(&submission(1, 1, side, UNIT, NOW));
        assert_eq!(tally.counted + tally.withdrawn, 1, "{n}: {tally:?}");
    }
    let again = submission(1, 1, Side::Spam, UNIT, NOW);
    assert_eq!(site.submit(&again), Tally { too_often: 1, ..Tally::default() });
    assert_eq!(
        site.submit(&submission(2, 1, Side::Spam, UNIT, NOW)),
        Tally { counted: 1, ..Tally::default() }
    );
    assert_eq!(net(&site, 1, NOW), 8);
}

/// A local report is withdrawn locally, even if reports are shared by then; a shared one is withdrawn at the other servers too.
#[test]
fn reports_are_withdrawn_where_they_were_shared() {
    let settings = Settings::default();
    for shared in [false, true] {
        let mut user_reports = UserReports::new(&settings);
        let mut submit = |side, shared| {
            let mut submission = submission(1, 1, side, UNIT, NOW);
            submission.nominations[0].shared = shared;
            user_reports.submit(&submission, &mut BTreeSet::new(), |_, _| UNIT).1
        };
        assert_eq!(submit(Side::Spam, shared), [Addition { signature: of(1), times: UNIT, shared }]);
        assert_eq!(
            submit(Side::NotSpam, !shared),
            [Addition { signature: revocation(of(1)), times: UNIT, shared }]
        );
    }
}

/// One signature of a mailing has the subject of the first message, and only the part of it that is shown.
#[test]
fn a_subject_is_kept_once() {
    let mut site = site(&Settings::default());
    let mut report = submission(1, 1, Side::Spam, UNIT, NOW);
    report.nominations.extend(submission(1, 2, Side::Spam, UNIT, NOW).nominations);
    site.submit(&Submission { subject: "x".repeat(1000), ..report.clone() });
    report.reporter = user(2);
    report.nominations.reverse();
    site.submit(&Submission { subject: "another".to_owned(), ..report });
    let subjects: Vec<&str> = site.counts().cases.iter().map(|(_, case)| &*case.subject).collect();
    assert_eq!(subjects.iter().map(|subject| subject.len()).sum::<usize>(), 120, "{subjects:?}");
    assert_eq!(site.counts().cases.get(of(1)).unwrap().subject, "x".repeat(120));
}

/// Votes of a signature beyond a bound are not stored. Trusted reporters still weigh; newcomers do not, as their bound is computed from the
/// stored votes.
#[test]
fn votes_beyond_the_bound_are_not_kept() {
    let mut site = site(&Settings::default());
    let user_submission = |who: u128, n, now| {
        let reporter = ReporterId::from_bytes((who << 8).to_le_bytes());
        Submission { reporter, trap: None, ..submission(0, n, Side::Spam, UNIT, now) }
    };
    let (trusted, later) = (1000, NOW + 2 * DAY);
    // A trap, which agrees with them.
    site.submit(&submission(60, 1, Side::Spam, 1, NOW));
    for who in trusted..trusted + 12 {
        site.submit(&user_submission(who, 1, NOW));
    }
    site.counts_mut().add(Signature::from_bytes([1; 16]), 100, NOW);
    site.submit(&user_submission(trusted, 3, later));
    assert_eq!(site.counts().trust.standings.established(), 12);

    let settings = bulkmark_trust::Settings::new(1.0, 1000.0, 3 * UNIT).unwrap();
    let weighing = Weighing { settings, thousandths: 1000, ..Weighing::default() };
    let mut counted = |who| site.submit(&Submission { weighing, ..user_submission(who, 2, later) }).counted;
    assert_eq!((0..300).map(&mut counted).sum::<usize>(), 256);
    assert_eq!(counted(trusted), 1);
    assert_eq!(site.counts().cases.get(of(2)).unwrap().votes.len(), 256);
}

/// User reports count for 30 days, in windows of five, independently of bulk; and they do not add to counts of bulk.
#[test]
fn user_reports_count_for_their_own_retention() {
    let mut site = site(&Settings::default());
    let begin = NOW - NOW % USER_REPORT_WINDOW;
    site.submit(&submission(1, 1, Side::Spam, UNIT, begin));
    let bulk = Signature::from_bytes([1; 16]);
    assert_eq!(site.counts().count(bulk, begin), 0, "nobody saw it");
    site.counts_mut().add(bulk, 3, begin);
    for (day, user_reports, mail) in [(0, 8, 3), (6, 8, 3), (7, 8, 0), (29, 8, 0), (30, 0, 0)] {
        let now = begin + day * DAY;
        assert_eq!(site.counts().count(of(1), now), user_reports, "day {day}");
        assert_eq!(site.counts().count(bulk, now), mail, "day {day}");
    }
    assert!(site.counts_mut().user_reports.take_expired(begin + 29 * DAY).is_empty());
    assert_eq!(site.counts_mut().user_reports.take_expired(begin + 30 * DAY).len(), 1);
    assert_eq!(
        (site.counts().user_reports.len(), site.counts().user_reports.own(of(1))),
        (0, ReportSum::default())
    );
}

/// New users weigh a quarter, and more as others agree with them, which is checked two days after the first report, if one of the others is
/// known; forgotten users weigh a quarter again, and all their reports are withdrawn.
#[test]
fn trust_grows_as_others_agree() {
    let mut site = site(&Settings::default());
    let user_submission =
        |who, n, now| Submission { trap: None, ..submission(who, n, Side::Spam, UNIT, now) };
    // A trap of little weight.
    site.submit(&submission(60, 1, Side::Spam, 1, NOW));
    for who in 0..12 {
        site.submit(&user_submission(who, 1, NOW + u64::from(who)));
    }
    assert_eq!(net(&site, 1, NOW + 20), 25);
    site.counts_mut().add(Signature::from_bytes([1; 16]), 100, NOW + 20);
    site.submit(&user_submission(0, 2, NOW + 2 * DAY - 1));
    assert_eq!(net(&site, 2, NOW + 2 * DAY), 2, "nobody is judged yet");
    site.submit(&user_submission(1, 2, NOW + 2 * DAY));
    assert_eq!(net(&site, 2, NOW + 2 * DAY), 7);
    assert_eq!(site.counts().trust.standings.established(), 12);
    assert_eq!(site.counts().changes.standings.len(), 12, "all of them are written");
    // As there are trusted users now, newcomers are bounded.
    for who in 100..112 {
        site.submit(&user_submission(who, 3, NOW + 2 * DAY));
    }
    assert_eq!(net(&site, 3, NOW + 2 * DAY), 8);
    let forgotten = site.0.forget(user(1), None, NOW + 3 * DAY);
    assert_eq!(forgotten, Ok(Forgotten { withdrawn: 2, ..Forgotten::default() }));
    assert_eq!([1, 2].map(|n| net(&site, n, NOW + 3 * DAY)), [23, 2]);
    site.submit(&user_submission(1, 4, NOW + 3 * DAY));
    assert_eq!(net(&site, 4, NOW + 3 * DAY), 2);
    assert_eq!(site.0.forget(user(99), None, NOW), Ok(Forgotten::default()));
}

/// A user for whom the administrator vouches has full weight from then on, and this is written.
#[test]
fn a_vouched_reporter_is_trusted() {
    let mut site = site(&Settings::default());
    assert_eq!(site.0.vouch(user(1), NOW), Ok(true));
    site.submit(&Submission { trap: None, ..submission(1, 1, Side::Spam, UNIT, NOW) });
    assert_eq!(net(&site, 1, NOW), i64::from(UNIT));
    assert_eq!(site.counts().trust.standings.established(), 1);
    assert!(site.counts().changes.standings.contains(&user(1)));
    site.0.forget(user(1), None, NOW).unwrap();
    assert_eq!(site.counts().trust.standings.established(), 0);
}

/// The data about a mailing is dropped with its last report.
#[test]
fn mailings_without_reports_are_forgotten() {
    let mut site = site(&Settings::default());
    for n in 0..5 {
        site.submit(&submission(1, n, Side::Spam, UNIT, NOW + u64::from(n) * 10 * DAY));
        assert_eq!(site.counts().cases.iter().count(), 1 + usize::from(n));
    }
    site.0.take_expired(NOW + 50 * DAY);
    assert_eq!(site.counts().cases.iter().count(), 2);
    site.0.take_expired(NOW + 100 * DAY);
    assert_eq!((site.counts().cases.iter().count(), site.counts().user_reports.len()), (0, 0));
    assert_eq!(site.counts().cases.due(u64::MAX, 10), []);
}

/// Memory for user reports is taken only with the first report, and less of it.
#[test]
fn a_window_of_user_reports_is_smaller() {
    let mut site = site(&Settings::default());
    site.counts_mut().add(Signature::from_bytes([1; 16]), 1, NOW);
    assert!(!site.counts().has_user_reports());
    site.submit(&submission(1, 1, Side::Spam, UNIT, NOW));
    assert!(site.counts().has_user_reports());
    let capacities = site.counts().local.generations.iter().map(|g| g.row.slices()[0].capacity);
    assert_eq!(capacities.collect::<Vec<_>>(), [1_000_000, 125_000]);
}

pub(super) fn server(settings: &Settings) -> Server {
    Server {
        counts: counts(settings),
        cut_at: 0,
        receipts: Receipts::default(),
        limited: Limited::new(settings),
        note_queue: NoteQueue::default(),
        peer_check: PeerCheck::default(),
        renewed: false,
    }
}

/// With small filters.
pub(super) fn small() -> Settings {
    Settings { capacity: NonZeroU32::new(8000).unwrap(), ..Settings::default() }
}

proptest! {
    /// Reporters report anything, at any time and repeatedly: the counts contain each reporter's last report that it did not withdraw, or
    /// nothing, and never more than one report's weight. Rows that were read from disk behave the same.
    #[test]
    fn each_reporter_has_one_report_in_effect(
        submissions in prop::collection::vec((0u64..45, 0u8..4, 0u8..3, any::<bool>(), any::<bool>(), 1u32..=UNIT, any::<bool>()), 1..120)
    ) {
        let (settings, mut submissions) = (small(), submissions);
        let calendar = Calendar::new(&settings);
        let mut site = site(&settings);
        let mut model: HashMap<(u8, u8), Vec<(Window, i64)>> = HashMap::new();
        submissions.sort_by_key(|&(day, ..)| day);
        for (day, reporter, n, is_spam, only_withdraws, units, restarts) in submissions {
            let now = NOW + day * DAY;
            let side = if is_spam { Side::Spam } else { Side::NotSpam };
            let tally = site.submit(&Submission { only_withdraws, ..submission(reporter, n, side, units, now) });
            let row = model.entry((reporter, n)).or_default();
            let stands: i64 = row.iter().filter(|(w, _)| !calendar.is_over(*w, now)).map(|(_, u)| u).sum();
            let wanted = if only_withdraws { -stands.signum() } else if is_spam { 1 } else { -1 };
            if tally.counted + tally.withdrawn > 0 {
                prop_assert!(stands.signum() != wanted && wanted != 0);
                let key = (user(reporter), of(n));
                let last = site.counts().user_reports.row(&key).unwrap().last().unwrap().units;
                let by = i64::from(last) * wanted;
                let most = if stands == 0 { i64::from(units) } else { stands.abs() };
                prop_assert!((1..=most).contains(&by), "{} of {}", by, most);
                row.push((calendar.of_user_reports(now), wanted * by));
            } else {
                let is_silent = row.iter().all(|(w, _)| calendar.is_over(*w, now));
                let is_expected = wanted == 0 || !is_silent || tally.too_often + tally.weightless == 1;
                prop_assert!(is_expected, "a first report counts: {:?}", tally);
            }
            for n in 0..3 {
                let live = |(r, m): (u8, u8)| {
                    let row = model.get(&(r, m)).into_iter().flatten();
                    row.filter(|(w, _)| calendar.is_live(*w, now)).map(|(_, u)| *u).collect::<Vec<_>>()
                };
                let mut sum = 0;
                for reporter in 0..4 {
                    sum += live((reporter, n)).iter().sum::<i64>();
                    // Now, and after the first reports have expired.
                    for later in (0..35).step_by(5).map(|days| now + days * DAY) {
                        let row = model.get(&(reporter, n)).into_iter().flatten();
                        let left = row.filter(|(w, _)| !calendar.is_over(*w, later)).map(|(_, u)| u);
                        let of_one: i64 = left.sum();
                        prop_assert!(of_one.abs() <= i64::from(UNIT), "{} of one", of_one);
                    }
                }
                prop_assert_eq!(net(&site, n, now), sum);
                let nominated: i64 = (0..4).flat_map(|r| live((r, n))).filter(|u| *u > 0).sum();
                prop_assert_eq!(i64::from(site.counts().count(of(n), now)), nominated);
            }
            if restarts {
                site.counts_mut().user_reports.take_expired(now);
                let mut user_reports = UserReports::new(&settings);
                for reporter in 0..4 {
                    for n in 0..3 {
                        let key = (user(reporter), of(n));
                        let row: Option<Vec<UserReport>> = site.counts().user_reports.row(&key).map(<[UserReport]>::to_vec);
                        row.into_iter().for_each(|row| user_reports.restore(key, row, true));
                    }
                }
                for n in 0..3 {
                    for signature in [of(n), revocation(of(n))] {
                        prop_assert_eq!(user_reports.own(signature), site.counts().user_reports.own(signature));
                    }
                }
                site.counts_mut().user_reports = user_reports;
            }
        }
    }

    /// A limited client reports anything, for a month: no signature's weight rises by more than the client's limit, for or against, here or
    /// at other holders; and its user reports use up nothing of its limit for bulk.
    #[test]
    fn a_limited_client_weighs_no_more_than_its_limit(
        reports in prop::collection::vec((0u64..40, 0u8..12, 1u32..30), 1..150)
    ) {
        let (settings, mut reports) = (small(), reports);
        let limits = Limits { influence: 5, quota: 1_000_000 };
        let mut server = server(&settings);
        reports.sort_by_key(|&(day, ..)| day);
        let mut holder = MergedCounts::new(&settings);
        let signature = |n: u8| match n % 3 {
            0 => of(n),
            1 => revocation(of(n)),
            _ => Signature::from_bytes([n; 16]),
        };
        for (number, (day, n, times)) in (1..).zip(reports) {
            let now = NOW + day * DAY;
            let reporter = Reporter { client: "partner".to_owned(), spool: 1 };
            server.take_batch(reporter, number, &[(signature(n), times)], Some(limits), now, Origin(2)).unwrap();
            server.cut(now);
            for kept in server.counts.changes.updates.drain(..) {
                holder.apply(&Update::decode(&kept.bytes).unwrap(), &kept.bytes, now).unwrap();
            }
            for n in 0..12 {
                let count = server.count(signature(n), now);
                prop_assert!(count <= 5, "{} of {}", count, n);
                prop_assert_eq!(holder.count(signature(n), now), count);
            }
            let at_least = times.min(5).min(server.count(signature(n), now));
            prop_assert!(at_least > 0, "what is below the limit is counted");
        }
    }
}
