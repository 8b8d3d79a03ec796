// SPDX-License-Identifier: GPL-3.0-or-later
//! The findings, with advice.

use bulkmark_types::told;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, Write};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    /// No problem.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work, or is a security hole.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One line.
#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    level: Level,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

/// All findings, in the order of the checks.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Finding>);

impl Report {
    pub(super) fn ok(&mut self, check: &'static str, text: impl fmt::Display) {
        self.0.push(Finding { check, level: Level::Ok, text: text.to_string(), advice: None });
    }

    pub(super) fn warning(
        &mut self,
        check: &'static str,
        text: impl fmt::Display,
        advice: impl fmt::Display,
    ) {
        self.add(check, Level::Warning, text, advice);
    }

    pub(super) fn error(&mut self, check: &'static str, text: impl fmt::Display, advice: impl fmt::Display) {
        self.add(check, Level::Error, text, advice);
    }

    fn add(&mut self, check: &'static str, level: Level, text: impl fmt::Display, advice: impl fmt::Display) {
        self.0.push(Finding { check, level, text: text.to_string(), advice: Some(advice.to_string()) });
    }

    /// Returns the worst level.
    pub(super) fn worst(&self) -> Level {
        self.0.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }

    /// Whether this check has found a problem so far.
    pub(super) fn faults(&self, check: &str) -> bool {
        self.0.iter().any(|finding| finding.check == check && finding.level > Level::Ok)
    }

    /// Returns an object with the worst level and all checks.
    pub(super) fn json(&self) -> Value {
        json!({ "worst": self.worst(), "checks": self.0 })
    }

    /// Returns one line in the form of monitoring plugins: the state, the problems, and numbers behind "|".
    pub(super) fn nagios(&self, state: &str) -> String {
        let at = |level| self.0.iter().filter(move |finding| finding.level == level);
        let [errors, warnings] = [Level::Error, Level::Warning].map(|level| at(level).count());
        let wrong = at(Level::Error).chain(at(Level::Warning));
        let wrong: Vec<_> = wrong.map(|finding| format!("{}: {}", finding.check, finding.text)).collect();
        let wrong =
            if wrong.is_empty() { format!("{} checks", self.0.len()) } else { told(&wrong.join("; ")) };
        let wrong = wrong.replace('|', "/");
        format!("BULKMARK {state} - {wrong} | errors={errors} warnings={warnings}")
    }

    /// Prints a line for each finding from this level on, and an indented one with the advice.
    pub(super) fn print(&self, out: &mut impl Write, least: Level) -> io::Result<()> {
        for Finding { check, level, text, advice } in self.0.iter().filter(|finding| finding.level >= least) {
            writeln!(out, "{level:<7}  {check}: {text}")?;
            if let Some(advice) = advice {
                writeln!(out, "         {advice}")?;
            }
        }
        Ok(())
    }
}
