// SPDX-License-Identifier: GPL-3.0-or-later
//! For how long a stream goes on: while its token is valid, and the server serves.

use super::gate::Gate;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How soon a stream ends whose token expires.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What a stream was let in by.
pub(super) struct Access {
    gate: Arc<Gate>,
    /// The name of the client and its token; none of somebody without one, where everybody may read.
    client: Option<(String, Box<str>)>,
    changes: watch::Receiver<()>,
    ending: watch::Receiver<bool>,
}

impl Access {
    /// Of a client, with the token that it showed.
    pub(super) fn new(
        gate: &Arc<Gate>,
        client: Option<&str>,
        token: Option<&str>,
        ending: watch::Receiver<bool>,
    ) -> Self {
        let client = client.zip(token).map(|(name, token)| (name.to_owned(), token.into()));
        Self { gate: Arc::clone(gate), client, changes: gate.changes(), ending }
    }

    /// Is done when the stream has to end.
    pub(super) async fn over(mut self) {
        loop {
            if let Some((name, token)) = &self.client
                && !self.gate.may_still_read(name, token)
            {
                log::info!("a stream of client {name} ends: its token is not valid any more");
                return;
            }
            tokio::select! {
                // Its token may expire meanwhile.
                () = tokio::time::sleep(LOOK_AGAIN) => (),
                changed = self.changes.changed() => if changed.is_err() { return },
                ended = self.ending.wait_for(|&ending| ending) => {
                    // Nobody can say any more that it ends.
                    let _ = ended;
                    return;
                }
            }
        }
    }
}
