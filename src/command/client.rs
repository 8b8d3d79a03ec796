// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark client`

use super::client_list;
use super::output::{EX_ERROR, complain, print};
use super::pause::operator;
use super::show::some;
use super::values::duration;
use crate::config::{self, SERVER_PATH, ServerFile};
use crate::server::{
    Client, Clients, ClientsError, Deed, Grant, PARTNER_INFLUENCE, PARTNER_RATE, Quota, Role, UNAPPROVED,
};
use anyhow::Context as _;
use bulkmark_ledger::now;
use serde_json::json;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;

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
    /// The server stores only the token's hash. A client that reports is either your own mail server (--own), whose reports count in full, or
    /// another organisation's (--partner), which can neither make anything bulk alone nor fill the filters.
    Add {
        /// The client's name, for logs.
        name: String,
        /// The requests that the client may send.
        #[arg(long, value_enum, default_value_t)]
        role: Role,
        /// Your own mail server: no limits but the rate.
        #[arg(long, conflicts_with_all = ["partner", "max_influence", "quota"])]
        own: bool,
        /// Another organisation's mail server: with limits. Its reports are counted separately from all others.
        #[arg(long)]
        partner: bool,
        #[command(flatten)]
        limits: Limits,
    },
    /// Change the limits of a client. Its tokens and all other limits stay.
    ///
    /// With --max-influence or --quota, your own mail server becomes a partner, with the defaults for the other limits.
    Set {
        /// The client's name.
        name: String,
        /// Your own mail server: no limits but the rate. Its earlier reports stay limited.
        #[arg(long, conflicts_with_all = ["max_influence", "quota"])]
        own: bool,
        #[command(flatten)]
        limits: Limits,
    },
    /// Approve a site that registered by itself (bulkmark join).
    ///
    /// It is then a partner, with separate counts and the limits given here. Compare the name with the one that the site's administrator gives
    /// you: anybody can register under a similar name.
    Approve {
        /// The client's name, with the digits that the server added.
        name: String,
        #[command(flatten)]
        limits: Limits,
    },
    /// List all clients with their roles, kinds (own or partner) and limits.
    List {
        /// List the sites that registered by themselves and wait for approval.
        #[arg(long)]
        unapproved: bool,
    },
    /// Print all clients, for the other servers of the federation: `bulkmark client export | ssh counts2 bulkmark client import`.
    ///
    /// The output has hashes of tokens, never tokens. Peers and unapproved sites are omitted.
    Export,
    /// Import the clients that another server exported, from standard input, so that their tokens are valid here, too.
    ///
    /// Clients of the same name are replaced, and all others stay. A client that was removed there must also be removed here.
    Import,
    /// List the changes of the list of clients: the time, the user, and the address from which a site registered.
    Audit,
    /// Give a client a new token; the previous one stays valid until the next rotation.
    Rotate {
        /// The client's name.
        name: String,
    },
    /// Remove a client.
    ///
    /// Its tokens become invalid. Its reports expire with their windows.
    Remove {
        /// The client's name.
        #[arg(required_unless_present = "unapproved")]
        name: Option<String>,
        /// Remove all sites that wait for approval, and withdraw their reports.
        #[arg(long, conflicts_with_all = ["name", "with_counts"])]
        unapproved: bool,
        /// Also withdraw its reports: within seconds everywhere, and at absent members once they are back. This works for partners only, since
        /// reports of own clients are not counted separately.
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
    /// How long its tokens are valid from now on, such as 90d, or "never", as it is by default.
    #[arg(long, value_name = "TIME")]
    expires: Option<Lifetime>,
}

/// The time for which tokens are valid, in seconds; none: without end.
#[derive(Debug, Clone, Copy)]
struct Lifetime(Option<u64>);

impl FromStr for Lifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "never" => Ok(Self(None)),
            text => duration(text).map(|time| Self(Some(time.as_secs()))),
        }
    }
}

impl Limits {
    /// Changes a client; its limits stay unless given.
    fn apply(&self, client: &mut Client, own: bool) {
        let becomes_partner = client.max_influence.is_none() && self.are_of_partner();
        let usual_rate = becomes_partner.then_some(PARTNER_RATE);
        client.rate = self.rate.or(client.rate).or(usual_rate);
        if let Some(Lifetime(time)) = self.expires {
            client.expires = time.map(|time| now().saturating_add(time));
        }
        if own {
            (client.max_influence, client.quota) = (None, None);
        } else {
            let usual = becomes_partner.then_some(PARTNER_INFLUENCE);
            client.max_influence = self.max_influence.or(client.max_influence).or(usual);
            client.quota = self.quota.or(client.quota);
        }
    }

    /// Whether none is given.
    const fn are_missing(&self) -> bool {
        !self.are_of_partner() && self.rate.is_none() && self.expires.is_none()
    }

    /// Whether one of the given limits is for partners only.
    const fn are_of_partner(&self) -> bool {
        self.max_influence.is_some() || self.quota.is_some()
    }
}

/// The answer to a change without options.
const UNCHANGED: &str =
    "bulkmark: nothing to change: expected --own, --max-influence, --quota, --rate or --expires";

