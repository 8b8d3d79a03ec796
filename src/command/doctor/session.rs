// SPDX-License-Identifier: GPL-3.0-or-later
//! A milter session as Postfix would open it, with a canary as its message.

use super::files::AS_ROOT;
use super::report::Report;
use crate::command::canary;
use crate::config::MilterFile;
use crate::net::Address;
use bulkmark_policy::Action;
use bulkmark_signature::Canary;
use indymilter_test::{EomAction, MacroStage, ProtoOpts, Status, TestConnection, TestError, TestResult};
use std::ffi::CStr;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// Time limit of each answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Clients that do not exist: addresses for documentation (RFC 5737, RFC 3849).
const STRANGERS: [&str; 4] = ["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1"];

/// Errors that mean that there was no connection.
const UNREACHABLE: [io::ErrorKind; 5] = [
    io::ErrorKind::ConnectionRefused,
    io::ErrorKind::NotFound,
    io::ErrorKind::PermissionDenied,
    io::ErrorKind::HostUnreachable,
    io::ErrorKind::NetworkUnreachable,
];

/// The milter's treatment of the canary.
struct Answer {
    /// The values of our header.
    marks: Vec<String>,
    quarantine: bool,
    status: Status,
}

/// Connects to the listener and sends a canary.
pub(super) async fn examine(file: &MilterFile, unit: &str, listen: &Address, report: &mut Report) {
    examine_exempt(file, report);
    let Some(stranger) = stranger(file) else {
        return report.error(
            "canary",
            "exempt-networks has all addresses, so no mail is judged",
            "name only networks of your own in exempt-networks",
        );
    };
    let restart = format!("systemctl restart {unit}; journalctl -u {unit} shows the result");
    let connection = match connect(listen).await {
        Ok(connection) => connection,
        Err(TestError::Io(e)) if UNREACHABLE.contains(&e.kind()) => {
            let text = format!("nobody answers at {}: {e}", listen.in_postfix());
            let forbidden = e.kind() == io::ErrorKind::PermissionDenied;
            return report.error("listener", text, if forbidden { AS_ROOT } else { &restart });
        }
        Err(e) => {
            let text = format!(
                "the program that listens on {} does not answer as a milter: {e}",
                listen.in_postfix()
            );
            return report.error(
                "listener",
                text,
                "ss -ltnpx shows who it is; if it is bulkmark, restart it",
            );
        }
    };
    report.ok("listener", format!("a milter answers at {}", listen.in_postfix()));
    let canary = match canary::read(&file.state_dir) {
        Ok(canary) => canary,
        Err(e) => {
            let advice = format!("{AS_ROOT}; if the file is not there, restart the milter, which makes it");
            return report.error("canary", format!("{e:#}"), advice);
        }
    };
    match session(connection, stranger, file, &canary).await {
        Ok(answer) => report_answer(&answer, stranger, (file, unit), report),
        Err(e) => report.error("canary", format!("the milter broke off the session: {e}"), restart),
    }
}

/// Names the exempt clients, whose canaries are exempt, too.
fn examine_exempt(file: &MilterFile, report: &mut Report) {
    let mut exempt = Vec::new();
    if file.exempt.loopback {
        exempt.push("this machine".to_owned());
    }
    if file.exempt.authenticated {
        exempt.push("users who log in".to_owned());
    }
    exempt.extend(file.exempt_networks.iter().map(ToString::to_string));
    let text = if exempt.is_empty() { "nobody".to_owned() } else { exempt.join(", ") };
    report.ok("exempt", format!("{text}; their mail is not judged, not even a canary"));
}

fn stranger(file: &MilterFile) -> Option<IpAddr> {
    let strangers = STRANGERS.iter().filter_map(|address| address.parse().ok());
    strangers.into_iter().find(|&ip| !file.exempt_networks.iter().any(|network| network.contains(ip)))
}

async fn connect(listen: &Address) -> TestResult<TestConnection> {
    let connection = TestConnection::configure().read_timeout(PATIENCE).write_timeout(PATIENCE);
    match listen {
        Address::Tcp(address) => connection.open_tcp(address).await,
        Address::Unix(path) => connection.open_unix(path).await,
    }
}

