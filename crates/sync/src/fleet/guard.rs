// SPDX-License-Identifier: GPL-3.0-or-later
//! Ends what members hold open in the log, so that none of them keeps the others waiting.

use super::state::Fleet;
use crate::log::{Log, LogError};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked for.
const LOOK: Duration = Duration::from_secs(3);

/// Looks for ever. This is beside what an aggregator does, which may wait for what is to be ended.
pub(super) async fn guard<L: Log>(log: Arc<L>, fleet: Arc<Fleet>) {
    let mut look = tokio::time::interval(LOOK);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        match log.end_stuck().await {
            Ok(ended) => ended.iter().for_each(|whose| fleet.ended_stuck(whose)),
            // A log that the version before set up.
            Err(e @ LogError::NotSetUp(_)) => fleet.ended_stuck(&format!("nobody yet, since {e}")),
            // Those who need the log say why it does not answer.
            Err(_) => (),
        }
    }
}
