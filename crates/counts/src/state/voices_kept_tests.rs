// SPDX-License-Identifier: GPL-3.0-or-later
//! User reports are neither lost nor counted twice while servers are away, no reporter uses up the room of others, and bounds of traps.

use super::cache::Cache;
use super::hearing::Forgotten;
use super::receipts::Reporter;
use super::retries::Retries;
use super::roles::State;
use super::room::{MAX_OF_INTERFACES, MAX_OF_TRAPS, MAX_ROWS, Rows};
use super::saying::{Said, Saying, Side};
use super::server::Server;
use super::spool::{Outgoing, Spool, Waiting, reopened};
use super::voices_tests::{DAY, Ledger, NOW, counts, net, of, saying, server, site, small, user};
use super::words::{Own, Told, Word};
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
fn word(reporter: u8, n: u8, side: Side, now: u64) -> Saying {
    Saying { trap: None, ..saying(reporter, n, side, UNIT, now) }
}

fn counted(said: Said) -> bool {
    said == Said { counted: 1, ..Said::default() }
}

fn taken_back(said: Said) -> bool {
    said == Said { taken_back: 1, ..Said::default() }
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
fn no_word_is_lost_while_a_server_is_away() {
    for was_counted in [false, true] {
        let (settings, back) = (small(), NOW + 7 * DAY);
        let (mut milter, mut to) = (cache(&settings), server(&settings));
        assert!([1, 2].iter().all(|&who| counted(milter.say(&word(who, 1, Side::Spam, NOW)))));
        milter.cache().spool.push(Waiting { signature: Signature::from_bytes([7; 16]), times: 1, at: NOW });
        let (spool, batch) = milter.cache().next_batch(SERVER, true).unwrap();
        if was_counted {
            let reporter = Reporter { client: "mx1".to_owned(), spool };
            to.take_batch(reporter, batch.number, &batch.reports, None, NOW, Origin(9)).unwrap();
        }
        assert!(counted(milter.say(&word(1, 2, Side::Spam, NOW + 10))));
        assert_eq!(milter.cache().trim_spool(NOW + 2 * DAY), 1);
        assert_eq!([1, 2].map(|n| milter.shown(of(n), NOW + 2 * DAY)), [4, 2]);
        assert_eq!(milter.say(&word(1, 2, Side::Spam, NOW + 2 * DAY)), Said { known: 1, ..Said::default() });
        for n in [1, 2] {
            assert!(taken_back(milter.say(&word(1, n, Side::NotSpam, NOW + 2 * DAY))));
        }
        assert_eq!(milter.cache().trim_spool(NOW + 5 * DAY), 0);
        send_all(&mut milter, &mut to, back);
        let at_server = |n| [of(n), revocation(of(n))].map(|signature| to.count(signature, back));
        assert_eq!([1, 2].map(at_server), [[4, 2], [2, 2]], "of the other user nothing is taken away");
        assert_eq!(to.count(Signature::from_bytes([7; 16]), NOW), u32::from(was_counted));
    }
}

/// A report expires with the window in which the server counted it: repeated before that, it would count twice.
#[test]
fn what_is_counted_late_leaves_late() {
    let settings = small();
    let (mut milter, mut to) = (cache(&settings), server(&settings));
    let begin = Calendar::new(&settings).of_user_reports(NOW).start;
    milter.say(&word(1, 1, Side::Spam, begin));
    let late = begin + 20 * DAY;
    milter.cache().counts.clock = late;
    send_all(&mut milter, &mut to, late);
    let again = milter.say(&word(1, 1, Side::Spam, begin + 31 * DAY));
    assert_eq!(again, Said { known: 1, ..Said::default() });
    assert_eq!(to.count(of(1), begin + 49 * DAY), 2);
    milter.0.take_expired(begin + 49 * DAY);
    assert_eq!(milter.counts().voices.len(), 1);
    milter.0.take_expired(begin + 50 * DAY);
    assert_eq!((milter.counts().voices.len(), to.count(of(1), begin + 50 * DAY)), (0, 0));
    // Reports that no server took expire with their own window.
    milter.say(&word(1, 1, Side::Spam, late));
    assert_eq!(milter.cache().trim_spool(late + 29 * DAY), 0);
    assert_eq!((milter.cache().trim_spool(late + 30 * DAY), milter.cache().spool.held()), (1, 0));
}

/// It will never be known whether a server counted a report: it cannot be repeated, and a withdrawal takes nothing from others' reports.
#[test]
fn what_may_be_lost_takes_nothing_from_others() {
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
        milter.say(&word(1, 1, Side::Spam, NOW));
        milter.say(&word(2, 1, Side::Spam, NOW));
        let (_, batch) = milter.cache().next_batch(SERVER, true).unwrap();
        lose(&mut milter, batch.number);
        assert_eq!(milter.shown(of(1), NOW), 0);
        assert_eq!(milter.counts().voices.own(of(1)), Own::default());
        assert_eq!(milter.say(&word(1, 1, Side::Spam, NOW)), Said { known: 1, ..Said::default() });
        assert!(counted(milter.say(&word(3, 1, Side::Spam, NOW))));
        assert!(taken_back(milter.say(&word(1, 1, Side::NotSpam, NOW))));
        let forget = Saying { only_back: true, ..word(2, 1, Side::Spam, NOW) };
        assert!(taken_back(milter.say(&forget)));
        assert_eq!(milter.say(&forget), Said { known: 1, ..Said::default() });
        assert_eq!([of(1), revocation(of(1))].map(|signature| milter.shown(signature, NOW)), [2, 0]);
        // A repeated report weighs no more than one, whatever happened to the first.
        let row = |milter: &Ledger, who: u8| {
            let row = milter.counts().voices.row(&(user(who), of(1)));
            row.unwrap().iter().map(|word| (word.units, word.told)).collect::<Vec<_>>()
        };
        assert_eq!(row(&milter, 1), [(2, Told::Void)]);
        assert!(counted(milter.say(&word(1, 1, Side::Spam, NOW))));
        assert_eq!(row(&milter, 1), [(2, Told::Void), (2, Told::All)]);
        assert!(taken_back(milter.say(&word(1, 1, Side::NotSpam, NOW))));
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

fn a_word(units: i8, window: u64) -> Word {
    Word { window, units, told: Told::All }
}

/// Anyone who knows a trap can write to it repeatedly: users' reports still count, and so do the trap's, whose oldest rows are evicted.
/// They are forgotten, but stay counted.
#[test]
fn traps_take_no_room_from_users() {
    let mut site = site(&small());
    let window = Calendar::new(&small()).of_user_reports(NOW).start;
    assert!(counted(site.say(&saying(1, 1, Side::Spam, UNIT, NOW - 5 * DAY))));
    for n in 1..MAX_OF_TRAPS as u128 {
        site.counts_mut().voices.restore((reporter(n), of(2)), vec![a_word(8, window)], true);
    }
    let full = Rows { traps: MAX_OF_TRAPS, ..Rows::default() };
    assert_eq!(site.counts().voices.taken(), full);
    for n in 3..10 {
        assert!(counted(site.say(&saying(9, n, Side::Spam, UNIT, NOW))), "{n}");
        assert!(counted(site.say(&word(2, n, Side::Spam, NOW))), "{n}");
    }
    assert_eq!(site.counts().voices.taken(), Rows { users: 7, ..full });
    assert_eq!(site.counts().voices.row(&(user(1), of(1))), None);
    assert_eq!(site.counts().voices.own(of(1)), Own::default());
    assert_eq!((site.counts().cases.get(of(1)), net(&site, 1, NOW)), (None, 8));
    assert!(site.counts().changes.voices.contains(&(user(1), of(1))));
}

/// One user can take half of the room, and each other one has a part of the rest. When it is full, reporters with rows can still withdraw.
#[test]
fn one_user_takes_no_room_from_others() {
    let mut site = site(&small());
    let window = Calendar::new(&small()).of_user_reports(NOW).start;
    let fill = |site: &mut Ledger, who: u128, rows: usize| {
        for n in 0..rows as u128 {
            let key = (reporter(who), Signature::from_bytes((n + 1).to_le_bytes()));
            site.counts_mut().voices.restore(key, vec![a_word(2, window)], false);
        }
    };
    fill(&mut site, 1, MAX_ROWS / 2);
    let no_room = Said { no_room: 1, ..Said::default() };
    let says = |who, n| Saying { reporter: reporter(who), ..word(0, n, Side::Spam, NOW) };
    assert_eq!(site.say(&says(1, 1)), no_room);
    assert!(counted(site.say(&says(2, 1))));
    fill(&mut site, 2, MAX_ROWS / 16 - 1);
    assert_eq!(site.say(&says(2, 2)), no_room);
    assert!(counted(site.say(&says(3, 1))));
    assert!(!site.counts().voices.taken().are_many());
    (3..10).for_each(|who| fill(&mut site, who, MAX_ROWS / 16 - 2));
    assert!(site.counts().voices.taken().are_many());
    let left = MAX_ROWS - site.counts().voices.taken().users;
    fill(&mut site, 20, left);
    assert_eq!(site.say(&says(21, 1)), no_room);
    assert!(taken_back(site.say(&Saying { side: Side::NotSpam, ..says(2, 1) })));
    // Expired rows free their room.
    site.0.take_expired(NOW + 40 * DAY);
    assert_eq!(site.counts().voices.taken(), Rows::default());
    assert!(counted(site.say(&Saying { now: NOW + 40 * DAY, ..says(1, 1) })));
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
            site.counts_mut().voices.restore(key, vec![a_word(2, window)], false);
        }
    };
    let no_room = Said { no_room: 1, ..Said::default() };
    let says = |reporter, n| Saying { reporter, ..word(0, n, Side::Spam, NOW) };
    fill(&mut site, interface(1), MAX_OF_INTERFACES / 2);
    assert_eq!(site.say(&says(interface(1), 1)), no_room);
    assert!(counted(site.say(&says(interface(2), 1))));
    (3..11).for_each(|who| fill(&mut site, interface(who), MAX_OF_INTERFACES / 16));
    assert_eq!(site.say(&says(interface(20), 1)), no_room);
    let taken = site.counts().voices.taken();
    assert!(taken.interfaces >= MAX_OF_INTERFACES && taken.users == 0, "{taken:?}");
    fill(&mut site, reporter(30), MAX_ROWS / 2);
    assert!(counted(site.say(&says(reporter(31), 1))));
    site.0.take_expired(NOW + 40 * DAY);
    assert_eq!(site.counts().voices.taken(), Rows::default());
    assert!(counted(site.say(&Saying { now: NOW + 40 * DAY, ..says(interface(20), 1) })));
}

