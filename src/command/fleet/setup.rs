// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark fleet setup`

use crate::command::output::{EX_ERROR, complain, failed, print_result};
use crate::config;
use anyhow::anyhow;
use bulkmark_sync::engines::set_up;
use bulkmark_sync::log::{Address, SetUp, Settings};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Make a log ready for a fleet, and admit its members.
///
/// Creates missing streams (NATS) or tables and roles (PostgreSQL), and prints a line for each change, or the number of members if there is
/// none. It may be run again at any time: it admits new members of the file, and excludes members that are no longer in it. Exit code 0: the log
/// is ready; 2: error; 78: the file of members cannot be used. With --json it prints an object with changes, a list of texts, and members, the
/// number of them.
#[derive(Debug, clap::Args)]
pub(in crate::command) struct Args {
    /// The log: nats://HOST:PORT,HOST:PORT or postgres://HOST:PORT/DATABASE.
    #[arg(long, value_name = "URL")]
    log: String,
    /// The file of members, in TOML: [[client]] with name, kind (own or partner), influence, quota, rate, and nkey or password-file; and
    /// [[aggregator]] with name, and nkey or password-file. rate is the number of signatures that a partner may report a second, by default
    /// 1000. withdrawn is how often a partner's reports were withdrawn: increase it by one to withdraw them.
    #[arg(long, value_name = "FILE")]
    clients: PathBuf,
    /// Only print the changes.
    #[arg(long)]
    dry_run: bool,
    /// With NATS: the file to write accounts to, which the configuration of each nats-server includes.
    #[arg(long, value_name = "FILE")]
    accounts: Option<PathBuf>,
    /// With NATS: the number of nodes that keep a copy of everything, 1, 3 or 5.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = replicas)]
    replicas: u8,
    /// The user for the setup: with PostgreSQL the database's owner, who may create roles.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// The file with that user's password, or with NATS with the seed of that user's nkey.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// The authorities that signed the certificates of the log's servers, if the system does not trust them.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A certificate by which this user authenticates, with its private key.
    #[arg(long, value_name = "FILE")]
    cert_file: Option<PathBuf>,
    /// Do not encrypt the connection, even to another machine.
    #[arg(long)]
    no_tls: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn replicas(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|n| [1, 3, 5].contains(n)).ok_or_else(|| "expected 1, 3 or 5".to_owned())
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let address = match Address::parse(&args.log) {
        Ok(address) => address,
        Err(message) => {
            complain(format_args!("bulkmark: --log: {message}"));
            return Ok(ExitCode::from(EX_ERROR));
        }
    };
    let members = match config::load_members(&args.clients, address.engine) {
        Ok(members) => members,
        Err(e) => return Ok(failed(&e.into(), EX_ERROR)),
    };
    let settings = args.settings();
    let how = SetUp { dry_run: args.dry_run, accounts: args.accounts.clone(), replicas: args.replicas };
    // reqwest and others use the process's provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let changes =
        runtime.block_on(set_up(&settings, &members, &how)).map_err(|e| anyhow!("{}: {e}", args.log))?;
    let text = if changes.is_empty() {
        format!("all is as it should be: {} members", members.len())
    } else {
        changes.join("\n")
    };
    print_result(args.json, &json!({ "changes": changes, "members": members.len() }), text)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn settings(&self) -> Settings {
        Settings {
            log: self.log.clone(),
            name: self.user.clone(),
            reports: false,
            secret_file: self.secret_file.clone(),
            tls: self.no_tls.then_some(false),
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            aggregators: Vec::new(),
            mailings: false,
        }
    }
}
