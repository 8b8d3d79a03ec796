// SPDX-License-Identifier: GPL-3.0-or-later
//! The repetition of mail: the numbers of copies of a day's mailings.

use std::fmt;
use std::str::FromStr;

/// The most copies of a mailing, by default.
const MOST: u32 = 1_000_000;

/// Copies of mailings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// One mailing in x^alpha has x copies or more; none has more than `most`.
    Pareto {
        /// The exponent.
        alpha: f64,
        /// Copies of the largest.
        most: u32,
    },
    /// Each mailing has so many copies. With 1, none repeats.
    Same(u32),
}

impl Law {
    /// The share of mailings that have so many copies or more.
    #[must_use]
    pub fn reaching(self, copies: u32) -> f64 {
        match self {
            Self::Pareto { most, .. } if copies > most => 0.0,
            Self::Pareto { alpha, .. } => f64::from(copies.max(1)).powf(-alpha),
            Self::Same(all) => f64::from(u8::from(copies <= all)),
        }
    }

    /// Copies of a mailing, on average.
    #[must_use]
    pub fn mean(self) -> f64 {
        match self {
            Self::Pareto { most, .. } => (1..=most).map(|copies| self.reaching(copies)).sum(),
            Self::Same(all) => all.into(),
        }
    }

    /// The copies of the mailing at this share of all, counted from the largest.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to `most`")]
    pub fn copies(self, share: f64) -> u32 {
        match self {
            Self::Pareto { alpha, most } => share.powf(-1.0 / alpha).clamp(1.0, most.into()) as u32,
            Self::Same(all) => all,
        }
    }

    /// The share of mailings with at least one copy at a mail server that gets the `part`-th part of all copies, each by chance.
    #[must_use]
    pub fn seen_by(self, part: f64) -> f64 {
        let missed = |copies: u32| (1.0 - 1.0 / part).powf(copies.into());
        match self {
            Self::Pareto { most, .. } => {
                let exactly = |copies| self.reaching(copies) - self.reaching(copies + 1);
                (1..=most).map(|copies| exactly(copies) * (1.0 - missed(copies))).sum()
            }
            Self::Same(all) => 1.0 - missed(all),
        }
    }
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pareto { alpha, most } => write!(f, "Pareto({alpha}) up to {most} copies"),
            Self::Same(1) => f.write_str("nothing repeats"),
            Self::Same(all) => write!(f, "each mailing of {all} copies"),
        }
    }
}

impl FromStr for Law {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("found {text:?}, expected pareto:ALPHA, pareto:ALPHA:MOST or same:COPIES");
        let mut parts = text.split(':');
        let law = match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("same"), Some(copies), None, None) => Self::Same(copies.parse().map_err(|_| wrong())?),
            (Some("pareto"), Some(alpha), most, None) => Self::Pareto {
                alpha: alpha.parse().map_err(|_| wrong())?,
                most: most.map_or(Ok(MOST), str::parse).map_err(|_| wrong())?,
            },
            _ => return Err(wrong()),
        };
        match law {
            Self::Pareto { alpha, most } if !(0.5..=4.0).contains(&alpha) || !(1..=MOST).contains(&most) => {
                Err(format!("found {text:?}, expected an ALPHA of 0.5 to 4 and at most {MOST} copies"))
            }
            Self::Same(copies) if !(1..=MOST).contains(&copies) => {
                Err(format!("found {text:?}, expected 1 to {MOST} copies"))
            }
            law => Ok(law),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples by shares have the expected mean and tails.
    #[test]
    fn a_law_is_what_it_says() {
        let n = 200_000u32;
        for law in ["pareto:1:10000", "pareto:1.5", "pareto:0.8:1000", "same:1", "same:7"] {
            let law: Law = law.parse().unwrap();
            let all = (0..n).map(|i| law.copies((f64::from(i) + 0.5) / f64::from(n)));
            let mean = all.clone().map(f64::from).sum::<f64>() / f64::from(n);
            assert!((mean / law.mean() - 1.0).abs() < 0.02, "{law}: {mean} for {}", law.mean());
            let many = all.filter(|&copies| copies >= 10).count() as f64 / f64::from(n);
            assert!((many - law.reaching(10)).abs() < 1e-3, "{law}: {many} for {}", law.reaching(10));
            assert!((law.seen_by(1.0) - 1.0).abs() < 1e-9, "one server gets all");
        }
        assert!((Law::Same(1).seen_by(8.0) - 0.125).abs() < 1e-9);
    }

    #[test]
    fn other_words_are_refused() {
        for (text, part) in [
            ("zipf", "expected pareto:ALPHA"),
            ("pareto:9", "0.5 to 4"),
            ("same:0", "expected 1 to 1000000"),
            ("pareto:1:2:3", "expected pareto:ALPHA"),
        ] {
            let told = text.parse::<Law>().unwrap_err();
            assert!(told.contains(part), "{told}");
        }
    }
}
