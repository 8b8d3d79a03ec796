// SPDX-License-Identifier: GPL-3.0-or-later
//! The metrics of a daemon; docs/metrics.md lists all of them.

use super::decision_metrics::decision_metrics;
use super::exposition::Text;
use super::fleet_metrics::fleet_metrics;
use super::interface_metrics::interface_metrics;
use super::process::process_metrics;
use super::status::{Daemon, DaemonStatus};
use crate::activity::{Activity, MessageCount};
use crate::orders::State;
use bulkmark_counts::Rows;
use bulkmark_ledger::Counted;
use bulkmark_sync::LinkStatus;
use bulkmark_types::writable_time;
use humantime_serde::re::humantime;

impl Daemon {
    /// Returns the metrics, with estimates of false bulk at this threshold. If the ledger is not available, they show that, and all values that
    /// do not need it.
    pub async fn metrics(&self, threshold: u32) -> String {
        let mut text = Text::default();
        text.family(
            "bulkmark_build_info",
            "gauge",
            "1, with role and version.",
            [(vec![("role", self.name.to_owned()), ("version", env!("CARGO_PKG_VERSION").to_owned())], 1)],
        );
        text.one("bulkmark_uptime_seconds", "gauge", "Time since the start.", self.uptime());
        text.family(
            "bulkmark_tls_certificate_expiry_timestamp_seconds",
            "gauge",
            "When the first certificate of the chain in force expires, in seconds since 1970.",
            self.activity.certificate_expiry().map(|expiry| (vec![], expiry)),
        );
        activity_metrics(&self.activity, &mut text);
        self.config_metrics(&mut text);
        if self.is_server() {
            stream_metrics(&self.activity, &mut text);
            text.family(
                "bulkmark_server_refused_total",
                "counter",
                "Requests that were refused.",
                (self.refused)()
                    .into_iter()
                    .flat_map(|refused| refused.requests)
                    .map(|(reason, count)| (vec![("reason", reason)], count)),
            );
        } else {
            message_metrics(&self.activity, &mut text);
        }
        let status = self.status(Some(threshold)).await.ok();
        let available = status.is_some() && self.ailment().is_none();
        text.one(
            "bulkmark_ledger_available",
            "gauge",
            "1 while the ledger counts and its disk takes what is written.",
            u8::from(available),
        );
        text.one(
            "bulkmark_ledger_writing_seconds",
            "gauge",
            "Time that the ledger's present write has taken; 0 without one. A disk that hangs shows here.",
            self.ledger.busy_for().as_secs_f64(),
        );
        self.disk_metrics(&mut text);
        self.correspondent_metrics(&mut text);
        if let Some(status) = status {
            status.ledger_metrics(&mut text);
            self.spool_metrics(&status, &mut text);
            status.link_metrics(&mut text);
            if let Some(fleet) = &status.fleet {
                fleet_metrics(fleet, &mut text);
            }
            status.bulk_metrics(&mut text);
            status.client_metrics(&mut text);
        }
        process_metrics(&mut text);
        text.into_string()
    }

    fn correspondent_metrics(&self, text: &mut Text) {
        if let Some(orders) = &self.orders {
            let orders = orders.all(bulkmark_ledger::now());
            let help = "1 while nothing is refused (bulkmark pause), or 0.";
            text.one("bulkmark_paused", "gauge", help, u8::from(orders.pause.is_some()));
            let help = "Mailings that are never refused (bulkmark allow).";
            text.one("bulkmark_allowed_mailings", "gauge", help, orders.allowed.len());
            let numbers = self.allowed_elsewhere();
            text.family(
                "bulkmark_allowed_mailings_of_other_sites",
                "gauge",
                "Mailings that other sites of the federation allow, by whether that holds here.",
                State::ALL.map(|state| {
                    let number = numbers.get(&state).copied().unwrap_or_default();
                    (vec![("state", state.name().to_owned())], number)
                }),
            );
        }
        let Some(correspondents) = &self.correspondents else { return };
        let help = "Pairs of a user and a correspondent of that user.";
        text.one("bulkmark_correspondents", "gauge", help, correspondents.len());
    }

    fn config_metrics(&self, text: &mut Text) {
        text.family(
            "bulkmark_webhook_up",
            "gauge",
            "1, or 0 since a post to the webhook failed; only with one.",
            self.activity.webhook.status().map(|webhook| (vec![], u8::from(webhook.error.is_none()))),
        );
        text.one(
            "bulkmark_config_last_reload_successful",
            "gauge",
            "1, or 0 when the last reload failed and an older configuration is in force.",
            u8::from(self.activity.is_reloaded()),
        );
        text.one(
            "bulkmark_config_last_reload_success_timestamp_seconds",
            "gauge",
            "When the configuration in force was read.",
            self.activity.reloaded_at().unwrap_or(self.started_at),
        );
    }

