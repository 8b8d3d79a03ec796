// SPDX-License-Identifier: GPL-3.0-or-later
//! Posts problems to a webhook, when each begins and when it ends. No message waits for it.
//!
//! `problems` compares one check with the next, without a clock; `post` has the task that checks and posts.

mod post;
mod problems;
mod settings;

pub use post::watch;
pub use settings::Settings;
