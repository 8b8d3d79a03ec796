// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark correspondents`

use super::pause::OrderArgs;
use super::values::mailbox;
use crate::config;
use crate::control::Order;
use bulkmark_types::correspondence;
use std::process::ExitCode;

/// Erase the correspondents of a user: the addresses that the user wrote to.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Forget all addresses that this user wrote to.
    ///
    /// The running milter forgets them at once, and on disk before the command ends. The pairs are stored as hashes under the federation key, so
    /// they cannot be listed, and the command must be able to read the key. It acts on this mail server alone. Exit code 0: none is left; 75:
    /// the milter does not answer; 78: the configuration cannot be used.
    Forget {
        /// The user's address.
        #[arg(value_parser = mailbox)]
        address: String,
        #[command(flatten)]
        to: OrderArgs,
    },
}

pub(super) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    let Command::Forget { address, to } = command;
    let rules = config::load(&to.milter.config)?.into_rules();
    let user = rules.mailboxes.mailbox(address);
    let numbers = rules.key.all().map(|key| correspondence(key, &user, "")).collect();
    to.carry_out(Order::ForgetUser(numbers), b"", |ordered| {
        format!("{} correspondents of {user} are forgotten", ordered.forgotten.unwrap_or_default())
    })
}
