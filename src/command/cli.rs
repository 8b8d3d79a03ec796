// SPDX-License-Identifier: GPL-3.0-or-later
//! The command line, and the command that it runs.

use super::output::failed;
use super::{
    allow, canary, check, client, completions, config, correspondents, digest, doctor, explain, fleet,
    interfaces, join, ledger, milter, pause, refusals, report, server, signature, status, tune,
};
use clap::{CommandFactory as _, Parser, Subcommand};
use std::process::ExitCode;

/// Finds bulk mail by counting messages in counting Bloom filters.
///
/// The milter, a daemon that Postfix or Sendmail asks about every message, reduces each message to a few signatures, one of its exact content
/// and some that near-replicas share, and counts them in a ledger of counting Bloom filters. A message that was seen 20 times is bulk: it is
/// marked with a header field, or refused. Bulk is not spam; white lists name wanted bulk.
///
/// No message is stored: the ledger holds its signatures, 128 bits each, and the cells of the filter that stand for them.
#[derive(Debug, Parser)]
#[command(name = "bulkmark", version, help_template = TEMPLATE, before_help = groups(), after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Like clap's own template, with the commands in groups.
const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// Commands by the administrator's question. A test checks that each is in one group.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Daemons", &["milter", "interfaces", "server"]),
    ("One message", &["check", "explain", "signature", "report"]),
    ("Refused mail", &["refusals", "allow", "pause", "resume"]),
    ("State and settings", &["doctor", "status", "digest", "tune", "canary", "config", "correspondents"]),
    ("Several servers", &["join", "client", "fleet", "ledger"]),
];

/// Columns of a command's description in the list; a longer one ends at its first comma or colon.
const WIDEST: usize = 80;

/// Returns the list of commands in `--help`.
fn groups() -> String {
    let all = Command::augment_subcommands(clap::Command::new("bulkmark"));
    let about = |name: &str| {
        let command = all.find_subcommand(name);
        let about = command.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default();
        match about.get(..WIDEST).and_then(|start| start.find([',', ':', ';'])) {
            Some(end) if about.len() > WIDEST => about[..end].to_owned(),
            _ => about,
        }
    };
    let group = |(title, names): &(&str, &[&str])| {
        let lines: String = names.iter().map(|name| format!("  {name:<10} {}\n", about(name))).collect();
        format!("{title}:\n{lines}")
    };
    let groups: Vec<_> = GROUPS.iter().map(group).collect();
    groups.join("\n")
}

const AFTER_HELP: &str = "\
To begin: bulkmark milter --config /etc/bulkmark/milter.toml, and in Postfix's main.cf
  smtpd_milters = { inet:127.0.0.1:8720, default_action=accept }
The configuration is described in bulkmark.toml(5), white lists in bulkmark-whitelist(5), exit codes in bulkmark(1).";

#[derive(Debug, Subcommand)]
enum Command {
    Milter(milter::Args),
    Interfaces(interfaces::Args),
    Server(server::Args),
    Client(client::Args),
    Join(join::Args),
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
    #[command(subcommand)]
    Correspondents(correspondents::Command),
    Signature(signature::Args),
    Tune(tune::Args),
    #[command(subcommand)]
    Config(config::Command),
    Completions(completions::Args),
}

impl Cli {
    /// Runs the command; `main` prints the error that ends it.
    ///
    /// # Errors
    /// The error that stopped the command.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Milter(args) => Ok(milter::run(&args).unwrap_or_else(|e| failed(&e, 1))),
            Command::Interfaces(args) => Ok(interfaces::run(&args).unwrap_or_else(|e| failed(&e, 1))),
            Command::Server(args) => Ok(server::run(&args).unwrap_or_else(|e| failed(&e, 1))),
            Command::Client(args) => client::run(&args),
            Command::Join(args) => join::run(&args),
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
            Command::Correspondents(command) => correspondents::run(&command),
            Command::Signature(args) => signature::run(&args),
            Command::Tune(args) => tune::run(&args),
            Command::Config(command) => config::run(&command),
            Command::Completions(args) => completions::run(&args, &mut Self::command()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn help_has_each_command_in_one_group() {
        let program = Cli::command();
        let all: BTreeSet<_> = program
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(|command| command.get_name().to_owned())
            .collect();
        let grouped: Vec<_> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().map(|&name| name.to_owned())).collect();
        assert_eq!((grouped.len(), grouped.into_iter().collect::<BTreeSet<_>>()), (all.len(), all));
        assert!(groups().lines().all(|line| line.len() > 20 || line.is_empty() || line.ends_with(':')));
    }
}
