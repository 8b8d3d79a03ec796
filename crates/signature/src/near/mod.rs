// SPDX-License-Identifier: GPL-3.0-or-later
//! The `near` signatures: a few passages stand for a text, so that copies with small differences share some. docs/signatures.md describes
//! them and gives reasons.

mod armour;
mod boxes;
mod carriers;
mod characters;
mod collect;
mod content;
mod context;
mod count;
mod document;
mod fold;
mod frames;
mod known;
mod letter;
mod line;
mod lines;
mod links;
mod make;
mod picture;
mod pixels;
mod product;
mod reader;
mod records;
mod runs;
mod sample;
mod slots;
mod things;
mod words;

pub use content::Position;
pub use count::{Bound, Judgement, SlotJudgement};
pub use known::{Known, Seen, Unsure};
pub use letter::{FollowUp, Letter};
pub(crate) use lines::{FOOTER, SIGNATURE};
pub(crate) use make::{finish, reader};
pub use make::{positions, under};
pub(crate) use reader::Reader;
pub use sample::{Passage, Scheme, sample};
pub use slots::{ContextKind, Near, Slot, Thing, stray};
