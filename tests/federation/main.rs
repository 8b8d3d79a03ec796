// SPDX-License-Identifier: GPL-3.0-or-later
//! Signature servers and their milters: real processes, real sockets, kill -9.

mod attack;
mod bad_days;
mod bombs;
mod capacity;
mod change_of_key;
mod clock;
mod exactness;
mod forgotten;
mod guide;
mod heal;
mod hostile;
mod join;
mod many_origins;
mod moving;
mod orders;
mod partial;
mod private;
mod server_load;
mod soak;
mod strangers;
mod stuck;
mod tls;
mod together;
mod user_reports_away;
mod ways;
