// SPDX-License-Identifier: GPL-3.0-or-later
//! The records of messages that were refused, or would be.

use super::judgement::Judgement;
use super::message::Message;
use super::service::Service;
use crate::refusals::{Entry, MOST_RECIPIENTS};
use bulkmark_policy::Action;
use bulkmark_verdict::{Finding, Rules};

/// The reason of mail that is held or refused because of its account.
const ACCOUNT: &str = "account-over-limit";

/// Records a refusal, if configured. A trap's mail has no recipient who may miss it, and a canary is no mail.
pub(super) fn record_refusal(service: &Service, rules: &Rules, message: &Message, judgement: &Judgement) {
    let Judgement { finding, outcome, content, .. } = judgement;
    let would = match finding {
        Finding::Counted(counted) => counted.decision.would.map(|would| would.action),
        Finding::Canary(_) => return,
        Finding::Exempt(_) | Finding::Unknown(..) => None,
    };
    let is_trapped = outcome.trap.is_some() && outcome.action == Action::Discard;
    let taken = Some(outcome.action).filter(|&action| action != Action::Mark);
    let Some(action) = taken.or(would).filter(|_| service.refusals.is_open() && !is_trapped) else { return };
    let envelope = &message.envelope;
    let lower = |address: &String| address.to_lowercase();
    let mut entry = Entry {
        at: bulkmark_ledger::now(),
        id: envelope.id().to_owned(),
        action: action.to_string(),
        rehearsed: taken.is_none(),
        verdict: outcome.verdict.to_string(),
        from: envelope.sender.as_ref().map(lower).unwrap_or_default(),
        to: envelope.recipients.iter().take(MOST_RECIPIENTS).map(lower).collect(),
        nrcpt: envelope.recipients.len(),
        client: envelope.client.map(|ip| ip.to_string()).unwrap_or_default(),
        host: envelope.host.as_ref().map(lower).unwrap_or_default(),
        ..Entry::default()
    };
    match finding {
        Finding::Counted(counted) => {
            let decision = &counted.decision;
            entry.policy = rules.name(decision.by).unwrap_or_default().to_owned();
            (entry.body, entry.near) = (counted.counts.body, counted.counts.near);
            let spam = counted.counts.spam.filter(|spam| spam.units() > 0);
            entry.spam = spam.map(|spam| spam.to_string()).unwrap_or_default();
            // The action is due to its account, not to the message.
            if taken.is_some() && taken != Some(decision.action) {
                ACCOUNT.clone_into(&mut entry.reason);
            }
        }
        Finding::Unknown(reason, _) => entry.reason = reason.to_string(),
        Finding::Exempt(reason) => entry.reason = reason.to_string(),
        Finding::Canary(_) => (),
    }
    if let Some(content) = content {
        entry.signatures = content.signatures.reported().iter().map(ToString::to_string).collect();
    }
    service.refusals.keep(entry);
}
