// SPDX-License-Identifier: GPL-3.0-or-later
//! What a milter keeps over a restart beside its ledger, in small files of the state directory: what accounts sent, so that one that
//! was taken over does not begin anew, the mailings that the page shows, and which traps are none.

use crate::activity::Activity;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_ledger::now;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Names of accounts, and how much they sent.
const ACCOUNTS: &str = "accounts.json";

/// The mailings of the page, with subjects and clients where the configuration wants these.
const MAILINGS: &str = "mailings.json";

/// Which traps got mail that a white list wants.
const TRAPS: &str = "traps.json";

/// They are for the daemon's user alone.
const MODE: u32 = 0o600;

/// How often they are written. A crash costs so much of them.
const INTERVAL: Duration = Duration::from_secs(60);

/// Takes up what was stored. What cannot be read begins anew, and mail flows.
pub(super) fn take_up(state_dir: &Path, activity: &Activity) {
    if let Some(accounts) = read(state_dir, ACCOUNTS, "what accounts sent before is not known") {
        activity.take_up_accounts(accounts);
    }
    if let Some(traps) = read(state_dir, TRAPS, "which traps got white-listed mail is not known") {
        activity.take_up_traps(traps);
    }
    if let Some(mailings) = read(state_dir, MAILINGS, "the page's mailings begin anew") {
        activity.take_up_mailings(mailings);
    }
}

/// What a file has, if it is there.
fn read<T: DeserializeOwned>(state_dir: &Path, name: &str, otherwise: &str) -> Option<T> {
    let content = match StateDirectory::open(state_dir).and_then(|directory| directory.read(name)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return None,
        content => content.map_err(anyhow::Error::from),
    };
    let read = content.and_then(|json| Ok(serde_json::from_slice(&json)?));
    read.inspect_err(|e| log::warn!("{}: {otherwise}: {e}", state_dir.join(name).display())).ok()
}

/// Stores it from time to time, for ever.
pub(super) async fn keep(state_dir: PathBuf, activity: Arc<Activity>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let (state_dir, activity) = (state_dir.clone(), Arc::clone(&activity));
        // A disk that hangs must hold nobody up.
        let _ = tokio::task::spawn_blocking(move || store(&state_dir, &activity)).await;
    }
}

/// Stores it.
pub(super) fn store(state_dir: &Path, activity: &Activity) {
    // Whoever judges mail waits for the accounts' lock, and must not wait for a disk.
    let accounts = activity.with_accounts(|accounts| {
        (!accounts.is_empty()).then(|| serde_json::to_vec(accounts).unwrap_or_default())
    });
    write(state_dir, ACCOUNTS, accounts);
    let traps = activity.traps().wanted;
    write(state_dir, TRAPS, (!traps.is_empty()).then(|| serde_json::to_vec(&traps).unwrap_or_default()));
    let mailings = activity.stored_mailings(now());
    write(
        state_dir,
        MAILINGS,
        (!mailings.is_empty()).then(|| serde_json::to_vec(&mailings).unwrap_or_default()),
    );
}

/// Writes a file, or removes it where there is nothing to keep.
fn write(state_dir: &Path, name: &str, content: Option<Vec<u8>>) {
    let written = StateDirectory::open(state_dir).and_then(|directory| match content {
        None => directory.remove(name),
        Some(content) => directory.replace(name, &content, MODE),
    });
    if let Err(e) = written {
        log::warn!("{}: cannot write it: {e}", state_dir.join(name).display());
    }
}