/// Reports that cannot be withdrawn are skipped, and all others are withdrawn, however many they are.
#[test]
fn all_is_forgotten_that_can_be() {
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
        let odd = vec![a_word(8, window - 5 * DAY), a_word(8, window - 5 * DAY), a_word(-8, window)];
        let row = if n < 5500 { odd } else { vec![a_word(8, window)] };
        site.counts_mut().voices.restore((who, nomination(n)), row, false);
    }
    let (mut from, mut all) = (None, Forgotten::default());
    loop {
        let part = site.0.forget(who, from, NOW).unwrap();
        (all.taken_back, all.left) = (all.taken_back + part.taken_back, all.left + part.left);
        from = part.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(all, Forgotten { taken_back: 500, left: 5500, next: None });
}

/// Traps have the configured weight until trusted users revoke their nominations; and never more.
#[test]
fn a_trap_that_errs_weighs_less() {
    let mut site = site(&small());
    let mut now = NOW;
    // Twelve trusted users, each of whom agreed with a trap and with others.
    for (n, day) in [(200, 0), (201, 3), (202, 6)] {
        now = NOW + day * DAY;
        _ = site.say(&saying(60, n, Side::Spam, 1, now));
        (20..32).for_each(|who| _ = site.say(&word(who, n, Side::Spam, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 100, now);
    }
    now += 3 * DAY;
    site.0.judge(now);
    assert_eq!(site.counts().trust.standings.established(), 12);
    let trap_says = |site: &mut Ledger, n, now| {
        let said = site.0.say(&saying(1, n, Side::Spam, UNIT, now)).unwrap();
        (said.units, site.counts().trust.standings.of(&user(1)).trap_trust(now))
    };
    let mut weights = Vec::new();
    for n in 1..6 {
        weights.push(trap_says(&mut site, n, now).0);
        (2..7).for_each(|other| _ = site.say(&saying(other, n, Side::Spam, UNIT, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 50, now);
        // Copies are delivered as spam, and some users object.
        (20..28).for_each(|who| _ = site.say(&word(who, n, Side::NotSpam, now)));
        now += 2 * DAY;
    }
    assert_eq!(weights[0], UNIT);
    // Until all traps together do not make it spam.
    assert!(weights[..4].is_sorted_by(|a, b| a >= b) && weights[4] <= 4, "{weights:?}");
    // Agreement of others does not raise the trap's trust; time does.
    for n in 10..16 {
        trap_says(&mut site, n, now);
        (20..32).for_each(|who| _ = site.say(&word(who, n, Side::Spam, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 50, now);
        now += 2 * DAY;
    }
    let (units, trust) = trap_says(&mut site, 20, now);
    assert!(units <= weights[4] + 1, "{units} after {weights:?}");
    let (after, later) = trap_says(&mut site, 21, now + 400 * DAY);
    assert!(later > trust && after > units && after <= UNIT, "{after} {later}");
}

/// If no user is trusted, none lowers the trust of a trap.
#[test]
fn newcomers_take_no_trust_from_a_trap() {
    let mut site = site(&small());
    for n in 1..6 {
        let now = NOW + u64::from(n) * 2 * DAY;
        (1..5).for_each(|trap| _ = site.say(&saying(trap, n, Side::Spam, UNIT, now)));
        site.counts_mut().add(Signature::from_bytes([n; 16]), 50, now);
        _ = site.say(&word(200 + n, n, Side::Spam, now));
        (20..32).for_each(|who| _ = site.say(&word(who + 12 * n, n, Side::NotSpam, now)));
    }
    site.0.judge(NOW + 20 * DAY);
    assert!(site.counts().trust.standings.iter().len() > 0, "users are judged");
    assert!((1..5).all(|trap| { site.counts().trust.standings.of(&user(trap)).trap_units(8, NOW) == 8 }));
}
