// SPDX-License-Identifier: GPL-3.0-or-later
//! What people say of a message.

use bulkmark_counts::Shares;
use bulkmark_policy::Weight;
use serde::{Serialize, Serializer};

/// What people say, in units of an eighth of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct People {
    /// What it comes to, in people whose word weighs whole.
    #[serde(serialize_with = "as_text")]
    pub weight: Weight,
    /// Of the signature that was nominated most: the nominations.
    pub nominated: Shares,
    /// And the revocations.
    pub revoked: Shares,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn as_text<S: Serializer>(weight: &Weight, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(weight)
}
