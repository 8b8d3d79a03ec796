// SPDX-License-Identifier: GPL-3.0-or-later
//! What needs nothing but Rust: signatures, configuration, documents, manuals, packaging, the protocol's bodies.

mod conf;
mod docs;
mod layering;
mod man;
mod near_letters;
mod packaging;
mod pasting;
mod protocol;
mod signature_body;
mod signature_near;
mod signature_pictures;
mod signature_reading;
