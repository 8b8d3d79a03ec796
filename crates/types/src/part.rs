// SPDX-License-Identifier: GPL-3.0-or-later
//! The place of a name among all names, by which a part of them is chosen: the same one at every machine and start.

use siphasher::sip::SipHasher24;
use std::hash::Hasher as _;

/// Public: a part is no secret, and does not change with a federation's key.
const KEY: [u8; 16] = *b"bulkmark: parts/";

/// The place of `name`, in thousandths: 0 to 999, each for as many names. The names below 100 are also among those below 200.
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
