// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports are neither lost nor counted twice while servers are away, no reporter uses up the room of others, and bounds of traps.

use super::cache::Cache;
use super::receipts::Reporter;
use super::retries::Retries;
use super::roles::State;
use super::room::{MAX_OF_INTERFACES, MAX_OF_TRAPS, MAX_ROWS, Rows};
use super::server::Server;
use super::spool::{Outgoing, Spool, Waiting, reopened};
use super::submission::{Side, Submission, Tally};
use super::submit::Forgotten;
use super::user_report::{Counted, ReportSum, UserReport};
use super::user_reports_tests::{DAY, Ledger, NOW, counts, net, of, server, site, small, submission, user};
use crate::history::update::Update;
use crate::history::vector::Origin;
use crate::history::window::Calendar;
use crate::settings::Settings;
use bulkmark_types::{ReporterId, Signature, UNIT, revocation};

const SERVER: &str = "https://a";

fn cache(settings: &Settings) -> Ledger {
    let cache = Cache { counts: counts(settings), retries: Retries::default(), spool: Spool::new(1) };
    Ledger(State::Cache(cache))
}

impl Ledger {
    fn cache(&mut self) -> &mut Cache {
        self.0.cache().unwrap()
    }

    fn shown(&self, signature: Signature, now: u64) -> u32 {
        self.0.count(signature, now)
    }
}

/// A report of a user, who weighs a quarter.
fn user_submission(reporter: u8, n: u8, side: Side, now: u64) -> Submission {
    Submission { trap: None, ..submission(reporter, n, side, UNIT, now) }
}

fn counted(tally: Tally) -> bool {
    tally == Tally { counted: 1, ..Tally::default() }
}

fn withdrawn(tally: Tally) -> bool {
    tally == Tally { withdrawn: 1, ..Tally::default() }
}

/// Sends all batches of the milter to the server.
fn send_all(milter: &mut Ledger, to: &mut Server, now: u64) {
    while let Some((spool, Outgoing { number, reports })) = milter.cache().next_batch(SERVER, true) {
        let reporter = Reporter { client: "mx1".to_owned(), spool };
        let receipt = to.take_batch(reporter, number, &reports, None, now, Origin(9)).unwrap();
        milter.cache().acknowledge(SERVER, number, receipt);
    }
}

/// A server is away for a week, from the moment on at which a batch was sent to it. Mail is dropped; user reports and withdrawals are kept,
/// and count once when the server is back, whether it had counted the first batch or not.
#[test]
fn no_user_report_is_lost_while_a_server_is_away() {
    for was_counted in [false, true] {
        let (settings, back) = (small(), NOW + 7 * DAY);
        let (mut milter, mut to) = (cache(&settings), server(&settings));
        assert!([1, 2].iter().all(|&who| counted(milter.submit(&user_submission(who, 1, Side::Spam, NOW)))));
        milter.cache().spool.push(Waiting { signature: Signature::from_bytes([7; 16]), times: 1, at: NOW });
        let (spool, batch) = milter.cache().next_batch(SERVER, true).unwrap();
        if was_counted {
            let reporter = Reporter { client: "mx1".to_owned(), spool };
            to.take_batch(reporter, batch.number, &batch.reports, None, NOW, Origin(9)).unwrap();
        }
        assert!(counted(milter.submit(&user_submission(1, 2, Side::Spam, NOW + 10))));
        assert_eq!(milter.cache().trim_spool(NOW + 2 * DAY), 1);
        assert_eq!([1, 2].map(|n| milter.shown(of(n), NOW + 2 * DAY)), [4, 2]);
        assert_eq!(
            milter.submit(&user_submission(1, 2, Side::Spam, NOW + 2 * DAY)),
            Tally { known: 1, ..Tally::default() }
        );
        for n in [1, 2] {
            assert!(withdrawn(milter.submit(&user_submission(1, n, Side::NotSpam, NOW + 2 * DAY))));
        }
        assert_eq!(milter.cache().trim_spool(NOW + 5 * DAY), 0);
        send_all(&mut milter, &mut to, back);
        let at_server = |n| [of(n), revocation(of(n))].map(|signature| to.count(signature, back));
        assert_eq!([1, 2].map(at_server), [[4, 2], [2, 2]], "of the other user nothing is taken away");
        assert_eq!(to.count(Signature::from_bytes([7; 16]), NOW), u32::from(was_counted));
    }
}

