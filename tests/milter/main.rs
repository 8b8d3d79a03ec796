// SPDX-License-Identifier: GPL-3.0-or-later
//! The milter through its socket: sessions, policies, reports, and harmful clients.

mod activation;
mod alerts;
mod erase;
mod hostile_mta;
mod lifecycle;
mod load;
mod log_floods;
mod malformed;
mod mended;
mod policies;
mod refusing;
mod relays;
mod session;
mod sources;
mod user_reports;
