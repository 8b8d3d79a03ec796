// SPDX-License-Identifier: GPL-3.0-or-later
//! The delta of two versions of a filter: decoding returns it, and a view that applies it has the same cells as one that merged
//! the new version.

#![no_main]

use bulkmark_filter::{Counting, Delta, Merged, Refined};
use libfuzzer_sys::fuzz_target;

/// Additions of three bytes each: one of 256 elements, and its number (0 to 255 times a power of 2).
fn add_all(filter: &mut Refined, additions: &[[u8; 3]]) {
    for &[element, times, shift] in additions {
        // Multiples of the golden ratio are spread evenly over the 128 bits.
        let element = (u128::from(element) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        filter.add(element, u32::from(times) << (shift % 25));
    }
}

fn merged(filters: &[&Refined], blocks: usize) -> Merged {
    let mut merged = Merged::new(blocks).unwrap();
    filters.iter().for_each(|filter| merged.merge(filter).unwrap());
    merged
}

fuzz_target!(|data: &[u8]| {
    let [blocks, others, old, additions @ ..] = data else { return };
    let blocks = usize::from(*blocks) + 1;
    let (additions, _) = additions.as_chunks::<3>();
    let (others_part, additions) = additions.split_at(usize::from(*others).min(additions.len()));
    let (old_part, new_part) = additions.split_at(usize::from(*old).min(additions.len()));

    let [mut others, mut old, mut new] = [(); 3].map(|()| Refined::new(blocks).unwrap());
    add_all(&mut others, others_part);
    add_all(&mut old, old_part);
    add_all(&mut new, old_part);
    add_all(&mut new, new_part);

    let delta = Delta::between(&old, &new).unwrap();
    assert_eq!(Delta::decode(&delta.encode(), blocks, delta.len()), Ok(delta.clone()));
    let mut view = merged(&[&others, &old], blocks);
    view.apply(&delta).unwrap();
    assert_eq!(view.bytes(0..blocks), merged(&[&others, &new], blocks).bytes(0..blocks));
});