/// A server's update may come before its answer, or instead of it: a connection ended. What is then in the merged counts and in an open batch
/// does not count twice against the next reporter, whose report would be without weight.
#[test]
fn a_withdrawal_without_an_answer_takes_no_weight_from_the_next_report() {
    let settings = small();
    let (mut milter, mut to) = (cache(&settings), server(&settings));
    let follow = |milter: &mut Ledger, to: &mut Server| {
        to.cut(NOW);
        for kept in to.counts.changes.updates.drain(..) {
            milter.cache().apply(&Update::decode(&kept.bytes).unwrap(), kept.bytes.clone(), NOW).unwrap();
        }
    };
    for who in [1, 2] {
        assert!(counted(milter.submit(&user_submission(who, 1, Side::Spam, NOW))));
    }
    send_all(&mut milter, &mut to, NOW);
    follow(&mut milter, &mut to);
    assert!(withdrawn(milter.submit(&user_submission(2, 1, Side::NotSpam, NOW))));
    let (spool, batch) = milter.cache().next_batch(SERVER, true).unwrap();
    let reporter = Reporter { client: "mx1".to_owned(), spool };
    to.take_batch(reporter, batch.number, &batch.reports, None, NOW, Origin(9)).unwrap();
    follow(&mut milter, &mut to);
    assert_eq!(milter.shown(revocation(of(1)), NOW), 4, "the same batch, in the merged counts and open");
    assert!(counted(milter.submit(&user_submission(2, 1, Side::NotSpam, NOW))));
    send_all(&mut milter, &mut to, NOW);
    follow(&mut milter, &mut to);
    assert_eq!([of(1), revocation(of(1))].map(|of| milter.shown(of, NOW)), [4, 4]);
}

/// A report expires with the window in which the server counted it: repeated before that, it would count twice.
#[test]
fn a_report_counted_late_expires_late() {
    let settings = small();
    let (mut milter, mut to) = (cache(&settings), server(&settings));
    let begin = Calendar::new(&settings).of_user_reports(NOW).start;
    milter.submit(&user_submission(1, 1, Side::Spam, begin));
    let late = begin + 20 * DAY;
    milter.cache().counts.clock = late;
    send_all(&mut milter, &mut to, late);
    let again = milter.submit(&user_submission(1, 1, Side::Spam, begin + 31 * DAY));
    assert_eq!(again, Tally { known: 1, ..Tally::default() });
    assert_eq!(to.count(of(1), begin + 49 * DAY), 2);
    milter.0.take_expired(begin + 49 * DAY);
    assert_eq!(milter.counts().user_reports.len(), 1);
    milter.0.take_expired(begin + 50 * DAY);
    assert_eq!((milter.counts().user_reports.len(), to.count(of(1), begin + 50 * DAY)), (0, 0));
    // Reports that no server took expire with their own window.
    milter.submit(&user_submission(1, 1, Side::Spam, late));
    assert_eq!(milter.cache().trim_spool(late + 29 * DAY), 0);
    assert_eq!((milter.cache().trim_spool(late + 30 * DAY), milter.cache().spool.held()), (1, 0));
}

