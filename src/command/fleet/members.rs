// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's members and their mailings, as `bulkmark fleet status` shows them.

use crate::command::show::{ago, some, time};
use bulkmark_sync::fleet::{Condition, FleetMailing, MemberState, MemberStatus};
use std::io::{self, Write};

/// Mailings in the text; JSON has all.
const SHOWN: usize = 10;

/// Prints the members and their mailings.
pub(super) fn print(
    out: &mut impl Write,
    members: &[MemberStatus],
    mailings: &[FleetMailing],
) -> io::Result<()> {
    if !members.is_empty() {
        writeln!(out, "\nmembers:")?;
    }
    for member in members {
        print_member(out, member)?;
    }
    if !mailings.is_empty() {
        writeln!(out, "\nmailings of the day, at the members that publish theirs:")?;
    }
    for mailing in mailings.iter().take(SHOWN) {
        let FleetMailing { signature, count, recipients, last, members, subject, .. } = mailing;
        write!(
            out,
            "  {signature}: {count}; here to {} at {}, the last at {}",
            some(recipients, "recipient"),
            members.join(", "),
            time(*last)
        )?;
        match subject {
            Some(subject) => writeln!(out, ": {subject}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

fn print_member(out: &mut impl Write, member: &MemberStatus) -> io::Result<()> {
    let MemberStatus { name, condition, .. } = member;
    let Condition { role, program, .. } = condition;
    let heard = ago(member.heard_seconds_ago);
    match member.state {
        MemberState::Well => write!(out, "  {name} ({role}, {program}): ")?,
        MemberState::Late => write!(out, "  {name} ({role}, {program}): LATE; ")?,
        MemberState::Silent => write!(out, "  {name} ({role}, {program}): SILENT; ")?,
        MemberState::Absent => {
            return writeln!(out, "  {name} ({role}): ABSENT; not heard for an hour, or never");
        }
        MemberState::Unreadable => {
            return writeln!(out, "  {name}: its state, {heard} old, is of another version of bulkmark");
        }
    }
    write!(out, "step {} of epoch {}", condition.step, condition.epoch)?;
    if let Some(lag) = condition.lag_seconds {
        write!(out, ", lag {}", ago(lag))?;
    }
    match condition.waiting_seconds {
        Some(oldest) if condition.uncovered > 0 => {
            write!(
                out,
                ", {} uncovered, the oldest for {}",
                some(condition.uncovered, "report"),
                ago(oldest)
            )?;
        }
        _ => write!(out, ", {} uncovered", some(condition.uncovered, "report"))?,
    }
    writeln!(out, "; heard {heard} ago")
}
