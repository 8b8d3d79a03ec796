// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet key`

use crate::command::output::print_result;
use anyhow::Context;
use bulkmark_sync::log::nats::new_nkey;
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make an nkey, by which a machine of a fleet authenticates to NATS, and print its public half.
///
/// The public half belongs in the file of members, as nkey = "U...". The seed is secret: it is written to a file that only its owner
/// may read. Make the daemon's user the owner, and leave the file on its machine. With --json it prints an object with nkey, the public half, and
/// file.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Args {
    /// The file for the seed, which must not exist yet.
    file: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (seed, public) = new_nkey()?;
    let unusable = || format!("cannot make {}", args.file.display());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&args.file)
        .with_context(unusable)?;
    writeln!(file, "{seed}").and_then(|()| file.sync_all()).with_context(unusable)?;
    print_result(args.json, &json!({ "nkey": public, "file": args.file }), &public)?;
    Ok(ExitCode::SUCCESS)
}
