// SPDX-License-Identifier: GPL-3.0-or-later
//! What other servers receive of a message.

use bulkmark_counts::Shared;
use bulkmark_verdict::{Content, Envelope, Rules};

/// The signatures of a message that are sent to other servers.
pub(super) fn shared(rules: &Rules, envelope: &Envelope, content: &Content) -> Shared {
    if rules.is_outbound(envelope) { Shared::Nothing } else { unless_private(rules, envelope, content) }
}

/// The signatures that are sent with users' reports of a message.
pub(super) fn shared_reports(rules: &Rules, envelope: &Envelope, content: &Content) -> Shared {
    if rules.shares_user_reports { unless_private(rules, envelope, content) } else { Shared::Nothing }
}

fn unless_private(rules: &Rules, envelope: &Envelope, content: &Content) -> Shared {
    if rules.private.names(&content.facts(envelope, rules)) {
        Shared::Nothing
    } else if rules.shares_exact {
        Shared::All
    } else {
        Shared::Once
    }
}
