// SPDX-License-Identifier: GPL-3.0-or-later
//! What became of what people and traps said, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of one reporter's word on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Became {
    /// It was counted.
    Counted,
    /// It took back what the reporter had said before.
    TakenBack,
    /// The reporter had said so before.
    Known,
    /// The reporter changed its mind too often.
    TooOften,
    /// It weighs nothing.
    Weightless,
    /// There is no room to remember who said it.
    NoRoom,
    /// The reporter has said too much today.
    OverLimit,
    /// It was refused, with a reason.
    Refused,
}

impl Became {
    const ALL: [Self; 8] = [
        Self::Counted,
        Self::TakenBack,
        Self::Known,
        Self::TooOften,
        Self::Weightless,
        Self::NoRoom,
        Self::OverLimit,
        Self::Refused,
    ];

    /// As metrics write it.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::TakenBack => "taken-back",
            Self::Known => "known",
            Self::TooOften => "too-often",
            Self::Weightless => "weightless",
            Self::NoRoom => "no-room",
            Self::OverLimit => "over-limit",
            Self::Refused => "refused",
        }
    }
}

/// Words since the start, of those who call a message spam and of those who say that it is none.
#[derive(Debug, Default)]
pub struct Words {
    spam: [AtomicU64; Became::ALL.len()],
    not_spam: [AtomicU64; Became::ALL.len()],
}

impl Words {
    /// Somebody spoke, for spam or against it.
    pub fn add(&self, is_spam: bool, became: Became) {
        let of_side = if is_spam { &self.spam } else { &self.not_spam };
        if let Some(count) = of_side.get(became as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// By side and result.
    #[must_use]
    pub fn all(&self) -> Vec<(&'static str, &'static str, u64)> {
        let sides = [("spam", &self.spam), ("not-spam", &self.not_spam)];
        let of_side = |(side, counts): (&'static str, &[AtomicU64; Became::ALL.len()])| {
            let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
            Became::ALL
                .into_iter()
                .zip(counts)
                .map(|(became, count)| (side, became.as_str(), count))
                .collect::<Vec<_>>()
        };
        sides.into_iter().flat_map(of_side).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_counted_by_its_name() {
        let words = Words::default();
        words.add(true, Became::NoRoom);
        words.add(false, Became::Counted);
        let found: Vec<_> = words.all().into_iter().filter(|(.., count)| *count > 0).collect();
        assert_eq!(found, [("spam", "no-room", 1), ("not-spam", "counted", 1)]);
        assert_eq!(words.all().len(), 16);
    }
}
