// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark client list` and `audit`

use super::output::output;
use super::show::{ago, time};
use crate::config::ServerFile;
use crate::server::{Client, Clients, Role};
use bulkmark_ledger::now;
use bulkmark_types::told;
use serde_json::json;
use std::collections::HashMap;
use std::io::Write as _;
use std::num::NonZeroU32;

/// Prints the clients that an operator added or approved, and the number of those that wait.
pub(super) fn list(file: &ServerFile, is_json: bool) -> anyhow::Result<()> {
    let clients = Clients::load(&file.state_dir)?;
    let mut out = output();
    let approved = clients.list().iter().filter(|client| client.is_approved());
    let waiting = clients.unapproved().count();
    if is_json {
        let all: Vec<_> = approved.map(object).collect();
        writeln!(out, "{}", json!({ "clients": all, "unapproved": waiting }))?;
        return Ok(());
    }
    writeln!(
        out,
        "{:<24} {:<7} {:<7} {:>13} {:>7} {:>9}",
        "name", "role", "kind", "max-influence", "quota", "rate"
    )?;
    let shown = |limit: Option<NonZeroU32>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    for client in approved {
        let (influence, rate) = (shown(client.max_influence), shown(client.rate));
        let quota = match client.limits() {
            Some(_) => client.quota.unwrap_or_default().to_string(),
            None => "-".to_owned(),
        };
        let kind = kind(client).unwrap_or("-");
        let expiry = client.expires.map(|at| format!("  {}", expiry(at))).unwrap_or_default();
        writeln!(
            out,
            "{:<24} {:<7} {kind:<7} {influence:>13} {quota:>7} {rate:>9}{expiry}",
            client.name, client.role
        )?;
    }
    if waiting > 0 {
        writeln!(out, "{waiting} wait for approval: bulkmark client list --unapproved")?;
    }
    Ok(())
}

/// Describes the end of a client's tokens.
fn expiry(at: u64) -> String {
    let verb = if at <= now() { "expired" } else { "expires" };
    format!("{verb} {}", time(at))
}

/// Prints the sites that wait for approval: first those that use their tokens, each with its network's neighbours.
pub(super) fn unapproved(file: &ServerFile, is_json: bool) -> anyhow::Result<()> {
    let clients = Clients::load(&file.state_dir)?;
    let mut waiting: Vec<_> = clients.unapproved().collect();
    waiting.sort_by_key(|(_, site)| (site.used.is_none(), site.from, site.at));
    let mut out = output();
    if is_json {
        let all: Vec<_> = waiting.into_iter().map(|(client, _)| object(client)).collect();
        writeln!(out, "{}", json!({ "unapproved": all }))?;
        return Ok(());
    }
    writeln!(out, "{:<40} {:<39} {:<20} {:<7} contact", "name", "from", "registered", "used")?;
    for (client, site) in waiting {
        let from = site.from.map_or_else(|| "unix".to_owned(), |ip| ip.to_string());
        let used = if site.used.is_some() { "yes" } else { "no" };
        let (at, contact) = (time(site.at), told(&site.contact));
        writeln!(out, "{:<40} {from:<39} {at} {used:<7} {contact}", client.name)?;
    }
    Ok(())
}

/// Prints the acts of operators in order of time, each with the address from which an approved site registered.
pub(super) fn audit(file: &ServerFile, is_json: bool) -> anyhow::Result<()> {
    let clients = Clients::load(&file.state_dir)?;
    let by_name: HashMap<&str, &Client> =
        clients.list().iter().map(|client| (&*client.name, client)).collect();
    let registered = |name: &str| by_name.get(name).and_then(|client| client.registered.as_ref());
    let mut out = output();
    if is_json {
        let all: Vec<_> = clients
            .audit()
            .iter()
            .map(|deed| {
                json!({
                    "at": deed.at, "by": deed.by, "act": deed.act, "client": deed.client,
                    "registered": registered(&deed.client),
                })
            })
            .collect();
        writeln!(out, "{}", json!({ "audit": all }))?;
        return Ok(());
    }
    for deed in clients.audit() {
        write!(out, "{}  {} {}, by {}", time(deed.at), deed.client, deed.act, told(&deed.by))?;
        if let Some(site) = registered(&deed.client) {
            let from = site.from.map_or_else(|| "a Unix socket".to_owned(), |ip| ip.to_string());
            let since = ago(deed.at.saturating_sub(site.at));
            write!(out, "; registered from {from} {since} before, contact {:?}", told(&site.contact))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn object(client: &Client) -> serde_json::Value {
    json!({
        "name": client.name,
        "role": client.role.to_string(),
        "kind": kind(client),
        "max-influence": client.max_influence,
        "quota": client.limits().map(|_| client.quota.unwrap_or_default().to_string()),
        "rate": client.rate,
        "expires": client.expires,
        "registered": client.registered,
    })
}

/// Returns the kind of a client; none for one that only reads.
const fn kind(client: &Client) -> Option<&'static str> {
    match (client.role, client.max_influence) {
        (Role::Report, None) => Some("own"),
        (Role::Report, Some(_)) => Some("partner"),
        _ => None,
    }
}
