// SPDX-License-Identifier: GPL-3.0-or-later
//! Fleets: real milters and aggregators on logs in NATS and PostgreSQL, and the logs themselves.

mod aggregators;
mod aims;
mod bad_days;
mod change_of_key;
mod conformance;
mod doctor;
mod engines;
mod members;
mod model;
mod moving;
mod nats;
mod partial;
mod poison;
mod postgres;
mod together;
mod user_reports;
mod versions;
