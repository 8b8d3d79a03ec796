// SPDX-License-Identifier: GPL-3.0-or-later
//! Properties of trust that hold for all reports in any order.

use super::standing::EVIDENCE;
use super::{Case, Effect, MAX_STANDINGS, Outcome, Settings, Side, Standing, Standings, Vote};
use bulkmark_types::{ReporterId, UNIT};
use proptest::prelude::*;

const DAY: u64 = 86_400;

/// A noon.
const NOW: u64 = 20_000 * DAY + DAY / 2;

/// Generates evidence for and against a standing, after some days each.
fn history() -> impl Strategy<Value = Vec<(bool, u32, u64)>> {
    let days = prop_oneof![3 => Just(0u64), 2 => 1u64..4, 1 => 0u64..3_000];
    prop::collection::vec((any::<bool>(), 0..=2 * EVIDENCE, days), 0..60)
}

/// The standing after all of it, and the time.
fn after(history: &[(bool, u32, u64)]) -> (Standing, u64) {
    let (mut standing, mut now) = (Standing::default(), NOW);
    for &(agreed, evidence, days) in history {
        now += days * DAY;
        if agreed { standing.agree(evidence, now) } else { standing.contradict(evidence, now) }
    }
    (standing, now)
}

fn settings() -> impl Strategy<Value = Settings> {
    (1u32..=8, 1u32..=80, 1u32..=100).prop_map(|(new, most, threshold)| {
        Settings::new(f64::from(new) / 8.0, f64::from(most) / 8.0, threshold).unwrap()
    })
}

/// A user of the mail server.
const fn id(n: u8) -> ReporterId {
    numbered(n as u128)
}

const fn numbered(n: u128) -> ReporterId {
    ReporterId::from_bytes((n << 8 >> 8 | 1 << 120).to_le_bytes())
}

/// A standing with evidence in its favour on so many days.
fn borne_out(days: u64) -> Standing {
    let mut standing = Standing::default();
    (0..days).for_each(|day| standing.agree(EVIDENCE, NOW - (days - day) * DAY));
    standing
}

/// The votes of a sequence of reports, as a ledger keeps them.
#[derive(Default)]
struct Reports {
    votes: Vec<Vote>,
    seen: u32,
}

impl Reports {
    fn case(&self) -> Case<'_> {
        Case { votes: &self.votes, elsewhere: 0, seen: self.seen }
    }

    fn submit(
        &mut self,
        reporter: ReporterId,
        side: Side,
        standing: &Standing,
        settings: &Settings,
        established: u32,
    ) -> Effect {
        let effect = self.case().weigh((reporter, side), standing, (settings, established), NOW);
        if let Effect::Counts(vote) | Effect::Withdraws(vote, _) = effect {
            self.votes.retain(|known| known.reporter != reporter);
            self.votes.push(vote);
        }
        effect
    }

    fn copies(&mut self, number: u32) -> &mut Self {
        self.seen += number;
        self
    }
}

fn sides() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Spam), Just(Side::NotSpam)]
}

