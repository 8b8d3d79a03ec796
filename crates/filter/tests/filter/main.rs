// SPDX-License-Identifier: GPL-3.0-or-later
//! The filters from outside: counts, merging, comparison, measurement, and parameters.

mod bloom;
mod gauge;
mod merge;
mod parameters;
mod probe;
#[path = "../common/random.rs"]
#[allow(unreachable_pub, dead_code, reason = "each that uses it uses a part")]
mod random;
