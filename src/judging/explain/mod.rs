// SPDX-License-Identifier: GPL-3.0-or-later
//! Why a message is bulk or not: what `bulkmark explain` prints, and the HTTP door tells whoever asks for it.
//!
//! [`find`] asks a [`Source`] all that the milter would ask of a message that it had not counted yet, and counts nothing. An [`Explanation`]
//! says what each signature was made of, how often and when it was seen, and the verdict that follows. [`explain`] makes one of the ledger at
//! hand, a command of a daemon that it asks.

mod ask;
mod earlier;
mod explanation;
mod here;
mod judged;
mod made_of;
mod source;
mod statement;

pub use ask::People;
pub use explanation::{Counted, Explained, Explanation, Thresholds, decides};
pub use here::{earlier_here, explain};
pub use judged::{Judged, exempt, find};
pub use source::{Case, Source};
