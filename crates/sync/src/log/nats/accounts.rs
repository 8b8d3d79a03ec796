// SPDX-License-Identifier: GPL-3.0-or-later
//! The accounts for nats-server's configuration.
//!
//! Permissions of subjects alone do not prove a client's identity: the server does not check where the answer goes, so a client could have
//! an answer stored as another client's report. So each client has its own account, into which only the services that it needs are
//! imported; reports only under its own name.

use super::names::{
    BATCHES, CLIENTS, MEMBERS, SNAPSHOT, STEPS, get_of, info_for_clients, info_of, reports_of, state_of,
};
use crate::log::members::{Duty, Member};
use crate::log::settings::check_name;
use crate::log::types::LogError;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The account with the streams; the names of the clients' accounts begin with it.
const ACCOUNT: &str = "BULKMARK";

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

/// Returns the text of the file. `admin` is the user who sets the log up, unless that is an aggregator.
pub(super) fn text(admin: Option<&Identity>, members: &[Member]) -> Result<String, LogError> {
    let mut aggregators = String::new();
    let mut clients = Vec::new();
    let mut is_admin_written = false;
    for member in members {
        check_name(&member.name).map_err(|what| LogError::Setup(format!("name of a member: {what}")))?;
        let identity = identity_of(member)?;
        match member.duty {
            Duty::Milter { .. } => clients.push((member.name.as_str(), identity)),
            Duty::Aggregator => {
                let is_admin = Some(&identity) == admin;
                is_admin_written |= is_admin;
                let rights = if is_admin {
                    String::new()
                } else {
                    format!(", permissions: {}", permissions(&member.name))
                };
                writeln_to(
                    &mut aggregators,
                    &format!("    {{ {}{rights} }} # {}", identity.shown(), member.name),
                );
            }
        }
    }
    if let (Some(admin), false) = (admin, is_admin_written) {
        writeln_to(&mut aggregators, &format!("    {{ {} }} # bulkmark fleet setup", admin.shown()));
    }
    let mut text = String::from(
        "# Written by bulkmark fleet setup, which writes it anew. Belongs into nats-server's configuration:\n\
         #   accounts { include \"THIS FILE\" }\n\
         # with a system account, if there is one, beside it. After each change, twice on each server:\n\
         # nats-server --signal reload (by the first one a new account gets nothing that it imports)\n",
    );
    let names: Vec<_> = clients.iter().map(|(name, _)| account_of(name)).collect();
    let all = names.join(", ");
    write_to(
        &mut text,
        &format!("{ACCOUNT}: {{\n  jetstream: enabled\n  users: [\n{aggregators}  ]\n  exports: [\n"),
    );
    if !clients.is_empty() {
        for (service, _) in services() {
            writeln_to(&mut text, &format!("    {{ service: {}, accounts: [{all}] }}", quoted(&service)));
        }
        writeln_to(&mut text, &format!("    {{ stream: {}, accounts: [{all}] }}", quoted(live())));
    }
    for (name, _) in &clients {
        for subject in own(name) {
            let (subject, account) = (quoted(&subject), account_of(name));
            writeln_to(&mut text, &format!("    {{ service: {subject}, accounts: [{account}] }}"));
        }
    }
    write_to(&mut text, "  ]\n}\n");
    for (name, identity) in &clients {
        client(&mut text, name, identity);
    }
    Ok(text)
}

/// Writes a client's account: it reports under its own name, and follows.
fn client(text: &mut String, name: &str, identity: &Identity) {
    write_to(
        text,
        &format!("{}: {{\n  users: [ {{ {} }} ]\n  imports: [\n", account_of(name), identity.shown()),
    );
    let own = own(name).map(|subject| (subject.clone(), subject));
    for (subject, local) in services().into_iter().chain(own) {
        let (service, to) = (quoted(&subject), quoted(&local));
        let to = if subject == local { String::new() } else { format!(", to: {to}") };
        writeln_to(text, &format!("    {{ service: {{ account: {ACCOUNT}, subject: {service} }}{to} }}"));
    }
    writeln_to(text, &format!("    {{ stream: {{ account: {ACCOUNT}, subject: {} }} }}", quoted(live())));
    write_to(text, "  ]\n}\n");
}

/// Returns the subjects to which a client publishes under its own name: its reports, and its state.
fn own(name: &str) -> [String; 2] {
    [reports_of(name), state_of(name)]
}

/// Returns the services for all clients, with their local subjects: the state of the streams, and messages of steps and snapshots, but not
/// the reports of others.
fn services() -> Vec<(String, String)> {
    let info =
        [&BATCHES, &STEPS, &SNAPSHOT].map(|stream| (info_of(stream.name), info_for_clients(stream.name)));
    let get = [&STEPS, &SNAPSHOT].map(|stream| (get_of(stream.name), get_of(stream.name)));
    info.into_iter().chain(get).collect()
}

/// Returns the subject of live messages for all clients.
fn live() -> &'static str {
    STEPS.live.map_or("", |(subject, _)| subject)
}

/// Returns the permissions of an aggregator: no reports, and no changes to the streams except removing old snapshots.
fn permissions(name: &str) -> String {
    let streams = [&BATCHES, &STEPS, &SNAPSHOT, &CLIENTS, &MEMBERS];
    let api = streams.iter().flat_map(|stream| [info_of(stream.name), get_of(stream.name)]);
    let own = [
        STEPS.subjects.to_owned(),
        SNAPSHOT.subjects.to_owned(),
        state_of(name),
        format!("$JS.API.STREAM.PURGE.{}", SNAPSHOT.name),
    ];
    let publish: Vec<_> = own.into_iter().chain(api).map(|subject| quoted(&subject)).collect();
    let publish = publish.join(", ");
    format!("{{ publish: [{publish}], subscribe: [\"_INBOX.>\", \"bulkmark.live.>\"] }}")
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

fn account_of(client: &str) -> String {
    format!("{ACCOUNT}_{client}")
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
