// SPDX-License-Identifier: GPL-3.0-or-later
//! What a milter says of the doors beside its own.

use super::exposition::Text;
use crate::activity::{Activity, Done, Door};

/// Connections and requests by door.
pub(super) fn door_metrics(activity: &Activity, text: &mut Text) {
    let doors = &activity.doors;
    let name = |door: Door| ("door", door.as_str().to_owned());
    text.family(
        "bulkmark_door_open",
        "gauge",
        "1 for a door that is configured and open, 0 for one that could not be opened.",
        doors.status().into_iter().map(|door| (vec![("door", door.name)], u8::from(door.error.is_none()))),
    );
    text.family(
        "bulkmark_door_connections",
        "gauge",
        "Open connections of other programs that ask, by door.",
        Door::BESIDE.into_iter().map(|door| (vec![name(door)], doors.connections(door).open())),
    );
    let all = Door::BESIDE.into_iter().flat_map(|door| Done::ALL.map(|request| (door, request)));
    text.family(
        "bulkmark_door_requests_total",
        "counter",
        "Requests of other programs, by door and by what became of them.",
        all.map(|(door, request)| {
            let labels = vec![name(door), ("result", request.as_str().to_owned())];
            (labels, doors.requests(door, request))
        }),
    );
}
