// SPDX-License-Identifier: GPL-3.0-or-later
//! The most frequent of many texts, in bounded memory.

/// Texts that are kept.
const MOST: usize = 8;

/// Texts with their frequencies. Once all places are taken, a new text takes the place of the rarest one with its count, so that frequent ones
/// are never lost (the space-saving algorithm: Metwally, Agrawal, El Abbadi 2005).
#[derive(Debug, Clone, Default)]
pub(super) struct Top {
    places: Vec<(Box<str>, u64)>,
    overflowed: bool,
}

impl Top {
    pub(super) fn add(&mut self, text: &str) {
        if let Some((_, count)) = self.places.iter_mut().find(|(known, _)| **known == *text) {
            *count += 1;
        } else if self.places.len() < MOST {
            self.places.push((text.into(), 1));
        } else if let Some((rarest, count)) = self.places.iter_mut().min_by_key(|(_, count)| *count) {
            self.overflowed = true;
            *rarest = text.into();
            *count += 1;
        }
    }

    /// Returns the only text that ever came, if there is only one.
    pub(super) fn only(&self) -> Option<&str> {
        match &*self.places {
            [(text, _)] => Some(text),
            _ => None,
        }
    }

    /// Returns the texts, the most frequent first, and whether these are all.
    pub(super) fn ranked(&self) -> (Vec<(String, u64)>, bool) {
        let mut places: Vec<_> = self.places.iter().map(|(text, count)| (text.to_string(), *count)).collect();
        places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        (places, !self.overflowed)
    }
}
