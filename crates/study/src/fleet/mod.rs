// SPDX-License-Identifier: GPL-3.0-or-later
//! The needs of a fleet, and when its signatures must be sharded. crates/study/docs/fleet.md has the tables.
//!
//! `law` and `traffic` are the mail. `member` makes real steps of it, `sample` and `partial` measure the cost of each report with them,
//! and `plan` multiplies. `shard` has the limits of one chain.

pub mod law;
mod member;
mod partial;
pub mod plan;
pub mod sample;
pub mod shard;
pub mod traffic;

pub use member::{MAX_BATCH, SampleError};
pub use partial::{BOUND, Partial, partial};
