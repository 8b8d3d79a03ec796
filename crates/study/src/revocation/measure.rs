// SPDX-License-Identifier: GPL-3.0-or-later
//! Nominates, revokes, and nominates again, with lookups after each step.

use super::forms::{Form, THRESHOLD};
use bulkmark_filter::ParameterError;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The results of a form. Shares are percentages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// Bytes of memory after all nominations.
    pub memory: usize,
    /// Strange elements shown as spam, in so many.
    pub false_spam: (u32, u32),
    /// The share of revoked elements that were still spam.
    pub kept: f64,
    /// The share of the others that were no longer spam.
    pub lost: f64,
    /// The share of revoked elements that were spam again after one more nomination.
    pub again: f64,
}

/// The number of people who nominate a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// Three each: all of it is spam.
    Three,
    /// n or more with the chance n^-1.5: one for two in three of them, three or more for one in five.
    Pareto,
}

impl Law {
    /// The number for this element.
    fn people(self, number: u32) -> u32 {
        const EXPONENT: f64 = 1.5;
        /// More than these change nothing.
        const MOST: f64 = 200.0;
        match self {
            Self::Three => THRESHOLD,
            Self::Pareto => {
                let mut random = SplitMix64::seed_from_u64(!u64::from(number));
                let chance = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "it is between 1 and 200"
                )]
                let people = (1.0 - chance).powf(-1.0 / EXPONENT).min(MOST) as u32;
                people
            }
        }
    }
}

/// Nominates each of `elements` by several people, then revokes `percent` of those just above the limit by one person, then nominates
/// these once more.
///
/// # Errors
/// When there is no memory for the filters.
pub fn measure(
    form: Form,
    law: Law,
    elements: u32,
    percent: u32,
    strange: u32,
) -> Result<Measured, ParameterError> {
    let mut held = form
        .empty(elements, u32::try_from(u64::from(elements) * u64::from(percent) / 100).unwrap_or(elements))?;
    let (mut revoked, mut others) = (Vec::new(), Vec::new());
    for number in 0..elements {
        let people = law.people(number);
        (0..people).try_for_each(|_| held.nominate(number, element(number.into())))?;
        if people == THRESHOLD && number % 100 < percent {
            revoked.push(number);
        } else if people >= THRESHOLD {
            others.push(number);
        }
    }
    let memory = held.memory();
    revoked.iter().try_for_each(|&number| held.revoke(number, element(number.into())))?;
    let spam = |held: &dyn super::forms::Held, numbers: &[u32]| {
        numbers.iter().filter(|&&number| held.is_spam(element(number.into()))).count()
    };
    let (kept, left) = (spam(held.as_ref(), &revoked), spam(held.as_ref(), &others));
    let strangers = u64::from(elements)..u64::from(elements) + u64::from(strange);
    let false_spam = strangers.filter(|&number| held.is_spam(element(number))).count();
    revoked.iter().try_for_each(|&number| held.nominate(number, element(number.into())))?;
    let again = spam(held.as_ref(), &revoked);
    let share = |part: usize, of: &[u32]| 100.0 * part as f64 / of.len().max(1) as f64;
    Ok(Measured {
        memory,
        false_spam: (u32::try_from(false_spam).unwrap_or(u32::MAX), strange),
        kept: share(kept, &revoked),
        lost: share(others.len() - left, &others),
        again: share(again, &revoked),
    })
}

/// The element of a number, as a hash would be.
fn element(number: u64) -> u128 {
    let mut random =
        SplitMix64::seed_from_u64(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66_D1CE_4E5B);
    u128::from(random.next_u64()) << 64 | u128::from(random.next_u64())
}
