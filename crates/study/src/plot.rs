// SPDX-License-Identifier: GPL-3.0-or-later
//! Shared parts of all plots.

use plotters::style::RGBColor;
use std::path::{Path, PathBuf};

/// A figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {path}: {reason}")]
pub struct PlotError {
    path: PathBuf,
    reason: String,
}

/// Colours for the lines, distinguishable by people who see no red or no green.
pub(crate) const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 90, 181), RGBColor(220, 50, 32), RGBColor(30, 130, 60), RGBColor(90, 90, 90)];

/// The error for a file that could not be drawn.
pub(crate) fn failed(path: &Path) -> impl FnOnce(Box<dyn std::error::Error>) -> PlotError {
    move |reason| PlotError { path: path.to_owned(), reason: reason.to_string() }
}
