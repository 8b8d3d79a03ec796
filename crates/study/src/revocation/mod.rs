// SPDX-License-Identifier: GPL-3.0-or-later
//! The cost of revocable nominations: the paper's two Bloom filters against counting ones. docs/filter.md.

mod forms;
mod measure;

pub use forms::Form;
pub use measure::{Law, Measured, measure};