    fn disk_metrics(&self, text: &mut Text) {
        let Some(disk) = self.disk() else { return };
        text.one("bulkmark_disk_size_bytes", "gauge", "The file system that the ledger is on.", disk.size);
        text.one(
            "bulkmark_disk_available_bytes",
            "gauge",
            "Space on it that the daemon may still use.",
            disk.available,
        );
        text.one("bulkmark_ledger_file_bytes", "gauge", "The ledger's file.", disk.ledger);
    }

    fn spool_metrics(&self, status: &DaemonStatus, text: &mut Text) {
        if self.is_server() {
            return;
        }
        let Rows { users, traps, interfaces } = status.ledger.user_reports;
        text.family(
            "bulkmark_user_report_rows",
            "gauge",
            "Stored user reports with their reporters, by kind of reporter; one for each signature.",
            [("users", users), ("traps", traps), ("interfaces", interfaces)]
                .map(|(of, rows)| (vec![("of", of.to_owned())], rows)),
        );
        text.one(
            "bulkmark_spool_reports",
            "gauge",
            "Own reports that no update includes yet.",
            status.ledger.spool,
        );
        text.one(
            "bulkmark_spool_age_seconds",
            "gauge",
            "Age of the oldest report that no server took; 0 when there is none.",
            status.ledger.spool_oldest.map_or(0, |oldest| bulkmark_ledger::now().saturating_sub(oldest)),
        );
        text.one(
            "bulkmark_spool_dropped_reports_total",
            "counter",
            "Own reports that were dropped because no server took them.",
            self.links.reports_dropped(),
        );
    }
}

fn activity_metrics(activity: &Activity, text: &mut Text) {
    let connections = &activity.connections;
    text.one("bulkmark_connections", "gauge", "Open connections.", connections.open());
    text.one("bulkmark_connections_total", "counter", "Accepted connections.", connections.total());
    let errors = [("ended", connections.broken()), ("mended", connections.mended())];
    text.family(
        "bulkmark_milter_protocol_errors_total",
        "counter",
        "Errors in the milter protocol: those that ended a connection, and packets that were corrected or ignored.",
        errors.map(|(effect, count)| (vec![("effect", effect.to_owned())], count)),
    );
    let reloads = [("success", true), ("failure", false)];
    text.family(
        "bulkmark_reloads_total",
        "counter",
        "Configuration reloads by SIGHUP.",
        reloads.map(|(result, well)| (vec![("result", result.to_owned())], activity.reloads(well))),
    );
    text.one(
        "bulkmark_log_lines_dropped_total",
        "counter",
        "Log lines that were lost because the log daemon is too slow.",
        activity.log_lines_dropped(),
    );
    text.family(
        "bulkmark_tasks_restarted_total",
        "counter",
        "How often a task of the daemon ended, by an error of the program, and was started again.",
        activity.tasks.restarts().into_iter().map(|(task, count)| (vec![("task", task.to_owned())], count)),
    );
}

/// The beginning of a window: its date, and its time unless that is midnight.
fn date(window: u64) -> String {
    let text = humantime::format_rfc3339_seconds(writable_time(window)).to_string();
    match text.strip_suffix(":00Z") {
        Some(minutes) => minutes.strip_suffix("T00:00").map_or_else(|| format!("{minutes}Z"), str::to_owned),
        None => text,
    }
}

fn stream_metrics(activity: &Activity, text: &mut Text) {
    let load = &activity.load;
    text.one("bulkmark_streams", "gauge", "Open streams of updates and snapshots.", load.streams());
    text.one(
        "bulkmark_streams_stalled_total",
        "counter",
        "Streams that were given up because their readers did not read.",
        load.streams_stalled(),
    );
}

/// Reports of traps and users.
fn user_report_metrics(activity: &Activity, text: &mut Text) {
    text.family(
        "bulkmark_traps_messages_total",
        "counter",
        "Messages to traps, by result.",
        activity
            .trap_messages()
            .into_iter()
            .map(|(result, count)| (vec![("result", result.to_owned())], count)),
    );
    text.family(
        "bulkmark_user_reports_total",
        "counter",
        "Reports of users and traps, by result.",
        activity.user_reports.all().into_iter().map(|(side, result, count)| {
            (vec![("side", side.to_owned()), ("result", result.to_owned())], count)
        }),
    );
}

