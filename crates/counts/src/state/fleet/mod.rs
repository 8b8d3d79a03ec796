// SPDX-License-Identifier: GPL-3.0-or-later
//! A fleet's counts: the fold of the steps in its log ([`fold`]), their batches ([`marks`]), the data that is kept ([`keeps`]), and the
//! next step ([`draft`]) with its bulk (`reported`). Snapshots are in [`parts`] and [`assembly`].

pub mod assembly;
mod client;
mod community;
pub mod draft;
pub mod fold;
pub mod keeps;
pub mod marks;
pub mod parts;
mod reported;
