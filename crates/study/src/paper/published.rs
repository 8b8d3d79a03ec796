// SPDX-License-Identifier: GPL-3.0-or-later
//! The 156 published means (tables 3 to 10 of the paper).

use super::experiment::Experiment;
use super::round::Extension;
use super::run::Configuration;

const TABLES: &str = include_str!("published.csv");

/// One published row: mean and standard deviation over 1,000 rounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The configuration.
    pub configuration: Configuration,
    /// The extension.
    pub extension: Extension,
    /// The mean rate.
    pub mean: f64,
    /// The standard deviation of the rate of a round.
    pub std_dev: f64,
}

impl Published {
    /// Rounds behind each published mean.
    pub const ROUNDS: u64 = 1000;
}

/// All published rows, in the order of the paper.
pub fn published() -> impl Iterator<Item = Published> {
    TABLES.lines().skip(1).filter_map(row)
}

fn row(line: &str) -> Option<Published> {
    let mut fields = line.split(',');
    let experiment: Experiment = fields.next()?.parse().ok()?;
    let extension = match fields.next()? {
        "intuitive" => Extension::Intuitive,
        "refined" => Extension::Refined,
        _ => return None,
    };
    let m = fields.next()?.parse().ok()?;
    let k = fields.next()?.parse().ok()?;
    let [mean, std_dev] = [fields.next()?.parse().ok()?, fields.next()?.trim().parse().ok()?];
    Some(Published { configuration: Configuration { experiment, m, k }, extension, mean, std_dev })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_there() {
        assert_eq!(published().count(), 156);
        for experiment in Experiment::all() {
            let rows = published().filter(|row| row.configuration.experiment == experiment).count();
            assert_eq!(rows, experiment.filter_sizes().len() * 3 * 2);
        }
    }
}
