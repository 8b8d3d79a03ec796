// SPDX-License-Identifier: GPL-3.0-or-later
//! The file of `bulkmark fleet setup`: the members that the log admits.

use super::error::ConfigError;
use super::source::Source;
use crate::server::{PARTNER_INFLUENCE, PARTNER_RATE, Quota};
use bulkmark_counts::Limits;
use bulkmark_sync::log::{Duty, Engine, Member, check_name};
use serde::Deserialize;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// Bytes of a public nkey, and the letters of its alphabet.
const NKEY: usize = 56;
const NKEY_LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
struct File {
    client: Vec<ClientEntry>,
    aggregator: Vec<AggregatorEntry>,
}

/// One `[[client]]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ClientEntry {
    name: String,
    kind: ClientKind,
    influence: Option<NonZeroU32>,
    quota: Option<Quota>,
    rate: Option<NonZeroU32>,
    #[serde(default)]
    withdrawn: u32,
    nkey: Option<String>,
    password_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ClientKind {
    Own,
    Partner,
}

/// One `[[aggregator]]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct AggregatorEntry {
    name: String,
    nkey: Option<String>,
    password_file: Option<PathBuf>,
}

/// Reads and checks the file of a fleet's members, for a log of this engine.
///
/// # Errors
/// [`ConfigError`], which names the place.
pub fn load_members(path: &Path, engine: Engine) -> Result<Vec<Member>, ConfigError> {
    let source = Source::read(path)?;
    let file: File = source.parse()?;
    let mut members = Vec::new();
    for (i, client) in file.client.into_iter().enumerate() {
        let at =
            |key: &str, message: &str| Err(source.error(&format!("client.{i}.{key}"), message.to_owned()));
        let limits = match client.kind {
            ClientKind::Own if client.influence.is_some() => return at("influence", OWN),
            ClientKind::Own if client.quota.is_some() => return at("quota", OWN),
            ClientKind::Own if client.rate.is_some() => return at("rate", OWN),
            ClientKind::Own if client.withdrawn > 0 => return at("withdrawn", NOT_APART),
            ClientKind::Own => None,
            ClientKind::Partner => Some(Limits {
                influence: client.influence.unwrap_or(PARTNER_INFLUENCE).get(),
                quota: client.quota.unwrap_or_default().millionths(),
            }),
        };
        let usual = (client.kind == ClientKind::Partner).then_some(PARTNER_RATE);
        let duty = Duty::Milter { limits, withdrawn: client.withdrawn, rate: client.rate.or(usual) };
        let ClientEntry { name, nkey, password_file, .. } = client;
        let member = Member { name, duty, nkey, password_file };
        add(&source, &format!("client.{i}"), engine, member, &mut members)?;
    }
    for (i, AggregatorEntry { name, nkey, password_file }) in file.aggregator.into_iter().enumerate() {
        let member = Member { name, duty: Duty::Aggregator, nkey, password_file };
        add(&source, &format!("aggregator.{i}"), engine, member, &mut members)?;
    }
    if !members.iter().any(|member| member.duty == Duty::Aggregator) {
        let message = "expected an [[aggregator]] at least: without one, no reports are counted";
        return Err(source.error("aggregator", message.to_owned()));
    }
    Ok(members)
}

const OWN: &str = "is for kind = \"partner\": a mail server of your own has no limits";

const NOT_APART: &str = "is for kind = \"partner\": reports of your own mail server are added to all other counts, and \
                         cannot be separated; they expire with their windows";

fn add(
    source: &Source,
    entry: &str,
    engine: Engine,
    member: Member,
    members: &mut Vec<Member>,
) -> Result<(), ConfigError> {
    let fault = |key: &str, message: String| Err(source.error(&format!("{entry}.{key}"), message));
    if let Err(message) = check_name(&member.name) {
        return fault("name", message);
    }
    // PostgreSQL ignores the case of names that people write.
    if members.iter().any(|other| other.name.eq_ignore_ascii_case(&member.name)) {
        return fault("name", format!("found {:?} a second time, expected another name", member.name));
    }
    match (engine, &member.nkey, &member.password_file) {
        (_, Some(_), Some(_)) => {
            return fault("nkey", "excludes password-file: only one of them authenticates".to_owned());
        }
        (Engine::Postgres, Some(_), None) => {
            return fault("nkey", "is NATS'; PostgreSQL takes password-file, or a certificate".to_owned());
        }
        (Engine::Nats, Some(key), None) if !is_nkey(key) => {
            let message = "expected the public nkey of a user, U and 55 more letters and digits; its seed, SU and more, is secret";
            return fault("nkey", message.to_owned());
        }
        (Engine::Nats, None, None) => {
            let message = "needs nkey, the public nkey of its user (nk -gen user -pubout), or password-file";
            return fault("name", message.to_owned());
        }
        _ => (),
    }
    members.push(member);
    Ok(())
}

