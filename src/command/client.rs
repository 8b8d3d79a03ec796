// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark client`

use super::exit::EX_CONFIG;
use crate::config::{self, SERVER_PATH, ServerFile};
use crate::server::{Clients, Role};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

/// Manage who may use a signature server. A running server knows of changes at once.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The server's configuration file.
    #[arg(long, default_value = SERVER_PATH, global = true)]
    config: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a client and print its token, which is not stored.
    Add {
        /// Its name, for logs.
        name: String,
        /// What it may do.
        #[arg(long, value_enum, default_value_t)]
        role: Role,
        /// The most that it can add to any one signature's count within a window [default: no limit]
        #[arg(long, value_name = "N")]
        max_influence: Option<NonZeroU32>,
        /// Reports a second [default: limits.rate of the configuration]
        #[arg(long, value_name = "N")]
        rate: Option<NonZeroU32>,
    },
    /// List all clients.
    List,
    /// Give a client a new token; the previous one stays valid until the next rotation.
    Rotate {
        /// Its name.
        name: String,
    },
    /// Remove a client.
    Remove {
        /// Its name.
        name: String,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let file = match config::load_server(&args.config) {
        Ok((file, _)) => file,
        Err(e) => {
            eprintln!("{e}");
            return Ok(ExitCode::from(EX_CONFIG));
        }
    };
    match &args.command {
        Command::Add { name, role, max_influence, rate } => {
            let add = |clients: &mut Clients| clients.add(name, *role, *max_influence, *rate);
            println!("{}", Clients::edit(&file.state_dir, add)?);
        }
        Command::Rotate { name } => {
            println!("{}", Clients::edit(&file.state_dir, |clients| clients.rotate(name))?);
        }
        Command::Remove { name } => Clients::edit(&file.state_dir, |clients| clients.remove(name))?,
        Command::List => list(&file)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(file: &ServerFile) -> anyhow::Result<()> {
    let clients = Clients::load(&file.state_dir)?;
    println!("{:<24} {:<6} {:>13} {:>9}", "name", "role", "max-influence", "rate");
    let shown = |limit: Option<NonZeroU32>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    for client in clients.list() {
        let (influence, rate) = (shown(client.max_influence), shown(client.rate));
        println!("{:<24} {:<6} {influence:>13} {rate:>9}", client.name, client.role);
    }
    Ok(())
}
