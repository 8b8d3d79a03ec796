// SPDX-License-Identifier: GPL-3.0-or-later
//! One line of a log, in the form of syslog, the journal or standard error.
//!
//! The same files have lines of other programs, with text from their senders. So a line is bulkmark's only if its name is where the log daemon
//! puts a program's name.

use std::time::{SystemTime, UNIX_EPOCH};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Levels of urgent and routine lines, if they are known: names of syslog, and of standard error. Urgent ones are worth reading.
const URGENT: [&str; 7] = ["emerg", "alert", "crit", "err", "error", "warning", "warn"];
const ROUTINE: [&str; 4] = ["notice", "info", "debug", "trace"];

/// The time of a line, in its own time zone; empty if it has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    /// `2026-11-22`
    pub(super) date: String,
    /// `16:08`
    pub(super) time: String,
}

/// A line of bulkmark.
#[expect(clippy::large_enum_variant, reason = "one exists at a time, and most are messages")]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// The line of a message.
    Message(Message<'a>),
    /// Another line, and whether it is urgent, if that is known.
    Other(&'a str, Option<bool>),
}

/// The line of a message, as docs/monitoring.md describes it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Message<'a> {
    /// The name of the machine that wrote the line; empty in the form of standard error.
    pub(super) machine: &'a str,
    pub(super) id: &'a str,
    /// The client's name, if it was verified, and its address.
    pub(super) host: Option<&'a str>,
    pub(super) ip: &'a str,
    pub(super) from: &'a str,
    /// The named recipients, `a@b.example>,<c@b.example`.
    pub(super) to: &'a str,
    pub(super) recipients: u64,
    pub(super) verdict: &'a str,
    pub(super) reason: &'a str,
    pub(super) body: Option<u32>,
    pub(super) near: Option<u32>,
    pub(super) threshold: Option<u32>,
    pub(super) signature: &'a str,
    /// The name of its mailing at the daemon that judged it; empty if the log has none.
    pub(super) mailing: &'a str,
    pub(super) action: &'a str,
    /// The action that was only rehearsed; empty if there is none.
    pub(super) would: &'a str,
    pub(super) policy: &'a str,
}

/// Reads a line; none if it is another program's.
pub(super) fn read(line: &str) -> Option<(Stamp, Line<'_>)> {
    let (stamp, rest) = stamp(line);
    let (machine, rest) =
        if stamp.date.is_empty() { ("", rest) } else { rest.trim_start().split_once(' ')? };
    let mut rest = ours(rest.trim_start())?;
    // Standard error has its own name, and the journal may have put another before it.
    rest = rest.strip_prefix("bulkmark: ").unwrap_or(rest);
    let level = rest.split_once(": ").map(|(level, _)| level).unwrap_or_default();
    let urgent = match level {
        level if URGENT.contains(&level) => Some(true),
        level if ROUTINE.contains(&level) => Some(false),
        _ => None,
    };
    if urgent.is_some() {
        rest = rest[level.len() + 2..].trim_start();
    }
    let of_message = message(rest).map(|message| Line::Message(Message { machine, ..message }));
    Some((stamp, of_message.unwrap_or(Line::Other(rest, urgent))))
}

/// Returns the text behind bulkmark's name, if the line begins with it.
fn ours(rest: &str) -> Option<&str> {
    let behind = rest.strip_prefix("bulkmark")?;
    let (tag, text) = behind.split_once(": ")?;
    let number = tag.strip_prefix('[').and_then(|number| number.strip_suffix(']'));
    (tag.is_empty() || number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))).then_some(text)
}

/// Returns the time at the beginning of a line, and the rest.
fn stamp(line: &str) -> (Stamp, &str) {
    let is_clock = |text: &str| text.len() >= 5 && text.as_bytes()[2] == b':' && text.is_char_boundary(5);
    if let Some((word, rest)) = line.split_once(' ') {
        // 2026-11-22T16:08:01.123456+01:00
        if let Some((date, time)) = word.split_once('T')
            && is_date(date)
            && is_clock(time)
        {
            return (Stamp { date: date.to_owned(), time: time[..5].to_owned() }, rest);
        }
        // Nov 22 16:08:01
        if let Some(month) = MONTHS.iter().position(|month| *month == word) {
            let mut words = rest.trim_start().splitn(3, ' ');
            if let (Some(Ok(day)), Some(time), Some(rest)) =
                (words.next().map(str::parse::<u8>), words.next(), words.next())
                && is_clock(time)
            {
                let date = format!("{:04}-{:02}-{day:02}", year_of(month), month + 1);
                return (Stamp { date, time: time[..5].to_owned() }, rest);
            }
        }
    }
    (Stamp::default(), line)
}

