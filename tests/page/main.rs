// SPDX-License-Identifier: GPL-3.0-or-later
//! The status page and the metrics.

mod metrics;
mod status_page;
mod trouble;
