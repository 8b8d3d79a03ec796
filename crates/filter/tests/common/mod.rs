// SPDX-License-Identifier: GPL-3.0-or-later
//! What the tests have in common.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

pub mod random;
