// SPDX-License-Identifier: GPL-3.0-or-later
//! Data that a milter stores over a restart beside its ledger, in small files of the state directory: the mail of accounts, so that an account
//! that was taken over does not start over, the mailings that the page shows, and traps that get wanted mail.

use crate::activity::Activity;
use bulkmark_ledger::directory::StateDirectory;
use bulkmark_ledger::now;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Names of accounts, and the amounts of their mail.
const ACCOUNTS: &str = "accounts.json";

/// The mailings of the page, with subjects and clients if the configuration wants these.
const MAILINGS: &str = "mailings.json";

/// The traps that got whitelisted mail.
const TRAPS: &str = "traps.json";

/// Only the daemon's user may read them.
const MODE: u32 = 0o600;

/// The time between two writes, and the most that a crash loses.
const INTERVAL: Duration = Duration::from_secs(60);

/// Restores the stored data. Unreadable data start over, and mail flows.
pub(super) fn restore(state_dir: &Path, activity: &Activity) {
    if let Some(accounts) = read(state_dir, ACCOUNTS, "what accounts sent before is not known") {
        activity.restore_accounts(accounts);
    }
    if let Some(traps) = read(state_dir, TRAPS, "which traps got white-listed mail is not known") {
        activity.restore_traps(traps);
    }
    if let Some(mailings) = read(state_dir, MAILINGS, "the page's list of mailings starts over") {
        activity.restore_mailings(mailings);
    }
}

/// Reads a file, if it exists.
fn read<T: DeserializeOwned>(state_dir: &Path, name: &str, otherwise: &str) -> Option<T> {
    let content = match StateDirectory::open(state_dir).and_then(|directory| directory.read(name)) {
        Err(e) if e.kind() == ErrorKind::NotFound => return None,
        content => content.map_err(anyhow::Error::from),
    };
    let read = content.and_then(|json| Ok(serde_json::from_slice(&json)?));
    read.inspect_err(|e| log::warn!("{}: {otherwise}: {e}", state_dir.join(name).display())).ok()
}

/// Stores the data periodically. Never returns.
pub(super) async fn store_periodically(state_dir: PathBuf, activity: Arc<Activity>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let (state_dir, activity) = (state_dir.clone(), Arc::clone(&activity));
        // A disk that hangs must not block the runtime.
        let _ = tokio::task::spawn_blocking(move || store(&state_dir, &activity)).await;
    }
}

/// Stores the data.
pub(super) fn store(state_dir: &Path, activity: &Activity) {
    // Judging waits for the accounts' lock, and must not wait for a disk.
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

/// Writes a file, or removes it if there is nothing to store.
fn write(state_dir: &Path, name: &str, content: Option<Vec<u8>>) {
    let written = StateDirectory::open(state_dir).and_then(|directory| match content {
        None => directory.remove(name),
        Some(content) => directory.replace(name, &content, MODE),
    });
    if let Err(e) = written {
        log::warn!("{}: cannot write it: {e}", state_dir.join(name).display());
    }
}
