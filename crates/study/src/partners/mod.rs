// SPDX-License-Identifier: GPL-3.0-or-later
//! What partners who conspire can do to a server's counts: reckoned, and tried on the ledger itself. crates/study/docs/partners.md.

pub mod aim;
mod conspiracy;
mod cover;

pub use conspiracy::{Conspiracy, Tried, TrustError};
pub use cover::Way;
