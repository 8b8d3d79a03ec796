// SPDX-License-Identifier: GPL-3.0-or-later
//! The orders that a server keeps, and the clients that may give some.

use super::clients::{Client, Role};
use super::limits::{Checks, Principal};
use crate::net;
use crate::orders::{BYTES_A_SECOND, Orders, Standing};
use bulkmark_counts::history::fleet_mark::is_name;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

/// Lists of orders that a client can send in a minute: each new one is written to disk, and makes all others fetch the lists of all sites. The
/// longer these are, the fewer.
const A_MINUTE: NonZeroU32 = const { NonZeroU32::new(60).unwrap() };

/// The orders at a server.
pub(super) struct OrderBook {
    pub(super) orders: Arc<Orders>,
    rate: Checks,
}

impl OrderBook {
    /// Reads the orders in this state directory; the operator's are sent under the name of the machine.
    pub(super) fn open(state_dir: &Path) -> Self {
        let name =
            Some(net::own_name("")).filter(|name| is_name(name)).unwrap_or_else(|| "server".to_owned());
        Self { orders: Arc::new(Orders::of_server(state_dir, name)), rate: Checks::new(A_MINUTE) }
    }

    /// Checks the rate of a client's lists.
    pub(super) fn admits(&self, client: &Client) -> bool {
        let published = self.orders.federation.published().borrow().whole.json.len();
        self.rate.admit_many(&Principal::Client((&*client.name).into()), cost(published))
    }
}

/// The cost of a change of lists with so many bytes, in short ones: one for each second that others take to read it.
fn cost(bytes: usize) -> NonZeroU32 {
    let seconds = u32::try_from(bytes / BYTES_A_SECOND).unwrap_or(u32::MAX);
    NonZeroU32::MIN.saturating_add(seconds).min(A_MINUTE)
}

/// Returns the kind of a client as a site that gives orders; none if it cannot give any.
pub(super) fn standing(client: &Client, now: u64) -> Option<Standing> {
    let may_give = client.role == Role::Report && client.is_approved() && !client.is_expired(now);
    let standing = if client.max_influence.is_none() { Standing::Own } else { Standing::Partner };
    may_give.then_some(standing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_changes_long_lists_less_often() {
        let costs = [0, 100_000, 450_000, 8 << 20, usize::MAX].map(|bytes| cost(bytes).get());
        assert_eq!(costs, [1, 1, 2, 33, 60]);
    }
}
