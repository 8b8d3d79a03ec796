// SPDX-License-Identifier: GPL-3.0-or-later
//! Whether trust prevents liars from deciding what counts as spam: a site's mail of some weeks, with and without it.
//! docs/trust.md.

mod mailing;
mod people;
mod plot;
mod scenario;
mod world;
mod young;

pub use people::{Lie, TURN};
pub use plot::{Outcomes, plot};
pub use scenario::{Runs, Scenario};
pub use world::{Accounts, Day, Weights, World};
pub use young::{HOURS, Seeds, young};
