// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark status`

use super::daemon_args::DaemonArgs;
use super::output::{EX_TEMPFAIL, failed, output};
use super::pause::sentence;
use super::show::{
    Slice, THRESHOLD, ago, bytes, called, messages, next_capacity, some, some_of, webhook_failure,
};
use crate::activity::{AccountStatus, InterfaceStatus, LikelyRelay, TrapStatus, WebhookStatus};
use crate::config::{self, Kind};
use crate::control::{self, ClientStatus, DaemonStatus, RefusedStatus};
use anyhow::anyhow;
use bulkmark_counts::Rows;
use bulkmark_ledger::{BulkStatus, LimitedStatus, now};
use bulkmark_sync::LinkStatus;
use bulkmark_types::remote_text;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Show the state of a running milter or server: counts, memory, false bulk, and its connections to other servers.
///
/// Shows how long it has been running; for each window its signatures, memory, share of used and full cells, and the chance that a new message
/// shows the threshold; the counted version of each origin; waiting reports; for each upstream server or peer whether it is followed, the number
/// of updates by which this machine is behind, the time of its last answer, bytes each way, and the last error; and the requests and refusals of
/// each client of a server.
///
/// Asks the daemon over its control socket. Fill and false bulk are estimates from a part of the cells. Exit code 0: it runs without problems;
/// 1: it runs, but cannot write its ledger, or a server that it needs does not answer properly; 2: error; 75: it does not run, or does not
/// answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    daemon: DaemonArgs,
    /// The threshold for which false bulk is estimated [default: the milter's; 20 for a server]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threshold: Option<u32>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match ask(args)? {
        Ok((status, threshold)) => {
            let mut out = output();
            if args.json {
                writeln!(out, "{}", serde_json::to_string(&status)?)?;
            } else {
                print_text(&mut out, &status, threshold)?;
            }
            let healthy = status.ailment.is_none() && status.links.iter().all(|link| link.error.is_none());
            Ok(ExitCode::from(u8::from(!healthy)))
        }
        Err(e) => Ok(failed(&e, EX_TEMPFAIL)),
    }
}

/// Returns the daemon's answer, with the threshold; the inner error if it does not answer.
fn ask(args: &Args) -> anyhow::Result<anyhow::Result<(DaemonStatus, u32)>> {
    let path = args.daemon.path();
    let (daemon, socket, threshold) = match args.daemon.kind(&path)? {
        Kind::Server => ("server", config::load_server(&path)?.0.control, THRESHOLD),
        Kind::Milter | Kind::Interfaces => {
            let file = config::load(&path)?.file;
            (file.daemon(), file.control, file.thresholds.body.get())
        }
    };
    let threshold = args.threshold.unwrap_or(threshold);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(control::status(&socket, threshold));
    Ok(asked.map(|status| (status, threshold)).map_err(|e| {
        let (daemon, socket) = (called(daemon), socket.display());
        match e.kind() {
            // It runs, and its answer names the problem.
            io::ErrorKind::Other => anyhow!("the {daemon} at {socket} cannot answer: {e}"),
            _ => anyhow!(e).context(format!("no {daemon} answers at {socket}")),
        }
    }))
}

fn print_text(out: &mut impl Write, status: &DaemonStatus, threshold: u32) -> io::Result<()> {
    let uptime = ago(status.uptime_seconds);
    writeln!(out, "bulkmark {} {}, up for {uptime}", status.role, status.version)?;
    if let Some(ailment) = &status.ailment {
        writeln!(out, "NOTHING IS COUNTED: {}", remote_text(ailment))?;
    }
    if let Some(address) = &status.listens {
        writeln!(out, "listens on {address}")?;
    }
    print_orders(out, status)?;
    if let Some(origin) = &status.ledger.origin {
        writeln!(out, "origin {origin}")?;
    }
    let slices = &status.ledger.slices;
    let bulk_memory = status.ledger.bulk.as_ref().map_or(0, |bulk| bulk.memory);
    let memory = slices.iter().map(|slice| slice.memory).sum::<usize>() + bulk_memory;
    writeln!(out, "\nledger: {} of memory", bytes(memory as u64))?;
    for slice in slices {
        writeln!(out, "  {}", Slice(slice, threshold))?;
    }
    if let Some(bulk) = &status.ledger.bulk {
        writeln!(out, "  {}", BulkLine(bulk))?;
    }
    if let Some(line) = next_capacity(status.ledger.next_capacity, now()) {
        writeln!(out, "  {line}")?;
    }
    if !status.ledger.unheard.is_empty() {
        let (peers, held) = (status.ledger.unheard.join(" and "), status.ledger.held.unwrap_or(0));
        writeln!(
            out,
            "  no answer since the start from {peers}; {held} reports wait for it and are not sent yet"
        )?;
    }
    for (origin, version) in &status.versions {
        writeln!(out, "  origin {origin}: counted up to update {version}")?;
    }
    print_others(out, status)?;
    if !status.clients.is_empty() {
        writeln!(out, "\nclients since the start:")?;
        for client in &status.clients {
            writeln!(out, "  {}", ClientLine(client))?;
        }
    }
    if let Some(refused) = &status.refused {
        print_refused(out, refused)?;
    }
    if let Some(pairs) = status.correspondents.filter(|&pairs| pairs > 0).map(|pairs| some(pairs, "pair")) {
        writeln!(out, "\ncorrespondents: {pairs} of a user and an address that the user wrote to")?;
    }
    if let Some(traps) = &status.traps {
        print_traps(out, traps)?;
    }
    print_interfaces(out, status)?;
    print_accounts(out, &status.accounts)?;
    if !status.ledger.limited.is_empty() {
        writeln!(out, "\nwhat clients with limits reported:")?;
        for client in &status.ledger.limited {
            writeln!(out, "  {}", LimitedLine(client))?;
        }
    }
    Ok(())
}

