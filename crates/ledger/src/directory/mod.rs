// SPDX-License-Identifier: GPL-3.0-or-later
//! A daemon's state directory. Root's commands write into it, too, while its owner may put anything there: a symbolic link to
//! a file of root's, for example. This code follows no link, and gives away only files that it created. It also checks the access of
//! users to files.

mod access;
mod state;

pub use access::{ENTER, Obstacle, READ, User, WRITE};
pub use state::{StateDirectory, open_regular};