/// It will never be known whether a server counted a report: it cannot be repeated, and a withdrawal takes nothing from others' reports.
#[test]
fn a_lost_report_takes_nothing_from_others() {
    let settings = small();
    let losses: [fn(&mut Ledger, u64); 2] = [
        |milter, number| milter.cache().drop_batch(SERVER, number),
        |milter, _| {
            let mut stored = Spool::new(1);
            std::mem::swap(&mut stored, &mut milter.cache().spool);
            milter.cache().spool = reopened(&stored, &[SERVER.to_owned()]);
            assert_eq!(milter.cache().renew_spool(SERVER, 1, 2), Some(2));
        },
    ];
    for lose in losses {
        let mut milter = cache(&settings);
        milter.submit(&user_submission(1, 1, Side::Spam, NOW));
        milter.submit(&user_submission(2, 1, Side::Spam, NOW));
        let (_, batch) = milter.cache().next_batch(SERVER, true).unwrap();
        lose(&mut milter, batch.number);
        assert_eq!(milter.shown(of(1), NOW), 0);
        assert_eq!(milter.counts().user_reports.own(of(1)), ReportSum::default());
        assert_eq!(
            milter.submit(&user_submission(1, 1, Side::Spam, NOW)),
            Tally { known: 1, ..Tally::default() }
        );
        assert!(counted(milter.submit(&user_submission(3, 1, Side::Spam, NOW))));
        assert!(withdrawn(milter.submit(&user_submission(1, 1, Side::NotSpam, NOW))));
        let forget = Submission { only_withdraws: true, ..user_submission(2, 1, Side::Spam, NOW) };
        assert!(withdrawn(milter.submit(&forget)));
        assert_eq!(milter.submit(&forget), Tally { known: 1, ..Tally::default() });
        assert_eq!([of(1), revocation(of(1))].map(|signature| milter.shown(signature, NOW)), [2, 0]);
        // A repeated report weighs no more than one, whatever happened to the first.
        let row = |milter: &Ledger, who: u8| {
            let row = milter.counts().user_reports.row(&(user(who), of(1)));
            row.unwrap().iter().map(|report| (report.units, report.counted)).collect::<Vec<_>>()
        };
        assert_eq!(row(&milter, 1), [(2, Counted::Void)]);
        assert!(counted(milter.submit(&user_submission(1, 1, Side::Spam, NOW))));
        assert_eq!(row(&milter, 1), [(2, Counted::Void), (2, Counted::Everywhere)]);
        assert!(withdrawn(milter.submit(&user_submission(1, 1, Side::NotSpam, NOW))));
        assert_eq!(net_here(&milter, NOW), 2);
    }
}

fn net_here(milter: &Ledger, now: u64) -> i64 {
    let count = |signature| i64::from(milter.shown(signature, now));
    count(of(1)) - count(revocation(of(1)))
}

fn reporter(n: u128) -> ReporterId {
    ReporterId::from_bytes((n << 8).to_le_bytes())
}

fn a_report(units: i8, window: u64) -> UserReport {
    UserReport { window, units, counted: Counted::Everywhere }
}

/// Anyone who knows a trap can write to it repeatedly: users' reports still count, and so do the trap's, whose oldest rows are evicted.
/// They are forgotten, but stay counted.
#[test]
fn traps_take_no_room_from_users() {
    let mut site = site(&small());
    let window = Calendar::new(&small()).of_user_reports(NOW).start;
    assert!(counted(site.submit(&submission(1, 1, Side::Spam, UNIT, NOW - 5 * DAY))));
    for n in 1..MAX_OF_TRAPS as u128 {
        site.counts_mut().user_reports.restore((reporter(n), of(2)), vec![a_report(8, window)], true);
    }
    let full = Rows { traps: MAX_OF_TRAPS, ..Rows::default() };
    assert_eq!(site.counts().user_reports.taken(), full);
    for n in 3..10 {
        assert!(counted(site.submit(&submission(9, n, Side::Spam, UNIT, NOW))), "{n}");
        assert!(counted(site.submit(&user_submission(2, n, Side::Spam, NOW))), "{n}");
    }
    assert_eq!(site.counts().user_reports.taken(), Rows { users: 7, ..full });
    assert_eq!(site.counts().user_reports.row(&(user(1), of(1))), None);
    assert_eq!(site.counts().user_reports.own(of(1)), ReportSum::default());
    assert_eq!((site.counts().cases.get(of(1)), net(&site, 1, NOW)), (None, 8));
    assert!(site.counts().changes.user_reports.contains(&(user(1), of(1))));
}

