// SPDX-License-Identifier: GPL-3.0-or-later
//! The simulated scenarios: the liars and their behaviour.

use super::people::{Lie, TURN};
use super::world::{Accounts, Day, World};
use bulkmark_trust::Settings;

/// Accounts that an attacker opens.
const ACCOUNTS: u32 = 1_000;

/// Days for which accounts of one owner are patient.
const PATIENCE: u32 = 10;

/// The liars and their behaviour.
#[derive(Debug, Clone, Copy)]
pub struct Scenario {
    /// The percentage of people who lie.
    pub liars: u32,
    /// Their behaviour.
    pub lie: Lie,
    /// Whether they report every message.
    pub eager: bool,
    /// Accounts of one owner.
    pub accounts: Option<Accounts>,
}

impl Scenario {
    /// No liars.
    pub const NOBODY: Self = Self { liars: 0, lie: Lie::Silent, eager: false, accounts: None };

    /// All simulated scenarios.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = vec![Self::NOBODY];
        for eager in [false, true] {
            for lie in Lie::LIES {
                all.extend([10, 30, 50].map(|liars| Self { liars, lie, eager, accounts: None }));
            }
        }
        for (day, lie) in [(TURN, Lie::Opposite), (TURN - PATIENCE, Lie::Patient(TURN))] {
            let accounts = Some(Accounts { number: ACCOUNTS, day, lie, own: 0 });
            all.push(Self { accounts, ..Self::NOBODY });
        }
        all
    }

    /// Its name in tables.
    #[must_use]
    pub fn name(&self) -> String {
        if let Some(accounts) = self.accounts {
            let patient = if accounts.lie == Lie::Opposite { "" } else { ", patient" };
            return format!("{} new accounts{patient}", accounts.number);
        }
        match (self.liars, self.eager) {
            (0, _) => "nobody lies".to_owned(),
            (liars, eager) => format!("{liars} % {}{}", self.lie.name(), if eager { ", eager" } else { "" }),
        }
    }

    /// Returns the results of a scenario, with or without trust.
    #[must_use]
    pub fn run(&self, runs: Runs, trust: bool) -> Vec<Day> {
        let (people, days) = (runs.people, runs.days);
        let &Self { liars, lie, eager, accounts } = self;
        let settings = if trust { Settings::default() } else { alike() };
        let run = |seed| {
            World {
                people,
                liars,
                lie,
                eager,
                accounts,
                days,
                trust,
                vouched: runs.vouched,
                trapped: runs.trapped,
                settings,
                seed,
            }
            .run()
        };
        let mut all = (1..=u64::from(runs.runs)).map(run);
        let first = all.next().unwrap_or_default();
        all.fold(first, |sum, run| sum.iter().zip(&run).map(|(sum, day)| sum.and(day)).collect())
            .iter()
            .map(|day| Day {
                honest: day.honest / f64::from(runs.runs),
                liars: day.liars / f64::from(runs.runs),
                ..*day
            })
            .collect()
    }
}

/// Every reporter has the weight one, and newcomers have no common limit.
fn alike() -> Settings {
    let default = Settings::default();
    Settings::new(1.0, 1_000.0, default.threshold()).unwrap_or(default)
}

/// The size of the simulation.
#[derive(Debug, Clone, Copy)]
pub struct Runs {
    /// People of the site.
    pub people: u32,
    /// Days.
    pub days: u32,
    /// Honest people for whom the administrator vouches.
    pub vouched: u32,
    /// The number in a hundred spam mailings that reach a trap.
    pub trapped: u32,
    /// The number of seeds.
    pub runs: u32,
}
