// SPDX-License-Identifier: GPL-3.0-or-later
//! Which messages the near signatures count together, and which apart, when a ledger is asked about them as the milter asks its own.

mod letters;
mod memory;
mod origins;
mod passages;
mod pictures;