/// One user can take half of the room, and each other one has a part of the rest. When it is full, reporters with rows can still withdraw.
#[test]
fn one_user_takes_no_room_from_others() {
    let mut site = site(&small());
    let window = Calendar::new(&small()).of_user_reports(NOW).start;
    let fill = |site: &mut Ledger, who: u128, rows: usize| {
        for n in 0..rows as u128 {
            let key = (reporter(who), Signature::from_bytes((n + 1).to_le_bytes()));
            site.counts_mut().user_reports.restore(key, vec![a_report(2, window)], false);
        }
    };
    fill(&mut site, 1, MAX_ROWS / 2);
    let no_room = Tally { no_room: 1, ..Tally::default() };
    let by = |who, n| Submission { reporter: reporter(who), ..user_submission(0, n, Side::Spam, NOW) };
    assert_eq!(site.submit(&by(1, 1)), no_room);
    assert!(counted(site.submit(&by(2, 1))));
    fill(&mut site, 2, MAX_ROWS / 16 - 1);
    assert_eq!(site.submit(&by(2, 2)), no_room);
    assert!(counted(site.submit(&by(3, 1))));
    assert!(!site.counts().user_reports.taken().are_many());
    (3..10).for_each(|who| fill(&mut site, who, MAX_ROWS / 16 - 2));
    assert!(site.counts().user_reports.taken().are_many());
    let left = MAX_ROWS - site.counts().user_reports.taken().users;
    fill(&mut site, 20, left);
    assert_eq!(site.submit(&by(21, 1)), no_room);
    assert!(withdrawn(site.submit(&Submission { side: Side::NotSpam, ..by(2, 1) })));
    // Expired rows free their room.
    site.0.take_expired(NOW + 40 * DAY);
    assert_eq!(site.counts().user_reports.taken(), Rows::default());
    assert!(counted(site.submit(&Submission { now: NOW + 40 * DAY, ..by(1, 1) })));
}

/// Names that somebody makes up at an interface fill the room of interfaces. Users' reports still count, and the other way round.
#[test]
fn names_at_interfaces_take_no_room_from_users() {
    let mut site = site(&small());
    let window = Calendar::new(&small()).of_user_reports(NOW).start;
    // The two bits of an identifier's last byte for the kind: an interface's.
    let interface = |n: u128| ReporterId::from_bytes((n << 8 | 3 << 120).to_le_bytes());
    let fill = |site: &mut Ledger, who: ReporterId, rows: usize| {
        for n in 0..rows as u128 {
            let key = (who, Signature::from_bytes((n + 1).to_le_bytes()));
            site.counts_mut().user_reports.restore(key, vec![a_report(2, window)], false);
        }
    };
    let no_room = Tally { no_room: 1, ..Tally::default() };
    let by = |reporter, n| Submission { reporter, ..user_submission(0, n, Side::Spam, NOW) };
    fill(&mut site, interface(1), MAX_OF_INTERFACES / 2);
    assert_eq!(site.submit(&by(interface(1), 1)), no_room);
    assert!(counted(site.submit(&by(interface(2), 1))));
    (3..11).for_each(|who| fill(&mut site, interface(who), MAX_OF_INTERFACES / 16));
    assert_eq!(site.submit(&by(interface(20), 1)), no_room);
    let taken = site.counts().user_reports.taken();
    assert!(taken.interfaces >= MAX_OF_INTERFACES && taken.users == 0, "{taken:?}");
    fill(&mut site, reporter(30), MAX_ROWS / 2);
    assert!(counted(site.submit(&by(reporter(31), 1))));
    site.0.take_expired(NOW + 40 * DAY);
    assert_eq!(site.counts().user_reports.taken(), Rows::default());
    assert!(counted(site.submit(&Submission { now: NOW + 40 * DAY, ..by(interface(20), 1) })));
}

