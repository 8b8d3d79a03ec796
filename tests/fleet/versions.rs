// SPDX-License-Identifier: GPL-3.0-or-later
//! Entries of other versions, or junk, in a fleet's log: steps, batches and snapshots of other forms. All are skipped and logged with the
//! remedy, and change no count, on both engines.

use crate::conformance::insist;
use bulkmark_sync::Link;
use bulkmark_sync::log::nats::Nats;
use bulkmark_sync::log::postgres::Postgres;
use bulkmark_sync::log::{BatchId, Log, Place, Reader as _};
use bulkmark_testing::fleet::{Engine, Fleet};
use bulkmark_testing::letters::{letter, wait_for};
use bulkmark_testing::members::Members;
use bulkmark_testing::{Site, status, wait_until};
use std::sync::Arc;
use tokio::sync::mpsc;

on_both_logs! {
    what_other_versions_wrote_is_passed_over,
}

/// The same bytes in another form, equally complete.
fn of_form(bytes: &[u8], form: u8) -> Vec<u8> {
    let mut bytes = bytes[..bytes.len() - 4].to_vec();
    bytes[4] = form;
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// Appends a step of any content at the end; others may append at the same time.
async fn append_step<L: Log>(log: &L, bytes: &[u8]) {
    loop {
        let after = insist(|| log.ends()).await.steps;
        if insist(|| log.append_step(after, bytes.to_vec())).await.is_some() {
            return;
        }
    }
}

async fn append<L: Log>(log: &L, number: u64, bytes: &[u8]) {
    let id = BatchId { spool: 7, number, attempt: 0 };
    insist(|| log.append(id, bytes.to_vec())).await;
}

/// The first step and the first batch in the log.
async fn firsts<L: Log>(log: &L) -> [Vec<u8>; 2] {
    let mut steps = insist(|| log.steps(Place(0))).await;
    let mut batches = insist(|| log.batches(Place(0))).await;
    [steps.next().await.unwrap().bytes, batches.next().await.unwrap().bytes]
}

async fn put_snapshot<L: Log>(log: &L, part: &[u8]) {
    insist(async || {
        let (sender, parts) = mpsc::channel(2);
        sender.send(Some(part.to_vec())).await.unwrap();
        sender.send(None).await.unwrap();
        log.put_snapshot(parts).await
    })
    .await;
}

/// The kind of entry that is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    StepsAndBatches,
    Snapshot,
}

/// Writes these entries, as an aggregator and as a faulty milter mx2.
async fn spoil<L: Log>(aggregator: &L, milter: &L, what: What) {
    if what == What::Snapshot {
        let mut part = b"BMFP\x01\0\0\0\0what a newer one puts there".to_vec();
        part.extend_from_slice(&[0; 4]);
        return put_snapshot(aggregator, &of_form(&part, 3)).await;
    }
    let [step, batch] = firsts(aggregator).await;
    for odd in [&of_form(&step, 3), &of_form(&step, 0), b"\xde\xad\xbe\xef" as &[u8], &step] {
        append_step(aggregator, odd).await;
    }
    for (number, odd) in (1..).zip([&of_form(&batch, 9), b"\0" as &[u8], &batch[..batch.len() / 2]]) {
        append(milter, number, odd).await;
    }
}

fn put(fleet: &Fleet, what: What) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let [aggregator, milter] = ["agg2", "mx2"].map(|name| fleet.settings(name));
    let link = || Arc::new(Link::new("the test"));
    runtime.block_on(async {
        match fleet.log {
            Engine::Postgres(_) => {
                let of = |settings| Postgres::new(settings, link()).unwrap();
                spoil(&of(&aggregator), &of(&milter), what).await;
            }
            Engine::Nats(..) => {
                let (one, two) = (Nats::new(&aggregator, link()), Nats::new(&milter, link()));
                spoil(&one.await.unwrap(), &two.await.unwrap(), what).await;
            }
        }
    });
}

fn what_other_versions_wrote_is_passed_over(fleet: &Fleet) {
    let mut members = Members::start(fleet, &["agg1"], &["mx1", "mx2"]);
    members.send(0, 1, 3);
    members.send(1, 1, 1);
    members.wait_for(1, 4);
    members.settle();
    put(fleet, What::StepsAndBatches);
    // Each logs the entry that it met, and the remedy; for steps at most one line a minute.
    let newer =
        "it is a step of form 3, and forms 1 to 2 are known here; a newer bulkmark made it: upgrade this one";
    members.milter(0).log.wait_for(0, newer);
    members.aggregator(0).log.wait_for(0, newer);
    members.wait_for_status(0, &["skipped in the log: a step at place "]);
    let batch = "a batch of \"mx2\" at place ";
    members.aggregator(0).log.wait_for(0, batch);
    members.wait_for_server_status(0, batch);
    members.send(0, 1, 2);
    members.send(1, 1, 3);
    members.wait_for(1, 9);
    members.settle();
    for site in &members.sites {
        let status = status(site);
        assert_eq!(
            (&status["fleet"]["junk-steps"], &status["fleet"]["epoch"]),
            (&3.into(), &1.into()),
            "{status}"
        );
    }
    members.aggregators[0].take().unwrap().kill();
    put(fleet, What::Snapshot);
    // That snapshot is unusable. All steps are there, so a new milter takes these.
    let new = fleet.milter("isp");
    let daemon = new.start();
    daemon.log.wait_for(0, "it is a snapshot of form 3, and form 1 is known here; a newer bulkmark made it");
    wait_for(&new, &letter(1), 9);
    is_well(&new);
    // An aggregator that finds such a snapshot at its start replaces it with its own.
    let again = members.servers[0].start();
    members.send(0, 1, 1);
    again.log.wait_for(0, "a snapshot of what is counted here takes its place");
    again.log.wait_for(0, "was put into the log");
    let later = fleet.milter("mx3");
    let _later = later.start();
    wait_for(&later, &letter(1), 10);
    assert!(status(&later)["fleet"]["snapshots"] == 1, "{}", status(&later));
}

/// Waits until no fault is shown any longer.
fn is_well(site: &Site) {
    wait_until("a milter without errors", || {
        let status = status(site);
        if status["links"][0]["error"].is_null() { Ok(()) } else { Err(status.to_string()) }
    });
}
