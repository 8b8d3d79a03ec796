// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark signature`

use super::output::{failed, output, shown};
use crate::config;
use anyhow::Context;
use bulkmark_mail::{MAX_BODY, RawMessage};
use bulkmark_signature::near::stray;
use bulkmark_signature::{Settings, signatures};
use bulkmark_types::{
    ClientNetwork, FederationKey, Kind, Signature, Whose, source_bucket, source_count, stray_by,
};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Bytes of a file that are read: more than the largest message has.
const MOST: u64 = 2 * MAX_BODY as u64;

/// Print the signatures of messages.
///
/// Prints a line for each: the file, the kind of the signature and 32 hexadecimal digits, separated by tabs. Kinds are "body", "near",
/// "context" (of what the message quotes or encloses) and "payload". A message with too few
/// words to be distinguished from others has the kind "none", and the reason in place of digits. Exit code 2: some message could not
/// be read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration whose key and limits apply. Without it, the public key and the defaults.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Also print the signatures by which the network of this client is counted for the body signature, and those of letters for the
    /// first near signature: of all, of anybody's and of this network's.
    #[arg(long, value_name = "ADDRESS")]
    ip: Option<IpAddr>,
    /// Messages, one per file; "-" is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (key, settings) = match &args.config {
        Some(path) => {
            let checked = config::load(path)?;
            (checked.key, checked.file.signature)
        }
        None => (FederationKey::public(), Settings::default()),
    };
    let mut out = output();
    let mut code = ExitCode::SUCCESS;
    for file in &args.files {
        let name = shown(file);
        match read_message(file) {
            Ok(message) => {
                let signatures = signatures(&message, &key, &settings);
                match signatures.body {
                    Ok(signature) => {
                        writeln!(out, "{name}\t{}\t{signature}", Kind::Body)?;
                        let from = args.ip.map(|ip| (ip, ClientNetwork::of(ip)));
                        from.map_or(Ok(()), |from| print_sources(&mut out, file, &key, signature, from))?;
                    }
                    Err(reason) if signatures.near.is_empty() => writeln!(out, "{name}\tnone\t{reason}")?,
                    Err(_) => (),
                }
                let near = &signatures.near;
                for signature in near.reported() {
                    writeln!(out, "{name}\t{}\t{signature}", Kind::Near)?;
                }
                for signature in near.reported_contexts() {
                    writeln!(out, "{name}\tcontext\t{signature}")?;
                }
                if let Some(signature) = near.payload {
                    writeln!(out, "{name}\t{}\t{signature}", Kind::Payload)?;
                }
                let first = near.reported().next().zip(args.ip);
                first.map_or(Ok(()), |(first, ip)| print_strays(&mut out, file, &key, first, ip))?;
            }
            Err(e) => {
                code = failed(&e, 2);
            }
        }
    }
    Ok(code)
}

fn print_sources(
    out: &mut impl Write,
    file: &Path,
    key: &FederationKey,
    of: Signature,
    (ip, network): (IpAddr, ClientNetwork),
) -> io::Result<()> {
    for (kind, signature) in [
        (Kind::SourceCount, source_count(key, of, &network)),
        (Kind::SourceBucket, source_bucket(key, of, network.bucket(key))),
    ] {
        writeln!(out, "{} from {ip}\t{kind}\t{signature}", shown(file))?;
    }
    Ok(())
}

fn print_strays(
    out: &mut impl Write,
    file: &Path,
    key: &FederationKey,
    of: Signature,
    ip: IpAddr,
) -> io::Result<()> {
    let (name, network) = (file.display(), ClientNetwork::of(ip));
    writeln!(out, "{name} from {ip}\t{}\t{}", Kind::Stray, stray(key, of))?;
    for whose in [Whose::Everybody, Whose::Network(network)] {
        writeln!(out, "{name} from {ip}\t{}\t{}", Kind::StrayBy, stray_by(key, of, whose))?;
    }
    Ok(())
}

/// Reads one message; `-` is standard input.
pub(super) fn read_message(path: &Path) -> anyhow::Result<RawMessage> {
    let mut raw = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().take(MOST).read_to_end(&mut raw)
    } else {
        // A pipe that is named is waited for, as in `bulkmark explain <(...)`.
        std::fs::File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut raw))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    RawMessage::exact_from_bytes(&raw).with_context(|| path.display().to_string())
}
