// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark signature`

use super::daemon_args::judging_config;
use super::output::{EX_ERROR, Messages, failed, output, shown};
use crate::config;
use anyhow::Context;
use bulkmark_mail::{MAX_BODY, RawMessage};
use bulkmark_signature::near::stray;
use bulkmark_signature::{Settings, signatures};
use bulkmark_types::{
    ClientNetwork, FederationKey, Kind, LetterOrigin, Signature, source_bucket, source_count, stray_by,
};
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Size limit of a file in bytes: more than the largest message has.
const MOST: u64 = 2 * MAX_BODY as u64;

/// Print the signatures of messages.
///
/// Prints a line for each: the file, the kind of the signature and 32 hexadecimal digits, separated by tabs. Kinds are "body", "near", "context"
/// (of quoted or enclosed text) and "payload". A message with too few words to be distinguished from others has the kind "none", and the reason
/// instead of digits. Exit code 2: some message could not be read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration whose key and limits apply [default: that of the milter or the interfaces of this machine, or the public key and
    /// the defaults if there is none]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also print the signatures that count the network of this client for the body signature, and the strays of the first near
    /// signature: of certain letters, of unsure letters from anybody, and of those from this network.
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Messages, one per file; "-" is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let installed = Path::new(judging_config());
    let config = args.config.as_deref().or_else(|| installed.exists().then_some(installed));
    let (key, settings) = match config {
        Some(path) => {
            let checked = config::load(path)?;
            (checked.key, checked.file.signature)
        }
        None => (FederationKey::public(), Settings::default()),
    };
    let mut json = args.json.then(Messages::begin).transpose()?;
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let name = shown(file);
        let lines = match read_message(file) {
            Ok(message) => lines(&message, &key, &settings, args.ip),
            Err(e) => {
                code = failed(&e, EX_ERROR);
                continue;
            }
        };
        match &mut json {
            Some(json) => json.add(&name, &Of { signatures: lines })?,
            None => lines.iter().try_for_each(|line| line.print(&name))?,
        }
    }
    json.map_or(Ok(()), Messages::end)?;
    Ok(code)
}

#[derive(Serialize)]
struct Of {
    signatures: Vec<Line>,
}

/// One signature of a message, or the reason why it has none.
#[derive(Serialize)]
struct Line {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The client of the network, if it is one for a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<IpAddr>,
}

impl Line {
    fn new(kind: impl Display, signature: Signature, from: Option<IpAddr>) -> Self {
        Self { kind: kind.to_string(), signature: Some(signature.to_string()), reason: None, from }
    }

    fn print(&self, name: &str) -> io::Result<()> {
        let from = self.from.map_or_else(String::new, |ip| format!(" from {ip}"));
        let value = self.signature.as_ref().or(self.reason.as_ref()).map_or("", String::as_str);
        writeln!(output(), "{name}{from}\t{}\t{value}", self.kind)
    }
}

/// Returns all signatures of a message, and those by which the network of `ip` is counted.
fn lines(message: &RawMessage, key: &FederationKey, settings: &Settings, ip: Option<IpAddr>) -> Vec<Line> {
    let signatures = signatures(message, key, settings);
    let near = &signatures.near;
    let mut lines = Vec::new();
    match signatures.body {
        Ok(body) => {
            lines.push(Line::new(Kind::Body, body, None));
            if let Some(ip) = ip {
                let network = ClientNetwork::of(ip);
                let bucket = source_bucket(key, body, network.bucket(key));
                lines.push(Line::new(Kind::SourceCount, source_count(key, body, &network), Some(ip)));
                lines.push(Line::new(Kind::SourceBucket, bucket, Some(ip)));
            }
        }
        Err(reason) if near.is_empty() => {
            let (kind, reason) = ("none".to_owned(), Some(reason.to_string()));
            lines.push(Line { kind, signature: None, reason, from: None });
        }
        Err(_) => (),
    }
    lines.extend(near.reported().map(|signature| Line::new(Kind::Near, signature, None)));
    lines.extend(near.reported_contexts().map(|signature| Line::new("context", signature, None)));
    lines.extend(near.payload.map(|signature| Line::new(Kind::Payload, signature, None)));
    if let Some((first, ip)) = near.reported().next().zip(ip) {
        lines.push(Line::new(Kind::Stray, stray(key, first), Some(ip)));
        for whose in [LetterOrigin::Everybody, LetterOrigin::Network(ClientNetwork::of(ip))] {
            lines.push(Line::new(Kind::StrayBy, stray_by(key, first, whose), Some(ip)));
        }
    }
    lines
}

/// Reads one message; `-` is standard input.
pub(super) fn read_message(path: &Path) -> anyhow::Result<RawMessage> {
    let mut raw = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MOST).read_to_end(&mut raw)
    } else {
        // A named pipe is waited for, as in `bulkmark explain <(...)`.
        std::fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut raw))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    Ok(RawMessage::exact_from_bytes(&raw))
}