fn message_metrics(activity: &Activity, text: &mut Text) {
    text.family(
        "bulkmark_messages_total",
        "counter",
        "Messages.",
        activity.messages().into_iter().map(|MessageCount { verdict, action, reason, count }| {
            let mut labels = vec![("verdict", verdict.to_string()), ("action", action.to_string())];
            // A label without a value means no label.
            labels.extend((!reason.is_empty()).then(|| ("reason", reason.to_owned())));
            (labels, count)
        }),
    );
    text.one(
        "bulkmark_canaries_total",
        "counter",
        "Canaries, test messages that are not counted as mail.",
        activity.canaries(),
    );
    decision_metrics(activity, text);
    user_report_metrics(activity, text);
    interface_metrics(activity, text);
    let (accounts, over) = activity.accounts(bulkmark_ledger::now());
    text.one(
        "bulkmark_outbound_accounts",
        "gauge",
        "Accounts that sent outbound mail within outbound.window.",
        accounts,
    );
    text.one(
        "bulkmark_outbound_accounts_over",
        "gauge",
        "Accounts over their limit; bulkmark status names them.",
        over,
    );
    text.one(
        "bulkmark_outbound_alerts_total",
        "counter",
        "Log lines about an account over its limit.",
        activity.account_alerts(),
    );
    text.histogram(
        "bulkmark_judging_duration_seconds",
        "Time from the end of a message to its verdict.",
        &activity.judging,
    );
    text.one(
        "bulkmark_reported_signatures_total",
        "counter",
        "Signatures of messages that were reported to the ledger.",
        activity.signatures(),
    );
}

impl DaemonStatus {
    fn bulk_metrics(&self, text: &mut Text) {
        let Some(bulk) = &self.ledger.bulk else { return };
        let help = "Signatures known as bulk, each once for each window.";
        text.one("bulkmark_bulk_signatures", "gauge", help, bulk.signatures);
        text.one("bulkmark_bulk_memory_bytes", "gauge", "Memory for these.", bulk.memory);
        let help = "Signatures of bulk for which there was no room.";
        text.one("bulkmark_bulk_left_out_total", "counter", help, bulk.left_out);
    }

    fn ledger_metrics(&self, text: &mut Text) {
        let labels = |i: usize| {
            let slice = &self.ledger.slices[i];
            let counted = match slice.counted {
                Counted::Own => "own",
                Counted::Others => "others",
                Counted::Limited => "limited",
            };
            let mut labels = vec![
                ("window", date(slice.window)),
                ("slice", slice.slice.to_string()),
                ("counted", counted.to_owned()),
            ];
            // A window of messages may begin on the same day.
            labels.extend(slice.user_reports.then(|| ("of", "user-reports".to_owned())));
            labels
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
            "Signatures for which a slice has space.",
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
            "Estimated chance that a signature that was never seen shows the threshold.",
            slices().filter_map(|(i, slice)| Some((labels(i), slice.false_bulk?))),
        );
        text.one(
            "bulkmark_ledger_origins",
            "gauge",
            "Known origins, including inactive ones; beyond 65,536 no new one is counted.",
            self.ledger.origins,
        );
        text.family(
            "bulkmark_ledger_version",
            "gauge",
            "The update up to which an origin is counted.",
            self.versions.iter().map(|(origin, version)| (vec![("origin", origin.clone())], version)),
        );
    }

    fn link_metrics(&self, text: &mut Text) {
        let kind = match &*self.role {
            _ if self.fleet.is_some() => "log",
            "server" => "peer",
            _ => "upstream",
        };
        let url = |link: &LinkStatus| vec![("kind", kind.to_owned()), ("url", link.url.clone())];
        let links = || self.links.iter();
        text.family(
            "bulkmark_staleness_seconds",
            "gauge",
            "Time since another server sent an update or confirmed that there is none, or since the start.",
            self.staleness_seconds.map(|age| (vec![], age)),
        );
        text.family(
            "bulkmark_link_up",
            "gauge",
            "1 while another server answers as it should.",
            links().map(|link| (url(link), u8::from(link.error.is_none()))),
        );
        text.family(
            "bulkmark_link_behind_updates",
            "gauge",
            "Updates that another server has and this one lacks.",
            links().filter_map(|link| Some((url(link), link.behind?))),
        );
        text.family(
            "bulkmark_link_silence_seconds",
            "gauge",
            "Time since another server last answered.",
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
        text.family(
            "bulkmark_client_made_up",
            "gauge",
            "1 while a client's reports are ignored, because its signatures are made up.",
            clients().map(|(labels, client)| (labels, u8::from(client.made_up))),
        );
        let limited =
            || self.ledger.limited.iter().map(|client| (vec![("client", client.name.clone())], client));
        text.family(
            "bulkmark_client_window_signatures",
            "gauge",
            "Different signatures that a client with limits reported in the newest window.",
            limited().map(|(labels, client)| (labels, client.signatures)),
        );
        text.family(
            "bulkmark_client_odd",
            "gauge",
            "Whether a client with limits reported made-up signatures, judged by the cells that they take.",
            limited().map(|(labels, client)| (labels, u64::from(client.odd.is_some()))),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_dates() {
        assert_eq!(
            [1_795_392_000, 1_795_393_800, 7].map(date),
            ["2026-11-23", "2026-11-23T00:30Z", "1970-01-01T00:00:07Z"]
        );
    }
}
