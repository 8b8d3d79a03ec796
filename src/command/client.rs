// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark client`

use super::output::{EX_ERROR, complain, output, print};
use crate::config::{self, SERVER_PATH, ServerFile};
use crate::server::{Client, Clients, Grant, PARTNER_INFLUENCE, PARTNER_RATE, Quota, Role};
use serde_json::json;
use std::io::{self, Write as _};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;

/// Manage the clients of a signature server.
///
/// A running server applies changes at once. The list belongs to the server's user; run this as that user or as root. Exit code 0:
/// done; 2: error; 78: the configuration cannot be used.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The server's configuration file.
    #[arg(long, value_name = "FILE", default_value = SERVER_PATH, global = true)]
    config: PathBuf,
    /// Print one JSON object.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Add a client and print its token.
    ///
    /// The server stores only the token's hash. A client that reports is your own mail server (--own), whose reports count in full,
    /// or somebody else's (--partner), which can neither make anything bulk alone nor fill the filters.
    Add {
        /// The client's name, for logs.
        name: String,
        /// The requests that the client may send.
        #[arg(long, value_enum, default_value_t)]
        role: Role,
        /// A mail server of your own: no limits but the rate.
        #[arg(long, conflicts_with_all = ["partner", "max_influence", "quota"])]
        own: bool,
        /// A mail server of somebody else: with limits. Its reports are kept apart from all others.
        #[arg(long)]
        partner: bool,
        #[command(flatten)]
        limits: Limits,
    },
    /// Change the limits of a client. Its tokens stay, and so do limits that are not named.
    ///
    /// With --max-influence or --quota, your own mail server becomes a partner, with the defaults for the other limits.
    Set {
        /// The client's name.
        name: String,
        /// A mail server of your own: no limits but the rate. Its earlier reports stay limited.
        #[arg(long, conflicts_with_all = ["max_influence", "quota"])]
        own: bool,
        #[command(flatten)]
        limits: Limits,
    },
    /// List all clients with their roles, kinds (own or partner) and limits.
    List,
    /// Give a client a new token; the previous one stays valid until the next rotation.
    Rotate {
        /// The client's name.
        name: String,
    },
    /// Remove a client.
    ///
    /// Its tokens are invalid from then on. Its reports expire with their windows.
    Remove {
        /// The client's name.
        name: String,
        /// Also withdraw its reports: within seconds everywhere, and at members that were away when they are back. This works for
        /// partners only, since reports of own clients are not kept apart.
        #[arg(long)]
        with_counts: bool,
    },
}

#[derive(Debug, Clone, Copy, clap::Args)]
struct Limits {
    /// The most that a partner can add to any signature's count, over the whole retention. A partner has 5 by default.
    #[arg(long, value_name = "N")]
    max_influence: Option<NonZeroU32>,
    /// The most different signatures that a partner can report in a window, as a share of the capacity, such as 1/16 or 5%. A partner
    /// has 1/16 by default.
    #[arg(long, value_name = "SHARE")]
    quota: Option<Quota>,
    /// The most reports a second. A partner has 1000 by default, and others have limits.rate of the configuration.
    #[arg(long, value_name = "N")]
    rate: Option<NonZeroU32>,
}

impl Limits {
    /// Whether they name a limit that only partners have.
    const fn are_of_partner(&self) -> bool {
        self.max_influence.is_some() || self.quota.is_some()
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (file, _) = config::load_server(&args.config)?;
    match &args.command {
        Command::Add { name, role, own, partner, limits } => {
            let limited = *partner || limits.are_of_partner();
            if *role == Role::Report && !own && !limited {
                complain(WHICH.replace("NAME", name));
                return Ok(ExitCode::from(EX_ERROR));
            }
            let partner =
                |given: Option<NonZeroU32>, usual| if limited { given.or(Some(usual)) } else { given };
            let grant = Grant {
                role: *role,
                max_influence: partner(limits.max_influence, PARTNER_INFLUENCE),
                quota: limits.quota,
                rate: partner(limits.rate, PARTNER_RATE),
            };
            print_token(args, name, &Clients::edit(&file.state_dir, |clients| clients.add(name, grant))?)?;
        }
        Command::Set { name, own, limits } => {
            let change = |client: &mut Client| {
                let becomes_partner = client.max_influence.is_none() && limits.are_of_partner();
                let usual_rate = becomes_partner.then_some(PARTNER_RATE);
                client.rate = limits.rate.or(client.rate).or(usual_rate);
                if *own {
                    (client.max_influence, client.quota) = (None, None);
                } else {
                    let usual = becomes_partner.then_some(PARTNER_INFLUENCE);
                    client.max_influence = limits.max_influence.or(client.max_influence).or(usual);
                    client.quota = limits.quota.or(client.quota);
                }
            };
            Clients::edit(&file.state_dir, |clients| clients.change(name, change))?;
        }
        Command::Rotate { name } => {
            print_token(args, name, &Clients::edit(&file.state_dir, |clients| clients.rotate(name))?)?;
        }
        Command::Remove { name, with_counts: false } => {
            Clients::edit(&file.state_dir, |clients| clients.remove(name))?;
        }
        Command::Remove { name, with_counts: true } => {
            Clients::edit(&file.state_dir, |clients| clients.remove_with_counts(name))?;
        }
        Command::List => list(&file, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// What is missing when a client is added without it.
const WHICH: &str = "bulkmark: --own or --partner is missing: whose mail server is NAME?

  bulkmark client add --own NAME      a mail server of your own: it brings to all counts what it sees
  bulkmark client add --partner NAME  somebody else's: it can add at most 5 to any count, and its counts can be taken back

Clients that only read need neither: --role read, --role peer.";

/// A client's new token, which is printed this once.
fn print_token(args: &Args, name: &str, token: &str) -> io::Result<()> {
    if args.json { print(json!({ "name": name, "token": token })) } else { print(token) }
}

fn list(file: &ServerFile, is_json: bool) -> anyhow::Result<()> {
    let clients = Clients::load(&file.state_dir)?;
    let mut out = output();
    if is_json {
        let of = |client: &Client| {
            json!({
                "name": client.name,
                "role": client.role.to_string(),
                "kind": kind(client),
                "max-influence": client.max_influence,
                "quota": client.limits().map(|_| client.quota.unwrap_or_default().to_string()),
                "rate": client.rate,
            })
        };
        let all: Vec<_> = clients.list().iter().map(of).collect();
        writeln!(out, "{}", json!({ "clients": all }))?;
        return Ok(());
    }
    writeln!(
        out,
        "{:<24} {:<7} {:<7} {:>13} {:>7} {:>9}",
        "name", "role", "kind", "max-influence", "quota", "rate"
    )?;
    let shown = |limit: Option<NonZeroU32>| limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
    for client in clients.list() {
        let (influence, rate) = (shown(client.max_influence), shown(client.rate));
        let quota = match client.limits() {
            Some(_) => client.quota.unwrap_or_default().to_string(),
            None => "-".to_owned(),
        };
        let kind = kind(client).unwrap_or("-");
        writeln!(
            out,
            "{:<24} {:<7} {kind:<7} {influence:>13} {quota:>7} {rate:>9}",
            client.name, client.role
        )?;
    }
    Ok(())
}

/// Whose mail server a client is; none of one that only reads.
const fn kind(client: &Client) -> Option<&'static str> {
    match (client.role, client.max_influence) {
        (Role::Report, None) => Some("own"),
        (Role::Report, Some(_)) => Some("partner"),
        _ => None,
    }
}
