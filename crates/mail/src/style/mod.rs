// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether an element's attributes and its page's style sheets hide its text.

mod attribute;
mod boxes;
mod cascade;
mod colour;
mod compound;
mod declaration;
mod drawing;
mod element;
mod find;
mod flow;
mod generated;
mod keyframes;
mod length;
mod matching;
mod media;
mod painting;
mod place;
mod rules;
mod selector;
mod shape;
mod sheet;
mod shift;
mod sides;
mod supports;
mod tree;
mod vars;
mod work;

pub(super) use boxes::{is_faint, times};
pub(super) use cascade::WHOLE;
pub(super) use colour::{Colour, PAGE, PLAIN_INK, alike, over};
pub(super) use compound::Pseudo;
pub(super) use element::{Backdrop, Ink, PageState, Size, Spacing, Style};
pub(super) use flow::{Extent, Flow, LineHeight};
pub(super) use length::{PLAIN, TINY};
pub(super) use sheet::Sheet;
pub(super) use shift::{Place, is_away, moved};
pub(super) use tree::Node;
pub(super) use work::Left;
pub use work::Work;
