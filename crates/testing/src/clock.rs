// SPDX-License-Identifier: GPL-3.0-or-later
//! A clock that is wrong, and is corrected while a daemon runs, by libfaketime.

use super::{Site, skip};
use std::path::PathBuf;
use std::process::Command;

/// The clock of a site's daemon. It runs at normal speed; only the time that it shows differs.
pub struct Clock(PathBuf);

impl Clock {
    /// Sets the clock of all daemons that are started at this site from now on. None where there is no faketime; a machine that
    /// tests every change must have it.
    pub fn of(site: &mut Site, offset: &str) -> Option<Self> {
        let (clock, environment) = Self::at(site.path("clock"), offset)?;
        site.environment = environment;
        Some(clock)
    }

    /// Makes a clock that is kept in this file, and the environment for the daemons that use it.
    pub fn at(file: PathBuf, offset: &str) -> Option<(Self, Vec<(String, String)>)> {
        let ask = || Command::new("faketime").args(["-m", "now", "printenv", "LD_PRELOAD"]).output().ok();
        // This fails if a process of the same number was killed and left its semaphore behind. The next process has another
        // number.
        let mut answers = std::iter::from_fn(ask).take(10);
        let Some(library) = answers.find(|output| output.status.success()) else {
            assert!(std::env::var_os("CI").is_none(), "there is no faketime; run tests/mta/install");
            skip("there is no faketime here");
            return None;
        };
        let clock = Self(file);
        clock.set(offset);
        let library = String::from_utf8(library.stdout).unwrap().trim().to_owned();
        let environment = [
            ("LD_PRELOAD", library),
            ("FAKETIME_TIMESTAMP_FILE", clock.0.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
        Some((clock, environment))
    }

    /// Sets the clock, as an offset from the real time: `+2d`, `-2d`, `+0`.
    pub fn set(&self, offset: &str) {
        let new = self.0.with_extension("new");
        std::fs::write(&new, format!("{offset}\n")).unwrap();
        std::fs::rename(new, &self.0).unwrap();
    }
}
