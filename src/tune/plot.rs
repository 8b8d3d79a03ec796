// SPDX-License-Identifier: GPL-3.0-or-later
//! The threshold curve, as SVG.

use super::figure::{Figure, Line};
use super::report::{AtThreshold, Tuning};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {path}: {reason}")]
pub struct PlotError {
    path: PathBuf,
    reason: io::Error,
}

/// Draws how many messages would have been bulk with each threshold: all, those by their body, those of each label. A grey line marks the
/// configured threshold.
///
/// # Errors
/// When the file cannot be written.
pub fn plot(report: &Tuning, path: &Path) -> Result<(), PlotError> {
    fs::write(path, figure(report).svg()).map_err(|reason| PlotError { path: path.to_owned(), reason })
}

fn figure(report: &Tuning) -> Figure {
    let line = |name, colour, height: fn(&AtThreshold) -> u64| Line {
        name,
        colour,
        points: report.curve.iter().map(|at| (at.threshold, height(at))).collect(),
    };
    let mut lines =
        vec![line("all bulk", "#000000", |at| at.messages), line("by body", "#787878", |at| at.body)];
    if report.archive.labels.ham > 0 {
        lines.push(line("ham", "#1e823c", |at| at.labels.ham));
    }
    if report.archive.labels.spam > 0 {
        lines.push(line("spam", "#dc3220", |at| at.labels.spam));
    }
    if report.configured.whitelisted > 0 {
        lines.push(line("whitelisted", "#005ab5", |at| at.whitelisted));
    }
    Figure {
        title: "Messages that would have been bulk",
        axes: ("threshold", "messages"),
        lines,
        mark: Some(report.configured.body),
    }
}
