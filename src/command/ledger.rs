// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark ledger`

use super::ledger_forget::{self, ForgetArgs};
use super::ledger_own::{self, BackupArgs, BeginArgs};
use super::output::{failed, output, print, print_result};
use super::show::{Slice, THRESHOLD, some};
use anyhow::{Context, bail};
use bulkmark_ledger::{Difference, Image, Status, VersionDifference};
use bulkmark_sync::{Link, Remote, Upstream};
use serde_json::json;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Inspect, compare, merge and back up whole ledgers.
///
/// A HOLDER is a ledger's file or its directory, while no daemon has it open, or the address of a server (http://, https:// or unix:). Exit code
/// 0: sound and equal; 1: they differ; 2: error, or damage.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show parameters, windows, fill, false bulk and versions.
    Info(InfoArgs),
    /// Read everything, check all checksums, and compare several holders cell by cell.
    Verify {
        /// The ledgers to check. All others are compared with the first.
        #[arg(required = true)]
        holder: Vec<String>,
        #[command(flatten)]
        access: Access,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Compare two holders: the number of different cells, and the origins that are counted up to different versions.
    Diff {
        /// The first ledger.
        first: String,
        /// The second ledger.
        second: String,
        #[command(flatten)]
        access: Access,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Merge ledgers without common counts into a new one, and print its path.
    ///
    /// Ledgers with counts of the same origin are refused, since these would be counted twice. With --json it prints an object with file.
    Merge {
        /// The ledgers to merge.
        #[arg(required = true, num_args = 2..)]
        holder: Vec<String>,
        #[command(flatten)]
        access: Access,
        /// The directory for the new ledger; it must not contain one yet.
        #[arg(long, value_name = "DIRECTORY")]
        output: PathBuf,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    Begin(BeginArgs),
    Backup(BackupArgs),
    Forget(ForgetArgs),
}

#[derive(Debug, clap::Args)]
struct InfoArgs {
    /// The ledger to show.
    holder: String,
    #[command(flatten)]
    access: Access,
    /// The threshold for which false bulk is estimated.
    #[arg(
        long, value_name = "N", default_value_t = THRESHOLD,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    threshold: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// The credentials that a server requires from readers of its ledger.
#[derive(Debug, clap::Args)]
struct Access {
    /// The file with a token that the servers accept; given several times, one for each server in the order of the command line.
    #[arg(long, value_name = "FILE")]
    token_file: Vec<PathBuf>,
    /// The authority that signed the servers' certificates, if the system does not trust it; one for all servers, or one for each.
    #[arg(long, value_name = "FILE")]
    ca_file: Vec<PathBuf>,
}

/// Whether this is the address of a server instead of a file.
fn is_server(holder: &str) -> bool {
    ["http://", "https://", "unix:"].iter().any(|scheme| holder.starts_with(scheme))
}

/// Returns the file for one of `servers`, by its index.
fn file_for(files: &[PathBuf], server: usize) -> Option<PathBuf> {
    if let [of_all] = files { Some(of_all.clone()) } else { files.get(server).cloned() }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let result = match &args.command {
        Command::Info(args) => info(args),
        Command::Verify { holder, access, json } => verify(access, holder, *json),
        Command::Diff { first, second, access, json } => {
            compare(access, first, std::slice::from_ref(second), *json)
        }
        Command::Merge { holder, access, output, json } => merge(access, holder, output, *json),
        Command::Begin(which) => ledger_own::begin(which),
        Command::Backup(which) => ledger_own::backup(which),
        Command::Forget(which) => ledger_forget::run(which),
    };
    result.or_else(|e| Ok(failed(&e, 2)))
}

impl Access {
    /// Reads the ledger with this index in the command line.
    fn image(&self, holders: &[&str], number: usize) -> anyhow::Result<Image> {
        self.read(holders, number, THRESHOLD).map(|(image, _)| image)
    }

    fn read(&self, holders: &[&str], number: usize, threshold: u32) -> anyhow::Result<(Image, Status)> {
        let (before, holder) = (&holders[..number], holders[number]);
        if !is_server(holder) {
            return Ok(Image::open(Path::new(holder), threshold)?);
        }
        let number = before.iter().filter(|other| is_server(other)).count();
        // reqwest uses the process's provider, of which there is only one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = Upstream {
            url: holder.to_owned(),
            token_file: file_for(&self.token_file, number),
            ca_file: file_for(&self.ca_file, number),
            // A client without a token gets only public data.
            plain_http_anywhere: self.token_file.is_empty(),
        };
        let client = Remote::new(&server, None, Arc::new(Link::new(holder)))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let image = runtime.block_on(bulkmark_sync::fetch(&client)).with_context(|| holder.to_owned())?;
        let status = image.status(threshold);
        Ok((image, status))
    }
}

fn info(args: &InfoArgs) -> anyhow::Result<ExitCode> {
    let holder = &args.holder;
    let (image, status) = args.access.read(&[holder], 0, args.threshold)?;
    let mut out = output();
    let key_id = format!("{:016x}", image.key_id());
    let role = image.role().to_string();
    let versions = image.vector().iter().map(|(origin, mark)| (origin.to_string(), mark.version));
    if args.json {
        let versions: serde_json::Map<_, _> = versions.map(|(o, v)| (o, v.into())).collect();
        let all =
            json!({ "role": role, "federation-key-id": key_id, "versions": versions, "ledger": status });
        writeln!(out, "{all}")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{holder}: the ledger of a {role}, federation key {key_id}")?;
    writeln!(out, "layout: {}", bulkmark_filter::Refined::layout())?;
    if let Some(origin) = &status.origin {
        writeln!(out, "origin {origin}")?;
    }
    for slice in &status.slices {
        writeln!(out, "  {}", Slice(slice, args.threshold))?;
    }
    for (origin, version) in versions {
        writeln!(out, "  origin {origin}: counted up to update {version}")?;
    }
    if status.spool > 0 {
        writeln!(out, "  spool: {} that no update includes yet", some(status.spool, "report"))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn verify(access: &Access, holders: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let [first, others @ ..] = holders else { bail!("nothing to check") };
    if !others.is_empty() {
        return compare(access, first, others, json);
    }
    access.image(&[first], 0)?;
    if json {
        print(json!({ "sound": true }))?;
    } else {
        print(format_args!("{first}: sound"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compares the first with each of the others.
fn compare(access: &Access, first: &str, others: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let all: Vec<_> = std::iter::once(first).chain(others.iter().map(String::as_str)).collect();
    let ours = access.image(&all, 0)?;
    let mut equal = true;
    let mut answers = Vec::new();
    for (number, &other) in all.iter().enumerate().skip(1) {
        let theirs = access.image(&all, number)?;
        let difference = ours.difference(&theirs).with_context(|| format!("{first} and {other}"))?;
        equal &= difference.is_none();
        if json {
            let versions: Vec<_> = difference
                .versions
                .iter()
                .map(|VersionDifference { origin, first, second }| {
                    json!({ "origin": origin.to_string(), "versions": [first, second] })
                })
                .collect();
            answers.push(json!({
                "holders": [first, other],
                "equal": difference.is_none(),
                "windows": difference.windows,
                "cells": difference.cells,
                "largest": difference.largest,
                "versions": versions,
            }));
        } else {
            print_difference(first, other, &difference)?;
        }
    }
    if json {
        print(json!({ "equal": equal, "comparisons": answers }))?;
    }
    Ok(ExitCode::from(u8::from(!equal)))
}

fn print_difference(first: &str, other: &str, difference: &Difference) -> io::Result<()> {
    let mut out = output();
    let Difference { windows, cells, largest, versions } = difference;
    if difference.is_none() {
        return writeln!(out, "{first} and {other}: all cells of {} are equal", some(windows, "window"));
    }
    let (cells, windows) = (some(cells, "cell"), some(windows, "window"));
    writeln!(out, "{first} and {other}: {cells} of {windows} differ, by {largest} at most")?;
    for VersionDifference { origin, first, second } in versions {
        writeln!(
            out,
            "  origin {origin}: counted up to update {first} in the first and {second} in the second"
        )?;
    }
    Ok(())
}

fn merge(access: &Access, holders: &[String], output: &Path, json: bool) -> anyhow::Result<ExitCode> {
    let all: Vec<_> = holders.iter().map(String::as_str).collect();
    let [first, others @ ..] = &*all else { bail!("nothing to add up") };
    let mut sum = access.image(&all, 0)?;
    for (number, other) in (1..).zip(others) {
        sum.merge(&access.image(&all, number)?).with_context(|| format!("{first} and {other}"))?;
    }
    let path = sum.write(output)?;
    print_result(json, &json!({ "file": path }), path.display())?;
    Ok(ExitCode::SUCCESS)
}
