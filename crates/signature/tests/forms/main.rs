// SPDX-License-Identifier: GPL-3.0-or-later
//! Forms of a message that have the same signatures.

mod body;
mod formulas;
mod hidden;
mod nests;
mod programs;
mod reading;
