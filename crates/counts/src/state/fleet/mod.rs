// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's counts: the fold of the steps in its log ([`fold`]), which batches are in them ([`marks`]), what of it is kept ([`keeps`]), and
//! what the next step would be ([`draft`]), with what it tells of bulk (`reported`). Snapshots are in [`parts`] and [`assembly`].

pub mod assembly;
mod client;
mod community;
pub mod draft;
pub mod fold;
pub mod keeps;
pub mod marks;
pub mod parts;
mod reported;
