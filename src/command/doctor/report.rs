// SPDX-License-Identifier: GPL-3.0-or-later
//! What was found, and what is to be done about it.

use bulkmark_types::remote_text;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, Write};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// It works, but needs attention.
    Warning,
    /// It does not work, or is a hole.
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

/// All lines, in the order in which things were examined.
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

    /// The worst of all.
    pub(super) fn worst(&self) -> Level {
        self.0.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }

    /// Whether anything was found wrong by this check so far.
    pub(super) fn faults(&self, check: &str) -> bool {
        self.0.iter().any(|finding| finding.check == check && finding.level > Level::Ok)
    }

    /// An object with the worst level and all checks.
    pub(super) fn json(&self) -> Value {
        json!({ "worst": self.worst(), "checks": self.0 })
    }

    /// One line as monitoring plugins print it: the state, what is wrong, and numbers behind "|".
    pub(super) fn nagios(&self, state: &str) -> String {
        let of = |level| self.0.iter().filter(move |finding| finding.level == level);
        let [errors, warnings] = [Level::Error, Level::Warning].map(|level| of(level).count());
        let wrong = of(Level::Error).chain(of(Level::Warning));
        let wrong: Vec<_> = wrong.map(|finding| format!("{}: {}", finding.check, finding.text)).collect();
        let wrong = if wrong.is_empty() {
            format!("{} checks", self.0.len())
        } else {
            remote_text(&wrong.join("; "))
        };
        let wrong = wrong.replace('|', "/");
        format!("BULKMARK {state} - {wrong} | errors={errors} warnings={warnings}")
    }

    /// A line for each finding that is at least so bad, and an indented one with the advice.
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
