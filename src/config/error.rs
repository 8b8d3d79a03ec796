// SPDX-License-Identifier: GPL-3.0-or-later
//! Errors of the configuration, for the person who corrects them.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A configuration cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    path: PathBuf,
    /// Line, column (both from 1), and the line itself with the width of the error in it.
    place: Option<Spot>,
    /// The key, with its tables: `ledger.window`.
    key: Option<String>,
    message: String,
}

#[derive(Debug, PartialEq, Eq)]
struct Spot {
    line: usize,
    column: usize,
    /// None if it may contain a password (an address with a name before its host), or is too long.
    text: Option<String>,
    width: usize,
}

/// Characters of a line that are shown; one that is wrong behind them is not.
const LONGEST_LINE: usize = 200;

impl std::error::Error for ConfigError {}

impl ConfigError {
    /// Creates an error about the whole file.
    pub fn file(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), place: None, key: None, message: message.into() }
    }

    /// Creates an error at a place in the text of the file.
    pub(super) fn at(
        path: &Path,
        text: &str,
        span: Option<Range<usize>>,
        key: Option<String>,
        message: String,
    ) -> Self {
        Self { path: path.to_owned(), place: span.map(|span| Spot::new(text, &span)), key, message }
    }
}

impl Spot {
    fn new(text: &str, span: &Range<usize>) -> Self {
        let start = text.floor_char_boundary(span.start.min(text.len()));
        let line_start = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let line_text = text[line_start..].lines().next().unwrap_or("");
        let before = text[line_start..start].chars().count();
        let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
        let width = text[start..end].lines().next().map_or(0, |marked| marked.chars().count());
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: before + 1,
            text: Some(line_text)
                .filter(|line| !(line.contains("://") && line.contains('@')))
                .filter(|_| before < LONGEST_LINE)
                .map(|line| line.chars().take(LONGEST_LINE).collect()),
            width: width.clamp(1, LONGEST_LINE.saturating_sub(before).max(1)),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(place) = &self.place {
            write!(f, ":{}:{}", place.line, place.column)?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(Spot { line, column, text: Some(text), width }) = &self.place {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            let blank = " ".repeat(column - 1);
            write!(f, "\n {margin} |\n {number} | {text}\n {margin} | {blank}{}", "^".repeat(*width))?;
        }
        Ok(())
    }
}

/// Rewords serde's message about a value: `found ..., expected ...`, with the most similar name for an unknown one. Also returns the unknown
/// key, if that is the error.
pub(super) fn reword(message: &str) -> (String, Option<String>) {
    let message = message.trim();
    if let Some((length, expected)) =
        message.strip_prefix("invalid length ").and_then(|rest| rest.split_once(", expected "))
    {
        return (format!("found a list of {length}, expected {}", reword_expected(expected)), None);
    }
    if let Some(name) = message.strip_prefix("missing field `") {
        return (format!("the key {} is missing", name.trim_end_matches('`')), None);
    }
    for prefix in ["invalid type: ", "invalid value: "] {
        if let Some(rest) = message.strip_prefix(prefix) {
            let (found, expected) = rest.split_once(", expected ").unwrap_or((rest, "something else"));
            return (format!("found {}, expected {}", reword_found(found), reword_expected(expected)), None);
        }
    }
    let unknown = |prefix: &str| {
        let rest = message.strip_prefix(prefix)?;
        let mut names = rest.split('`').skip(1).step_by(2);
        Some((names.next()?.to_owned(), names.map(str::to_owned).collect::<Vec<_>>()))
    };
    if let Some((found, known)) = unknown("unknown field ") {
        let hint = if TOP_LEVEL.contains(&&*found) && !known.contains(&found) {
            format!("{found} belongs above the first [table]")
        } else {
            suggestion(&found, &known)
        };
        return (format!("unknown key, {hint}"), Some(found));
    }
    if let Some((found, known)) = unknown("unknown variant ") {
        return (format!("found \"{found}\", {}", suggestion(&found, &known)), None);
    }
    (message.to_owned(), None)
}

/// Keys that are often written below a table by mistake, so that TOML reads them as keys of the table.
const TOP_LEVEL: [&str; 16] = [
    "listen",
    "listen-mode",
    "control",
    "state-dir",
    "max-connections",
    "idle-timeout",
    "hostname",
    "header",
    "exempt",
    "exempt-networks",
    "relays",
    "policy",
    "on-failure",
    "act-despite",
    "verdict-deadline",
    "upstream",
];

fn reword_found(found: &str) -> String {
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    match (kind, value.trim_matches('`')) {
        ("map", _) => "a table".to_owned(),
        ("sequence", _) => "a list".to_owned(),
        ("integer" | "floating" | "boolean", value) => value.trim_start_matches("point `").to_owned(),
        ("string", value) => value.to_owned(),
        _ => found.to_owned(),
    }
}

fn reword_expected(expected: &str) -> &str {
    match expected {
        "a nonzero usize" => "a whole number above 0",
        "a nonzero u32" => WHOLE_U32,
        "i64" => "a whole number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "a boolean" => "true or false",
        "a sequence" => "a list, as in [\"one\", \"another\"]",
        "a duration" => "a time, as in \"7d\" or \"90s\"",
        "path string" => "a path in quotes",
        "a string" => "a text in quotes",
        struct_name if struct_name.starts_with("struct ") => "a table, as in [ledger]",
        other => other,
    }
}

const WHOLE_U32: &str = "a whole number from 1 to 4294967295";

fn suggestion(found: &str, known: &[String]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::jaro_winkler(&found.to_lowercase(), name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match nearest {
        Some((_, name)) => format!("did you mean {name}?"),
        None if known.len() == 1 => format!("expected {}", known.join("")),
        None => format!("expected one of {}", known.join(", ")),
    }
}
