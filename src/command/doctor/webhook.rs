// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether the webhook of `[alerts]` accepts posts.

use super::report::Report;
use crate::activity::WebhookStatus;
use crate::command::show::{some, webhook_failure};
use crate::control::DaemonStatus;

/// Examines the last post of the running daemon. A test post would be an event at the other end.
pub(super) fn examine(status: &DaemonStatus, report: &mut Report) {
    const CHECK: &str = "webhook";
    let Some(webhook) = &status.webhook else { return };
    if let Some((failure, remedy)) = webhook_failure(webhook) {
        report.warning(CHECK, format!("{} {failure}", webhook.host), remedy);
        return;
    }
    let WebhookStatus { host, posted, .. } = webhook;
    let text = match posted {
        0 => format!("{host}: there was nothing to post since the start"),
        posted => format!("{host} accepted {} since the start", some(posted, "event")),
    };
    report.ok(CHECK, text);
}
