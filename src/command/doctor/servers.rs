// SPDX-License-Identifier: GPL-3.0-or-later
//! Other servers: whether they answer, accept this machine, have the same parameters, and the same time.

use super::files::AS_ROOT;
use super::report::Report;
use crate::command::show::{ago, time};
use crate::config::MilterFile;
use crate::control::DaemonStatus;
use bulkmark_ledger::now;
use bulkmark_sync::{Code, Link, Parameters, Remote, RemoteError, Upstream};
use bulkmark_types::FederationKey;
use std::io::ErrorKind;
use std::sync::Arc;

/// The time before its end from which on a token causes a warning, in seconds.
const SOON: u64 = 14 * 86_400;

/// Whether a token that ends at this time ends soon.
pub(super) fn is_soon(expires: u64) -> bool {
    expires < now().saturating_add(SOON)
}

/// Asks each of them. `check` is "upstream" or "peer".
pub(super) async fn examine(
    check: &'static str,
    servers: &[Upstream],
    settings: &bulkmark_counts::Settings,
    key: &FederationKey,
    status: Option<&DaemonStatus>,
    report: &mut Report,
) {
    let parameters = Parameters::new(settings, key);
    let mut agreed = Vec::new();
    for server in servers {
        let url = &server.url;
        let client = Remote::new(server, Some(parameters.clone()), Arc::new(Link::new(url)));
        let asked = match client {
            Ok(client) => client.status().await,
            Err(e) => Err(e),
        };
        let told = status.and_then(|status| status.links.iter().find(|link| link.url == *url));
        match (asked, told.and_then(|link| link.error.as_ref())) {
            (Err(e), _) if e.is_clock_error() => {
                let advice = "correct the clock that is wrong and let NTP keep it right: timedatectl, chronyc tracking";
                report.error("clock", format!("{url}: {e}"), advice);
            }
            (Err(e), _) => report.error(check, format!("{url}: {e}"), advice(&e, server)),
            (Ok(answer), None) if answer["token-expires"].as_u64().is_some_and(is_soon) => {
                let expires = time(answer["token-expires"].as_u64().unwrap_or_default());
                let advice = "have the server's operator extend it: bulkmark client set --expires 90d NAME";
                report.warning(check, format!("{url}: our token expires at {expires}"), advice);
                agreed.push(&**url);
            }
            (Ok(_), Some(error)) => {
                // The server's words about a client's role.
                let advice = if error.contains("this client may ") {
                    "it answers now, but the client has another role; have the server's administrator add one with the right --role"
                } else {
                    "it answers now; check again in a minute"
                };
                report.warning(check, format!("{url}: the daemon's last error was: {error}"), advice);
                agreed.push(&**url);
            }
            (Ok(_), None) => {
                report.ok(check, format!("{url} answers, knows our token, and has our window and key"));
                agreed.push(&**url);
            }
        }
    }
    if !agreed.is_empty() {
        report.ok("clock", format!("no more than 5 minutes from that of {}", agreed.join(", ")));
    }
}

/// Returns the advice for an error.
fn advice(error: &RemoteError, server: &Upstream) -> String {
    let token = match &server.token_file {
        Some(path) => format!("put it into {}", path.display()),
        None => "name its file in token-file".to_owned(),
    };
    match (error, error.code()) {
        (RemoteError::File { reason, .. }, _) if reason.kind() == ErrorKind::PermissionDenied => {
            AS_ROOT.to_owned()
        }
        (RemoteError::File { .. } | RemoteError::Setup(_), _) => {
            "correct the entry, or the file that it names".to_owned()
        }
        (_, Some(Code::TokenMissing | Code::TokenInvalid)) => {
            format!(
                "have the server's administrator make a token (bulkmark client add or rotate), and {token}"
            )
        }
        (_, Some(Code::Role)) => {
            format!(
                "the client has another role; have the server's administrator add one with the right --role, and {token}"
            )
        }
        (_, Some(Code::Unapproved)) => {
            "have the server's operator approve this site (bulkmark client approve NAME, with the name that bulkmark join printed)".to_owned()
        }
        (_, Some(Code::TokenBlocked | Code::Rate)) => "wait a minute, and try again".to_owned(),
        (_, Some(Code::Quota)) => {
            "wait for the next window, or have the server's administrator raise the quota (bulkmark client set --quota)"
                .to_owned()
        }
        (RemoteError::Parameters(_), _) | (_, Some(Code::Parameters)) => SAME.to_owned(),
        (RemoteError::Name(_), _) => {
            "correct the name in url, or its record in the DNS: getent hosts NAME shows what this machine finds".to_owned()
        }
        (RemoteError::Certificate(_), _) => {
            "unknown issuer: name the authority that signed it in ca-file; another name: write a name that it is for in url; expired: have the \
             server's administrator renew it; openssl s_client -connect HOST:PORT shows it"
                .to_owned()
        }
        (RemoteError::Transport(_), _) => {
            "is it running, is the address right, and does a firewall let us through? curl -v shows more"
                .to_owned()
        }
        _ => "see the server's log; is it a signature server?".to_owned(),
    }
}

const SAME: &str = "use the same [ledger] window, and the same federation-key-file, as the server";

/// Examines the reports that wait to be sent.
pub(super) fn examine_spool(file: &MilterFile, status: &DaemonStatus, report: &mut Report) {
    const CHECK: &str = "spool";
    if file.upstream.is_empty() && file.fleet.is_none() {
        return;
    }
    let (waiting, most) = (status.ledger.spool, file.ledger.max_spool());
    let age = status.ledger.spool_oldest.map_or(0, |oldest| now().saturating_sub(oldest));
    let text = format!(
        "{waiting} of at most {most} reports wait to be counted for all, the oldest for {}",
        ago(age)
    );
    if waiting > most / 2 || age > file.sync.max_staleness.as_secs() {
        let oldest = ago(bulkmark_counts::SPOOL_AGE.as_secs()).to_string();
        let advice = format!("find out why no server takes them; reports older than {oldest} are dropped");
        report.warning(CHECK, text, advice);
    } else {
        report.ok(CHECK, text);
    }
}
