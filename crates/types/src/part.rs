// SPDX-License-Identifier: GPL-3.0-or-later
//! A name's place among all names, from a hash: the same on every machine and after every start. `actions.rehearse` chooses recipients by it.

use siphasher::sip::SipHasher24;
use std::hash::Hasher as _;

/// Public: the place is no secret, and does not depend on a federation's key.
const KEY: [u8; 16] = *b"bulkmark: parts/";

/// The place of `name`, in thousandths: 0 to 999, evenly spread. All names below 100 are also below 200.
#[must_use]
pub fn part(name: &str) -> u32 {
    let mut hasher = SipHasher24::new_with_key(&KEY);
    hasher.write(name.as_bytes());
    u32::try_from(hasher.finish() % 1000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_spread_over_all_places_and_keep_theirs() {
        let places: Vec<u32> = (0..20_000).map(|n| part(&format!("user{n}@box.example"))).collect();
        let inside = places.iter().filter(|&&place| place < 100).count();
        assert!((1_800..=2_200).contains(&inside), "{inside} of 20,000 are in a tenth");
        assert!(places.iter().all(|&place| place < 1000));
        // Another release chooses the same recipients.
        assert_eq!([part("anna@box.example"), part("ben@box.example")], [789, 143]);
    }
}
