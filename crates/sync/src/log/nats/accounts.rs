// SPDX-License-Identifier: GPL-3.0-or-later
//! The accounts for nats-server's configuration.
//!
//! Permissions of subjects alone do not prove a member's identity: the server does not check where the answer goes. In the account with the
//! streams, any user could have an answer stored as another member's report or as the list of clients, or sent to JetStream's API as a
//! request to delete a stream. So each member has its own account, into which only the services that it needs are imported.

use super::names::{
    BATCHES, CLIENTS, MEMBERS, SNAPSHOT, STEPS, Stream, get_of, info_for_members, info_of, purge_for_members,
    purge_of, reports_of, state_of,
};
use crate::log::members::{Duty, Member};
use crate::log::settings::check_name;
use crate::log::types::LogError;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The account with the streams; the names of the members' accounts begin with it.
const ACCOUNT: &str = "BULKMARK";

/// Maximum of a member's connections to the whole cluster, and of the subscriptions of each. A daemon has one connection, a command another
/// one; a million subscriptions would take 700 MB of a node's memory.
const CONNECTIONS: u32 = 20;
const SUBSCRIPTIONS: u32 = 100;

/// Maximum size of a password.
const MAX_PASSWORD: u64 = 1024;

/// The credentials of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// The public half of its nkey.
    Nkey(String),
    /// A name, and a password or its bcrypt hash.
    Password(String, String),
}

impl Identity {
    fn shown(&self) -> String {
        match self {
            Self::Nkey(key) => format!("nkey: {key}"),
            Self::Password(name, password) => {
                format!("user: {}, password: {}", quoted(name), quoted(password))
            }
        }
    }
}

/// Returns the text of the file. `admin` is the user who sets the log up.
pub(super) fn text(admin: Option<&Identity>, members: &[Member]) -> Result<String, LogError> {
    let mut text = String::from(
        "# Written by bulkmark fleet setup, which writes it anew. Belongs into nats-server's configuration:\n\
         #   accounts { include \"THIS FILE\" }\n\
         # with a system account, if there is one, beside it. After each change, twice on each server:\n\
         # nats-server --signal reload (by the first one a new account gets nothing that it imports)\n",
    );
    write_to(&mut text, &format!("{ACCOUNT}: {{\n  jetstream: enabled\n  users: [\n"));
    if let Some(admin) = admin {
        writeln_to(&mut text, &format!("    {{ {} }} # bulkmark fleet setup", admin.shown()));
    }
    write_to(&mut text, "  ]\n  exports: [\n");
    for ((kind, subject), accounts) in exports(members) {
        let accounts = accounts.join(", ");
        writeln_to(&mut text, &format!("    {{ {kind}: {}, accounts: [{accounts}] }}", quoted(&subject)));
    }
    write_to(&mut text, "  ]\n}\n");
    for member in members {
        check_name(&member.name).map_err(|what| LogError::Setup(format!("name of a member: {what}")))?;
        let identity = identity_of(member)?;
        if Some(&identity) == admin {
            return Err(LogError::Setup(format!(
                "{} has the credentials of the user who runs fleet setup, who has all rights; give that user separate ones",
                member.name
            )));
        }
        account(&mut text, member, &identity);
    }
    Ok(text)
}

/// A subject that a member's account imports.
struct Import {
    /// `service` or `stream`.
    kind: &'static str,
    subject: String,
    /// The subject in the member's account.
    local: String,
}

impl Import {
    fn service(subject: impl Into<String>) -> Self {
        let subject = subject.into();
        Self { kind: "service", local: subject.clone(), subject }
    }

    fn renamed(subject: String, local: String) -> Self {
        Self { kind: "service", subject, local }
    }

    fn live(stream: &Stream) -> Option<Self> {
        let (subject, _) = stream.live?;
        Some(Self { kind: "stream", subject: subject.to_owned(), local: subject.to_owned() })
    }
}

