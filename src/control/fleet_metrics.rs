// SPDX-License-Identifier: GPL-3.0-or-later
//! What a machine of a fleet says of that to Prometheus.

use super::exposition::Text;
use bulkmark_sync::fleet::{FleetStatus, MemberRole, MemberState, MemberStatus};

/// The metrics of a fleet.
pub(super) fn fleet_metrics(fleet: &FleetStatus, text: &mut Text) {
    text.one(
        "bulkmark_fleet_in_step",
        "gauge",
        "1 while what is counted here is where the log's chain of steps ends.",
        u8::from(fleet.in_step),
    );
    text.one("bulkmark_fleet_version", "gauge", "The step up to which the fleet is counted.", fleet.version);
    text.one(
        "bulkmark_fleet_epoch",
        "gauge",
        "How often the log was found to be another one, or to have lost its end.",
        fleet.epoch,
    );
    text.family(
        "bulkmark_fleet_lag_steps",
        "gauge",
        "Steps in the log that were not read yet.",
        fleet.steps_behind.map(|steps| (vec![], steps)),
    );
    text.family(
        "bulkmark_fleet_uncovered_batches",
        "gauge",
        "Batches in the log that no step covers yet.",
        fleet.batches_behind.map(|batches| (vec![], batches)),
    );
    text.family(
        "bulkmark_fleet_last_step_age_seconds",
        "gauge",
        "Time since a step was applied.",
        fleet.stepped_seconds_ago.map(|age| (vec![], age)),
    );
    counters(fleet, text);
}

/// Each kind of member in each state. Of other kinds than these two only those that there are.
fn members(fleet: &FleetStatus) -> Vec<(Vec<(&'static str, String)>, usize)> {
    let roles: [(&str, &[MemberRole]); 3] = [
        ("milter", &[MemberRole::Milter, MemberRole::PartialMilter]),
        ("aggregator", &[MemberRole::Aggregator]),
        ("unknown", &[MemberRole::Unknown]),
    ];
    let mut all = Vec::new();
    for (role, kinds) in roles {
        for (state, name) in MemberState::ALL {
            let is_one =
                |member: &&MemberStatus| member.state == state && kinds.contains(&member.condition.role);
            let found = fleet.members.iter().filter(is_one).count();
            if found > 0 || role != "unknown" {
                all.push((vec![("role", role.to_owned()), ("state", name.to_owned())], found));
            }
        }
    }
    all
}

fn counters(fleet: &FleetStatus, text: &mut Text) {
    text.one("bulkmark_fleet_steps_total", "counter", "Steps that were applied.", fleet.steps);
    let junk = [("steps", fleet.junk_steps), ("batches", fleet.junk_batches)];
    text.family(
        "bulkmark_fleet_junk_total",
        "counter",
        "What was in the log and cannot be used, and was passed over.",
        junk.map(|(stream, count)| (vec![("stream", stream.to_owned())], count)),
    );
    text.one(
        "bulkmark_fleet_snapshots_taken_total",
        "counter",
        "Snapshots that were taken from the log.",
        fleet.snapshots,
    );
    if fleet.aggregates {
        text.family(
            "bulkmark_fleet_members",
            "gauge",
            "Members that told in the last hour how they are, and those in the log's lists, by what they do and how they are.",
            members(fleet),
        );
        text.one(
            "bulkmark_fleet_reporters_too_fast",
            "gauge",
            "Partners that reported more in the last ten minutes than their rate allows, in a log that does not see to that.",
            fleet.reporters.iter().filter(|reporter| reporter.too_fast).count(),
        );
        text.one(
            "bulkmark_fleet_member_silence_seconds",
            "gauge",
            "How long ago the member told something that has been silent for longest; 0 while there is none.",
            fleet.members.iter().map(|member| member.heard_seconds_ago).max().unwrap_or_default(),
        );
        let drafts = [("won", fleet.steps_won), ("lost", fleet.steps_lost)];
        text.family(
            "bulkmark_fleet_drafts_total",
            "counter",
            "Steps that were made here, and became one of the chain, or another was first.",
            drafts.map(|(result, count)| (vec![("result", result.to_owned())], count)),
        );
    } else {
        text.one(
            "bulkmark_fleet_batches_repeated_total",
            "counter",
            "Own batches that were appended again, since the log had lost them or nobody had counted them.",
            fleet.batches_again,
        );
    }
}
