// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's counts: the fold of the steps in its log ([`fold`]), which batches are in them ([`marks`]), what of it is kept ([`keeps`]), and
//! what the next step would be ([`draft`]), with what it tells of bulk ([`bulk`]). Snapshots are in [`parts`] and [`assembly`].

pub(crate) mod assembly;
mod bulk;
mod client;
mod community;
pub(crate) mod draft;
pub(crate) mod fold;
pub(crate) mod keeps;
pub(crate) mod marks;
pub(crate) mod parts;