/// Reports that cannot be withdrawn are skipped, and all others are withdrawn, however many they are.
#[test]
fn all_reports_that_can_be_withdrawn_are() {
    let mut site = site(&small());
    let window = Calendar::new(&small()).of_user_reports(NOW).start;
    let (who, many) = (user(1), 6000u16);
    // In numerical order.
    let nomination = |n: u16| {
        let [low, high] = n.to_le_bytes();
        Signature::from_bytes([1, high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    };
    for n in 0..many {
        // A later report that withdrew two at once, which no program makes, leaves nothing to withdraw.
        let unusual =
            vec![a_report(8, window - 5 * DAY), a_report(8, window - 5 * DAY), a_report(-8, window)];
        let row = if n < 5500 { unusual } else { vec![a_report(8, window)] };
        site.counts_mut().user_reports.restore((who, nomination(n)), row, false);
    }
    let (mut from, mut all) = (None, Forgotten::default());
    loop {
        let part = site.0.forget(who, from, NOW).unwrap();
        (all.withdrawn, all.left) = (all.withdrawn + part.withdrawn, all.left + part.left);
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(all, Forgotten { withdrawn: 500, left: 5500, next: None });
}

/// Traps have the configured weight until trusted users revoke their nominations; and never more.
#[test]
fn a_trap_that_errs_weighs_less() {
    let mut site = site(&small());
    let mut now = NOW;
    // Twelve trusted users, each of whom agreed with a trap and with others.
    for (n, day) in [(200, 0), (201, 3), (202, 6)] {
        now = NOW + day * DAY;
        _ = site.submit(&submission(60, n, Side::Spam, 1, now));
        (20..32).for_each(|who| _ = site.submit(&user_submission(who, n, Side::Spam, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 100, now);
    }
    now += 3 * DAY;
    site.0.judge(now);
    assert_eq!(site.counts().trust.standings.established(), 12);
    let trap_reports = |site: &mut Ledger, n, now| {
        let tally = site.0.submit(&submission(1, n, Side::Spam, UNIT, now)).unwrap();
        (tally.units, site.counts().trust.standings.of(&user(1)).trap_trust(now))
    };
    let mut weights = Vec::new();
    for n in 1..6 {
        weights.push(trap_reports(&mut site, n, now).0);
        (2..7).for_each(|other| _ = site.submit(&submission(other, n, Side::Spam, UNIT, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 50, now);
        // Copies are delivered as spam, and some users object.
        (20..28).for_each(|who| _ = site.submit(&user_submission(who, n, Side::NotSpam, now)));
        now += 2 * DAY;
    }
    assert_eq!(weights[0], UNIT);
    // Until all traps together do not make it spam.
    assert!(weights[..4].is_sorted_by(|a, b| a >= b) && weights[4] <= 4, "{weights:?}");
    // Agreement of others does not raise the trap's trust; time does.
    for n in 10..16 {
        trap_reports(&mut site, n, now);
        (20..32).for_each(|who| _ = site.submit(&user_submission(who, n, Side::Spam, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 50, now);
        now += 2 * DAY;
    }
    let (units, trust) = trap_reports(&mut site, 20, now);
    assert!(units <= weights[4] + 1, "{units} after {weights:?}");
    let (after, later) = trap_reports(&mut site, 21, now + 400 * DAY);
    assert!(later > trust && after > units && after <= UNIT, "{after} {later}");
}

/// If no user is trusted, none lowers the trust of a trap.
#[test]
fn newcomers_take_no_trust_from_a_trap() {
    let mut site = site(&small());
    for n in 1..6 {
        let now = NOW + u64::from(n) * 2 * DAY;
        (1..5).for_each(|trap| _ = site.submit(&submission(trap, n, Side::Spam, UNIT, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 50, now);
        _ = site.submit(&user_submission(200 + n, n, Side::Spam, now));
        (20..32).for_each(|who| _ = site.submit(&user_submission(who + 12 * n, n, Side::NotSpam, now)));
    }
    site.0.judge(NOW + 20 * DAY);
    assert!(site.counts().trust.standings.iter().len() > 0, "users are judged");
    assert!((1..5).all(|trap| { site.counts().trust.standings.of(&user(trap)).trap_units(8, NOW) == 8 }));
}
