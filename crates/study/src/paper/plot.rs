// SPDX-License-Identifier: GPL-3.0-or-later
//! The paper's figures: error against the size of the filter, intuitive against refined, as SVG.

use super::experiment::Experiment;
use super::round::Extension;
use super::run::Outcome;
use crate::plot::{COLOURS, PlotError, failed};
use plotters::prelude::*;
use std::path::{Path, PathBuf};

/// Draws one figure an experiment into `directory`: the mean rate against m on logarithmic scales, a colour for each k,
/// dashed with the intuitive extension and solid with the refined one. Means of zero are left out. Returns the files.
///
/// # Errors
/// When a file cannot be written.
pub fn plot(outcomes: &[Outcome], directory: &Path) -> Result<Vec<PathBuf>, PlotError> {
    let of = |experiment| outcomes.iter().filter(move |o| o.configuration.experiment == experiment);
    Experiment::all()
        .filter(|&experiment| of(experiment).next().is_some())
        .map(|experiment| {
            let path = directory.join(format!("experiment-{experiment}.svg"));
            let chosen: Vec<_> = of(experiment).copied().collect();
            draw(&path, experiment, &chosen).map_err(failed(&path)).map(|()| path)
        })
        .collect()
}

fn draw(path: &Path, experiment: Experiment, outcomes: &[Outcome]) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (760, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let seen = |o: &&Outcome| o.mean > 0.0;
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (m_low, m_high) = bounds(&mut outcomes.iter().map(|o| f64::from(o.configuration.m)));
    let (low, high) = bounds(&mut outcomes.iter().filter(seen).map(|o| o.mean));
    let mut chart = ChartBuilder::on(&root)
        .caption(format!("Experiment {experiment}: wrong counts"), ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d((m_low * 0.9..m_high * 1.1).log_scale(), (low / 2.0..high * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("cells m")
        .y_desc("share of wrong counts")
        .x_label_formatter(&|m| format!("{m:.0}"))
        .y_label_formatter(&|rate| format!("{rate:.0e}"))
        .light_line_style(WHITE)
        .draw()?;
    let mut ks: Vec<_> = outcomes.iter().map(|o| o.configuration.k).collect();
    ks.sort_unstable();
    ks.dedup();
    for (&k, colour) in ks.iter().zip(COLOURS.iter().cycle()) {
        for extension in [Extension::Intuitive, Extension::Refined] {
            let points: Vec<_> = outcomes
                .iter()
                .filter(seen)
                .filter(|o| o.configuration.k == k && o.extension == extension)
                .map(|o| (f64::from(o.configuration.m), o.mean))
                .collect();
            let style = colour.stroke_width(2);
            let legend = move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style);
            let label = format!("k = {k}, {extension}");
            if extension == Extension::Intuitive {
                chart
                    .draw_series(DashedLineSeries::new(points.clone(), 6, 4, style))?
                    .label(label)
                    .legend(legend);
            } else {
                chart.draw_series(LineSeries::new(points.clone(), style))?.label(label).legend(legend);
            }
            chart.draw_series(points.iter().map(|&at| Circle::new(at, 3, colour.filled())))?;
        }
    }
    chart.configure_series_labels().background_style(WHITE).border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}
