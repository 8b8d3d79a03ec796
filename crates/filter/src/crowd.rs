// SPDX-License-Identifier: GPL-3.0-or-later
//! A row of split storage whose entries are too dense for a table: an array, in pages of one home each.

use crate::placed::{HOME_BITS, HOMES, Placed, VALUE_MAX};
use crate::work::touch;

/// Keys of a home.
const KEYS: usize = 1 << HOME_BITS;

/// The values of the keys of a home; zero where there is no entry.
type Page = [u16; KEYS];

/// The entries of one row, by home and key. Every read and every change takes one step, however the keys were chosen. It takes 8 kB,
/// and 256 bytes for each home with an entry: 270 kB at most.
pub(crate) struct Crowd {
    pages: Box<[Option<Box<Page>>]>,
    /// The number of allocated pages.
    used: usize,
}

const fn parts(key: u32) -> (usize, usize) {
    ((key >> HOME_BITS) as usize, key as usize % KEYS)
}

impl Crowd {
    /// Returns a crowd of these entries.
    pub(crate) fn of(entries: impl Iterator<Item = Placed>) -> Self {
        let mut crowd = Self { pages: vec![None; HOMES].into_boxed_slice(), used: 0 };
        entries.for_each(|(key, value)| crowd.raise(key, value));
        crowd
    }

    /// Returns the value of a key; zero without an entry.
    #[inline]
    pub(crate) fn get(&self, key: u32) -> u32 {
        touch(1);
        let (home, at) = parts(key);
        let page = self.pages.get(home).and_then(Option::as_ref);
        page.map_or(0, |page| page[at].into())
    }

    /// Raises a key to a value up to [`VALUE_MAX`]; a larger old value stays.
    #[inline]
    pub(crate) fn raise(&mut self, key: u32, value: u32) {
        touch(1);
        let (home, at) = parts(key);
        let Some(page) = self.pages.get_mut(home) else { return };
        let used = &mut self.used;
        let page = page.get_or_insert_with(|| {
            *used += 1;
            Box::new([0; KEYS])
        });
        let value = u16::try_from(value.min(VALUE_MAX)).unwrap_or(u16::MAX);
        page[at] = page[at].max(value);
    }

    /// Returns the keys from `first` on that have an entry, with their values, ascending.
    pub(crate) fn entries(&self, first: u32) -> impl Iterator<Item = Placed> {
        let pages = (0u32..).zip(&self.pages).skip(parts(first).0);
        let pages = pages.filter_map(|(home, page)| Some((home << HOME_BITS, page.as_deref()?)));
        let keys = pages.flat_map(|(key, page)| (key..).zip(page));
        keys.filter(move |&(key, &value)| value > 0 && key >= first).map(|(key, &value)| (key, value.into()))
    }

    /// Returns the bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.pages) + self.used * size_of::<Page>()
    }
}
