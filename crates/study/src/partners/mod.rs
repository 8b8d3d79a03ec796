// SPDX-License-Identifier: GPL-3.0-or-later
//! The power of conspiring partners over a server's counts: calculated, and tried on the ledger itself.
//! crates/study/docs/partners.md.

pub mod aim;
mod conspiracy;
mod cover;

pub use conspiracy::{Conspiracy, Tried, TrustError};
pub use cover::Way;
