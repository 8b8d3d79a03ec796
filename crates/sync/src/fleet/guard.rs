// SPDX-License-Identifier: GPL-3.0-or-later
//! Ends connections of members that block the log, so that nobody keeps the others waiting.

use super::state::Fleet;
use crate::log::{Log, LogError};
use std::sync::Arc;
use std::time::Duration;

/// How often it looks for them.
const LOOK: Duration = Duration::from_secs(3);

/// Runs forever, beside the aggregator, which may itself wait for the connection that has to be ended.
pub(super) async fn guard<L: Log>(log: Arc<L>, fleet: Arc<Fleet>) {
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        match log.end_stuck().await {
            Ok(ended) => ended.iter().for_each(|whose| fleet.ended_stuck(whose)),
            // The log was set up by an older version.
            Err(e @ LogError::NotSetUp(_)) => fleet.ended_stuck(&format!("nobody yet, since {e}")),
            // Tasks that need the log report why it does not answer.
            Err(_) => (),
        }
    }
}
