// SPDX-License-Identifier: GPL-3.0-or-later
//! Queries the remote tables of white lists: Postfix's socketmap_table(5) and tcp_table(5). Time and size of each answer are bounded.

mod client;
mod protocol;

pub use client::Tables;
