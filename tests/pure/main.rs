// SPDX-License-Identifier: GPL-3.0-or-later
//! Tests that need nothing but Rust: configuration, documents, manuals, packaging, the protocol's bodies.

mod conf;
mod docs;
mod house;
mod layering;
mod man;
mod packaging;
mod pasting;
mod protocol;
