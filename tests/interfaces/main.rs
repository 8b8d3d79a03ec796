// SPDX-License-Identifier: GPL-3.0-or-later
//! The interfaces beside the milter, by the bytes of their protocols and by the programs that use them.

mod amavis;
mod asking;
mod corpus;
mod crowds;
mod daemon;
mod day;
mod dccifd;
mod exim;
mod explained;
mod floods;
mod guide;
mod haraka;
mod http;
mod ipv6;
mod malformed;
mod networks;
mod once;
mod orders;
mod pyzor;
mod pyzor_accounts;
mod pyzor_spamassassin;
mod razor;
mod razor_malformed;
mod real_clients;
mod rspamd;
mod rspamd_module;
mod spamassassin;
mod spamassassin_plugin;
