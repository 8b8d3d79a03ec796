// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark interfaces`

use super::judging_daemon;
use crate::config::{INTERFACES_PATH, Kind};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the interfaces alone, without a mail server that asks a milter: for clients of DCC, Pyzor and Razor, and by HTTP.
///
/// It is the milter's daemon without the milter's listener, and stays in the foreground. SIGHUP reads the configuration again, SIGTERM
/// ends it after the messages that are being received. Exit code 78: the configuration cannot be used, or has no interface.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file. It has listen = "none" before the first table.
    #[arg(long, value_name = "FILE", default_value = INTERFACES_PATH)]
    config: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    judging_daemon::run(Kind::Interfaces, &args.config)
}
