// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon that is examined.

use crate::telemetry;
use bulkmark_sync::{Upstream, log};
use std::path::Path;

/// What a milter and a server have alike.
pub(super) struct Daemon<'a> {
    /// "milter", "doors" or "server".
    pub(super) name: &'static str,
    /// Its configuration, and whether that is where the packages have it.
    pub(super) path: &'a Path,
    pub(super) packaged: bool,
    pub(super) control: &'a Path,
    pub(super) state_dir: &'a Path,
    pub(super) ledger: &'a bulkmark_counts::Settings,
    pub(super) threshold: u32,
    pub(super) log: &'a telemetry::Settings,
    /// What the other servers are to it, and which there are.
    pub(super) link: &'static str,
    pub(super) others: &'a [Upstream],
    /// The log of its fleet, if it is in one.
    pub(super) fleet: Option<&'a log::Settings>,
}
