// SPDX-License-Identifier: GPL-3.0-or-later
//! Decisions about messages, for Prometheus: why they were only marked, and by which policy.

use super::exposition::Text;
use crate::activity::Activity;

/// Writes both.
pub(super) fn decision_metrics(activity: &Activity, text: &mut Text) {
    marked_metrics(activity, text);
    policy_metrics(activity, text);
}

/// Bulk and spam that was only marked, although the configured action is stricter.
fn marked_metrics(activity: &Activity, text: &mut Text) {
    text.one(
        "bulkmark_messages_held_total",
        "counter",
        "Bulk that was only marked, since its count comes from too few networks (min-sources) or messages (min-messages).",
        activity.held(),
    );
    text.one(
        "bulkmark_messages_spared_total",
        "counter",
        "Bulk and spam that was only marked, since a recipient had written to its sender.",
        activity.spared(),
    );
    text.one(
        "bulkmark_messages_allowed_total",
        "counter",
        "Bulk and spam that was only marked, since its mailing is allowed (bulkmark allow).",
        activity.allowed(),
    );
    text.family(
        "bulkmark_messages_rehearsed_total",
        "counter",
        "Bulk and spam that was only marked, by the action that it would have got without a rehearsal (rehearse, pause).",
        activity.rehearsed().into_iter().map(|(action, count)| (vec![("action", action.to_string())], count)),
    );
}

/// Messages by the policy that decided.
fn policy_metrics(activity: &Activity, text: &mut Text) {
    text.family(
        "bulkmark_policy_messages_total",
        "counter",
        "Messages by the policy that decided, where there are several.",
        activity.policies.messages().into_iter().map(|(policy, verdict, action, count)| {
            let labels =
                vec![("policy", policy), ("verdict", verdict.to_string()), ("action", action.to_string())];
            (labels, count)
        }),
    );
    text.family(
        "bulkmark_policy_messages_rehearsed_total",
        "counter",
        "Of these, bulk and spam that was only marked, by the action that it would have got.",
        activity
            .policies
            .rehearsed()
            .into_iter()
            .map(|(policy, action, count)| (vec![("policy", policy), ("action", action.to_string())], count)),
    );
}
