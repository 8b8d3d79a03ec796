// SPDX-License-Identifier: GPL-3.0-or-later
//! Access of a stream: it lasts while its token is valid and the server runs.

use super::gate::Gate;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How soon a stream ends after its token expired.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// The access of a stream.
pub(super) struct Access {
    gate: Arc<Gate>,
    /// The name of the client and its token; none for an anonymous reader.
    client: Option<(String, Box<str>)>,
    changes: watch::Receiver<()>,
    ending: watch::Receiver<bool>,
}

impl Access {
    /// Creates the access of a client with its token.
    pub(super) fn new(
        gate: &Arc<Gate>,
        client: Option<&str>,
        token: Option<&str>,
        ending: watch::Receiver<bool>,
    ) -> Self {
        let client = client.zip(token).map(|(name, token)| (name.to_owned(), token.into()));
        Self { gate: Arc::clone(gate), client, changes: gate.changes(), ending }
    }

    /// Waits until the stream has to end.
    pub(super) async fn over(mut self) {
        loop {
            if let Some((name, token)) = &self.client
                && !self.gate.may_still_read(name, token)
            {
                log::info!("a stream of client {name} ends: its token is no longer valid");
                return;
            }
            tokio::select! {
                // Its token may expire meanwhile.
                () = tokio::time::sleep(LOOK_AGAIN) => (),
                changed = self.changes.changed() => if changed.is_err() { return },
                ended = self.ending.wait_for(|&ending| ending) => {
                    // The sender is gone, or the server is ending.
                    let _ = ended;
                    return;
                }
            }
        }
    }
}
