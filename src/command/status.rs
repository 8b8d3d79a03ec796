// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark status`

use super::output::{EX_TEMPFAIL, failed, output};
use super::pause::sentence;
use super::show::{Slice, THRESHOLD, ago, bytes, called, messages, next_capacity};
use super::whose::Whose;
use crate::activity::{AccountStatus, DoorStatus, LikelyRelay, TrapStatus};
use crate::config::{self, Kind};
use crate::control::{self, ClientStatus, DaemonStatus, RefusedStatus};
use anyhow::anyhow;
use bulkmark_counts::Rows;
use bulkmark_ledger::{BulkStatus, LimitedStatus, now};
use bulkmark_sync::LinkStatus;
use bulkmark_types::told;
use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Show the state of a running milter or server: counts, memory, false bulk, and its connections to other servers.
///
/// Shows for how long it has been running; for each window its signatures, memory, share of used and full cells, and the chance that
/// a new message shows the threshold; how far each origin is counted; waiting reports; for each upstream server or peer whether it
/// is followed, by how many updates this machine is behind, when it last answered, bytes each way, and the last error; and the
/// requests and refusals of each client of a server.
///
/// Asks the daemon over its control socket. Fill and false bulk are estimates from a part of the cells. Exit code 0: it runs and
/// nothing is wrong; 1: it runs, and cannot write its ledger, or a server that it needs does not
/// answer as it should; 2: error; 75: it does not run, or does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    whose: Whose,
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
                print_for_people(&mut out, &status, threshold)?;
            }
            let healthy = status.ailment.is_none() && status.links.iter().all(|link| link.error.is_none());
            Ok(ExitCode::from(u8::from(!healthy)))
        }
        Err(e) => Ok(failed(&e, EX_TEMPFAIL)),
    }
}

/// What the daemon answers, with the threshold; the inner error if it does not.
fn ask(args: &Args) -> anyhow::Result<anyhow::Result<(DaemonStatus, u32)>> {
    let path = args.whose.path();
    let (daemon, socket, threshold) = match args.whose.kind(&path)? {
        Kind::Server => ("server", config::load_server(&path)?.0.control, THRESHOLD),
        Kind::Milter | Kind::Doors => {
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
            // It runs, and says what is wrong.
            io::ErrorKind::Other => anyhow!("the {daemon} at {socket} cannot tell: {e}"),
            _ => anyhow!(e).context(format!("no {daemon} answers at {socket}")),
        }
    }))
}

fn print_for_people(out: &mut impl Write, status: &DaemonStatus, threshold: u32) -> io::Result<()> {
    let uptime = ago(status.uptime_seconds);
    writeln!(out, "bulkmark {} {}, up for {uptime}", status.role, status.version)?;
    if let Some(ailment) = &status.ailment {
        writeln!(out, "NOTHING IS COUNTED: {}", told(ailment))?;
    }
    if let Some(address) = &status.listens {
        writeln!(out, "listens on {address}")?;
    }
    print_orders(out, status)?;
    if let Some(origin) = &status.ledger.origin {
        writeln!(out, "origin {origin}")?;
    }
    let slices = &status.ledger.slices;
    let of_bulk = status.ledger.bulk.as_ref().map_or(0, |bulk| bulk.memory);
    let memory = slices.iter().map(|slice| slice.memory).sum::<usize>() + of_bulk;
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
            "  no word since the start from {peers}; {held} reports wait for it to be told to others"
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
    if let Some(pairs) = status.correspondents.filter(|&pairs| pairs > 0) {
        writeln!(out, "\ncorrespondents: {pairs} pairs of a user and somebody that user wrote to")?;
    }
    if let Some(traps) = &status.traps {
        print_traps(out, traps)?;
    }
    print_doors(out, &status.doors)?;
    print_accounts(out, &status.accounts)?;
    if !status.ledger.limited.is_empty() {
        writeln!(out, "\nwhat clients with limits reported:")?;
        for client in &status.ledger.limited {
            writeln!(out, "  {}", LimitedLine(client))?;
        }
    }
    Ok(())
}

/// What the administrator ordered.
fn print_orders(out: &mut impl Write, status: &DaemonStatus) -> io::Result<()> {
    if let Some(pause) = &status.pause {
        writeln!(out, "PAUSED: {}", sentence(pause))?;
    }
    match status.allowed {
        None => Ok(()),
        Some(1) => writeln!(out, "1 mailing is never refused (bulkmark allow --list)"),
        Some(n) => writeln!(out, "{n} mailings are never refused (bulkmark allow --list)"),
    }
}

