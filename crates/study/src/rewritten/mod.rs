// SPDX-License-Identifier: GPL-3.0-or-later
//! How far text can be rewritten before its copies are no longer found: the curve of docs/evaluation.md.
//!
//! Messages are read, asked about and judged as the milter does it, with a ledger in memory that forgets nothing.

mod curve;
mod ledger;
mod plot;
mod rewrite;
mod texts;

pub use curve::{Curve, False, Mail, Point};
pub use plot::plot;
pub use rewrite::Way;
