// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages for tests. It uses no other crate of bulkmark, so that the tests of each may use it.

pub mod encode;
pub mod prose;
pub mod writing;
