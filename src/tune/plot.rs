// SPDX-License-Identifier: GPL-3.0-or-later
//! The threshold curve, as SVG.

use super::report::{AtThreshold, Tuning};
use plotters::prelude::*;
use std::path::{Path, PathBuf};

/// A figure cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {path}: {reason}")]
pub struct PlotError {
    path: PathBuf,
    reason: String,
}

/// A line of the figure: its name, its colour, and its height at a threshold.
type Line = (&'static str, RGBColor, fn(&AtThreshold) -> u64);

/// Draws how many messages would have been bulk with each threshold: all, those by their body, those of each label. A
/// grey line stands at the threshold of the configuration.
///
/// # Errors
/// When the file cannot be written.
pub fn plot(report: &Tuning, path: &Path) -> Result<(), PlotError> {
    draw(report, path).map_err(|e| PlotError { path: path.to_owned(), reason: e.to_string() })
}

fn draw(report: &Tuning, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut lines: Vec<Line> = vec![
        ("all bulk", RGBColor(0, 0, 0), |row| row.messages),
        ("by body", RGBColor(120, 120, 120), |row| row.body),
    ];
    if report.archive.labels.ham > 0 {
        lines.push(("ham", RGBColor(30, 130, 60), |row| row.labels.ham));
    }
    if report.archive.labels.spam > 0 {
        lines.push(("spam", RGBColor(220, 50, 32), |row| row.labels.spam));
    }
    if report.configured.whitelisted > 0 {
        lines.push(("whitelisted", RGBColor(0, 90, 181), |row| row.whitelisted));
    }
    let curve = &report.curve;
    let right = curve.last().map_or(100, |row| row.threshold);
    let top = curve.iter().flat_map(|row| lines.iter().map(|(_, _, height)| height(row))).max();
    let top = top.unwrap_or(0).max(1) as f64 * 1.05;
    let root = SVGBackend::new(path, (760, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption("Messages that would have been bulk", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d((1.0..f64::from(right)).log_scale(), 0.0..top)?;
    chart
        .configure_mesh()
        .x_desc("threshold")
        .y_desc("messages")
        .x_label_formatter(&|threshold| format!("{threshold:.0}"))
        .y_label_formatter(&|messages| format!("{messages:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    let at = f64::from(report.configured.body);
    if at <= f64::from(right) {
        let style = RGBColor(200, 200, 200).stroke_width(1);
        chart.draw_series(LineSeries::new([(at, 0.0), (at, top)], style))?;
    }
    for (name, colour, height) in lines {
        let style = colour.stroke_width(2);
        let points = curve.iter().map(|row| (f64::from(row.threshold), height(row) as f64));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}
