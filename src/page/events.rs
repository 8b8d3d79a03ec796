// SPDX-License-Identifier: GPL-3.0-or-later
//! Values as they change, as server-sent events.

use super::snapshot::Snapshots;
use crate::net::{Sender, streamed};
use axum::body::Body;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The time between two looks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Sends all sections, and from then on those that changed, until nobody reads.
pub(super) fn events(snapshots: Arc<Snapshots>) -> Body {
    let (sink, body) = streamed(Vec::new());
    tokio::spawn(async move { send(&snapshots, &sink).await });
    body
}

async fn send(snapshots: &Snapshots, sink: &Sender) {
    let mut sent: HashMap<&str, Value> = HashMap::new();
    let mut tick = tokio::time::interval(INTERVAL);
    loop {
        tick.tick().await;
        // A comment where nothing changed: it shows whether anybody reads.
        let mut text = String::from(":\n\n");
        for (name, value) in snapshots.sections().await {
            if sent.get(name) != Some(&value) {
                // JSON has no line breaks, so that one line is all of it.
                text += &format!("event: {name}\ndata: {value}\n\n");
                sent.insert(name, value);
            }
        }
        if sink.send(text.as_bytes()).await.is_err() {
            return;
        }
    }
}
