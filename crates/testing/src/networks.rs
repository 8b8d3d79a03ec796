// SPDX-License-Identifier: GPL-3.0-or-later
//! Clients in distinct networks.

use bulkmark_types::{ClientNetwork, FederationKey};
use std::collections::HashSet;

/// Returns addresses in so many networks, all in different buckets under the public key; `place` makes an address from a number.
pub fn strangers(number: usize, place: impl Fn(u8) -> String) -> Vec<String> {
    let (key, mut buckets) = (FederationKey::public(), HashSet::new());
    let all = (1..=254).map(place);
    let is_new = |ip: &String| buckets.insert(ClientNetwork::of(ip.parse().unwrap()).bucket(&key));
    let found: Vec<String> = all.filter(is_new).take(number).collect();
    assert_eq!(found.len(), number);
    found
}
