// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark refusals`

use super::output::output;
use super::show::{messages, time};
use super::values::{duration, mailbox_or_domain};
use crate::config::{self, DEFAULT_PATH};
use crate::refusals::{Client, Entry, Found, Query, find};
use anyhow::Context;
use bulkmark_ledger::now;
use bulkmark_policy::Mailboxes;
use bulkmark_types::remote_text;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Messages that are shown at most: they are in memory, and each may have many recipients.
const MOST: i64 = 10_000;

/// Show refused messages with their senders and recipients.
///
/// Each has its sender, recipients, client, counts, and the command that allows its mailing. Rehearsed refusals are marked "would". Reads the
/// files that the milter writes if `[refusals]` days is set, which root and the group bulkmark may read; the milter need not run. Only the first
/// 100 recipients of a message are known. Exit code 0: done, also if there are none; 2: they are not stored, or cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Messages to this recipient; "@example.org" is a whole domain.
    #[arg(long, value_name = "ADDRESS", value_parser = mailbox_or_domain)]
    recipient: Option<String>,
    /// Messages from this envelope sender; "@example.org" is a whole domain, "<>" the null sender.
    #[arg(long, value_name = "ADDRESS")]
    sender: Option<String>,
    /// Messages from this client: an address, a network, or a host with all names below it.
    #[arg(long, value_name = "CLIENT")]
    client: Option<String>,
    /// Messages of a mailing: one of its signatures, or the beginning of it.
    #[arg(long, value_name = "SIGNATURE")]
    mailing: Option<String>,
    /// Messages within this time before now.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = duration)]
    since: Duration,
    /// The most messages to show, up to 10000; the last ones are shown.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(..=MOST))]
    limit: u16,
    /// The milter's configuration.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = config::load_parts(&args.config)?.file;
    if file.refusals.days == 0 {
        anyhow::bail!(
            "refusals are not kept: set days in [refusals] of {} and restart",
            args.config.display()
        );
    }
    let query = Query {
        recipient: args.recipient.clone(),
        sender: args.sender.clone(),
        client: args.client.as_deref().map(client),
        mailing: args.mailing.as_ref().map(|mailing| mailing.to_ascii_lowercase()),
        since: now().saturating_sub(args.since.as_secs()),
        mailboxes: Mailboxes { delimiter: file.counting.recipient_delimiter.clone() },
    };
    let found = find(&file.state_dir, &query, args.limit.into());
    let found = found.with_context(|| format!("cannot read the refusals in {}", file.state_dir.display()))?;
    let config = Some(&*args.config).filter(|&config| config != Path::new(DEFAULT_PATH));
    let mut out = output();
    if args.json {
        // One at a time: as values of JSON, they would take several times their memory.
        write!(out, "{{\"refusals\":[")?;
        for (i, entry) in found.last.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(out, "{comma}{}", with_command(entry, config))?;
        }
        writeln!(out, "],\"total\":{}}}", found.total)?;
        return Ok(ExitCode::SUCCESS);
    }
    for entry in &found.last {
        writeln!(out, "{}", as_text(entry, config))?;
    }
    writeln!(out, "{}", sum(&found))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns a network, or else a name.
fn client(text: &str) -> Client {
    let host = || Client::Host(text.trim_start_matches('.').to_lowercase());
    text.parse().map_or_else(|_| host(), Client::Network)
}

fn with_command(entry: &Entry, config: Option<&Path>) -> Value {
    let mut value = json!(entry);
    if let (Some(object), Some(allow)) = (value.as_object_mut(), entry.allow(config)) {
        object.insert("allow".to_owned(), allow.into());
    }
    value
}

fn as_text(entry: &Entry, config: Option<&Path>) -> String {
    let would = if entry.rehearsed { "would " } else { "" };
    let more = entry.nrcpt.saturating_sub(entry.to.len().min(5));
    let to: Vec<_> = entry.to.iter().take(5).map(|to| format!("<{}>", remote_text(to))).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let counts = [("body", entry.body), ("near", entry.near)];
    let counts = counts.into_iter().filter_map(|(name, count)| Some(format!(" {name}={}", count?)));
    let mut why: String = counts.collect();
    for (name, value) in [("spam", &entry.spam), ("policy", &entry.policy), ("reason", &entry.reason)] {
        if !value.is_empty() {
            why += &format!(" {name}={}", remote_text(value));
        }
    }
    let mut text = format!(
        "{}  {would}{}  {}:{why}\n  from <{}> by {}[{}]\n  to {}{more}\n  id {}",
        time(entry.at),
        remote_text(&entry.action),
        remote_text(&entry.verdict),
        remote_text(&entry.from),
        remote_text(&entry.host),
        remote_text(&entry.client),
        to.join(", "),
        remote_text(&entry.id),
    );
    if let Some(allow) = entry.allow(config) {
        text += &format!("; to allow the mailing: {}", remote_text(&allow));
    }
    text
}

fn sum(Found { total, last }: &Found) -> String {
    match (*total, last.len() as u64) {
        (0, _) => "no message was refused, as far as was asked".to_owned(),
        (all, shown) if all > shown => format!("the last {shown} of {all} messages (--limit)"),
        (all, _) => messages(all),
    }
}
