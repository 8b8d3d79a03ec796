// SPDX-License-Identifier: GPL-3.0-or-later
//! The data structures for nominations.

use bulkmark_counts::{USER_REPORT_CAPACITY, USER_REPORT_SHARE};
use bulkmark_filter::{
    BLOCK_BYTES, CELLS_AT_CAPACITY, Counting, Intuitive, Nominations, ParameterError, Refined, Removing as _,
    Scaling,
};
use bulkmark_types::{FederationKey, Signature, UNIT, nomination, revocation};

/// The reports that make spam in a counting form.
pub(super) const THRESHOLD: u32 = 3;

/// Units of one report: the ledger counts eighths.
const UNITS: u32 = UNIT;

/// Signatures that a ledger of the standard size is made for.
const CAPACITY: u32 = 1_000_000;

/// Windows of the ledger: 30 days of five each.
const WINDOWS: usize = 6;

/// A form, with its error rate if that can be chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Form {
    /// The paper's pair of Bloom filters, each with this error rate.
    Pair(f64),
    /// A counting filter from which a revocation deletes: the intuitive extension.
    Deleting,
    /// A pair of refined counting filters, whose difference counts, in one window made for all.
    Counting,
    /// The ledger's form: both in one row of filters for each window, which starts small and grows; a filter takes one in so many of
    /// the signatures that it is made for.
    Windows(u32),
}

impl Form {
    /// All compared forms.
    pub const ALL: [Self; 6] = [
        Self::Pair(1e-3),
        Self::Pair(1e-6),
        Self::Deleting,
        Self::Counting,
        Self::Windows(1),
        Self::Windows(USER_REPORT_SHARE),
    ];

    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Pair(rate) => format!("SBF and RBF, rate {rate:.0e}"),
            Self::Deleting => "intuitive, deleting".to_owned(),
            Self::Counting => "refined, two".to_owned(),
            Self::Windows(USER_REPORT_SHARE) => "the ledger's 6 windows".to_owned(),
            Self::Windows(share) => format!("6 windows, slices 1/{share} full"),
        }
    }

    /// Makes an empty one for so many nominated elements, so many of which will be revoked.
    pub(super) fn empty(self, elements: u32, revoked: u32) -> Result<Box<dyn Held>, ParameterError> {
        let revoked = revoked.max(1);
        Ok(match self {
            Self::Pair(rate) => Box::new(Nominations::with_rate(elements.into(), rate)?),
            Self::Deleting => Box::new(Intuitive::sized(elements, CELLS_AT_CAPACITY)?),
            Self::Counting => Box::new(Two {
                nominated: Refined::sized(elements, CELLS_AT_CAPACITY)?,
                revoked: Refined::sized(revoked, CELLS_AT_CAPACITY)?,
            }),
            Self::Windows(share) => {
                let row = || Scaling::roomy(CAPACITY / USER_REPORT_CAPACITY, share);
                Box::new(Windows {
                    rows: std::iter::repeat_with(row).take(WINDOWS).collect(),
                    key: FederationKey::public(),
                })
            }
        })
    }
}

/// The operations of each form.
pub(super) trait Held {
    /// Adds one report, the `number`th of all.
    fn nominate(&mut self, number: u32, element: u128) -> Result<(), ParameterError>;
    /// Withdraws one report.
    fn revoke(&mut self, number: u32, element: u128) -> Result<(), ParameterError>;
    fn is_spam(&self, element: u128) -> bool;
    fn memory(&self) -> usize;
}

impl Held for Nominations {
    fn nominate(&mut self, _: u32, element: u128) -> Result<(), ParameterError> {
        Self::nominate(self, element);
        Ok(())
    }

    fn revoke(&mut self, _: u32, element: u128) -> Result<(), ParameterError> {
        Self::revoke(self, element);
        Ok(())
    }

    fn is_spam(&self, element: u128) -> bool {
        Self::contains(self, element)
    }

    fn memory(&self) -> usize {
        Self::memory(self)
    }
}

impl Held for Intuitive {
    fn nominate(&mut self, _: u32, element: u128) -> Result<(), ParameterError> {
        self.add(element, 1);
        Ok(())
    }

    fn revoke(&mut self, _: u32, element: u128) -> Result<(), ParameterError> {
        // A revocation follows a nomination, so it is there.
        let _ = self.remove(element);
        Ok(())
    }

    fn is_spam(&self, element: u128) -> bool {
        self.count(element) >= THRESHOLD
    }

    fn memory(&self) -> usize {
        self.blocks() * BLOCK_BYTES
    }
}

/// Nominations and revocations, in units.
struct Two {
    nominated: Refined,
    revoked: Refined,
}

impl Held for Two {
    fn nominate(&mut self, _: u32, element: u128) -> Result<(), ParameterError> {
        self.nominated.add(element, UNITS);
        Ok(())
    }

    fn revoke(&mut self, _: u32, element: u128) -> Result<(), ParameterError> {
        self.revoked.add(element, UNITS);
        Ok(())
    }

    fn is_spam(&self, element: u128) -> bool {
        let nominated = self.nominated.count(element);
        nominated >= UNITS * THRESHOLD
            && nominated - nominated.min(self.revoked.count(element)) >= UNITS * THRESHOLD
    }

    fn memory(&self) -> usize {
        self.nominated.memory() + self.revoked.memory()
    }
}

/// The same, each window separately; elements take turns in the windows.
struct Windows {
    rows: Vec<Scaling<Refined>>,
    key: FederationKey,
}

impl Windows {
    fn nomination(&self, element: u128) -> Signature {
        nomination(&self.key, Signature::from_bytes(element.to_be_bytes()))
    }

    fn add(&mut self, number: u32, signature: Signature) -> Result<(), ParameterError> {
        let row = &mut self.rows[number as usize % WINDOWS];
        row.add(number.into(), signature.bits(), UNITS)?;
        Ok(())
    }

    fn count(&self, signature: Signature) -> u32 {
        self.rows.iter().map(|row| row.count(signature.bits())).sum()
    }
}

impl Held for Windows {
    fn nominate(&mut self, number: u32, element: u128) -> Result<(), ParameterError> {
        self.add(number, self.nomination(element))
    }

    fn revoke(&mut self, number: u32, element: u128) -> Result<(), ParameterError> {
        self.add(number, revocation(self.nomination(element)))
    }

    fn is_spam(&self, element: u128) -> bool {
        let of = self.nomination(element);
        let nominated = self.count(of);
        nominated >= UNITS * THRESHOLD
            && nominated.saturating_sub(self.count(revocation(of))) >= UNITS * THRESHOLD
    }

    fn memory(&self) -> usize {
        self.rows.iter().flat_map(Scaling::slices).map(|slice| slice.filter.memory()).sum()
    }
}
