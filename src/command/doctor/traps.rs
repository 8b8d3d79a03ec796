// SPDX-License-Identifier: GPL-3.0-or-later
//! Traps that get wanted mail, missing relays, room for user reports, and the verification of correspondents and of your own domains.

use super::report::Report;
use crate::activity::LikelyRelay;
use crate::command::show::{messages, some};
use crate::config::MilterFile;
use crate::control::DaemonStatus;
use bulkmark_counts::Rows;
use bulkmark_policy::Authenticate;
use bulkmark_types::remote_text;

/// Examines all of these.
pub(super) fn examine(file: &MilterFile, status: &DaemonStatus, report: &mut Report) {
    examine_traps(file, status, report);
    examine_relays(file, status, report);
    examine_user_reports(status, report);
    examine_correspondents(file, status, report);
}

/// Names the traps that got whitelisted mail.
fn examine_traps(file: &MilterFile, status: &DaemonStatus, report: &mut Report) {
    const CHECK: &str = "traps";
    let wanted = status.traps.iter().flat_map(|traps| &traps.wanted);
    let mut is_well = true;
    for (trap, wanted) in wanted {
        is_well = false;
        let (trap, entry) = (remote_text(trap), remote_text(&wanted.entry));
        let messages = messages(wanted.messages);
        report.warning(
            CHECK,
            format!("{trap} gets mail from white-listed senders: {messages}, the last wanted by {entry}; these are not nominated"),
            "take it out of traps.recipients if people use it, or the sender off the white list",
        );
    }
    if is_well && !file.traps.recipients.is_empty() {
        report.ok(CHECK, "none of them gets mail from white-listed senders");
    }
}

/// Names the clients that may be your own mail servers in front of this one.
fn examine_relays(file: &MilterFile, status: &DaemonStatus, report: &mut Report) {
    const CHECK: &str = "relays";
    for LikelyRelay { client, percent } in &status.likely_relays {
        report.warning(
            CHECK,
            format!("{percent} % of mail comes from the network of {client}, from many senders"),
            "if it is a mail server of your own, put it into relays, or campaigns in changed copies are not found; if it is a mail provider's, \
             nothing is wrong",
        );
    }
    if status.likely_relays.is_empty() && !file.relays.is_empty() {
        report.ok(CHECK, "no other network brings a fifth of the mail");
    }
}

/// Examines whether there is room for user reports.
fn examine_user_reports(status: &DaemonStatus, report: &mut Report) {
    let (rows, most) = (status.ledger.user_reports, Rows::MOST_OF_USERS);
    let text = format!("{} of the {most} user reports for which there is room", rows.users);
    if rows.are_many() {
        let advice = "\"bulkmark report list\" shows the most active reporters; if one is a program, withdraw its reports with \"bulkmark report forget --all\"; \
                      beyond the bound, reports of new users are not counted";
        report.warning("user-reports", text, advice);
    } else if !rows.is_empty() {
        report.ok("user-reports", text);
    }
}

/// Examines how mail from correspondents is verified.
fn examine_correspondents(file: &MilterFile, status: &DaemonStatus, report: &mut Report) {
    let Some(pairs) = status.correspondents.filter(|&pairs| pairs > 0) else { return };
    let by = match file.authentication.authenticate {
        Authenticate::No => {
            "known by the names of their mail servers alone, since authentication.authenticate is \"no\""
        }
        Authenticate::Header | Authenticate::Here => "recognised by verified domains",
    };
    report.ok(
        "correspondents",
        format!("{} of a user and an address that the user wrote to; {by}", some(pairs, "pair")),
    );
    if file.user_reports.own_domains.is_empty() {
        report.warning(
            "user-reports",
            "users write mail through this milter, and user-reports.own-domains is empty: nominations of that mail as spam count".to_owned(),
            "list your domains with signed mail in it",
        );
    }
}
