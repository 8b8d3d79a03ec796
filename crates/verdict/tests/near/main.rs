// SPDX-License-Identifier: GPL-3.0-or-later
//! The messages that near signatures count together or separately, with a ledger that is asked as the milter asks its own.

mod letters;
mod memory;
mod origins;
mod passages;
mod pictures;
