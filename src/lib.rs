// SPDX-License-Identifier: GPL-3.0-or-later
//! x
pub mod filter;
pub mod mail;
pub mod signature;