/// Whether the letters are those of a user's public nkey; a seed, which is secret, is not one.
fn is_nkey(text: &str) -> bool {
    text.len() == NKEY && text.starts_with('U') && text.bytes().all(|c| NKEY_LETTERS.contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, engine: Engine) -> Result<Vec<Member>, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fleet.toml");
        std::fs::write(&path, text).unwrap();
        load_members(&path, engine).map_err(|e| {
            let text = e.to_string();
            let line = text.lines().next().unwrap();
            line[line.find("fleet.toml").unwrap()..].to_owned()
        })
    }

    const AGGREGATOR: &str = "[[aggregator]]\nname = \"agg1\"\n";

    #[test]
    fn members_have_their_limits() {
        let text = format!(
            "[[client]]\nname = \"mx1\"\nkind = \"own\"\npassword-file = \"/p\"\n\
             [[client]]\nname = \"isp\"\nkind = \"partner\"\n\
             [[client]]\nname = \"big\"\nkind = \"partner\"\ninfluence = 9\nquota = \"1/4\"\nrate = 30\nwithdrawn = 2\n{AGGREGATOR}"
        );
        let members = load(&text, Engine::Postgres).unwrap();
        let limits: Vec<_> =
            members.iter().map(|member| member.client().map(|client| client.limits)).collect();
        let limited = |influence, quota| Some(Some(Limits { influence, quota }));
        assert_eq!(limits, [Some(None), limited(5, 62_500), limited(9, 250_000), None]);
        assert_eq!(members[2].client().unwrap().withdrawn, 2);
        let rates = members.iter().filter_map(Member::client).map(|client| client.rate.map(NonZeroU32::get));
        assert_eq!(rates.collect::<Vec<_>>(), [None, Some(1000), Some(30)]);
        assert_eq!(members[0].password_file.as_deref(), Some(Path::new("/p")));
    }

    #[test]
    fn an_error_names_its_place() {
        let key = format!("nkey = \"U{}\"", "A".repeat(55));
        let seed = format!("nkey = \"SU{}\"", "A".repeat(56));
        let of = |entries: &str| format!("{entries}\n{AGGREGATOR}");
        let nats = |entry: &str| {
            load(&of(&format!("[[client]]\nname = \"a\"\nkind = \"own\"\n{entry}")), Engine::Nats)
        };
        assert!(nats(&key).unwrap_err().contains("aggregator[0].name: needs nkey"));
        let error = nats(&seed).unwrap_err();
        assert!(error.starts_with("fleet.toml:4:8: client[0].nkey: expected the public"), "{error}");
        assert!(!error.contains("SUA"), "{error}");
        assert!(
            nats(&format!("{key}\npassword-file = \"/p\"")).unwrap_err().contains("excludes password-file")
        );
        let postgres = |text: &str| load(&of(text), Engine::Postgres).unwrap_err();
        for (text, expected) in [
            ("[[client]]\nname = \"a b\"\nkind = \"own\"", "client[0].name: found \"a b\""),
            (
                "[[client]]\nname = \"AGG1\"\nkind = \"own\"",
                "aggregator[0].name: found \"agg1\" a second time",
            ),
            ("[[client]]\nname = \"a\"", "client[0]: the key kind is missing"),
            ("[[client]]\nname = \"a\"\nkind = \"peer\"", "client[0].kind: found \"peer\""),
            (
                "[[client]]\nname = \"a\"\nkind = \"own\"\nquota = \"1/2\"",
                "client[0].quota: is for kind = \"partner\"",
            ),
            (
                "[[client]]\nname = \"a\"\nkind = \"own\"\nrate = 9",
                "client[0].rate: is for kind = \"partner\"",
            ),
            ("[[client]]\nname = \"a\"\nkind = \"own\"\nwithdrawn = 1", "client[0].withdrawn: is for kind"),
            (
                "[[client]]\nname = \"a\"\nkind = \"partner\"\nquota = \"2\"",
                "expected a share of the capacity",
            ),
            ("[[client]]\nname = \"a\"\nkind = \"own\"\nnkey = \"U\"", "client[0].nkey: is NATS'"),
        ] {
            let error = postgres(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = load("[[client]]\nname = \"a\"\nkind = \"own\"", Engine::Postgres).unwrap_err();
        assert!(error.contains("expected an [[aggregator]]"), "{error}");
    }
}