/// A change of the list, which returns the new token if it makes one.
type Change<'a> = dyn FnMut(&mut Clients) -> Result<Option<String>, ClientsError> + 'a;

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (file, _) = config::load_server(&args.config)?;
    let edit = |act: &str, name: &str, change: &mut Change<'_>| -> anyhow::Result<()> {
        let token = Clients::edit(&file.state_dir, |clients| {
            let token = change(clients)?;
            clients.note(Deed { at: now(), by: operator(), act: act.to_owned(), client: name.to_owned() });
            Ok(token)
        })?;
        let remedy = match token {
            Some(_) => format!("; bulkmark client rotate {name} makes a new token"),
            None => String::new(),
        };
        let printed = match token {
            Some(token) if args.json => print(json!({ "name": name, "token": token })),
            Some(token) => print(token),
            None if args.json => print(json!({ "name": name })),
            None => Ok(()),
        };
        // The list is changed by now.
        printed.with_context(|| format!("{name} is {act}, but its output is lost{remedy}"))
    };
    match &args.command {
        Command::Add { name, role, own, partner, limits } => {
            let Some(grant) = granted(*role, *own, *partner, limits) else {
                complain(WHICH.replace("NAME", name));
                return Ok(ExitCode::from(EX_ERROR));
            };
            edit("added", name, &mut |clients| clients.add(name, grant).map(Some))?;
        }
        Command::Set { own: false, limits, .. } if limits.are_missing() => {
            complain(UNCHANGED);
            return Ok(ExitCode::from(EX_ERROR));
        }
        Command::Set { name, own, limits } => edit("changed", name, &mut |clients| {
            clients.change(name, |client| limits.apply(client, *own)).map(|()| None)
        })?,
        Command::Approve { name, limits } => edit("approved", name, &mut |clients| {
            clients.approve(name, &operator(), now())?;
            clients.change(name, |client| limits.apply(client, false)).map(|()| None)
        })?,
        Command::Rotate { name } => edit("rotated", name, &mut |clients| clients.rotate(name).map(Some))?,
        Command::Remove { name: None, .. } => edit("removed", UNAPPROVED, &mut |clients| {
            clients.remove_unapproved();
            Ok(None)
        })?,
        Command::Remove { name: Some(name), with_counts: false, .. } => {
            edit("removed", name, &mut |clients| clients.remove(name).map(|()| None))?;
        }
        Command::Remove { name: Some(name), with_counts: true, .. } => {
            let act = "removed with counts";
            edit(act, name, &mut |clients| clients.remove_with_counts(name).map(|()| None))?;
        }
        Command::List { unapproved: true } => client_list::unapproved(&file, args.json)?,
        Command::List { unapproved: false } => client_list::list(&file, args.json)?,
        Command::Export => {
            print(serde_json::to_string(&json!({ "clients": Clients::load(&file.state_dir)?.export() }))?)?
        }
        Command::Import => import(&file, args.json)?,
        Command::Audit => client_list::audit(&file, args.json)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Imports the clients on standard input.
fn import(file: &ServerFile, is_json: bool) -> anyhow::Result<()> {
    let exported = read_exported()?;
    let changed = Clients::edit(&file.state_dir, |clients| {
        let changed = clients.import(exported)?;
        if changed > 0 {
            let client = some(changed, "client");
            clients.note(Deed { at: now(), by: operator(), act: "imported".to_owned(), client });
        }
        Ok(changed)
    })?;
    if is_json {
        print(json!({ "changed": changed }))?;
    } else {
        print(format_args!("new or changed: {}", some(changed, "client")))?;
    }
    Ok(())
}

/// Size limit of exported clients in bytes.
const MOST_EXPORTED: u64 = 64 << 20;

/// Reads the clients on standard input.
fn read_exported() -> anyhow::Result<Vec<Client>> {
    #[derive(serde::Deserialize)]
    struct Exported {
        clients: Vec<Client>,
    }
    let input = std::io::stdin().lock().take(MOST_EXPORTED);
    let exported: Exported = serde_json::from_reader(input)
        .context("standard input: expected the output of `bulkmark client export`")?;
    Ok(exported.clients)
}

/// Returns the grant of a new client; none if its kind is missing.
fn granted(role: Role, own: bool, partner: bool, limits: &Limits) -> Option<Grant> {
    let limited = partner || limits.are_of_partner();
    if role == Role::Report && !own && !limited {
        return None;
    }
    let partner_limit =
        |given: Option<NonZeroU32>, usual| if limited { given.or(Some(usual)) } else { given };
    Some(Grant {
        role,
        max_influence: partner_limit(limits.max_influence, PARTNER_INFLUENCE),
        quota: limits.quota,
        rate: partner_limit(limits.rate, PARTNER_RATE),
        expires: limits.expires.and_then(|Lifetime(time)| time).map(|time| now().saturating_add(time)),
    })
}

/// The message if a client is added without its kind.
const WHICH: &str = "bulkmark: --own or --partner is missing: whose mail server is NAME?

  bulkmark client add --own NAME      a mail server of your own: it brings to all counts what it sees
  bulkmark client add --partner NAME  somebody else's: it can add at most 5 to any count, and its counts can be taken back

Clients that only read need neither: --role read, --role peer.";
