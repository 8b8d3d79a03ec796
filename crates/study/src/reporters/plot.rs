// SPDX-License-Identifier: GPL-3.0-or-later
//! Wrong verdicts over time, as SVG.

use super::scenario::Scenario;
use super::world::Day;
use crate::plot::{COLOURS, PlotError, failed};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::path::Path;

/// The days of a point's mean: mailings differ much in size.
const MEAN: usize = 5;

/// The results of a scenario without trust and with it, by days.
pub type Outcomes = (Scenario, Vec<Day>, Vec<Day>);

/// Draws ham marked as spam above, and missed spam below, against the days: dashed without trust, solid with it.
///
/// # Errors
/// When the file cannot be written.
pub fn plot(outcomes: &[Outcomes], path: &Path) -> Result<(), PlotError> {
    draw(outcomes, path).map_err(failed(path))
}

fn draw(outcomes: &[Outcomes], path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (760, 760)).into_drawing_area();
    root.fill(&WHITE)?;
    let (above, below) = root.split_vertically(380);
    half(
        &above,
        outcomes,
        "Ham called spam: without trust (dashed), with trust (solid)",
        (Day::false_spam, SeriesLabelPosition::MiddleLeft),
    )?;
    half(&below, outcomes, "Spam missed", (Day::missed, SeriesLabelPosition::LowerLeft))?;
    root.present()?;
    Ok(())
}

fn half(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    outcomes: &[Outcomes],
    caption: &str,
    (share, legend): (fn(&Day) -> f64, SeriesLabelPosition),
) -> Result<(), Box<dyn std::error::Error>> {
    let line = |days: &[Day]| -> Vec<(f64, f64)> {
        let mean = |(first, days): (usize, &[Day])| ((first + MEAN / 2 + 1) as f64, share(&Day::sum(days)));
        days.windows(MEAN).enumerate().map(mean).collect()
    };
    let lines: Vec<_> = outcomes.iter().map(|(who, plain, trust)| (who, line(plain), line(trust))).collect();
    let points = || lines.iter().flat_map(|(_, plain, trust)| plain.iter().chain(trust));
    let last = points().map(|point| point.0).fold(1.0, f64::max);
    let most = points().map(|point| point.1).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..last, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .x_desc("day")
        .y_desc("copies, %")
        .x_label_formatter(&|day| format!("{day:.0}"))
        .y_label_formatter(&|share| format!("{share:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    // The first, without liars, is grey.
    for ((who, plain, trust), colour) in lines.into_iter().zip(COLOURS.iter().cycle().skip(3)) {
        let style = colour.stroke_width(2);
        chart.draw_series(DashedLineSeries::new(plain, 6, 4, style))?;
        chart
            .draw_series(LineSeries::new(trust, style))?
            .label(who.name())
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
    }
    chart.configure_series_labels().position(legend).background_style(WHITE).border_style(BLACK).draw()?;
    Ok(())
}
