// SPDX-License-Identifier: GPL-3.0-or-later
//! The command line: one file per subcommand.

mod allow;
mod asker;
mod canary;
mod check;
mod cli;
mod client;
mod client_list;
mod completions;
mod config;
mod correspondents;
mod daemon;
mod daemon_args;
mod digest;
mod doctor;
mod explain;
mod fleet;
mod fleet_tasks;
mod interfaces;
mod join;
mod judging_daemon;
mod ledger;
mod ledger_forget;
mod ledger_own;
mod lists;
mod milter;
mod milter_args;
mod next_start;
mod open_interfaces;
mod output;
mod pause;
mod refusals;
mod report;
mod server;
mod show;
mod signature;
mod state_files;
mod status;
mod supervisor;
mod take_reports;
mod tune;
mod tune_table;
mod values;
mod watch;

pub use cli::Cli;
pub use output::{failed, misused};