/// What accounts sent to others.
fn print_accounts(out: &mut impl Write, accounts: &[AccountStatus]) -> io::Result<()> {
    if !accounts.is_empty() {
        writeln!(out, "\naccounts that sent bulk lately:")?;
        for AccountStatus { account, bulk, recipients, over } in accounts {
            // Whoever chose the name is not to write on this terminal.
            let account = account.escape_debug();
            let over = if *over { ", OVER ITS LIMIT" } else { "" };
            writeln!(out, "  {account}: {bulk} copies of bulk, {recipients} recipients in all{over}")?;
        }
    }
    Ok(())
}

/// What is asked at doors beside the mail server's.
fn print_doors(out: &mut impl Write, doors: &[DoorStatus]) -> io::Result<()> {
    if !doors.is_empty() {
        writeln!(out, "\ndoors:")?;
    }
    for DoorStatus { name, address, error, open, connections, requests } in doors {
        if let Some(error) = error {
            writeln!(out, "  {name} at {address} IS NOT OPEN: {}", told(error))?;
            continue;
        }
        let requests: Vec<_> = requests.iter().filter(|(_, count)| **count > 0).collect();
        let requests: Vec<_> = requests.iter().map(|(what, count)| format!("{count} {what}")).collect();
        let requests = if requests.is_empty() { "none".to_owned() } else { requests.join(", ") };
        writeln!(
            out,
            "  {name} at {address}: requests since the start: {requests}; connections: {open} open, {connections} at most"
        )?;
    }
    Ok(())
}

/// What came to traps.
fn print_traps(out: &mut impl Write, traps: &TrapStatus) -> io::Result<()> {
    let results: Vec<_> = traps.messages.iter().map(|(result, count)| format!("{count} {result}")).collect();
    if !results.is_empty() {
        writeln!(out, "\nmessages to traps since the start: {}", results.join(", "))?;
    }
    for (trap, wanted) in &traps.wanted {
        let (trap, entry) = (told(trap), told(&wanted.entry));
        writeln!(
            out,
            "  {trap} GETS MAIL FROM WHITE-LISTED SENDERS: {}, the last wanted by {entry}",
            messages(wanted.messages)
        )?;
    }
    Ok(())
}

/// With whom counts are shared.
fn print_others(out: &mut impl Write, status: &DaemonStatus) -> io::Result<()> {
    for LikelyRelay { client, percent } in &status.likely_relays {
        writeln!(out, "\n{percent} % of mail comes from the network of {client}: see bulkmark doctor")?;
    }
    if status.ledger.people.are_many() {
        let (users, most) = (status.ledger.people.users, Rows::MOST_OF_USERS);
        writeln!(out, "\nWORDS OF USERS: {users} of the {most} for which there is room")?;
    }
    if status.role != "server" && !status.links.is_empty() {
        writeln!(out, "\nspool: {} reports that no update includes yet", status.ledger.spool)?;
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
            writeln!(out, "  the last token that nobody has came from {}, {} ago", told(from), ago(seconds))
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

struct LinkLine<'a>(&'a LinkStatus);

impl fmt::Display for LinkLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let link = self.0;
        let what = match (link.active, &link.error) {
            (true, _) => "followed",
            (false, None) => "in reserve",
            (false, Some(_)) => "not followed",
        };
        writeln!(f, "{}: {what}", link.url)?;
        match link.behind {
            Some(0) => writeln!(f, "  up to date")?,
            Some(updates) => writeln!(f, "  {updates} updates behind")?,
            None => writeln!(f, "  does not answer")?,
        }
        match link.heard_seconds_ago {
            Some(seconds) => write!(f, "  heard {} ago", ago(seconds))?,
            None => f.write_str("  never heard")?,
        }
        write!(f, ", {} in, {} out", bytes(link.bytes_in), bytes(link.bytes_out))?;
        match &link.error {
            Some(error) => write!(f, "\n  error: {}", told(error)),
            None => Ok(()),
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
                "{} signatures in {} batches, {} today, heard {} ago",
                client.signatures,
                client.batches,
                client.today,
                ago(seconds)
            )?,
        }
        if let Some(seconds) = client.reported_seconds_ago {
            write!(f, ", reported {} ago", ago(seconds))?;
        }
        if let Some(version) = &client.version {
            write!(f, ", version {}", told(version))?;
        }
        if client.state.is_trouble() {
            write!(f, ", {}", client.state.to_string().to_uppercase())?;
        }
        if client.refused > 0 {
            let why = told(client.last_refusal.as_deref().unwrap_or_default());
            write!(f, ", {} times refused, last: {why}", client.refused)?;
        }
        Ok(())
    }
}
