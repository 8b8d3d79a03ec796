// SPDX-License-Identifier: GPL-3.0-or-later
//! What a daemon did since it was started, for metrics and the status page.
//!
//! Those who do it count here; whoever is asked reads. Counting costs a message some atomic additions, and never waits for a
//! reader.

mod connections;
mod counters;
mod histogram;

pub use connections::{Connections, Open};
pub use counters::{Activity, Judged};
pub use histogram::Histogram;
