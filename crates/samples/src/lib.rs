// SPDX-License-Identifier: GPL-3.0-or-later
//! Messages that tests write. It knows no other crate of bulkmark, so that the tests of each may use it.

pub mod encode;
pub mod prose;
pub mod writing;
