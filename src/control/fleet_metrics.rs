// SPDX-License-Identifier: GPL-3.0-or-later
//! Metrics of a fleet's member.

use super::exposition::Text;
use bulkmark_sync::fleet::{FleetStatus, MemberRole, MemberState, MemberStatus};

/// The metrics of a fleet.
pub(super) fn fleet_metrics(fleet: &FleetStatus, text: &mut Text) {
    text.one(
        "bulkmark_fleet_in_step",
        "gauge",
        "1 while the counts include the last step of the log's chain.",
        u8::from(fleet.in_step),
    );
    text.one("bulkmark_fleet_version", "gauge", "The step up to which the fleet is counted.", fleet.version);
    text.one(
        "bulkmark_fleet_epoch",
        "gauge",
        "Number of times that the log was replaced or had lost its end.",
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

/// Each kind of member in each state. Other kinds than these two are listed only if they exist.
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
        "Invalid entries of the log that were skipped.",
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
            "Members that sent their state in the last hour, and those in the log's lists, by role and state.",
            members(fleet),
        );
        text.one(
            "bulkmark_fleet_reporters_too_fast",
            "gauge",
            "Partners that exceeded their rate in the last ten minutes, in a log that does not enforce it.",
            fleet.reporters.iter().filter(|reporter| reporter.too_fast).count(),
        );
        text.one(
            "bulkmark_fleet_member_silence_seconds",
            "gauge",
            "Time since the last state of the member that has been silent for longest; 0 without members.",
            fleet.members.iter().map(|member| member.heard_seconds_ago).max().unwrap_or_default(),
        );
        let drafts = [("won", fleet.steps_won), ("lost", fleet.steps_lost)];
        text.family(
            "bulkmark_fleet_drafts_total",
            "counter",
            "Steps made here: won ones are part of the chain, lost ones came after another aggregator's.",
            drafts.map(|(result, count)| (vec![("result", result.to_owned())], count)),
        );
    } else {
        text.one(
            "bulkmark_fleet_batches_repeated_total",
            "counter",
            "Own batches that were appended again, because the log had lost them or no aggregator had counted them.",
            fleet.batches_again,
        );
    }
}
