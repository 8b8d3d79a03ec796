// SPDX-License-Identifier: GPL-3.0-or-later
//! The posts to the webhook of `[alerts]`. A webhook cannot report its failure, so the status does.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The state of the webhook.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WebhookStatus {
    /// Its host. Its whole address is often a secret.
    pub host: String,
    /// Events that were posted.
    pub posted: u64,
    /// Events that wait to be posted.
    pub waiting: usize,
    /// The last error, if the last post failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The first failure since the last event that was posted, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<u64>,
}

/// The webhook; none is configured before `opened`.
#[derive(Debug, Default)]
pub struct Webhook(Mutex<Option<WebhookStatus>>);

impl Webhook {
    /// Records the configured host.
    pub fn opened(&self, host: &str) {
        let mut status = self.0.lock();
        status.get_or_insert_default().host = host.to_owned();
    }

    /// Records the number of events that wait.
    pub fn waits(&self, events: usize) {
        if let Some(status) = &mut *self.0.lock() {
            status.waiting = events;
        }
    }

    /// Records that an event was posted; returns whether the post before it had failed.
    pub fn posted(&self) -> bool {
        self.0.lock().as_mut().is_some_and(|status| {
            status.posted += 1;
            status.error = None;
            status.failing_since.take().is_some()
        })
    }

    /// Records that a post failed at this time; returns whether the post before it had not.
    pub fn failed(&self, error: String, now: u64) -> bool {
        self.0.lock().as_mut().is_some_and(|status| {
            status.error = Some(error);
            status.failing_since.replace(status.failing_since.unwrap_or(now)).is_none()
        })
    }

    /// Returns the state, if a webhook is configured.
    #[must_use]
    pub fn status(&self) -> Option<WebhookStatus> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_lasts_until_an_event_is_posted() {
        let webhook = Webhook::default();
        assert_eq!(webhook.status(), None, "none is configured");
        webhook.opened("hooks.example.org");
        assert!(webhook.failed("404 Not Found".to_owned(), 7));
        assert!(!webhook.failed("it cannot be reached".to_owned(), 9));
        webhook.waits(3);
        let status = webhook.status().unwrap();
        assert_eq!((status.error.as_deref(), status.failing_since), (Some("it cannot be reached"), Some(7)));
        assert!(webhook.posted());
        assert!(!webhook.posted());
        let expected = WebhookStatus {
            host: "hooks.example.org".to_owned(),
            posted: 2,
            waiting: 3,
            ..WebhookStatus::default()
        };
        assert_eq!(webhook.status(), Some(expected));
    }
}
