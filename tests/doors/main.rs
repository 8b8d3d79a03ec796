// SPDX-License-Identifier: GPL-3.0-or-later
//! The doors beside the milter, by the bytes of their protocols and by the programs that speak them.

#[path = "../common/mod.rs"]
mod common;

mod asking;
mod dccifd;
mod explained;
mod floods;
mod guide;
mod http;
mod malformed;
mod networks;
mod once;
mod pyzor;
mod pyzor_accounts;
mod razor;
mod razor_malformed;
mod rspamd;
mod rspamd_module;
mod spamassassin;
mod spamassassin_plugin;
