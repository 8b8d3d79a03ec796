// SPDX-License-Identifier: GPL-3.0-or-later
//! A daemon's state directory. Root's commands write into it, too, while its owner may put anything there: a symbolic link to
//! a file of root's, for example. Nothing here follows one, or gives away what it did not make itself. And who may do what with
//! files.

mod access;
mod state;

pub use access::{ENTER, Obstacle, READ, User, WRITE};
pub use state::StateDirectory;
