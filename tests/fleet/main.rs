// SPDX-License-Identifier: GPL-3.0-or-later
//! Fleets: real milters and aggregators on logs in NATS and PostgreSQL, and the logs themselves.

/// Makes a test of each scenario for a fleet on each engine of its log.
macro_rules! on_both_logs {
    ($($scenario:ident),* $(,)?) => {
        on_both_logs! { @each nats $($scenario)* }
        on_both_logs! { @each postgres $($scenario)* }
    };
    (@each $engine:ident $($scenario:ident)*) => {
        mod $engine {
            $(#[test] fn $scenario() {
                bulkmark_testing::fleet::Fleet::$engine().iter().for_each(super::$scenario);
            })*
        }
    };
}

mod aggregators;
mod aims;
mod bad_days;
mod change_of_key;
mod conformance;
mod doctor;
mod engines;
mod members;
mod model;
mod moving;
mod nats;
mod partial;
mod poison;
mod postgres;
mod together;
mod user_reports;
mod versions;
