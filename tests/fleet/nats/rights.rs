// SPDX-License-Identifier: GPL-3.0-or-later
//! The limits of a client's account, by any means.

use super::cluster::Fleet;
use crate::conformance::{Engine, append, append_step, batch, batches_behind, insist, own, run, within};
use async_nats::{Message, Subscriber};
use bulkmark_sync::log::{Log, Place};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(1);

/// No subject, reply address, header or JetStream request lets one client write as another, or write steps and snapshots.
#[test]
fn a_client_cannot_write_as_another() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1", "mx2"])).await else { return };
        let (mx2, log) = (fleet.client("mx2").await, fleet.aggregator().await);
        let before = append(&mx2, batch(1, 1), b"mx2's own").await;
        let raw = fleet.raw("mx1").await;
        let targets =
            ["bulkmark.reports.mx2", "bulkmark.steps", "bulkmark.snapshot.newest", "bulkmark.clients"];
        for target in targets {
            raw.publish(target, "forged".into()).await.unwrap();
            // The answer to a permitted request would be stored in that place.
            for interface in
                ["bulkmark.reports.mx1", "bulkmark.info.BULKMARK_STEPS", "$JS.API.DIRECT.GET.BULKMARK_STEPS"]
            {
                raw.publish_with_reply(interface, target, "injected".into()).await.unwrap();
            }
        }
        let forged = fleet.connect("mx1", Some("mx2")).await;
        assert!(forged.append(batch(9, 9), b"forged".to_vec()).await.is_err());
        raw.flush().await.unwrap();

        // Permitted: three times under its own name, each with an answer that went nowhere.
        let last = append(&mx2, batch(1, 2), b"the last").await;
        let count = usize::try_from(last.0 - before.0 + 1).unwrap();
        let all = batches_behind(&log, Place(before.0 - 1), count).await;
        for batch in &all {
            match &*batch.client {
                "mx1" => assert_eq!(batch.bytes, b"injected"),
                "mx2" => assert!([&b"mx2's own"[..], b"the last"].contains(&&*batch.bytes), "{batch:?}"),
                _ => panic!("{batch:?}"),
            }
        }
        assert_eq!(insist(|| log.ends()).await.steps, Place(0));
        assert!(log.snapshot().await.is_err());
        let clients = insist(|| log.clients()).await;
        assert_eq!(clients.len(), 2);
    });
}

/// No subject and no reply address lets a client or an aggregator write another member's state report.
#[test]
fn nobody_speaks_for_another() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1", "mx2"])).await else { return };
        let (mx2, log) = (fleet.client("mx2").await, fleet.aggregator().await);
        insist(|| mx2.publish_state(b"mx2's own".to_vec())).await;
        let raw = fleet.raw("mx1").await;
        for target in ["bulkmark.members.mx2", "bulkmark.members.agg"] {
            raw.publish(target, "forged".into()).await.unwrap();
            for interface in ["bulkmark.reports.mx1", "bulkmark.members.mx1", "bulkmark.info.BULKMARK_STEPS"]
            {
                raw.publish_with_reply(interface, target, "injected".into()).await.unwrap();
            }
        }
        // After all of these, on the same connection.
        raw.request("bulkmark.members.mx1", "mx1's own".into()).await.unwrap();
        for name in ["mx2", "agg"] {
            let forged = fleet.connect("mx1", Some(name)).await;
            assert!(forged.publish_state(b"forged".to_vec()).await.is_err());
        }
        let forged = fleet.connect("agg", Some("mx2")).await;
        let error = forged.publish_state(b"forged".to_vec()).await.unwrap_err();
        assert!(error.to_string().contains("nobody answers"), "{error}");
        let words = insist(|| log.state_reports()).await;
        let found = |name: &str| words.iter().find(|word| word.name == name).map(|word| &*word.bytes);
        assert_eq!((found("mx2"), found("agg")), (Some(&b"mx2's own"[..]), None));
    });
}

/// An aggregator chooses the content of steps and of parts of snapshots. No reply address has the log store an answer with such content
/// as a list of members or a report, send it to others as a live step, or execute it as a request to delete a stream.
#[test]
fn an_aggregator_has_no_answer_delivered_elsewhere() {
    run(async || {
        let clients = own(&["mx1"]);
        let Some(fleet) = Fleet::fresh(&clients).await else { return };
        let (mx1, log) = (fleet.client("mx1").await, fleet.aggregator().await);
        let place = append(&mx1, batch(1, 1), b"kept").await;
        let mut live = fleet.raw("mx1").await.subscribe("bulkmark.live.>").await.unwrap();
        let steps = within("a live step", steps_until_live(&log, &mut live)).await;
        let (first, step) = (steps[0], steps[steps.len() - 1]);
        let empty = "bulkmark.snapshot.part.0123456789abcdef0123456789abcdef.0";
        let raw = fleet.raw("agg").await;
        raw.request(empty, "".into()).await.unwrap();
        let targets = [
            "bulkmark.clients",
            "bulkmark.aggregators",
            "bulkmark.reports.mx1",
            "bulkmark.members.mx1",
            "bulkmark.live.steps",
            "$JS.API.STREAM.DELETE.BULKMARK_BATCHES",
            "$JS.API.STREAM.DELETE.BULKMARK_STEPS",
            "$JS.API.STREAM.PURGE.BULKMARK_CLIENTS",
        ];
        for target in targets {
            for (interface, question) in [
                ("$JS.API.DIRECT.GET.BULKMARK_STEPS", json!({ "seq": 1 })),
                ("$JS.API.DIRECT.GET.BULKMARK_SNAPSHOT", json!({ "last_by_subj": empty })),
                ("bulkmark.info.BULKMARK_STEPS", json!({})),
                ("bulkmark.members.agg", json!({})),
            ] {
                raw.publish_with_reply(interface, target, question.to_string().into()).await.unwrap();
            }
        }
        // After all of these, on the same connection.
        raw.request("bulkmark.members.agg", "agg's own".into()).await.unwrap();
        assert_eq!(insist(|| log.clients()).await, clients);
        assert_eq!(insist(|| log.aggregators()).await, ["agg"]);
        let reports = insist(|| log.state_reports()).await;
        assert_eq!(reports.iter().map(|report| &*report.name).collect::<Vec<_>>(), ["agg"]);
        let ends = insist(|| log.ends()).await;
        assert_eq!((ends.batches, ends.steps, ends.first_step), (place, step, first));
        let last = append_step(&log, b"the last").await;
        let message = within("the last step", live.next()).await.unwrap();
        assert_eq!(
            (&*message.payload, last),
            (&b"the last"[..], Place(step.0 + 1)),
            "no live step before it"
        );
    });
}

