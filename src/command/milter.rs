// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark milter`

use super::judging_daemon;
use crate::config::{DEFAULT_PATH, Kind};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run the milter daemon that Postfix or Sendmail asks about every message.
///
/// It stays in the foreground. SIGHUP reads the configuration again, SIGTERM ends it after the messages that are being
/// received. Exit code 78: the configuration cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
    config: PathBuf,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    judging_daemon::run(Kind::Milter, &args.config)
}
