// SPDX-License-Identifier: GPL-3.0-or-later
//! x
pub mod filter;
pub mod ledger;
pub mod mail;
pub mod policy;
pub mod signature;
