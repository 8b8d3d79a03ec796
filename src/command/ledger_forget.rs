// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark ledger forget`

use super::pause::{OrderArgs, end};
use super::show::some_of;
use super::signature::read_message;
use crate::config;
use crate::control::{Allow, Order, Ordered};
use crate::orders::{Allowance, Forgotten};
use anyhow::{Context as _, bail};
use bulkmark_signature::signatures;
use bulkmark_types::{Signature, remote_text};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Start the counts of one mailing over at this milter.
///
/// The filter cannot delete counts, so the milter records those of the mailing, and subtracts them until their reports expire
/// (ledger.retention). Later copies count from one. As earlier reports expire, the mailing can count too low, but never too high. A message file
/// stands for all its signatures, a signature as with `bulkmark allow`. Other members of a federation count as before: run the command at each.
/// Exit code 0: done; 1: no such mailing; 75: the milter does not answer.
#[derive(Debug, clap::Args)]
pub(super) struct ForgetArgs {
    /// List the mailings whose counts started over.
    #[arg(long, conflicts_with_all = ["mailing", "remove"])]
    list: bool,
    /// Include the earlier counts of the mailing with this name, or the beginning of it, again.
    #[arg(long, value_name = "NAME", conflicts_with = "mailing")]
    remove: Option<String>,
    #[command(flatten)]
    order: OrderArgs,
    /// A signature of 32 hexadecimal digits, or a file with a message; "-" is standard input
    #[arg(value_name = "SIGNATURE|FILE", required_unless_present_any = ["list", "remove"])]
    mailing: Option<PathBuf>,
}

pub(super) fn run(args: &ForgetArgs) -> anyhow::Result<ExitCode> {
    if let Some(name) = &args.remove {
        return args.order.carry_out(Order::Remember(name.to_ascii_lowercase()), b"", |ordered| {
            let name = ordered.mailing.as_ref().map_or("", Allowance::name);
            format!("mailing {name} counts as before")
        });
    }
    let Some(mailing) = args.mailing.as_ref().filter(|_| !args.list) else {
        return args.order.carry_out(Order::List, b"", list);
    };
    let checked = config::load(&args.order.milter.config)?;
    let seconds = Some(checked.file.ledger.retention.as_secs());
    let signature: Option<Signature> =
        mailing.to_str().and_then(|text| text.to_ascii_lowercase().parse().ok());
    let signatures = match signature {
        Some(signature) => args.order.copies_of(&signature.to_string())?,
        None => signatures_of(mailing, &checked)?,
    };
    args.order.carry_out(Order::Forget(Allow { signatures, seconds, ..Allow::default() }), b"", forgotten)
}

/// Returns the signatures of a message, the one of its body first.
fn signatures_of(path: &Path, checked: &config::Checked) -> anyhow::Result<Vec<String>> {
    let message = read_message(path).context("expected a signature or a file with a message")?;
    let all = signatures(&message, &checked.key, &checked.file.signature);
    let all: Vec<_> =
        all.body.ok().into_iter().chain(all.near.reported()).map(|signature| signature.to_string()).collect();
    if all.is_empty() {
        bail!("{}: the message has no signature", path.display());
    }
    Ok(all)
}

fn forgotten(ordered: &Ordered) -> String {
    let name = ordered.mailing.as_ref().map_or("", Allowance::name);
    let counts = ordered.orders.forgotten.iter().find(|forgotten| forgotten.mailing.name() == name);
    let (body, near) = counts.map_or((0, 0), |forgotten| (forgotten.body, forgotten.near));
    format!(
        "the counts of mailing {name} start over: {body} exact and {} are taken off",
        some_of(near, "similar copy", "similar copies")
    )
}

fn list(ordered: &Ordered) -> String {
    let line = |Forgotten { mailing, body, near }: &Forgotten| {
        let why = if mailing.reason.is_empty() {
            String::new()
        } else {
            format!(": {}", remote_text(&mailing.reason))
        };
        let (end, by) = (end(mailing.until), remote_text(&mailing.by));
        let near = some_of(near, "similar copy", "similar copies");
        format!("{}  {end}, {body} exact and {near} taken off, by {by}{why}", mailing.name())
    };
    let all: Vec<_> = ordered.orders.forgotten.iter().map(line).collect();
    if all.is_empty() { "no mailing is forgotten".to_owned() } else { all.join("\n") }
}
