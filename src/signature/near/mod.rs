// SPDX-License-Identifier: GPL-3.0-or-later
//! The `near` signatures: some passages of a text stand for it, so that copies that differ here and there share some.
//! docs/signatures.md says what they are made of, and why.

mod count;
mod fold;
mod lines;
mod links;
mod make;
mod picture;
mod pixels;
mod reader;
mod sample;
mod slots;
mod things;
mod words;

pub use count::{Seen, Weights};
pub(in crate::signature) use make::{finish, reader};
pub use make::{traced, under};
pub use reader::Position;
pub(in crate::signature) use reader::Reader;
pub use sample::{Passage, Scheme, sample};
pub use slots::{Near, Slot, Thing, stray};
