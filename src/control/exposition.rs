// SPDX-License-Identifier: GPL-3.0-or-later
//! Prometheus' text format (version 0.0.4).

use crate::activity::Histogram;
use std::fmt::{self, Display, Write};

/// The media type of the text.
pub const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A text of metric families, one after the other.
#[derive(Default)]
pub(super) struct Text(String);

/// Labels with their values.
pub(super) type Labels = Vec<(&'static str, String)>;

/// A label's value, escaped for Prometheus.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}

impl Text {
    /// Writes a family with all its values, or nothing if there are none.
    pub(super) fn family<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels, V)>,
    ) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let labels: Vec<_> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", Escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }

    /// Writes a family of one value without labels.
    pub(super) fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help, [(vec![], value)]);
    }

    /// Writes a family that is a histogram.
    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} histogram");
        let mut count = 0;
        for (bound, sum) in histogram.cumulative() {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            let _ = writeln!(self.0, "{name}_bucket{{le=\"{bound}\"}} {sum}");
            count = sum;
        }
        let _ = writeln!(self.0, "{name}_sum {}\n{name}_count {count}", histogram.seconds());
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_empty_families_left_out() {
        let mut text = Text::default();
        text.family(
            "a_total",
            "counter",
            "Of a.",
            [(vec![("x", "\"\\\n".to_owned()), ("y", "z".to_owned())], 7)],
        );
        text.one("b", "gauge", "Of b.", 0.5);
        text.family("c", "gauge", "Of c.", Vec::<(Vec<_>, u8)>::new());
        assert_eq!(
            text.0,
            "# HELP a_total Of a.\n# TYPE a_total counter\na_total{x=\"\\\"\\\\\\n\",y=\"z\"} 7\n\
             # HELP b Of b.\n# TYPE b gauge\nb 0.5\n"
        );
    }

    #[test]
    fn a_histogram_ends_in_its_count() {
        let (histogram, mut text) = (Histogram::default(), Text::default());
        histogram.add(std::time::Duration::from_millis(1));
        text.histogram("t_seconds", "Of t.", &histogram);
        assert!(text.0.starts_with(
            "# HELP t_seconds Of t.\n# TYPE t_seconds histogram\nt_seconds_bucket{le=\"0.00025\"} 0\n"
        ));
        assert!(text.0.contains("le=\"0.001\"} 1\n"), "{}", text.0);
        assert!(text.0.ends_with("le=\"+Inf\"} 1\nt_seconds_sum 0.001\nt_seconds_count 1\n"), "{}", text.0);
    }
}