/// Prints the administrator's orders.
fn print_orders(out: &mut impl Write, status: &DaemonStatus) -> io::Result<()> {
    if let Some(pause) = &status.pause {
        writeln!(out, "PAUSED: {}", sentence(pause))?;
    }
    match status.allowed {
        None => (),
        Some(1) => writeln!(out, "1 mailing is never refused (bulkmark allow --list)")?,
        Some(n) => writeln!(out, "{n} mailings are never refused (bulkmark allow --list)")?,
    }
    let others = &status.allowed_elsewhere;
    if !others.is_empty() {
        let numbers: Vec<_> =
            others.iter().map(|(state, number)| format!("{number} {}", state.name())).collect();
        writeln!(out, "mailings that other sites allow: {}", numbers.join(", "))?;
    }
    for trouble in &status.order_troubles {
        writeln!(out, "orders: {}", remote_text(trouble))?;
    }
    Ok(())
}

/// Prints the outbound mail of accounts.
fn print_accounts(out: &mut impl Write, accounts: &[AccountStatus]) -> io::Result<()> {
    if !accounts.is_empty() {
        writeln!(out, "\naccounts that sent bulk lately:")?;
        for AccountStatus { account, bulk, recipients, over } in accounts {
            // The chosen name must not control this terminal.
            let account = account.escape_debug();
            let over = if *over { ", OVER ITS LIMIT" } else { "" };
            writeln!(
                out,
                "  {account}: {} of bulk, {} in all{over}",
                some_of(*bulk, "copy", "copies"),
                some(recipients, "recipient")
            )?;
        }
    }
    Ok(())
}

/// Prints the requests at a milter's other interfaces, and the webhook.
fn print_interfaces(out: &mut impl Write, status: &DaemonStatus) -> io::Result<()> {
    let DaemonStatus { interfaces, webhook, .. } = status;
    if let Some(webhook) = webhook {
        writeln!(out, "\nwebhook {}", WebhookLine(webhook))?;
    }
    if !interfaces.is_empty() {
        writeln!(out, "\ninterfaces:")?;
    }
    for InterfaceStatus { name, address, error, open, connections, requests } in interfaces {
        if let Some(error) = error {
            writeln!(out, "  {name} at {address} IS NOT OPEN: {}", remote_text(error))?;
            continue;
        }
        let requests: Vec<_> = requests.iter().filter(|(_, count)| **count > 0).collect();
        let requests: Vec<_> = requests.iter().map(|(result, count)| format!("{count} {result}")).collect();
        let requests = if requests.is_empty() { "none".to_owned() } else { requests.join(", ") };
        writeln!(
            out,
            "  {name} at {address}: requests since the start: {requests}; connections: {open} open, {connections} since the start"
        )?;
    }
    Ok(())
}

/// Prints the mail to traps.
fn print_traps(out: &mut impl Write, traps: &TrapStatus) -> io::Result<()> {
    let results: Vec<_> = traps.messages.iter().map(|(result, count)| format!("{count} {result}")).collect();
    if !results.is_empty() {
        writeln!(out, "\nmessages to traps since the start: {}", results.join(", "))?;
    }
    for (trap, wanted) in &traps.wanted {
        let (trap, entry) = (remote_text(trap), remote_text(&wanted.entry));
        writeln!(
            out,
            "  {trap} GETS MAIL FROM WHITE-LISTED SENDERS: {}, the last wanted by {entry}",
            messages(wanted.messages)
        )?;
    }
    Ok(())
}

/// Prints the servers and clients with which counts are shared.
fn print_others(out: &mut impl Write, status: &DaemonStatus) -> io::Result<()> {
    for LikelyRelay { client, percent } in &status.likely_relays {
        writeln!(out, "\n{percent} % of mail comes from the network of {client}: see bulkmark doctor")?;
    }
    if status.ledger.user_reports.are_many() {
        let (users, most) = (status.ledger.user_reports.users, Rows::MOST_OF_USERS);
        writeln!(out, "\nWORDS OF USERS: {users} of the {most} for which there is room")?;
    }
    if status.role != "server" && !status.links.is_empty() {
        writeln!(out, "\nspool: {} that no update includes yet", some(status.ledger.spool, "report"))?;
    }
    let kind = match &*status.role {
        _ if status.fleet.is_some() => "log",
        "server" => "peer",
        _ => "upstream",
    };
    for link in &status.links {
        writeln!(out, "\n{kind} {}", LinkLine(link))?;
    }
    if let Some(fleet) = &status.fleet {
        super::fleet::print_daemon(out, fleet)?;
    }
    Ok(())
}