proptest! {
    /// Trust is within 0 and 1, weight within 0 and one report, after any history; and a stored standing can be read again.
    #[test]
    fn trust_has_bounds(history in history(), settings in settings(), later in 0u64..10_000) {
        let (standing, now) = after(&history);
        let now = now + later * DAY;
        prop_assert!(standing.trust(&settings, now) <= 1 << 16);
        prop_assert!(u32::from(standing.units(&settings, now)) <= UNIT);
        prop_assert_eq!(Standing::decode(&standing.encode()), Some(standing));
    }

    /// Evidence in a reporter's favour never lowers its trust, and evidence against it never raises it.
    #[test]
    fn trust_follows_evidence(history in history(), settings in settings(), evidence in 1..=EVIDENCE) {
        let (standing, now) = after(&history);
        let before = standing.trust(&settings, now);
        let (mut more, mut less) = (standing, standing);
        more.agree(evidence, now);
        less.contradict(evidence, now);
        prop_assert!(more.trust(&settings, now) >= before);
        prop_assert!(less.trust(&settings, now) <= before);
    }

    /// Without new evidence everybody becomes a newcomer again.
    #[test]
    fn evidence_ages(history in history(), settings in settings()) {
        let (standing, now) = after(&history);
        let later = now + 3_000 * DAY;
        prop_assert!(standing.is_forgotten(later));
        prop_assert_eq!(standing.trust(&settings, later), Standing::default().trust(&settings, later));
    }

    /// Newcomers together never weigh more on a side than their bound, in whatever order they and others report.
    #[test]
    fn newcomers_have_a_bound_whatever_the_order(
        sequence in prop::collection::vec((0u8..40, sides(), 0u64..6), 0..120),
        settings in settings(),
        established in 10u32..50,
    ) {
        let mut reports = Reports::default();
        for (reporter, side, days) in sequence {
            // The same number is always the same standing.
            let standing = borne_out(if reporter % 4 == 0 { days } else { 0 });
            reports.submit(id(reporter), side, &standing, &settings, established);
            for side in [Side::Spam, Side::NotSpam] {
                let new = reports.votes.iter().filter(|vote| vote.newcomer && vote.side == Some(side));
                let units: u32 = new.map(|vote| u32::from(vote.units)).sum();
                prop_assert!(units <= settings.newcomers(established));
            }
        }
    }

    /// One reporter counts once, however often it reports and in whatever order: never more than one whole report.
    #[test]
    fn one_reporter_counts_once(sequence in prop::collection::vec(sides(), 1..30), settings in settings()) {
        let mut reports = Reports::default();
        let (mut spam, mut not_spam) = (0i64, 0i64);
        for side in sequence {
            let change = match reports.submit(id(1), side, &borne_out(5), &settings, 10) {
                Effect::Counts(vote) => i64::from(vote.units),
                Effect::Withdraws(_, units) => i64::from(units),
                Effect::Repeats => 0,
            };
            *(if side == Side::Spam { &mut spam } else { &mut not_spam }) += change;
            prop_assert!((0..=UNIT.into()).contains(&(spam - not_spam)), "what the ledger adds up");
            prop_assert_eq!(reports.case().net(), spam - not_spam);
        }
    }

    /// Judging accepts any stored votes, credits nobody on the losing side, charges nobody on the winning side, and judges each reporter
    /// once.
    #[test]
    fn judgements_are_of_the_reporters(
        bytes in prop::collection::vec((0u8..30, any::<[u8; 6]>()), 0..60),
        elsewhere in any::<i32>(),
        seen: u32,
    ) {
        let mut votes: Vec<Vote> = bytes.iter().filter_map(|(reporter, bytes)| Vote::decode(id(*reporter), bytes)).collect();
        votes.sort_by_key(|vote| vote.reporter);
        votes.dedup_by_key(|vote| vote.reporter);
        let (outcome, judgements) = Case { votes: &votes, elsewhere: elsewhere.into(), seen }.judge();
        for judgement in &judgements {
            let vote = votes.iter().find(|vote| vote.reporter == judgement.reporter).unwrap();
            let right = vote.side == Some(if outcome == Outcome::Spam { Side::Spam } else { Side::NotSpam });
            prop_assert_eq!(judgement.agreed, right);
        }
        prop_assert!(judgements.len() <= votes.len());
        prop_assert!(outcome != Outcome::Open || judgements.is_empty());
    }

    /// Encoded votes and standings are read back; invalid ones are refused.
    #[test]
    fn bytes_are_read_as_they_are_written(bytes: [u8; 6], standing: [u8; 16]) {
        if let Some(vote) = Vote::decode(id(1), &bytes) {
            prop_assert_eq!(vote.encode(), bytes);
        }
        if let Some(standing_) = Standing::decode(&standing) {
            prop_assert_eq!(standing_.encode(), standing);
            prop_assert!(standing_.trust(&Settings::default(), NOW) <= 1 << 16);
        }
    }
}

