// SPDX-License-Identifier: GPL-3.0-or-later
//! The simulation study of Yan & Cho (section 5), repeated with the code of this program.
//!
//! [`Experiment`] defines the insertions and their order, [`round`] inserts them once into both extensions, [`run`] repeats that
//! a thousand times on all cores, and [`compare`] compares the means with the published ones.

mod compare;
mod experiment;
mod plot;
mod published;
mod round;
mod run;
mod universal;
mod wide;

pub use compare::{Comparison, compare};
pub use experiment::{Experiment, FILTER_SIZES, HASH_NUMBERS, KEYS};
pub use plot::plot;
pub use published::{Published, published};
pub use round::{Extension, Rates, round};
pub use run::{Configuration, Outcome, run};
