// SPDX-License-Identifier: GPL-3.0-or-later
//! The log on NATS JetStream: three nodes, each message on all of them.

mod common;
#[path = "log_nats/encrypted.rs"]
mod encrypted;
#[path = "log_nats/fleet.rs"]
mod fleet;
#[path = "log_nats/leftovers.rs"]
mod leftovers;
mod log_conformance;
#[path = "log_nats/repeats.rs"]
mod repeats;
#[path = "log_nats/rights.rs"]
mod rights;
#[path = "log_nats/setting_up.rs"]
mod setting_up;
#[path = "log_nats/speed.rs"]
mod speed;

use fleet::Fleet;

log_conformance!(Fleet);