async fn session(
    mut mta: TestConnection,
    ip: IpAddr,
    file: &MilterFile,
    canary: &Canary,
) -> TestResult<Answer> {
    let host = if file.hostname.is_empty() { "localhost" } else { &file.hostname };
    let address = format!("postmaster@{host}");
    let message = canary::message(canary, file.header.as_str(), (&address, &address), host);
    let message = message.map_err(io::Error::other)?;
    let (head, body) = message.split_once("\n\n").unwrap_or_default();
    mta.macros(MacroStage::Connect, [("j", host)]).await?;
    mta.connect("doctor.invalid", ip).await?;
    if !mta.negotiated_opts().contains(ProtoOpts::NO_HELO) {
        mta.helo("doctor.invalid").await?;
    }
    mta.macros(MacroStage::Mail, [("i", "DOCTOR")]).await?;
    mta.mail([format!("<{address}>")]).await?;
    // Policies often exempt mail to postmaster.
    mta.rcpt([format!("<bulkmark-doctor@{host}>")]).await?;
    mta.data().await?;
    for (name, value) in head.lines().filter_map(|line| line.split_once(": ")) {
        mta.header(name, value).await?;
    }
    mta.eoh().await?;
    mta.body(body.replace('\n', "\r\n")).await?;
    let (changes, status) = mta.eom().await?;
    // The answer is known, so an error of the connection no longer matters.
    let _ = mta.close().await;
    let mark = |change: &EomAction| match change {
        EomAction::AddHeader { name, value } | EomAction::InsertHeader { name, value, .. } => {
            (text(name).eq_ignore_ascii_case(file.header.as_str())).then(|| text(value).trim().to_owned())
        }
        _ => None,
    };
    let marks = changes.actions.iter().filter_map(mark).collect();
    let quarantine = changes.actions.iter().any(|change| matches!(change, EomAction::Quarantine { .. }));
    Ok(Answer { marks, quarantine, status })
}

fn text(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}

fn report_answer(answer: &Answer, stranger: IpAddr, (file, unit): (&MilterFile, &str), report: &mut Report) {
    const CHECK: &str = "canary";
    let (action, detail) = match (&answer.status, &*answer.marks) {
        (Status::Reject { message }, _) => (Action::Reject, message.as_deref().map(text)),
        (Status::Tempfail { message }, _) => (Action::Tempfail, message.as_deref().map(text)),
        (Status::Discard, _) => (Action::Discard, None),
        (_, [mark]) if mark.starts_with("bulk; reason=canary;") => {
            (if answer.quarantine { Action::Quarantine } else { Action::Mark }, Some(mark.clone()))
        }
        (_, [mark]) if mark.starts_with("exempt; reason=policy;") => {
            let text = format!("mail to unknown recipients here is not judged, not even a canary: {mark}");
            return report.warning(
                CHECK,
                text,
                "judge = true, in the file or in a policy, has mail judged: docs/policies.md",
            );
        }
        (_, [mark]) => {
            let advice = format!("systemctl restart {unit}: it runs with another configuration or version");
            return report.error(CHECK, format!("a canary from {stranger} is not bulk: {mark}"), advice);
        }
        (_, marks) => {
            let text =
                format!("a canary from {stranger} got {} headers {}", marks.len(), file.header.as_str());
            return report.error(
                CHECK,
                text,
                format!("systemctl restart {unit}; if that does not help, report it"),
            );
        }
    };
    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    let text = format!("from {stranger}, as Postfix would show it, {action}{detail}");
    // The answer does not always name the policy that decided.
    let policy_actions = file.policy.iter().filter_map(|policy| policy.actions.bulk);
    // In a rehearsal and a pause, the configured action is only shown.
    let is_shown =
        |action: &Action| answer.marks.iter().any(|mark| mark.ends_with(&format!("; would={action}")));
    let wanted = Action::ALL.into_iter().find(is_shown).unwrap_or(action);
    if policy_actions.chain([file.actions.bulk]).any(|configured| configured == wanted) {
        report.ok(CHECK, text);
    } else {
        let text = format!("{text}; the configuration says {}", file.actions.bulk);
        report.warning(
            CHECK,
            text,
            format!("systemctl reload {unit}: the file was changed since it was read"),
        );
    }
}
