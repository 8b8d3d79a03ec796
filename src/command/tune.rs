// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark tune`

use super::output::{complain, failed, output};
use super::tune_table::print_text;
use crate::config::{self, Checked};
use crate::tune::{self, Archive, Border, Index, Label, Tuning};
use anyhow::{Context, ensure};
use bulkmark_counts::{Durability, Role};
use bulkmark_ledger::Ledger;
use bulkmark_types::FederationKey;
use bulkmark_verdict::Rules;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Signatures for which a filter of a replay has space before it grows.
const LEAST_CAPACITY: NonZeroU32 = NonZeroU32::MIN.saturating_add(999);

/// Judge the mail of an archive as the milter would have, and propose lines for a white list.
///
/// Counts all messages in order of arrival, as the milter does, in a ledger that is deleted afterwards. An archive is an mbox, a maildir, a
/// directory of messages or mboxes, or a message. For the thresholds 5, 10, 20, 50 and 100 it shows how many messages would have been bulk, from
/// how many senders, and how many are whitelisted; then the most frequent clusters, and lines for a white list. Check those that begin with "#"
/// before you use them. Exit code 0: done, with a list of files that could not be read; 2: error, or no message was found.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The milter's configuration, for its thresholds, white list and ledger; without it, the defaults apply and there is
    /// no white list.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// An archive of wanted mail; may be given more than once.
    #[arg(long, value_name = "ARCHIVE")]
    ham: Vec<PathBuf>,
    /// An archive of unwanted mail; may be given more than once.
    #[arg(long, value_name = "ARCHIVE")]
    spam: Vec<PathBuf>,
    /// Start with the counts of the ledger in this directory, which no daemon may have open; it is copied, not changed.
    #[arg(long, value_name = "DIR")]
    ledger: Option<PathBuf>,
    /// The mail server that took the messages from outside, by its name in Received fields; its line has the client's network. Without it, the
    /// first line with a client outside private networks and exempt-networks is used.
    #[arg(long, value_name = "NAME")]
    border: Option<String>,
    /// The most clusters to print.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Draw how many messages each threshold finds, as SVG, into this file.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Archives without a label.
    #[arg(required_unless_present_any = ["ham", "spam"], value_name = "ARCHIVE")]
    archives: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match tune(args) {
        Ok(report) => {
            print(args, &report)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(e) => Ok(failed(&e, 2)),
    }
}

fn tune(args: &Args) -> anyhow::Result<Tuning> {
    let checked = match &args.config {
        Some(path) => config::load(path)?,
        None => Checked {
            file: config::MilterFile::default(),
            key: FederationKey::public(),
            whitelist: bulkmark_policy::WhiteList::default(),
            private: bulkmark_policy::WhiteList::default(),
            traps: bulkmark_policy::Traps::default(),
            policies: bulkmark_policy::Policies::default(),
        },
    };
    let labelled =
        |paths: &[PathBuf], label| paths.iter().map(move |p| (p.clone(), label)).collect::<Vec<_>>();
    let paths = [
        labelled(&args.ham, Label::Ham),
        labelled(&args.spam, Label::Spam),
        labelled(&args.archives, Label::None),
    ]
    .concat();
    let archive = Archive::find(&paths);
    let bar = bar(archive.bytes(), "looking for messages: {wide_bar} {bytes}/{total_bytes}, {eta} left")?;
    let index = Index::make(&archive, bulkmark_ledger::now(), &|bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let ledger = ledger(args.ledger.as_deref(), &checked, &index)?;
    let rules = checked.into_rules();
    let border = Border { server: args.border.clone() };
    let report = replay(&index, &rules, &ledger, &border)?;
    for fault in &report.unreadable {
        complain(format_args!("bulkmark: cannot read {}: {}", fault.path, fault.reason));
    }
    ensure!(report.archive.messages > 0, "no message was found in {}", shown(&paths));
    if let Some(path) = &args.plot {
        tune::plot(&report, path)?;
        complain(format_args!("drew {}", path.display()));
    }
    Ok(report)
}

fn replay(index: &Index<'_>, rules: &Rules, ledger: &Ledger, border: &Border) -> anyhow::Result<Tuning> {
    let bar = bar(index.len() as u64, "counting: {wide_bar} {pos}/{len} messages, {eta} left")?;
    let report = tune::replay(index, rules, ledger, border, &|| bar.inc(1));
    bar.finish_and_clear();
    report.context("the ledger of the replay, in the directory for temporary files, cannot be written")
}

/// Returns a progress bar, which only a terminal shows.
fn bar(length: u64, template: &str) -> anyhow::Result<ProgressBar> {
    let style = ProgressStyle::with_template(template)?;
    let bar = ProgressBar::new(length).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

/// Opens a ledger for the replay: a new one, or a copy.
fn ledger(from: Option<&Path>, checked: &Checked, index: &Index<'_>) -> anyhow::Result<Ledger> {
    let directory = tempfile::Builder::new().prefix("bulkmark-tune-").tempdir();
    let directory = directory.context("cannot make a directory for temporary files")?;
    let mut settings = checked.file.ledger.clone();
    settings.durability = Durability::Relaxed;
    match from {
        Some(from) => bulkmark_ledger::copy(from, directory.path())?,
        None => {
            let needed =
                index.signatures_by_window(settings.window.as_secs()).max(LEAST_CAPACITY.get().into());
            let needed = u32::try_from(needed).ok().and_then(NonZeroU32::new);
            settings.capacity = needed.unwrap_or(settings.capacity).min(settings.capacity);
        }
    }
    // The directory is removed at the return, so the open file vanishes with this process, however it ends.
    Ok(Ledger::open(directory.path(), Role::Site, &settings, &checked.key)?)
}

fn shown(paths: &[(PathBuf, Label)]) -> String {
    paths.iter().map(|(path, _)| super::output::shown(path)).collect::<Vec<_>>().join(", ")
}

fn print(args: &Args, report: &Tuning) -> anyhow::Result<()> {
    let mut out = output();
    if args.json {
        let mut value = serde_json::to_value(report)?;
        if let Some(clusters) = value["clusters"].as_array_mut() {
            clusters.truncate(args.limit);
        }
        writeln!(out, "{value}")?;
    } else {
        print_text(&mut out, report, args.limit, args.config.is_some())?;
    }
    Ok(())
}