#[test]
fn a_thousand_new_accounts_weigh_no_more_than_an_old_one() {
    let (settings, mut reports) = (Settings::default(), Reports::default());
    for n in 0..1_000u16 {
        let reporter = ReporterId::from_bytes(std::array::from_fn(|i| n.to_le_bytes()[i % 2]));
        reports.submit(reporter, Side::Spam, &Standing::default(), &settings, 10);
    }
    assert_eq!(reports.case().net(), i64::from(UNIT));
    assert_eq!(u32::from(borne_out(3).units(&settings, NOW)), UNIT);
}

/// Unknown reporters are newcomers at any configured weight: only others' reports make one established, and the same number of them.
#[test]
fn nobody_is_established_by_a_setting() {
    for new in [0.25, 0.5, 0.75, 1.0] {
        let settings = Settings::new(new, 2.0, 3 * UNIT).unwrap();
        let mut reports = Reports::default();
        for n in 0..1_000u16 {
            let reporter = ReporterId::from_bytes(std::array::from_fn(|i| n.to_le_bytes()[i % 2]));
            reports.submit(reporter, Side::Spam, &Standing::default(), &settings, 10);
        }
        assert_eq!(reports.case().net(), 2 * i64::from(UNIT), "{new}");
        let (mut little, mut doubted) = (Standing::default(), Standing::default());
        little.agree(EVIDENCE / 2, NOW);
        doubted.contradict(EVIDENCE / 16, NOW);
        let established = [Standing::default(), little, doubted, borne_out(1)];
        let established = established.map(|standing| standing.is_established(&settings, NOW));
        assert_eq!(established, [false, false, false, true], "{new}");
        assert_eq!(Standings::new([(id(1), little)], &settings, NOW).established(), 0);
    }
}

/// If three reporters make spam, it is shown as spam and not revoked, they gain trust; a newcomer among them gains more, in proportion. If
/// most readers who could revoke it do, the nominators lose trust.
#[test]
fn nominators_gain_or_lose_trust_by_the_outcome() {
    let settings = Settings::default();
    let (old, new) = (borne_out(5), Standing::default());
    let nominated = || {
        let mut reports = Reports::default();
        reports.copies(100).submit(id(1), Side::Spam, &new, &settings, 10);
        for reporter in 2..=4 {
            reports.copies(100).submit(id(reporter), Side::Spam, &old, &settings, 10);
        }
        assert_eq!(reports.case().net(), 26);
        reports
    };
    let judged = |reports: &Reports| {
        let (outcome, judgements) = reports.case().judge();
        let mut standings = Standings::new([2, 3, 4].map(|n| (id(n), old)), &settings, NOW);
        standings.apply(&judgements, 1, &settings, NOW);
        (outcome, [1, 2, 9].map(|n| standings.of(&id(n)).trust(&settings, NOW)))
    };
    let before = [&new, &old, &new].map(|standing| standing.trust(&settings, NOW));
    let mut reports = nominated();
    assert_eq!(judged(&reports), (Outcome::Open, before), "nobody could object");
    reports.copies(50);
    // A report that repeats the verdict has no merit.
    reports.submit(id(9), Side::Spam, &new, &settings, 10);
    let (outcome, [first, second, late]) = judged(&reports);
    assert_eq!((outcome, late), (Outcome::Spam, before[2]));
    assert!(first > 2 * before[0] && second >= before[1], "{first} {second} of {before:?}");

    let mut reports = nominated();
    reports.submit(id(5), Side::Spam, &old, &settings, 10);
    for reporter in 9..=10 {
        reports.copies(10).submit(id(reporter), Side::NotSpam, &old, &settings, 10);
    }
    let (outcome, [first, second, revoked]) = judged(&reports);
    assert_eq!(outcome, Outcome::NotSpam);
    assert!(first < before[0] / 2 && second < before[1] && revoked > before[2]);
}

