// SPDX-License-Identifier: GPL-3.0-or-later
//! The log on NATS JetStream: three nodes, each message on all of them.

mod cluster;
mod encrypted;
mod late_writers;
mod later;
mod leftovers;
mod repeats;
mod rights;
mod setting_up;
pub(crate) mod speed;

use cluster::Fleet;

crate::log_conformance!(Fleet);
