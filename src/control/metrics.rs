// SPDX-License-Identifier: GPL-3.0-or-later
//! What a daemon says of itself, in Prometheus' text format (version 0.0.4).

use super::status::Status;
use crate::ledger::Counted;
use crate::sync::LinkStatus;
use std::fmt::{self, Display, Write};

/// The media type of the text.
pub const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One metric family after the other.
#[derive(Default)]
struct Text(String);

/// A label's value, with what Prometheus wants escaped.
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
    /// A family with all its values; nothing when there are none.
    fn family<'a, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        values: impl IntoIterator<Item = (Vec<(&'a str, String)>, V)>,
    ) {
        let mut values = values.into_iter().peekable();
        if values.peek().is_none() {
            return;
        }
        // A String takes everything.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in values {
            let labels: Vec<_> =
                labels.iter().map(|(label, value)| format!("{label}=\"{}\"", Escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(self.0, "{name}{labels} {value}");
        }
    }
}

impl Status {
    /// The metrics; docs/protocol.md has them as a table.
    #[must_use]
    pub fn metrics(&self) -> String {
        let mut text = Text::default();
        text.family(
            "bulkmark_build_info",
            "gauge",
            "1, with role and version.",
            [(vec![("role", self.role.clone()), ("version", self.version.clone())], 1)],
        );
        text.family(
            "bulkmark_uptime_seconds",
            "gauge",
            "Time since the start.",
            [(vec![], self.uptime_seconds)],
        );
        self.ledger_metrics(&mut text);
        self.link_metrics(&mut text);
        self.client_metrics(&mut text);
        text.0
    }

    fn ledger_metrics(&self, text: &mut Text) {
        let labels = |i: usize| {
            let slice = &self.ledger.slices[i];
            let counted = match slice.counted {
                Counted::Own => "own",
                Counted::Others => "others",
            };
            vec![
                ("window", slice.window.to_string()),
                ("slice", slice.slice.to_string()),
                ("counted", counted.to_owned()),
            ]
        };
        let slices = || self.ledger.slices.iter().enumerate();
        text.family(
            "bulkmark_ledger_signatures",
            "gauge",
            "Different signatures in a slice of a window.",
            slices().filter_map(|(i, slice)| Some((labels(i), slice.signatures?))),
        );
        text.family(
            "bulkmark_ledger_capacity_signatures",
            "gauge",
            "Signatures that a slice is made for.",
            slices().map(|(i, slice)| (labels(i), slice.capacity)),
        );
        text.family(
            "bulkmark_ledger_memory_bytes",
            "gauge",
            "Memory of a slice.",
            slices().map(|(i, slice)| (labels(i), slice.memory)),
        );
        text.family(
            "bulkmark_ledger_fill_ratio",
            "gauge",
            "Share of cells that are not zero.",
            slices().filter_map(|(i, slice)| Some((labels(i), slice.fill?))),
        );
        text.family(
            "bulkmark_ledger_false_bulk_probability",
            "gauge",
            "Estimated chance that a strange signature shows the threshold.",
            slices().filter_map(|(i, slice)| Some((labels(i), slice.false_bulk?))),
        );
        text.family(
            "bulkmark_ledger_version",
            "gauge",
            "The update up to which an origin is counted.",
            self.versions.iter().map(|(origin, version)| (vec![("origin", origin.clone())], version)),
        );
        text.family(
            "bulkmark_spool_reports",
            "gauge",
            "Own reports that no update shows yet.",
            [(vec![], self.ledger.spool)],
        );
    }

    fn link_metrics(&self, text: &mut Text) {
        let url = |link: &LinkStatus| vec![("url", link.url.clone())];
        let links = || self.links.iter();
        text.family(
            "bulkmark_link_up",
            "gauge",
            "1 while another server answers as it should.",
            links().map(|link| (url(link), u8::from(link.error.is_none()))),
        );
        text.family(
            "bulkmark_link_behind_updates",
            "gauge",
            "Updates that another server knows and this one does not.",
            links().filter_map(|link| Some((url(link), link.behind?))),
        );
        text.family(
            "bulkmark_link_silence_seconds",
            "gauge",
            "Time since another server said anything.",
            links().filter_map(|link| Some((url(link), link.heard_seconds_ago?))),
        );
        text.family(
            "bulkmark_link_received_bytes_total",
            "counter",
            "Bytes that came from another server.",
            links().map(|link| (url(link), link.bytes_in)),
        );
        text.family(
            "bulkmark_link_sent_bytes_total",
            "counter",
            "Bytes of reports that went to another server.",
            links().map(|link| (url(link), link.bytes_out)),
        );
    }

    fn client_metrics(&self, text: &mut Text) {
        let clients = || self.clients.iter().map(|client| (vec![("client", client.name.clone())], client));
        text.family(
            "bulkmark_client_batches_total",
            "counter",
            "Batches of a client that were acknowledged.",
            clients().map(|(labels, client)| (labels, client.batches)),
        );
        text.family(
            "bulkmark_client_signatures_total",
            "counter",
            "Signatures in them.",
            clients().map(|(labels, client)| (labels, client.signatures)),
        );
        text.family(
            "bulkmark_client_refused_total",
            "counter",
            "Requests of a client that were refused.",
            clients().map(|(labels, client)| (labels, client.refused)),
        );
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
        text.family("b", "gauge", "Of b.", [(vec![], 0.5)]);
        text.family("c", "gauge", "Of c.", Vec::<(Vec<_>, u8)>::new());
        assert_eq!(
            text.0,
            "# HELP a_total Of a.\n# TYPE a_total counter\na_total{x=\"\\\"\\\\\\n\",y=\"z\"} 7\n\
             # HELP b Of b.\n# TYPE b gauge\nb 0.5\n"
        );
    }
}
