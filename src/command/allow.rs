// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark allow`

use super::pause::{DaemonOrderArgs, end};
use super::show::some;
use super::values::order_duration;
use crate::control::{Allow, MAX_REPORTED, Order, Ordered};
use crate::orders::{Allowance, SiteOrder, Standing, State};
use anyhow::{Context, bail};
use bulkmark_ledger::directory::open_regular;
use bulkmark_mail::mbox::{SEPARATOR, delivered};
use bulkmark_types::{Signature, remote_text};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Never refuse a mailing: it is only marked, with held=allowed.
///
/// The running milter obeys at once, and keeps the order over a restart. A message file stands for all its signatures, so copies that differ are
/// allowed, too. The file is also reported to the federation as not spam, under the name of the user who runs the command. A signature from log
/// or header allows only messages with exactly that signature; if `bulkmark refusals` knows the message, it stands for all signatures of the
/// message. In a federation, the other sites receive the order as well: it holds there at once if the server's operator added this site with
/// --own, and otherwise as soon as a second partner gives it. With --server, an operator allows a mailing at all sites, or with --remove revokes
/// an order of sites. Exit code 0: done; 1: no such mailing, or no message; 75: the daemon does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Duration of the order, such as 30d [default: until it is removed]
    #[arg(long = "for", value_name = "TIME", value_parser = order_duration)]
    duration: Option<Duration>,
    /// Do not send the order to other sites; messages that sync.private names are not sent in any case.
    #[arg(long, conflicts_with_all = ["list", "remove"])]
    here: bool,
    /// List the mailings that are allowed, here and by other sites.
    #[arg(long, conflicts_with_all = ["duration", "mailing", "remove"])]
    list: bool,
    /// Remove the order for the mailing with this name, or the beginning of it.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["duration", "mailing"])]
    remove: Option<String>,
    #[command(flatten)]
    at: DaemonOrderArgs,
    /// A signature of 32 hexadecimal digits, or a file with a message; "-" is standard input
    #[arg(value_name = "SIGNATURE|FILE", required_unless_present_any = ["list", "remove"])]
    mailing: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.remove {
        let name = name.to_ascii_lowercase();
        return args.at.carry_out(Order::Remove(name), b"", |ordered| {
            let name = ordered.mailing.as_ref().map_or("", Allowance::name);
            let is_revoked = ordered.orders.revoked.iter().any(|revoked| revoked.name() == name);
            let what = if is_revoked {
                "is revoked: it holds at the mail server alone that allowed it"
            } else {
                "is no longer allowed"
            };
            format!("mailing {name} {what}")
        });
    }
    let Some(mailing) = args.mailing.as_ref().filter(|_| !args.list) else {
        return args.at.carry_out(Order::List, b"", list);
    };
    let seconds = args.duration.map(|duration| duration.as_secs());
    let signature: Option<Signature> =
        mailing.to_str().and_then(|text| text.to_ascii_lowercase().parse().ok());
    let message = if signature.is_some() { Vec::new() } else { read(mailing)? };
    let signatures = signature.map(|signature| args.at.copies_of(&signature.to_string()));
    let signatures = signatures.transpose()?.unwrap_or_default();
    let allow = Allow { signatures, length: message.len() as u64, seconds, here: args.here };
    args.at.carry_out(Order::Allow(allow), &message, allowed)
}

/// Reads a message as it was delivered.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(MAX_REPORTED + 1).read_to_end(&mut bytes)?;
    } else {
        let file = open_regular(path).with_context(|| {
            format!("{}: neither a signature nor a file that can be read", path.display())
        })?;
        file.take(MAX_REPORTED + 1).read_to_end(&mut bytes)?;
    }
    if bytes.is_empty() || bytes.len() as u64 > MAX_REPORTED {
        bail!("{}: found {} bytes, expected a message of 1 to {MAX_REPORTED}", path.display(), bytes.len());
    }
    let message = delivered(&bytes);
    let head = if message.starts_with(SEPARATOR) {
        memchr::memchr(b'\n', &message).map_or(message.len(), |end| end + 1)
    } else {
        0
    };
    Ok(message[head..].to_vec())
}

fn allowed(ordered: &Ordered) -> String {
    let Some(mailing) = &ordered.mailing else { return "nothing is allowed".to_owned() };
    let known = match mailing.signatures.len() {
        1 => "messages with exactly this signature".to_owned(),
        n => format!("by {n} signatures"),
    };
    let shared = if ordered.shared { "; other servers receive that it is not spam" } else { "" };
    format!("mailing {} is allowed {}, {known}{shared}", mailing.name(), end(mailing.until))
}

fn list(ordered: &Ordered) -> String {
    let reach = match ordered.standing {
        None => "",
        Some(Standing::Operator | Standing::Own) => ", at all sites",
        Some(Standing::Partner) => ", here, and elsewhere with a second partner",
    };
    let is_revoked = |mailing: &Allowance| ordered.revoked.iter().any(|revoked| revoked == mailing.name());
    let reach = |mailing: &Allowance| match mailing.here {
        true => ", here alone",
        false if is_revoked(mailing) => ", here alone: revoked by the operator",
        false => reach,
    };
    let own = ordered.orders.allowed.iter().map(|mailing| line(mailing, "", reach(mailing)));
    let other = |order: &SiteOrder| {
        let at = format!(" at {} ({})", remote_text(&order.site), order.standing.name());
        let state = match order.state {
            State::InForce => "",
            State::Waiting => ", waits for a second partner",
            State::Revoked => ", revoked by the operator",
        };
        line(&order.mailing, &at, state)
    };
    let all: Vec<_> = own.chain(ordered.others.iter().map(other)).collect();
    if all.is_empty() { "no mailing is allowed".to_owned() } else { all.join("\n") }
}

/// Describes an order: its name, duration, author with site, reach, and reason.
fn line(mailing: &Allowance, at: &str, reach: &str) -> String {
    let Allowance { signatures, until, by, reason, .. } = mailing;
    let why = if reason.is_empty() { String::new() } else { format!(": {}", remote_text(reason)) };
    let (end, number) = (end(*until), some(signatures.len(), "signature"));
    let by = if by.is_empty() { "somebody".to_owned() } else { remote_text(by) };
    format!("{}  {end}, {number}, by {by}{at}{reach}{why}", mailing.name())
}
