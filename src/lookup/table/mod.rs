// SPDX-License-Identifier: GPL-3.0-or-later
//! Asks tables that a server has, for white lists: Postfix's socketmap_table(5) and tcp_table(5). Each answer is awaited for a bounded
//! time, and what is read of it is bounded.

mod client;
mod protocol;

pub use client::Tables;
