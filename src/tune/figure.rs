// SPDX-License-Identifier: GPL-3.0-or-later
//! A figure of some lines over a logarithmic axis, as SVG.

use std::fmt::Write as _;

/// Width and height of the figure.
const SIZE: (u32, u32) = (760, 520);

/// Coordinates of the axes.
const LEFT: f64 = 84.0;
const RIGHT: f64 = 747.0;
const TOP: f64 = 38.0;
const BOTTOM: f64 = 463.0;

/// Labels on the vertical axis at most, beside that of 0.
const LABELS: u64 = 8;

/// The legend: its width, the height of a line, and the margin at its edges.
const LEGEND: f64 = 94.0;
const LEGEND_LINE: f64 = 15.0;
const MARGIN: f64 = 10.0;

/// A line: its name, its colour as SVG writes it, and its points.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) colour: &'static str,
    /// The points from left to right; the first coordinate is at least 1.
    pub(super) points: Vec<(u32, u64)>,
}

/// A figure.
pub(super) struct Figure {
    pub(super) title: &'static str,
    /// The names of the horizontal axis and the vertical one.
    pub(super) axes: (&'static str, &'static str),
    pub(super) lines: Vec<Line>,
    /// The place of a grey line.
    pub(super) mark: Option<u32>,
}

/// Coordinates of the figure's area.
struct Scale {
    right: f64,
    top: f64,
}

impl Scale {
    fn of(lines: &[Line]) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        let right = points().map(|&(x, _)| x).max().unwrap_or(1).max(2);
        let top = points().map(|&(_, y)| y).max().unwrap_or(0).max(1);
        Self { right: f64::from(right), top: top as f64 * 1.05 }
    }

    fn x(&self, x: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * x.max(1.0).ln() / self.right.ln()
    }

    fn y(&self, y: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * y / self.top
    }
}

impl Figure {
    /// Returns the figure as an SVG document.
    pub(super) fn svg(&self) -> String {
        let scale = Scale::of(&self.lines);
        let mut svg = Svg::new(SIZE);
        let middle = f64::from(SIZE.0) / 2.0;
        svg.text((middle, 29.0), "middle", 16, self.title, "");
        svg.text((f64::midpoint(LEFT, RIGHT), 508.0), "middle", 10, self.axes.0, "");
        let y = f64::midpoint(TOP, BOTTOM);
        svg.text((20.0, y), "middle", 10, self.axes.1, &format!(" transform=\"rotate(270, 20, {y})\""));
        let tens = std::iter::successors(Some(1.0), |ten| Some(ten * 10.0));
        for ten in tens.take_while(|&ten| ten <= scale.right) {
            let x = scale.x(ten);
            svg.line(&[(x, BOTTOM), (x, TOP)], GRID, 1);
            svg.line(&[(x, BOTTOM), (x, BOTTOM + 6.0)], BLACK, 1);
            svg.text((x, 482.0), "middle", 10, &format!("{ten:.0}"), "");
        }
        let step = step(scale.top);
        for label in
            (0..=LABELS).map(|n| n.saturating_mul(step)).take_while(|&label| label as f64 <= scale.top)
        {
            let y = scale.y(label as f64);
            svg.line(&[(LEFT, y), (RIGHT, y)], GRID, 1);
            svg.line(&[(LEFT - 6.0, y), (LEFT, y)], BLACK, 1);
            svg.text((LEFT - 10.0, y + 3.0), "end", 10, &label.to_string(), "");
        }
        svg.line(&[(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)], BLACK, 1);
        if let Some(mark) = self.mark.map(f64::from).filter(|&mark| mark <= scale.right) {
            svg.line(&[(scale.x(mark), BOTTOM), (scale.x(mark), TOP)], "#c8c8c8", 1);
        }
        for line in &self.lines {
            let points = line.points.iter().map(|&(x, y)| (scale.x(f64::from(x)), scale.y(y as f64)));
            svg.line(&points.collect::<Vec<_>>(), line.colour, 2);
        }
        self.legend(&mut svg);
        svg.end()
    }

    /// Draws the names of the lines, in the middle of the right side.
    fn legend(&self, svg: &mut Svg) {
        let height = LEGEND_LINE * self.lines.len() as f64 + MARGIN;
        let (left, top) = (RIGHT - 4.0 - LEGEND, f64::midpoint(TOP, BOTTOM) - height / 2.0);
        svg.frame((left, top), (LEGEND, height));
        for (line, n) in self.lines.iter().zip(0u32..) {
            let y = top + MARGIN + LEGEND_LINE * f64::from(n);
            svg.line(&[(left + 10.0, y), (left + 28.0, y)], line.colour, 2);
            svg.text((left + 36.0, y + 3.0), "start", 10, line.name, "");
        }
    }
}

/// Returns the distance between two labels: 1, 2 or 5 times a power of ten.
fn step(top: f64) -> u64 {
    let mut steps = (0..19).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)));
    steps.find(|&step| top / step as f64 <= LABELS as f64).unwrap_or(u64::MAX)
}

const BLACK: &str = "#000000";
const GRID: &str = "#cccccc";

/// An SVG document while it is written.
struct Svg(String);

impl Svg {
    fn new((width, height): (u32, u32)) -> Self {
        Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        ))
    }

    /// Writing to a String does not fail.
    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        let _ = self.0.write_fmt(element);
        self.0.push('\n');
    }

    fn line(&mut self, points: &[(f64, f64)], colour: &str, width: u32) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = points.join(" ");
        self.add(format_args!(
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" points=\"{points}\"/>"
        ));
    }

    fn frame(&mut self, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.add(format_args!(
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#ffffff\" \
             stroke=\"{BLACK}\"/>"
        ));
    }

    fn text(&mut self, (x, y): (f64, f64), anchor: &str, size: u32, text: &str, more: &str) {
        let text = escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\"{more}>{text}</text>"
        ));
    }

    fn end(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(points: &[(u32, u64)], mark: Option<u32>) -> String {
        let line = Line { name: "ham & <spam>", colour: "#123456", points: points.to_vec() };
        Figure { title: "Title", axes: ("across", "up"), lines: vec![line], mark }.svg()
    }

    #[test]
    fn lines_axes_and_names_are_drawn() {
        let svg = figure(&[(1, 300), (10, 150), (100, 0)], Some(20));
        // The line ends where the horizontal axis does, and is halfway at 10 of 100.
        assert!(
            svg.contains(
                "stroke=\"#123456\" stroke-width=\"2\" points=\"84.0,58.2 415.5,260.6 747.0,463.0\""
            )
        );
        for text in [
            "Title",
            "across",
            "up",
            ">1<",
            ">10<",
            ">100<",
            ">0<",
            ">50<",
            ">300<",
            "ham &amp; &lt;spam&gt;",
        ] {
            assert!(svg.contains(text), "{text}: {svg}");
        }
        assert!(!svg.contains(">20<") && !svg.contains(">350<"), "{svg}");
        assert_eq!(svg.matches("#c8c8c8").count(), 1);
        assert!(!figure(&[(1, 1), (10, 0)], Some(20)).contains("#c8c8c8"), "a mark beyond the axis");
    }

    #[test]
    fn little_and_much_can_be_drawn() {
        assert!(figure(&[], None).contains(">1<"));
        assert!(figure(&[(1, 0)], None).contains(">1<"));
        let svg = figure(&[(1, u64::MAX), (10_000, 1)], None);
        assert!(svg.contains(">10000<") && svg.contains("</svg>") && !svg.contains("NaN"), "{svg}");
    }
}