/// Returns all that a member may do. A milter reports under its own name, and reads steps and snapshots, but not the reports of others. An
/// aggregator reads everything, appends steps, and writes and removes snapshots.
fn imports(member: &Member) -> Vec<Import> {
    let (read, known): (&[&Stream], &[&Stream]) = match member.duty {
        Duty::Milter { .. } => (&[&STEPS, &SNAPSHOT], &[&BATCHES, &STEPS, &SNAPSHOT]),
        Duty::Aggregator => {
            let all = &[&BATCHES, &STEPS, &SNAPSHOT, &CLIENTS, &MEMBERS];
            (all, all)
        }
    };
    let info =
        known.iter().map(|stream| Import::renamed(info_of(stream.name), info_for_members(stream.name)));
    let get = read.iter().map(|stream| Import::service(get_of(stream.name)));
    let own = match member.duty {
        Duty::Milter { .. } => vec![Import::service(reports_of(&member.name))],
        Duty::Aggregator => vec![
            Import::service(STEPS.subjects),
            Import::service(SNAPSHOT.subjects),
            Import::renamed(purge_of(SNAPSHOT.name), purge_for_members(SNAPSHOT.name)),
        ],
    };
    let state = Import::service(state_of(&member.name));
    let live = read.iter().filter_map(|stream| Import::live(stream));
    info.chain(get).chain(own).chain([state]).chain(live).collect()
}

/// Returns the subjects of the log's account that members import, with the accounts of these.
fn exports(members: &[Member]) -> BTreeMap<(&'static str, String), Vec<String>> {
    let mut exports: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for member in members {
        for import in imports(member) {
            exports.entry((import.kind, import.subject)).or_default().push(account_of(&member.name));
        }
    }
    exports
}

/// Writes a member's account.
fn account(text: &mut String, member: &Member, identity: &Identity) {
    let account = account_of(&member.name);
    let limits = format!("{{ max_connections: {CONNECTIONS}, max_subscriptions: {SUBSCRIPTIONS} }}");
    let users = identity.shown();
    write_to(text, &format!("{account}: {{\n  users: [ {{ {users} }} ]\n  limits: {limits}\n  imports: [\n"));
    for Import { kind, subject, local } in imports(member) {
        let to = if subject == local { String::new() } else { format!(", to: {}", quoted(&local)) };
        let subject = quoted(&subject);
        writeln_to(text, &format!("    {{ {kind}: {{ account: {ACCOUNT}, subject: {subject} }}{to} }}"));
    }
    write_to(text, "  ]\n}\n");
}

/// Returns the credentials of a member.
fn identity_of(member: &Member) -> Result<Identity, LogError> {
    let name = &member.name;
    match (&member.nkey, &member.password_file) {
        (Some(key), None) => match nkeys::KeyPair::from_public_key(key) {
            Ok(_) if key.starts_with('U') => Ok(Identity::Nkey(key.clone())),
            _ => Err(LogError::Setup(format!(
                "{name}: found nkey {key:?}, expected the public half of a user's nkey, U and 55 more letters"
            ))),
        },
        (None, Some(path)) => Ok(Identity::Password(name.clone(), password(path)?)),
        _ => Err(LogError::Setup(format!("{name}: expected either nkey = or password-file ="))),
    }
}

fn password(path: &Path) -> Result<String, LogError> {
    let shown = path.display();
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_PASSWORD + 1).read_to_string(&mut text))
        .map_err(|e| LogError::Setup(format!("cannot use {shown}: {e}")))?;
    let text = text.trim();
    let is_fit = !text.is_empty() && text.len() as u64 <= MAX_PASSWORD && !text.contains(char::is_control);
    is_fit
        .then(|| text.to_owned())
        .ok_or_else(|| LogError::Setup(format!("{shown}: expected one line with a password")))
}

fn account_of(member: &str) -> String {
    format!("{ACCOUNT}_{member}")
}

/// Quotes a string for nats-server's configuration.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn write_to(text: &mut String, what: &str) {
    text.push_str(what);
}

fn writeln_to(text: &mut String, line: &str) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "{line}");
}
