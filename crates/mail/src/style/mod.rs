// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether the attributes of an element, and the style sheets of its page, keep its text from being seen.

mod cascade;
mod colour;
mod declaration;
mod element;
mod find;
mod media;
mod selector;
mod sheet;

pub(super) use colour::{Colour, PAGE, alike};
pub(super) use element::{Ink, Style};
pub(super) use sheet::Sheet;
