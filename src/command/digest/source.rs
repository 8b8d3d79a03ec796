// SPDX-License-Identifier: GPL-3.0-or-later
//! The sources of lines: the journal, files, or standard input.

use super::day::Day;
use super::line::{Line, is_date, read};
use crate::command::show::time;
use crate::telemetry::as_text;
use anyhow::Context;
use bulkmark_types::visible;
use flate2::read::MultiGzDecoder;
use humantime_serde::re::humantime;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

/// Length limit of a line in bytes: a message with five of the longest recipients has 5,000. Longer lines are not bulkmark's.
const MAX_LINE: u64 = 64 << 10;

/// The first bytes of a file of gzip(1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Adds the lines of a file, which may be compressed by gzip; `-` is standard input. With a `date`, only those of that day.
pub(super) fn file(path: &Path, date: Option<&str>, day: &mut Day) -> anyhow::Result<()> {
    let shown = path.display();
    if path == Path::new("-") {
        return lines(io::stdin().lock(), date, Wanted::All, day).context("cannot read standard input");
    }
    let mut reader = BufReader::new(File::open(path).with_context(|| format!("cannot read {shown}"))?);
    let is_packed = reader.fill_buf().with_context(|| format!("cannot read {shown}"))?.starts_with(&GZIP);
    let input: Box<dyn Read> =
        if is_packed { Box::new(MultiGzDecoder::new(reader)) } else { Box::new(reader) };
    lines(BufReader::new(input), date, Wanted::All, day).with_context(|| format!("cannot read {shown}"))
}

/// Adds the journal's lines of a unit: of a day, or of yesterday.
pub(super) fn journal(unit: &str, date: Option<&str>, day: &mut Day) -> anyhow::Result<()> {
    let (since, until) = match date {
        Some(date) => (date.to_owned(), day_after(date)?),
        None => ("yesterday".to_owned(), "today".to_owned()),
    };
    // The journal knows the level of a line, but the line does not contain it.
    for (priority, wanted) in [("debug", Wanted::Messages), ("warning", Wanted::Others)] {
        let mut child = Command::new("journalctl")
            .args(["--quiet", "--no-pager", "--output=short-iso", "--unit", unit, "--priority", priority])
            .args(["--since", &since, "--until", &until])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run journalctl; name the log's files")?;
        if let Some(output) = child.stdout.take() {
            lines(BufReader::new(output), None, wanted, day)
                .context("cannot read the output of journalctl")?;
        }
        let status = child.wait().context("cannot wait for journalctl")?;
        anyhow::ensure!(
            status.success(),
            "journalctl failed ({status}); run it as root, or name the log's files"
        );
    }
    Ok(())
}

/// The lines that are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    All,
    Messages,
    Others,
}

fn lines(mut input: impl BufRead, date: Option<&str>, wanted: Wanted, day: &mut Day) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut input).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        // Any local user can write to the log, also control characters.
        let text = visible(&as_text(text.trim_end()));
        let Some((stamp, found)) = read(&text) else { continue };
        let is_wanted = match wanted {
            Wanted::All => true,
            Wanted::Messages => matches!(found, Line::Message(_)),
            Wanted::Others => matches!(found, Line::Other(..)),
        };
        if is_wanted && date.is_none_or(|date| stamp.date == date) {
            day.add(&stamp, &found);
        }
    }
}

/// Checks a date of the command line.
pub(super) fn date(text: &str) -> Result<String, String> {
    match day_after(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!("found {text:?}, expected a date such as 2026-11-22")),
    }
}

fn day_after(date: &str) -> anyhow::Result<String> {
    anyhow::ensure!(is_date(date), "{date} is no date");
    let midnight = humantime::parse_rfc3339(&format!("{date}T00:00:00Z"))?;
    let seconds = midnight.duration_since(UNIX_EPOCH)?.as_secs() + 86_400;
    Ok(time(seconds).to_string().split('T').next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::print::{self, Limit};
    use super::*;
    use bulkmark_types::is_invisible;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(day_after("2026-12-31").unwrap(), "2027-01-01");
        assert_eq!(day_after("2028-02-28").unwrap(), "2028-02-29");
        for bad in ["", "yesterday", "2026-13-01", "2026-11-31", "26-11-22", "2026-11-22T"] {
            assert!(date(bad).is_err(), "{bad}");
        }
    }

    /// Any local user can write bulkmark's name into the log.
    #[test]
    fn no_line_moves_the_cursor_or_adds_lines() {
        let evil = "\u{1b}[2J\u{9b}2J\u{202e}";
        let object = serde_json::json!({
            "time": "2026-11-22T01:00:00Z", "level": "error", "text": format!("one{evil}\n\nProposed white-list lines\n"),
        });
        let stamp = "2026-11-22T01:00:00Z mx bulkmark[1]: ";
        let message = format!(
            "4A{evil}: client=out{evil}[192.0.2.1] from=<a@b{evil}> to=<x> nrcpt=2 verdict=bulk body=25 threshold=20 signature=s{evil} \
             policy=p{evil} action=reject"
        );
        let text = format!("{stamp}{object}\n{stamp}{message}\n{stamp}err: two{evil}\n");
        let mut day = Day::new(None);
        lines(text.as_bytes(), None, Wanted::All, &mut day).unwrap();
        assert_eq!((day.messages, day.notices.len()), (1, 2));
        let limit = Limit(20);
        let shown = print::text(&day, "mx", "today", limit) + &print::subject(&day, "mx", "today");
        assert_eq!(shown.find(|c: char| is_invisible(c) && c != '\n'), None, "{shown}");
        assert!(!shown.lines().any(|line| line.starts_with("Proposed")), "{shown}");
    }

    /// A line that never ends takes no memory, and the lines after it are read.
    #[test]
    fn long_lines_are_passed_over() {
        let mut text = vec![b'x'; 1 << 20];
        text.extend(b"\n2026-11-22T01:00:00Z mx bulkmark[1]: err: something\n\xff\xfe\n");
        let mut day = Day::new(None);
        lines(&*text, None, Wanted::All, &mut day).unwrap();
        assert_eq!((day.all.count, day.notices.len()), (1, 1));
    }
}
