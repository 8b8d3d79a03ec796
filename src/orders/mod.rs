// SPDX-License-Identifier: GPL-3.0-or-later
//! The administrator's orders, in force at once and kept over restarts: a pause, mailings that are never refused, and mailings whose counts
//! start over; and the orders of the other sites of a federation.
//!
//! `order` has their form, and `book` the orders in force with their file in the state directory; `mailings` finds those of a message. `server_lists`
//! has the orders of all sites and the rule by which they merge, `view` those that hold at one machine, and `federation` both with their file.
//! `exchange` sends a milter's own orders, in the form of `post`, and fetches the others'.

mod book;
mod exchange;
mod failure;
mod federation;
mod hex;
mod mailings;
mod order;
mod post;
mod server_lists;
mod view;

pub use book::Orders;
pub use exchange::{exchange, follow_peer_orders};
pub use failure::Failure;
pub use federation::{Document, Federation, Published};
pub use order::{All, Allowance, Forgotten, MAX_TEXT, Pause, author};
pub use post::Post;
pub use server_lists::{
    BYTES_A_SECOND, Full, LONGEST, MOST_OF_SITE, ServerLists, SiteOrders, Standing, Unsound,
};
pub use view::{SiteOrder, State};
