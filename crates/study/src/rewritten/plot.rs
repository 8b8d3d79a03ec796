// SPDX-License-Identifier: GPL-3.0-or-later
//! The curves, as SVG.

use super::curve::{Curve, Point};
use crate::plot::{COLOURS, PlotError, failed};
use plotters::prelude::*;
use std::path::Path;

/// Draws the share of copies against the share of replaced words, a colour for each way: dashed those that are joined, solid
/// those that reach the threshold.
///
/// # Errors
/// When the file cannot be written.
pub fn plot(curves: &[Curve], path: &Path) -> Result<(), PlotError> {
    draw(curves, path).map_err(failed(path))
}

fn draw(curves: &[Curve], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (760, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let last = curves.iter().flat_map(|curve| &curve.points).map(|point| point.replaced).max().unwrap_or(1);
    let mut chart = ChartBuilder::on(&root)
        .caption("Rewritten copies: joined (dashed), at 20 (solid)", ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..f64::from(last), 0.0..100.0)?;
    chart
        .configure_mesh()
        .x_desc("words replaced, %")
        .y_desc("copies, %")
        .x_label_formatter(&|share| format!("{share:.0}"))
        .y_label_formatter(&|share| format!("{share:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    for (curve, colour) in curves.iter().zip(COLOURS.iter().cycle()) {
        let style = colour.stroke_width(2);
        let line = |height: fn(&Point) -> f64| -> Vec<(f64, f64)> {
            curve.points.iter().map(|point| (f64::from(point.replaced), height(point))).collect()
        };
        chart.draw_series(DashedLineSeries::new(line(|point| point.joined), 6, 4, style))?;
        chart
            .draw_series(LineSeries::new(line(|point| point.at), style))?
            .label(curve.way.name())
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}
