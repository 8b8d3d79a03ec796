// SPDX-License-Identifier: GPL-3.0-or-later
//! The log line of a message.

use super::judgement::Judgement;
use super::message::Message;
use crate::activity::Interface;
use bulkmark_policy::Verdict;
use bulkmark_verdict::{Rules, fields, log_line};
use log::Level;

/// The target of a message's log line, by which the logger knows the verdict.
pub(super) const fn target(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Clean => "bulkmark::message::clean",
        Verdict::Bulk => "bulkmark::message::bulk",
        Verdict::Spam => "bulkmark::message::spam",
        Verdict::Whitelisted => "bulkmark::message::whitelisted",
        Verdict::Exempt => "bulkmark::message::exempt",
        Verdict::Unknown => "bulkmark::message::unknown",
    }
}

/// The target of the line of a message that was only looked up.
pub(super) const LOOKUP: &str = "bulkmark::asked";

/// Writes the log line of a message.
pub(super) fn log_message(
    rules: &Rules,
    message: &Message,
    judgement: &Judgement,
    (target, level): (&'static str, Level),
) {
    if !log::log_enabled!(target: target, level) {
        return;
    }
    let Judgement { finding, outcome, mailing, .. } = judgement;
    let mut fields = fields(rules, &message.envelope, finding, outcome, message.started.elapsed());
    let mut insert_before = |next: &str, field| {
        let at = fields.iter().position(|(name, _)| *name == next).unwrap_or(fields.len());
        fields.insert(at, field);
    };
    if let Some(mailing) = mailing {
        insert_before("action", ("mailing", mailing.clone()));
    }
    if message.interface != Interface::Milter {
        insert_before("ms", ("interface", message.interface.as_str().to_owned()));
    }
    let line = log_line(&message.envelope, &fields);
    log::log!(target: target, level, "{line}");
}
