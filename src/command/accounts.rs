// SPDX-License-Identifier: GPL-3.0-or-later
//! What accounts sent, over a restart: a file in the state directory, so that an account that was taken over does not begin anew.

use crate::activity::Activity;
use crate::directory::StateDirectory;
use anyhow::Context;
use std::io::ErrorKind;
use std::path::Path;

/// The file. It has names of accounts, and is for the daemon's user alone.
const FILE: &str = "accounts.json";
const MODE: u32 = 0o600;

/// Takes up what was stored. Without it accounts begin at zero, and mail flows.
pub(super) fn take_up(state_dir: &Path, activity: &Activity) {
    let read = StateDirectory::open(state_dir).and_then(|directory| directory.read(FILE));
    let accounts = match read {
        Err(e) if e.kind() == ErrorKind::NotFound => return,
        read => read.map_err(anyhow::Error::from).and_then(|json| Ok(serde_json::from_slice(&json)?)),
    };
    match accounts {
        Ok(accounts) => activity.take_up_accounts(accounts),
        Err(e) => {
            log::warn!("{}: what accounts sent before is not known: {e}", state_dir.join(FILE).display())
        }
    }
}

/// Stores it, if there is anything.
pub(super) fn store(state_dir: &Path, activity: &Activity) {
    let Some(json) = activity.with_accounts(|accounts| {
        (!accounts.is_empty()).then(|| serde_json::to_vec(accounts).unwrap_or_default())
    }) else {
        return;
    };
    let stored = StateDirectory::open(state_dir).and_then(|directory| directory.replace(FILE, &json, MODE));
    if let Err(e) = stored.with_context(|| format!("{}", state_dir.join(FILE).display())) {
        log::warn!("what accounts sent is not known after the restart: {e:#}");
    }
}
