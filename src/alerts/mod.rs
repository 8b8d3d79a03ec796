// SPDX-License-Identifier: GPL-3.0-or-later
//! Tells a webhook of problems, when each begins and when it ends. No message waits for it.
//!
//! `problems` decides from one look to the next, without a clock; `post` has the one task that looks and posts.

mod post;
mod problems;
mod settings;

pub use post::watch;
pub use settings::Settings;
