// SPDX-License-Identifier: GPL-3.0-or-later
//! A day as text, for a terminal or a mail.

use super::day::{Day, Mailing, Share, Span, ranked_shares};
use crate::command::show::{messages, some};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Lines of each list.
#[derive(Clone, Copy)]
pub(super) struct Limit(pub(super) usize);

/// Returns the subject of a mail.
pub(super) fn subject(day: &Day, host: &str, title: &str) -> String {
    let count = |verdict: &str| day.verdicts.get(verdict).copied().unwrap_or_default();
    let rehearsed = match day.rehearsals {
        0 => String::new(),
        n => format!("{n} would be refused, "),
    };
    format!(
        "bulkmark on {host}, {title}: {} bulk, {} spam, {} refused, {rehearsed}{} unknown",
        count("bulk"),
        count("spam"),
        day.refusals,
        count("unknown")
    )
}

/// Returns the whole text. Writing to a String does not fail.
pub(super) fn text(day: &Day, host: &str, title: &str, limit: Limit) -> String {
    let mut out = format!("bulkmark on {host}, {title}\n\n");
    if day.all.count == 0 {
        out += "Nothing was logged. Did the daemon run, and is this its log?\n";
        return out;
    }
    verdicts(&mut out, day);
    shares(&mut out, "By policy", &day.policies, limit);
    if day.machines.len() > 1 {
        shares(&mut out, "By machine", &day.machines, limit);
    }
    mailings(&mut out, day, limit);
    list(&mut out, "Refused, by the sender's domain", &day.refused.ranked(), day.refused.others, limit);
    let rehearsed = day.rehearsed.ranked();
    list(&mut out, "Would be refused, by the sender's domain", &rehearsed, day.rehearsed.others, limit);
    let suggestions = day.suggestions.ranked();
    list(&mut out, "Proposed white-list lines for bulk", &suggestions, 0, limit);
    if !suggestions.is_empty() {
        out += "  The clients' verified names belong to the senders. Only you know whether the mail is wanted; see bulkmark-whitelist(5).\n";
    }
    if !day.unknown.is_empty() {
        out += "\nNot judged\n";
        for (reason, span) in &day.unknown {
            let _ = writeln!(out, "{:>10}  {reason}, {}", number(span.count), when(span));
        }
    }
    if !day.notices.is_empty() {
        out += "\nOther lines of the log\n";
        let mut notices: Vec<_> = day.notices.values().collect();
        notices.sort_by(|(_, a), (_, b)| a.first.cmp(&b.first));
        for (text, span) in notices.iter().take(limit.0) {
            let _ = writeln!(out, "{:>10}  {}: {text}", number(span.count), when(span));
        }
        more(&mut out, notices.len().saturating_sub(limit.0) as u64 + day.more_notices);
    }
    out
}

fn verdicts(out: &mut String, day: &Day) {
    let _ = writeln!(out, "{:>10}  messages", number(day.messages));
    for verdict in ["clean", "bulk", "spam", "whitelisted", "exempt", "unknown"] {
        let Some(&count) = day.verdicts.get(verdict) else { continue };
        let share = 100.0 * count as f64 / day.messages.max(1) as f64;
        let _ = write!(out, "{:>10}  {verdict:<12}{share:>5.1} %", number(count));
        if let Some(of_verdict) = day.done.get(verdict) {
            let _ = write!(out, "   {}", done(of_verdict));
        }
        out.push('\n');
    }
    if !day.verdicts.contains_key("clean") && day.messages > 0 {
        *out += "            Clean messages are not logged ([log] messages).\n";
    }
}

/// Writes messages by policy or machine; those with the most messages first.
fn shares(out: &mut String, title: &str, shares: &BTreeMap<String, Share>, limit: Limit) {
    let all = ranked_shares(shares);
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for (name, share) in all.iter().take(limit.0) {
        let _ =
            write!(out, "{:>10}  {name}: {} bulk or spam", number(share.messages), number(share.unwanted));
        let _ = writeln!(out, "{}{}", if share.unwanted > 0 { "; " } else { "" }, done(&share.done));
    }
    more(out, all.len().saturating_sub(limit.0) as u64);
}

fn mailings(out: &mut String, day: &Day, limit: Limit) {
    let ranked = day.ranked();
    if ranked.is_empty() {
        return;
    }
    let _ = writeln!(out, "\nMailings ({})", number(ranked.len() as u64));
    for mailing in ranked.iter().take(limit.0) {
        mailing.print(out);
    }
    more(out, ranked.len().saturating_sub(limit.0) as u64);
    if day.others > 0 {
        let _ = writeln!(out, "            and {} of other mailings", messages(number(day.others)));
    }
}

impl Mailing {
    fn print(&self, out: &mut String) {
        let _ = writeln!(out, "{:>10}  from {}", number(self.span.count), self.senders.first());
        let _ = writeln!(out, "            by {}", self.clients.first());
        let _ = writeln!(
            out,
            "            {}; seen {} times; {}; {}; {}{}",
            done(&self.done),
            number(self.seen.into()),
            some(number(self.recipients), "recipient"),
            when(&self.span),
            if self.signature.is_empty() {
                "near-replicas".to_owned()
            } else {
                format!("signature {}", self.signature)
            },
            if self.id == "NOQUEUE" { String::new() } else { format!("; last {}", self.id) },
        );
    }
}

/// Formats actions: `reject 12, mark 3`.
fn done(done: &BTreeMap<String, u64>) -> String {
    let mut done: Vec<_> = done.iter().collect();
    done.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    done.iter().map(|(action, count)| format!("{action} {}", number(**count))).collect::<Vec<_>>().join(", ")
}

fn list(out: &mut String, title: &str, entries: &[(&str, u64)], others: u64, limit: Limit) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for (name, count) in entries.iter().take(limit.0) {
        let _ = writeln!(out, "{:>10}  {name}", number(*count));
    }
    more(out, entries.len().saturating_sub(limit.0) as u64);
    if others > 0 {
        let _ = writeln!(out, "{:>10}  others", number(others));
    }
}

fn more(out: &mut String, more: u64) {
    if more > 0 {
        let _ = writeln!(out, "            and {} more (--limit)", number(more));
    }
}

/// Formats times: `16:08 to 16:31`; with dates if they differ.
fn when(span: &Span) -> String {
    let (first, last) = (&span.first, &span.last);
    match (first.date == last.date, first.time == last.time) {
        _ if last.date.is_empty() => "at an unknown time".to_owned(),
        (true, true) => first.time.clone(),
        (true, false) => format!("{} to {}", first.time, last.time),
        (false, _) => format!("{} {} to {} {}", first.date, first.time, last.date, last.time),
    }
}

/// Formats a number with a comma at every third digit.
fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        let shown = [0, 999, 1000, 1_234_567].map(number);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,567"]);
    }
}
