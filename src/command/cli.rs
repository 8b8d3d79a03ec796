// SPDX-License-Identifier: GPL-3.0-or-later
//! What the command line says, and which command it runs.

use super::{
    allow, canary, check, client, completions, config, digest, doctor, doors, explain, fleet, ledger, milter,
    pause, refusals, report, reports, server, signature, status, tune,
};
use clap::{CommandFactory as _, Parser, Subcommand};
use std::process::ExitCode;

/// Finds bulk mail by counting messages in counting Bloom filters.
///
/// The milter, a daemon that Postfix or Sendmail asks about every message, reduces each message to a few signatures, one of its
/// exact content and some that near-replicas share, and counts them in a ledger of counting Bloom filters. A message that was seen
/// 20 times is bulk: it is marked with a header field, or refused. Bulk is not spam; white lists say which bulk is wanted.
///
/// No message is stored: the ledger holds its signatures, 128 bits each, and the cells of the filter that stand for them.
#[derive(Debug, Parser)]
#[command(name = "bulkmark", version, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
To begin: bulkmark milter --config /etc/bulkmark/milter.toml, and in Postfix's main.cf
  smtpd_milters = { inet:127.0.0.1:8720, default_action=accept }
The configuration is described in bulkmark.toml(5), white lists in bulkmark-whitelist(5).";

#[derive(Debug, Subcommand)]
enum Command {
    Milter(milter::Args),
    Doors(doors::Args),
    Server(server::Args),
    Client(client::Args),
    #[command(subcommand)]
    Fleet(fleet::Command),
    Check(check::Args),
    Canary(canary::Args),
    Digest(digest::Args),
    Doctor(doctor::Args),
    Status(status::Args),
    Ledger(ledger::Args),
    Explain(explain::Args),
    Allow(allow::Args),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Refusals(refusals::Args),
    Report(report::Args),
    Reports(reports::Args),
    Signature(signature::Args),
    Tune(tune::Args),
    #[command(subcommand)]
    Config(config::Command),
    Completions(completions::Args),
}

impl Cli {
    /// Runs the command; errors that end it are for standard error.
    ///
    /// # Errors
    /// Whatever stopped the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Milter(args) => milter::run(&args),
            Command::Doors(args) => doors::run(&args),
            Command::Server(args) => server::run(&args),
            Command::Client(args) => client::run(&args),
            Command::Fleet(command) => fleet::run(&command),
            Command::Check(args) => check::run(&args),
            Command::Canary(args) => canary::run(&args),
            Command::Digest(args) => digest::run(&args),
            Command::Doctor(args) => doctor::run(&args),
            Command::Status(args) => status::run(&args),
            Command::Ledger(args) => ledger::run(&args),
            Command::Explain(args) => explain::run(&args),
            Command::Allow(args) => allow::run(&args),
            Command::Pause(args) => pause::run(&args),
            Command::Resume(args) => pause::resume(&args),
            Command::Refusals(args) => refusals::run(&args),
            Command::Report(args) => report::run(&args),
            Command::Reports(args) => reports::run(&args),
            Command::Signature(args) => signature::run(&args),
            Command::Tune(args) => tune::run(&args),
            Command::Config(command) => config::run(&command),
            Command::Completions(args) => completions::run(&args, &mut Self::command()),
        }
    }
}
