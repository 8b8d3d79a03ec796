// SPDX-License-Identifier: GPL-3.0-or-later
//! The doors beside the milter, by the bytes of their protocols and by the programs that speak them.

#[path = "../common/mod.rs"]
mod common;

mod amavis;
mod asking;
mod corpus;
mod day;
mod dccifd;
mod exim;
mod guide;
mod haraka;
mod http;
mod malformed;
mod once;
mod pyzor;
mod razor;
mod razor_malformed;
mod rspamd;
mod rspamd_module;
mod spamassassin;
mod spamassassin_plugin;
