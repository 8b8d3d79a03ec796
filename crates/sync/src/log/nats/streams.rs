// SPDX-License-Identifier: GPL-3.0-or-later
//! The configuration of the streams, and its setup.

use super::connection::Connection;
use super::names::{
    AGGREGATORS, BATCHES, CLIENTS, Live, MEMBERS, REPEATS, SNAPSHOT, STEPS, Stream, VERSION, info_of,
};
use crate::log::types::{LogError, MAX_STATE_REPORT};
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Age at which batches and steps are dropped. Uncovered batches are appended again before; a holder that was away for longer than steps
/// are kept takes a snapshot.
const BATCHES_AGE: Duration = Duration::from_secs(24 * 3600);
const STEPS_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Maximum size of each on each node; JetStream reserves it. The oldest batches and steps are dropped for new ones; a snapshot that does
/// not fit beside the two that are kept is refused.
const BATCHES_BYTES: u64 = 1 << 30;
const STEPS_BYTES: u64 = 1 << 30;
const SNAPSHOT_BYTES: u64 = 3 << 30;
const CLIENTS_BYTES: u64 = 16 << 20;

const MEMBERS_BYTES: u64 = 64 << 20;

/// A member without a report for so long is gone.
const MEMBERS_AGE: Duration = Duration::from_secs(3600);

/// Maximum size of a message's headers, which count as part of it.
const HEADERS: usize = 1024;

/// Lists of clients that are kept.
const LISTS: u32 = 8;

/// Returns the required configuration of the streams.
fn wanted(replicas: u8) -> [Value; 5] {
    let of = |stream: &Stream, bytes: u64, more: Value| {
        let mut config = json!({
            "name": stream.name,
            "subjects": [stream.subjects],
            "retention": "limits",
            "storage": "file",
            "num_replicas": replicas,
            "max_bytes": bytes,
            "allow_direct": true,
            "metadata": { "bulkmark": VERSION },
        });
        if let (Some((live, how)), Some(config)) = (stream.live, config.as_object_mut()) {
            let headers_only = how == Live::Headers;
            let republish = json!({ "src": stream.subjects, "dest": live, "headers_only": headers_only });
            config.insert("republish".to_owned(), republish);
        }
        if let (Value::Object(more), Some(config)) = (more, config.as_object_mut()) {
            config.extend(more);
        }
        config
    };
    let kept = |age: Duration| {
        json!({
            "discard": "old",
            "max_age": nanoseconds(age),
            "duplicate_window": nanoseconds(REPEATS),
            "deny_delete": true,
            "deny_purge": true,
        })
    };
    [
        of(&BATCHES, BATCHES_BYTES, kept(BATCHES_AGE)),
        of(&STEPS, STEPS_BYTES, kept(STEPS_AGE)),
        of(
            &SNAPSHOT,
            SNAPSHOT_BYTES,
            json!({ "discard": "new", "max_msgs_per_subject": 1, "deny_delete": true }),
        ),
        of(
            &CLIENTS,
            CLIENTS_BYTES,
            json!({
                "subjects": [CLIENTS.subjects, AGGREGATORS],
                "discard": "old",
                "max_msgs_per_subject": LISTS,
                "deny_delete": true,
                "deny_purge": true,
            }),
        ),
        of(&MEMBERS, MEMBERS_BYTES, members()),
    ]
}

