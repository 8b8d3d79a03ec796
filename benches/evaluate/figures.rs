// SPDX-License-Identifier: GPL-3.0-or-later
//! One figure from several keys or seeds: the mean and the worst value.

/// The meaning of a high value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wish {
    /// High is good: the lowest value is the worst.
    High,
    /// High is bad.
    Low,
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(crate) fn worst(values: &[f64], wish: Wish) -> f64 {
    let worse = match wish {
        Wish::High => f64::min,
        Wish::Low => f64::max,
    };
    values.iter().copied().reduce(worse).unwrap_or(0.0)
}

/// The mean and the worst, in two columns of ten, with so many digits behind the point.
pub(crate) fn both(values: &[f64], wish: Wish, digits: usize) -> String {
    format!("{:>10.digits$}{:>10.digits$}", mean(values), worst(values, wish))
}