/// Whether it has the form `2026-11-22`.
pub(super) fn is_date(text: &str) -> bool {
    let shape = |(i, b): (usize, u8)| if i == 4 || i == 7 { b == b'-' } else { b.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(shape)
}

/// Returns the year of a month (from 0), the last one that has begun: old log files have no year.
fn year_of(month: usize) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|age| age.as_secs()).unwrap_or_default();
    // A day more, for time zones ahead of UTC.
    let today = crate::command::show::time(now + 86_400).to_string();
    let number = |range: std::ops::Range<usize>| today.get(range).and_then(|text| text.parse().ok());
    let (year, present) = (number(0..4).unwrap_or(1970), number(5..7).unwrap_or(1));
    if month as u64 + 1 > present { year - 1 } else { year }
}

/// Returns the fields of a message's line.
fn message(line: &str) -> Option<Message<'_>> {
    let (id, rest) = line.split_once(": ")?;
    if id.contains(' ') || !rest.starts_with("client=") {
        return None;
    }
    let mut message = Message { id, ..Message::default() };
    for field in rest.split(' ') {
        let Some((name, value)) = field.split_once('=') else { break };
        let bare = || value.strip_prefix('<').and_then(|v| v.strip_suffix('>')).unwrap_or(value);
        match name {
            "client" => {
                let (host, ip) = value.strip_suffix(']')?.split_once('[')?;
                (message.host, message.ip) = (Some(host).filter(|host| *host != "unknown"), ip);
            }
            "from" => message.from = bare(),
            "to" => message.to = bare(),
            "nrcpt" => message.recipients = value.parse().ok()?,
            "verdict" => message.verdict = value,
            "reason" => message.reason = value,
            "body" => message.body = value.trim_end_matches('+').parse().ok(),
            "near" => message.near = value.trim_end_matches('+').parse().ok(),
            "threshold" => message.threshold = value.parse().ok(),
            "signature" => message.signature = value,
            "mailing" => message.mailing = value,
            "action" => message.action = value,
            "would" => message.would = value,
            "policy" => message.policy = value,
            "detail" => break,
            _ => (),
        }
    }
    (!message.verdict.is_empty()).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "4AB: client=a.example[192.0.2.7] from=<n@a.example> to=<x@b.example> nrcpt=2 message-id=<7@a.example> \
                        size=900 verdict=bulk body=27 near=31 threshold=20 signature=dda7 mailing=dda6 action=mark ms=2.9";

    #[test]
    fn all_forms_are_read() {
        let expected = Message {
            machine: "",
            id: "4AB",
            host: Some("a.example"),
            ip: "192.0.2.7",
            from: "n@a.example",
            to: "x@b.example",
            recipients: 2,
            verdict: "bulk",
            reason: "",
            body: Some(27),
            near: Some(31),
            threshold: Some(20),
            signature: "dda7",
            mailing: "dda6",
            action: "mark",
            would: "",
            policy: "",
        };
        for (before, date) in [
            ("2026-11-22T16:08:01.5+01:00 mx bulkmark[12]: ", "2026-11-22"),
            ("2026-11-22T16:08:01+0100 mx bulkmark[12]: ", "2026-11-22"),
            ("2026-11-22T16:08:01Z mx bulkmark[12]: info: ", "2026-11-22"),
            ("2026-11-22T16:08:01Z mx bulkmark[12]: bulkmark: info: ", "2026-11-22"),
            ("bulkmark: info: ", ""),
        ] {
            let line = format!("{before}{TEXT}");
            let (stamp, found) = read(&line).unwrap_or_else(|| panic!("{line}"));
            let machine = if date.is_empty() { "" } else { "mx" };
            assert_eq!(found, Line::Message(Message { machine, ..expected }), "{line}");
            assert_eq!(stamp.date, date, "{line}");
        }
        for (line, day) in [
            ("Feb  3 16:08:01 mx bulkmark[12]: x", "-02-03"),
            ("Dec 31 16:08:01 mx bulkmark[1]: x", "-12-31"),
        ] {
            let (stamp, found) = read(line).unwrap();
            assert!(stamp.date.ends_with(day) && stamp.time == "16:08", "{stamp:?}");
            assert_eq!(found, Line::Other("x", None));
        }
        let (_, found) = read("2026-11-22T16:08:01Z mx bulkmark[1]: err: the disk failed").unwrap();
        assert_eq!(found, Line::Other("the disk failed", Some(true)));
    }

    /// Postfix's lines contain names that clients choose, and anybody may write to the log.
    #[test]
    fn other_programs_are_not_taken_for_us() {
        for line in [
            format!("Nov 22 16:08:01 mx postfix/smtpd[1]: NOQUEUE: reject: helo=<x bulkmark[1]: {TEXT}>"),
            format!("Nov 22 16:08:01 mx notbulkmark[1]: {TEXT}"),
            format!("Nov 22 16:08:01 bulkmark[1]: {TEXT}"),
            format!("Nov 22 16:08:01 mx bulkmark[x]: {TEXT}"),
            String::new(),
            "bulkmark".to_owned(),
            "2026-11-22Té: x bulkmark: y".to_owned(),
        ] {
            assert!(read(&line).is_none(), "{line}");
        }
        for odd in
            ["x bulkmark: 4A: client=a", "4A: client=a[1 verdict=bulk", "4 A: client=a[1] verdict=bulk"]
        {
            assert!(message(odd).is_none(), "{odd}");
        }
    }
}