/// Appends steps, which are lists in JSON, until one of them is delivered to a new subscription: until all nodes know of it, live steps are not.
async fn steps_until_live(log: &impl Log, live: &mut Subscriber) -> Vec<Place> {
    let mut steps = Vec::new();
    loop {
        let content = format!("[]{}", " ".repeat(steps.len()));
        steps.push(append_step(log, content.as_bytes()).await);
        let arrives = async { while live.next().await.unwrap().payload != content.as_bytes() {} };
        if timeout(SOON, arrives).await.is_ok() {
            return steps;
        }
    }
}

/// A member that opens many connections takes none from others.
#[test]
fn connections_of_a_member_are_bounded() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx2", "mx3"])).await else { return };
        let mut all = Vec::new();
        let connected = async |key| {
            let raw = fleet.raw(key).await;
            let is_connected = matches!(timeout(SOON, raw.flush()).await, Ok(Ok(())));
            (raw, is_connected)
        };
        while let (raw, true) = connected("mx3").await {
            all.push(raw);
            assert!(all.len() <= 20);
        }
        assert!(all.len() > 1 && connected("mx2").await.1, "{}", all.len());
        // Nor with many subscriptions. A request's answer arrives after all that was sent before it.
        let ask = async || all[0].request("bulkmark.info.BULKMARK_STEPS", "".into()).await.unwrap();
        ask().await;
        let mut subscriptions = Vec::new();
        for n in 0..200 {
            subscriptions.push(all[0].subscribe(format!("own.{n}")).await.unwrap());
        }
        for n in 0..200 {
            all[0].publish(format!("own.{n}"), "x".into()).await.unwrap();
        }
        ask().await;
        let heard = subscriptions.iter_mut().filter_map(|one| one.next().now_or_never()).count();
        assert!((50..=100).contains(&heard), "{heard}");
    });
}

/// Whether there was no answer, or an error: JetStream answers separately in each account.
fn is_refused<E, T>(answer: &Result<Result<Message, E>, T>) -> bool {
    match answer {
        Ok(Ok(message)) => {
            let told: Value = serde_json::from_slice(&message.payload).unwrap_or_default();
            told["error"].is_object()
        }
        _ => true,
    }
}

/// A client or an aggregator cannot remove, change or read entries that are not its own.
#[test]
fn nobody_but_the_administrator_changes_streams() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return };
        let (mx1, log) = (fleet.client("mx1").await, fleet.aggregator().await);
        let place = append(&mx1, batch(1, 1), b"kept").await;
        let step = append_step(&log, b"kept").await;
        for key in ["mx1", "agg"] {
            let raw = fleet.raw(key).await;
            for stream in ["BULKMARK_BATCHES", "BULKMARK_STEPS"] {
                for (verb, question) in [
                    ("PURGE", Value::Null),
                    ("DELETE", Value::Null),
                    ("MSG.DELETE", json!({ "seq": 1 })),
                    ("UPDATE", json!({ "name": stream, "subjects": ["x"] })),
                ] {
                    let subject = format!("$JS.API.STREAM.{verb}.{stream}");
                    let asked = raw.request(subject.clone(), question.to_string().into());
                    let answer = timeout(SOON, asked).await;
                    assert!(is_refused(&answer), "{key}: {subject}: {answer:?}");
                }
            }
            if key == "mx1" {
                let get = raw.request("$JS.API.DIRECT.GET.BULKMARK_BATCHES", r#"{"seq":1}"#.into());
                assert!(is_refused(&timeout(SOON, get).await), "{key} reads reports");
            }
        }
        // An aggregator cannot act as a client.
        let forged = fleet.connect("agg", Some("mx1")).await;
        let error = forged.append(batch(9, 9), b"forged".to_vec()).await.unwrap_err();
        assert!(error.to_string().contains("nobody answers"), "{error}");
        let ends = insist(|| log.ends()).await;
        assert_eq!((ends.batches, ends.steps, ends.first_step), (place, step, step));

        // Not even the administrator can purge reports.
        let raw = fleet.raw("admin").await;
        let answer = raw.request("$JS.API.STREAM.PURGE.BULKMARK_BATCHES", "".into()).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer.payload).unwrap();
        assert!(answer["error"].is_object(), "{answer}");
    });
}
