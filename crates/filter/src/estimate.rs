// SPDX-License-Identifier: GPL-3.0-or-later
//! The error rate that a filter's parameters imply.

/// The paper's equation 4: the probability that an element that was never added shows a count of `t` or more in a filter of
/// `m` cells with `k` hashes to which `n` elements were added once each, in the intuitive extension:
/// (sum over j >= t of C(nk, j) (1/m)^j (1 - 1/m)^(nk-j))^k.
///
/// ```
/// use bulkmark_filter::{CELLS_PER_ELEMENT, false_positive_rate};
///
/// let k = u32::try_from(CELLS_PER_ELEMENT).unwrap();
/// assert!(false_positive_rate(1_000_000, 10_000_000, k, 1) > 0.008);
/// assert!(false_positive_rate(1_000_000, 10_000_000, k, 2) < 0.001);
/// ```
#[must_use]
pub fn false_positive_rate(n: u64, m: u64, k: u32, t: u32) -> f64 {
    let (balls, p) = (n as f64 * f64::from(k), 1.0 / m as f64);
    if m <= 1 {
        return if balls >= f64::from(t) { 1.0 } else { 0.0 };
    }
    // Terms as logarithms: the first ones are far below the smallest float if cells are hit often. The terms below t are
    // summed if they are the smaller part, the others if the former come near to one.
    let step = |j: f64| ((balls - j) / (j + 1.0) * p / (1.0 - p)).ln();
    let mut term = balls * (-p).ln_1p();
    let mut below = 0.0;
    for j in 0..t {
        below += term.exp();
        term += step(j.into());
    }
    let (mut above, mut j) = (0.0, f64::from(t));
    while j <= balls && (term.exp() > above * 1e-17 || step(j) > 0.0) {
        above += term.exp();
        term += step(j);
        j += 1.0;
    }
    let tail = if below < 0.5 { 1.0 - below } else { above };
    tail.clamp(0.0, 1.0).powf(f64::from(k))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At t = 1 the tail is the share of cells that are set, and f_dcc the false-positive rate of a Bloom filter: the
    /// five rows of table 1.
    #[test]
    fn at_one_it_is_table_1() {
        for (ratio, k, f) in
            [(16, 4, 2.394e-3), (10, 8, 8.455e-3), (16, 8, 5.745e-4), (40, 8, 1.166e-6), (40, 16, 1.948e-8)]
        {
            let n = 1_000_000;
            let estimate = false_positive_rate(n, ratio * n, k, 1);
            assert!(
                (estimate / f - 1.0).abs() < 2e-3,
                "m/n = {ratio}, k = {k}: {estimate:e}, expected {f:e}"
            );
        }
    }

    #[test]
    fn it_falls_with_the_threshold() {
        let rates: Vec<_> = (1..=20).map(|t| false_positive_rate(1_000_000, 8_000_000, 6, t)).collect();
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0]));
        assert!(rates[19] < 1e-60 && rates[19] > 0.0);
        assert!(false_positive_rate(100_000, 2, 3, 20) > 0.999 && false_positive_rate(10, 1, 3, 20) > 0.999);
    }
}
