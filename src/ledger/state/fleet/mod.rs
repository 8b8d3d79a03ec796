// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's counts: the fold of the steps in its log ([`fold`]), which batches are in them ([`marks`]), and what the next step would
//! be ([`draft`]). Snapshots are in [`parts`] and [`assembly`].

pub(crate) mod assembly;
mod client;
mod community;
pub(crate) mod draft;
pub(crate) mod fold;
pub(crate) mod marks;
pub(crate) mod parts;
