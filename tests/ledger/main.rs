// SPDX-License-Identifier: GPL-3.0-or-later
//! The ledger: its model, its file, its formats, and its guarantees over kills.

mod backup;
mod damage;
mod fleet;
mod format;
mod holders;
mod key;
mod model;
mod mutants;
mod replay;
mod snapshot;
