// SPDX-License-Identifier: GPL-3.0-or-later
//! What a fleet needs, and when its signatures must be sharded. crates/study/docs/fleet.md has the tables.
//!
//! `law` and `traffic` are the mail. `member` makes real steps of it, `sample` and `partial` find what each report costs so, and `plan`
//! multiplies. `shard` has what limits one chain.

pub mod law;
mod member;
mod partial;
pub mod plan;
pub mod sample;
pub mod shard;
pub mod traffic;

pub use member::{MAX_BATCH, SampleError};
pub use partial::{BOUND, Partial, partial};