fn print_refused(out: &mut impl Write, refused: &RefusedStatus) -> io::Result<()> {
    let why: Vec<_> = refused.requests.iter().filter(|(_, count)| **count > 0).collect();
    if why.is_empty() {
        return Ok(());
    }
    let why: Vec<_> = why.iter().map(|(code, count)| format!("{count} {code}")).collect();
    writeln!(out, "\nrefused since the start: {}", why.join(", "))?;
    match (&refused.last_invalid_token_from, refused.last_invalid_token_seconds_ago) {
        (Some(from), Some(seconds)) => {
            writeln!(
                out,
                "  the last token that nobody has came from {}, {} ago",
                remote_text(from),
                ago(seconds)
            )
        }
        _ => Ok(()),
    }
}

struct BulkLine<'a>(&'a BulkStatus);

impl fmt::Display for BulkLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BulkStatus { bound, signatures, left_out, memory, .. } = self.0;
        let memory = bytes(*memory as u64);
        write!(f, "bulk told apart: {signatures} signatures from the count {bound} on, {memory}")?;
        if *left_out > 0 {
            write!(f, ", {left_out} FOUND NO ROOM (raise ledger.capacity)")?;
        }
        Ok(())
    }
}

/// Whether an error of a link is an answer, which begins with an HTTP status; otherwise the server does not answer.
fn is_refusal(error: &str) -> bool {
    error.split(' ').next().is_some_and(|status| status.len() == 3 && status.parse::<u16>().is_ok())
}

struct LinkLine<'a>(&'a LinkStatus);

impl fmt::Display for LinkLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = self.0;
        let state = match (link.active, &link.error) {
            (true, _) => "followed",
            (false, None) => "in reserve",
            (false, Some(_)) => "not followed",
        };
        writeln!(f, "{}: {state}", link.url)?;
        match link.behind {
            Some(0) => writeln!(f, "  up to date")?,
            Some(updates) => writeln!(f, "  {} behind", some(updates, "update"))?,
            None if link.error.as_deref().is_some_and(is_refusal) => writeln!(f, "  refuses this machine")?,
            None => writeln!(f, "  does not answer")?,
        }
        match link.heard_seconds_ago {
            Some(seconds) => write!(f, "  heard {} ago", ago(seconds))?,
            None => f.write_str("  never heard")?,
        }
        write!(f, ", {} in, {} out", bytes(link.bytes_in), bytes(link.bytes_out))?;
        match &link.error {
            Some(error) => write!(f, "\n  error: {}", remote_text(error)),
            None => Ok(()),
        }
    }
}

struct WebhookLine<'a>(&'a WebhookStatus);

impl fmt::Display for WebhookLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WebhookStatus { host, posted, .. } = self.0;
        match webhook_failure(self.0) {
            Some((failure, remedy)) => write!(f, "{host}: FAILS: it {failure}\n  {remedy}"),
            None => write!(f, "{host}: {} posted since the start", some(posted, "event")),
        }
    }
}

struct LimitedLine<'a>(&'a LimitedStatus);

impl fmt::Display for LimitedLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitedStatus { name, signatures, memory, odd, .. } = self.0;
        write!(
            f,
            "{name}: {signatures} different signatures in this window, {} of memory",
            bytes(*memory as u64)
        )?;
        match odd {
            Some(odd) => write!(f, "\n    made up: {odd}"),
            None => Ok(()),
        }
    }
}

struct ClientLine<'a>(&'a ClientStatus);

impl fmt::Display for ClientLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client = self.0;
        write!(f, "{} ({}", client.name, client.role)?;
        match &client.limits {
            Some(limits) => write!(f, ", partner with {limits}): ")?,
            None => f.write_str("): ")?,
        }
        match client.heard_seconds_ago {
            None => f.write_str("not heard")?,
            Some(seconds) => write!(
                f,
                "{} in {}, {} today, heard {} ago",
                some(client.signatures, "signature"),
                some_of(client.batches, "batch", "batches"),
                client.today,
                ago(seconds)
            )?,
        }
        if let Some(seconds) = client.reported_seconds_ago {
            write!(f, ", reported {} ago", ago(seconds))?;
        }
        if let Some(version) = &client.version {
            write!(f, ", version {}", remote_text(version))?;
        }
        if client.state.is_trouble() {
            write!(f, ", {}", client.state.to_string().to_uppercase())?;
        }
        if client.refused > 0 {
            let why = remote_text(client.last_refusal.as_deref().unwrap_or_default());
            write!(f, ", {} refused, last: {why}", some(client.refused, "time"))?;
        }
        Ok(())
    }
}
