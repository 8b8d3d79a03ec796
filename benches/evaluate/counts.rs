// SPDX-License-Identifier: GPL-3.0-or-later
//! The counts of a message, and summaries of many.

/// The count from which on a message is bulk.
pub(crate) const AT: u32 = 20;

/// The counts in the milter's header, 0 if missing; and whether the action was more than to mark the message.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) body: u32,
    pub(crate) near: u32,
    pub(crate) acted: bool,
}

impl Counts {
    /// From the value of a header: `verdict; field=value; ...`.
    pub(crate) fn of_header(value: &str, acted: bool) -> Self {
        let field = |name: &str| {
            let value = value.split("; ").find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
            value.and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        Self { body: field("body"), near: field("near"), acted }
    }

    /// The count that decides the verdict.
    pub(crate) fn highest(self) -> u32 {
        self.body.max(self.near)
    }

    /// The same, but below the threshold if the message was only marked.
    pub(crate) fn refused(self) -> u32 {
        if self.acted { self.highest() } else { self.highest().min(AT - 1) }
    }
}

/// The number of these with such a count.
pub(crate) fn number(counts: &[u32], least: u32) -> usize {
    counts.iter().filter(|&&count| count >= least).count()
}

/// A part of a whole.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Share {
    pub(crate) part: usize,
    pub(crate) whole: usize,
}

impl Share {
    /// The messages with such a count.
    pub(crate) fn counted(counts: &[u32], least: u32) -> Self {
        Self { part: number(counts, least), whole: counts.len() }
    }

    /// The copies of one mailing that were recognized, of all but the first.
    pub(crate) fn joined(copies: &[u32]) -> Self {
        Self::counted(copies.get(1..).unwrap_or(&[]), 2)
    }

    /// The copies of one mailing at the threshold, of those from the 20th on. If copies also agree with other mail, there can be
    /// more; the surplus does not compensate for copies missed elsewhere.
    pub(crate) fn at_threshold(copies: &[u32]) -> Self {
        let whole = (copies.len() + 1).saturating_sub(AT as usize);
        Self { part: number(copies, AT).min(whole), whole }
    }

    pub(crate) fn percent(self) -> f64 {
        100.0 * self.part as f64 / self.whole.max(1) as f64
    }

    pub(crate) fn per_10_000(self) -> f64 {
        100.0 * self.percent()
    }
}

impl std::iter::Sum for Share {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self { part: a.part + b.part, whole: a.whole + b.whole })
    }
}