/// The fewer copies were shown as spam, the less reporters gain; one objection to the first of them leaves the outcome open no more than
/// one in a hundred would.
#[test]
fn few_copies_give_little_evidence() {
    let settings = Settings::default();
    let old = borne_out(5);
    let nominated = |copies: u32| {
        let mut reports = Reports::default();
        for reporter in 1..=3 {
            reports.copies(1).submit(id(reporter), Side::Spam, &old, &settings, 10);
        }
        reports.copies(copies);
        reports
    };
    let gained = |copies| {
        let reports = nominated(copies);
        let (outcome, judgements) = reports.case().judge();
        assert_eq!(outcome, Outcome::Spam);
        judgements[0].apply(Standing::default(), 1, NOW).trust(&settings, NOW)
    };
    assert!(gained(1) < gained(3) && gained(3) < gained(100), "{:?}", [1, 3, 100].map(gained));
    let mut reports = nominated(1);
    reports.submit(id(9), Side::NotSpam, &old, &settings, 10);
    assert_eq!(reports.case().judge().0, Outcome::Spam);
}

/// A reporter that makes spam alone, without objections, gains nothing.
#[test]
fn a_lone_nominator_gains_nothing() {
    let (settings, mut reports) = (Settings::new(1.0, 1.0, UNIT).unwrap(), Reports::default());
    reports.copies(10).submit(id(1), Side::Spam, &Standing::default(), &settings, 10);
    let (outcome, judgements) = reports.copies(50).case().judge();
    assert_eq!((outcome, judgements), (Outcome::Spam, Vec::new()));
}

/// A revocation only takes back existing nominations, not later ones.
#[test]
fn nothing_is_revoked_in_advance() {
    let (settings, mut reports) = (Settings::default(), Reports::default());
    let old = borne_out(5);
    reports.submit(id(1), Side::NotSpam, &old, &settings, 10);
    assert_eq!(reports.case().net(), 0);
    reports.submit(id(2), Side::Spam, &old, &settings, 10);
    reports.submit(id(3), Side::NotSpam, &old, &settings, 10);
    reports.submit(id(4), Side::NotSpam, &old, &settings, 10);
    assert_eq!(reports.case().net(), 0);
}

/// One day gives one day's trust, for any number of messages, and half of all evidence is gone after 88 days.
#[test]
fn trust_takes_its_time() {
    let (mut once, mut often) = (Standing::default(), Standing::default());
    (0..3).for_each(|_| once.agree(EVIDENCE, NOW));
    (0..1_000).for_each(|_| often.agree(EVIDENCE, NOW));
    assert_eq!(once.encode(), often.encode());
    let settings = Settings::default();
    let mut doubted = Standing::default();
    doubted.contradict(EVIDENCE, NOW);
    let [soon, later] = [NOW, NOW + 88 * DAY].map(|now| doubted.trust(&settings, now));
    assert_eq!([soon, later].map(|trust| trust / 100), [30, 49], "0.1875 of 4 pieces, and of 2.5");
}

/// After ten contradicted reports even a reporter of long standing weighs less than a newcomer.
#[test]
fn merit_is_spent_soon() {
    let settings = Settings::default();
    let mut liar = borne_out(300);
    assert_eq!(u32::from(liar.units(&settings, NOW)), UNIT);
    (0..10).for_each(|_| liar.contradict(EVIDENCE, NOW));
    assert!(liar.units(&settings, NOW) < Standing::default().units(&settings, NOW));
}

/// Ten established reporters make a site old; with fewer, newcomers count, or no one could ever earn trust.
#[test]
fn newcomers_count_on_a_young_site() {
    let (settings, mut reports) = (Settings::default(), Reports::default());
    for reporter in 0..12 {
        reports.submit(id(reporter), Side::Spam, &Standing::default(), &settings, 9);
    }
    assert_eq!(reports.case().net(), i64::from(settings.threshold()));
}

/// Twelve accounts of one owner cannot vouch for each other by mail that they send to themselves: none of them gains trust, even on the
/// youngest site. A trap's or a known user's report is needed, or another site's.
#[test]
fn newcomers_do_not_vouch_for_each_other() {
    let settings = Settings::default();
    let gained = |others: u32, elsewhere: i64, known: bool| {
        let mut reports = Reports::default();
        if known {
            reports.submit(id(99), Side::Spam, &borne_out(5), &settings, 1);
        }
        for reporter in 0..12 {
            reports.copies(1).submit(id(reporter), Side::Spam, &Standing::default(), &settings, 1);
        }
        reports.copies(others);
        let (outcome, judgements) = Case { elsewhere, ..reports.case() }.judge();
        assert!(outcome == Outcome::Spam || others == 0);
        let first = judgements.iter().find(|judgement| judgement.reporter == id(0));
        first.is_some_and(|judgement| judgement.apply(Standing::default(), 1, NOW).encode()[..4] != [0; 4])
    };
    assert!(!gained(1000, 0, false) && !gained(0, 0, true));
    assert!(gained(1000, 8, false) && gained(1000, 0, true));
}

