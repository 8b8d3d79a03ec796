// SPDX-License-Identifier: GPL-3.0-or-later
//! Holders of counts: their counts of letters, and whether all hold the same.

use super::letters::letter;
use super::{Site, program};
use bulkmark::control::{self, DaemonStatus};
use bulkmark_counts::Shares;
use bulkmark_mail::RawMessage;
use bulkmark_signature::{Settings, signatures};
use bulkmark_types::{FederationKey, Signature};
use std::io;
use std::path::Path;
use std::process::Command;

/// The signature of the body of the letter with this number.
pub fn body_of(n: usize) -> Signature {
    body(&letter(n))
}

/// The signature of the body of a message.
pub fn body(message: &[u8]) -> Signature {
    let raw = RawMessage::from_bytes(message);
    signatures(&raw, &FederationKey::public(), &Settings::default()).body.unwrap()
}

/// Waits for a daemon's answer.
fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(answer)
}

/// The most signatures in one question to a daemon: a question has 16 kB at most.
const AT_A_TIME: usize = 256;

/// Returns the counts of these signatures by the daemon behind a control socket.
pub fn counts(control: &Path, signatures: &[Signature]) -> io::Result<Vec<u32>> {
    Ok(shares(control, signatures, false)?.iter().map(Shares::total).collect())
}

/// Returns the parts of these counts. With `may_ask` the daemon may ask others for counts that it does not hold.
pub fn shares(control: &Path, signatures: &[Signature], may_ask: bool) -> io::Result<Vec<Shares>> {
    let mut shares = Vec::new();
    for some in signatures.chunks(AT_A_TIME) {
        shares.extend(wait(control::counts(control, some, may_ask))?);
    }
    Ok(shares)
}

/// Returns the status of the daemon behind a control socket.
pub fn status_of(control: &Path) -> io::Result<DaemonStatus> {
    wait(control::status(control, 20))
}

/// Compares the ledgers of these sites, whose daemons must not run, cell by cell: the output of `bulkmark ledger verify`, which fails
/// where they differ.
pub fn verify<'a>(sites: impl Iterator<Item = &'a Site>) -> Result<String, String> {
    let states = sites.map(|site| site.path("state"));
    let output = Command::new(program()).args(["ledger", "verify"]).args(states).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    if output.status.success() { Ok(text) } else { Err(text) }
}