/// Returns the special settings of state reports: only the last one of each member, for a short time.
fn members() -> Value {
    json!({
        "discard": "old",
        "max_msgs_per_subject": 1,
        "max_msg_size": MAX_STATE_REPORT + HEADERS,
        "max_age": nanoseconds(MEMBERS_AGE),
        "deny_delete": true,
        "deny_purge": true,
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Creates the streams, or updates their configuration. Returns a line for each change.
pub(super) async fn make_ready(
    connection: &Connection,
    replicas: u8,
    dry_run: bool,
) -> Result<Vec<String>, LogError> {
    let mut lines = Vec::new();
    for wanted in wanted(replicas) {
        let name = wanted["name"].as_str().unwrap_or_default().to_owned();
        let found = connection.api::<Value>(&info_of(&name), &Value::Null).await?;
        let (verb, config, line) = match found {
            Err(LogError::NotSetUp(_)) => {
                ("CREATE", wanted, format!("stream {name}: made, kept on {replicas} nodes"))
            }
            Err(error) => return Err(error),
            Ok(info) => {
                let found = info["config"].as_object().cloned().unwrap_or_default();
                let Some((config, changed)) = changed(found, &wanted) else { continue };
                ("UPDATE", config, format!("stream {name}: changed {changed}"))
            }
        };
        if !dry_run {
            let api = format!("$JS.API.STREAM.{verb}.{name}");
            put(connection, &api, &config).await?.map_err(|e| refused(&name, e))?;
        }
        lines.push(line);
    }
    Ok(lines)
}

/// How long to wait for a node that is reported offline. The leader of a new cluster reports so for nodes that it has not heard of since it
/// leads; they send a sign of life every 30 s.
const PLACEMENT: Duration = Duration::from_secs(90);

async fn put(
    connection: &Connection,
    api: &str,
    config: &Value,
) -> Result<Result<Value, LogError>, LogError> {
    let until = Instant::now() + PLACEMENT;
    loop {
        let answer = connection.api(api, config).await?;
        let lacks_peers = matches!(&answer, Err(LogError::Unavailable(what)) if what.contains(NO_PEERS));
        if !lacks_peers || Instant::now() > until {
            return Ok(answer);
        }
        sleep(Duration::from_secs(1)).await;
    }
}

const NO_PEERS: &str = "no suitable peers";

fn refused(name: &str, error: LogError) -> LogError {
    let cannot = |what: String| {
        let hint = match &what {
            what if what.contains("insufficient storage") => room(),
            what if what.contains(NO_PEERS) => PEERS.to_owned(),
            _ => String::new(),
        };
        format!("stream {name} cannot be created or changed: {what}{hint}")
    };
    match error {
        LogError::Unavailable(what) => LogError::Unavailable(cannot(what)),
        LogError::Full(what) => LogError::Full(cannot(what)),
        error => error,
    }
}

/// The hint for a cluster with fewer known nodes than replicas of a stream.
const PEERS: &str = "; fewer nodes have found one another than it is to be kept on: see whether all run (/jsz on each has the number as \
    cluster_size); where all run and the cluster is new, stop all, empty each store_dir, and start them again";

/// Returns the hint for a node with too little room for the streams.
fn room() -> String {
    let reserved = BATCHES_BYTES + STEPS_BYTES + SNAPSHOT_BYTES + CLIENTS_BYTES + MEMBERS_BYTES;
    format!(
        "; the streams of a fleet reserve {:.1} GB on each node, of max_file_store in jetstream {{ }}, or, where that is not set, of three \
         quarters of what its disk has free when it starts",
        reserved as f64 / f64::from(1 << 30)
    )
}

/// Returns the configuration with the wanted values, and a text of the changes; none if nothing differs.
fn changed(mut config: Map<String, Value>, wanted: &Value) -> Option<(Value, String)> {
    let mut changes = Vec::new();
    for (key, value) in wanted.as_object()? {
        let found = config.get(key).cloned().unwrap_or(Value::Null);
        // More room that an administrator gave is kept.
        let has_more = key == "max_bytes" && has_room(&found, value);
        if !has_more && !is_as_wanted(&found, value) {
            changes.push(format!("{key} from {found} to {value}"));
            config.insert(key.clone(), value.clone());
        }
    }
    (!changes.is_empty()).then(|| (Value::Object(config), changes.join(", ")))
}

/// Whether a limit is higher than wanted, or absent.
fn has_room(found: &Value, wanted: &Value) -> bool {
    let (found, wanted) = (found.as_i64().unwrap_or_default(), wanted.as_i64().unwrap_or_default());
    found == -1 || found >= wanted
}

/// Whether a value is as wanted: the server leaves out what is false, and adds to metadata.
fn is_as_wanted(found: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(wanted) => wanted.iter().all(|(key, value)| is_as_wanted(&found[key], value)),
        Value::Bool(false) => found.is_null() || found == wanted,
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed_and_the_rest_left_alone() {
        let wanted = json!({ "a": 1, "b": false, "metadata": { "bulkmark": "1" }, "c": { "d": true } });
        let same = json!({ "a": 1, "metadata": { "bulkmark": "1", "_nats.ver": "2.11" }, "c": { "d": true }, "e": 7 });
        assert_eq!(changed(same.as_object().unwrap().clone(), &wanted), None);
        let other = json!({ "a": 2, "c": { "d": true }, "metadata": { "bulkmark": "1" }, "e": 7 });
        let (config, what) = changed(other.as_object().unwrap().clone(), &wanted).unwrap();
        assert_eq!(what, "a from 2 to 1");
        assert_eq!((&config["a"], &config["e"]), (&json!(1), &json!(7)));
    }

    #[test]
    fn missing_nodes_are_explained() {
        let text = "no suitable peers for placement (10005)";
        let error = refused("BULKMARK_STEPS", LogError::Unavailable(text.to_owned())).to_string();
        assert!(
            error.contains(text) && error.contains("BULKMARK_STEPS") && error.contains("store_dir"),
            "{error}"
        );
    }

    /// An administrator may give a stream more room, but not less than it needs.
    #[test]
    fn more_bytes_are_left_alone() {
        let wanted = json!({ "max_bytes": 100 });
        let of = |found: i64| changed(json!({ "max_bytes": found }).as_object().unwrap().clone(), &wanted);
        assert_eq!([of(100), of(101), of(-1)], [None, None, None]);
        assert_eq!(of(99).unwrap().1, "max_bytes from 99 to 100");
    }
}