/// Mail that only its reporters got gives no evidence, even if one of them is known.
#[test]
fn mail_that_only_its_reporters_got_gives_no_evidence() {
    let (settings, mut reports) = (Settings::default(), Reports::default());
    for reporter in 0..12 {
        let standing = if reporter == 0 { borne_out(5) } else { Standing::default() };
        reports.submit(id(reporter), Side::Spam, &standing, &settings, 1);
    }
    // Each of them gets it after it became spam.
    let (outcome, judgements) = reports.copies(12).case().judge();
    assert_eq!(outcome, Outcome::Spam);
    for judgement in judgements {
        assert_eq!(judgement.apply(Standing::default(), 1, NOW).encode()[..8], [0; 8]);
    }
}

/// On a young site five newcomers cannot revoke the nominations of four known users, but those of newcomers.
#[test]
fn newcomers_revoke_only_nominations_of_newcomers() {
    let settings = Settings::default();
    let net = |nominators: u8, old: bool, objectors: u8| {
        let mut reports = Reports::default();
        for reporter in 0..nominators {
            let standing = if old { borne_out(5) } else { Standing::default() };
            reports.submit(id(reporter), Side::Spam, &standing, &settings, 4);
        }
        for reporter in 100..100 + objectors {
            reports.submit(id(reporter), Side::NotSpam, &Standing::default(), &settings, 4);
        }
        reports.case().net()
    };
    let unit = i64::from(UNIT);
    assert_eq!([net(4, true, 5), net(4, true, 50)], [3 * unit; 2]);
    assert_eq!([net(40, false, 0), net(40, false, 20), net(40, false, 40)], [10 * unit, 5 * unit, 0]);
}

/// The number of standings is bounded, and forgotten ones make room.
#[test]
fn standings_are_bounded_and_swept() {
    let settings = Settings::default();
    let mut standings = Standings::new([(id(1), borne_out(5)), (id(2), Standing::default())], &settings, NOW);
    assert_eq!((standings.iter().len(), standings.established()), (1, 1));
    assert_eq!(standings.sweep(&settings, NOW + 3_000 * DAY), [id(1)]);
    assert_eq!((standings.iter().len(), standings.established()), (0, 0));
    let full = (0..MAX_STANDINGS as u128 + 1).map(|n| (numbered(n), borne_out(1)));
    let mut standings = Standings::new(full, &settings, NOW);
    let mut reports = Reports::default();
    for n in [u128::MAX, 1, 2, 3] {
        reports.copies(9).submit(numbered(n), Side::Spam, &borne_out(5), &settings, 10);
    }
    let judgements = reports.copies(100).case().judge().1;
    let changed = standings.apply(&judgements, 1, &settings, NOW);
    assert_eq!((judgements.len(), changed.len(), standings.iter().len()), (3, 2, MAX_STANDINGS));
    let mut standings = Standings::new([(id(1), borne_out(5))], &settings, NOW);
    assert!(standings.forget(&id(1), &settings, NOW) && !standings.forget(&id(1), &settings, NOW));
    assert_eq!(standings.established(), 0);
}

#[test]
fn settings_have_bounds() {
    let refused = |new, most| Settings::new(new, most, 24).unwrap_err().to_string();
    assert!(refused(0.1, 1.0).starts_with("new-reporter is 0.1, expected 0.125 to 1"));
    assert!(refused(f64::NAN, 1.0).starts_with("new-reporter is NaN"));
    assert!(refused(1.0, 0.0).starts_with("max-newcomers is 0, expected 0.125 to 1000"));
    assert_eq!(Settings::new(0.25, 1.0, 24).unwrap(), Settings::default());
}
