// SPDX-License-Identifier: GPL-3.0-or-later
//! Text from outside, made fit for logs, terminals and pages: the one place that knows which characters cannot be shown as they
//! are.

mod escape;

pub use escape::{escaped, plain, plain_bytes, told, visible};
