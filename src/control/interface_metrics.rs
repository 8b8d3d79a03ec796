// SPDX-License-Identifier: GPL-3.0-or-later
//! Metrics of a milter's other interfaces.

use super::exposition::Text;
use crate::activity::{Activity, Done, Interface};

/// Connections and requests by interface.
pub(super) fn interface_metrics(activity: &Activity, text: &mut Text) {
    let interfaces = &activity.interfaces;
    let name = |interface: Interface| ("interface", interface.as_str().to_owned());
    text.family(
        "bulkmark_interface_open",
        "gauge",
        "1 for an interface that is configured and open, 0 for one that could not be opened.",
        interfaces
            .status()
            .into_iter()
            .map(|interface| (vec![("interface", interface.name)], u8::from(interface.error.is_none()))),
    );
    text.family(
        "bulkmark_interface_connections",
        "gauge",
        "Open connections of other programs, by interface.",
        Interface::BESIDE
            .into_iter()
            .map(|interface| (vec![name(interface)], interfaces.connections(interface).open())),
    );
    let all =
        Interface::BESIDE.into_iter().flat_map(|interface| Done::ALL.map(|request| (interface, request)));
    text.family(
        "bulkmark_interface_requests_total",
        "counter",
        "Requests of other programs, by interface and result.",
        all.map(|(interface, request)| {
            let labels = vec![name(interface), ("result", request.as_str().to_owned())];
            (labels, interfaces.requests(interface, request))
        }),
    );
}
