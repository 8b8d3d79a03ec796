// SPDX-License-Identifier: GPL-3.0-or-later
//! `fleet setup`: repeatable at any time, and read-only with `--dry-run`.

use super::cluster::Fleet;
use crate::conformance::{Engine, append, batch, becomes, insist, own, refused, run};
use bulkmark_sync::log::nats::{self, new_nkey};
use bulkmark_sync::log::{Duty, Log, LogError, Member, SetUp};
use bulkmark_testing::PATIENCE;
use serde_json::json;
use std::time::Instant;

/// Correct settings are left alone; others are listed and corrected, once.
#[test]
fn it_is_done_once_and_undone_changes_again() {
    run(async || {
        let clients = own(&["mx1"]);
        let Some(fleet) = Fleet::fresh(&clients).await else { return };
        let (settings, log) = (fleet.settings("admin", None), fleet.aggregator().await);
        let member = |name: &str| Member {
            name: name.to_owned(),
            duty: Duty::Milter { limits: None, withdrawn: 0, rate: None },
            nkey: None,
            password_file: None,
        };
        let how = SetUp { dry_run: false, accounts: None, replicas: 3 };
        let dry = SetUp { dry_run: true, ..how.clone() };
        let members = [member("mx1"), fleet.aggregator_member()];
        assert_eq!(insist(|| nats::setup(&settings, &members, &how)).await, Vec::<String>::new());

        fleet.change("BULKMARK_STEPS", json!({ "max_age": 7_200_000_000_000_u64 })).await;
        let more = [member("mx1"), member("mx2"), fleet.aggregator_member()];
        let told = insist(|| nats::setup(&settings, &more, &dry)).await;
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(
            told[0].contains("BULKMARK_STEPS: changed max_age from 7200000000000 to 604800000000000"),
            "{told:?}"
        );
        assert!(told[1].contains("list of 2 clients"), "{told:?}");
        assert_eq!(insist(|| nats::setup(&settings, &more, &dry)).await, told, "nothing was done");
        assert_eq!(insist(|| log.clients()).await, clients);
        assert_eq!(nats::setup(&settings, &more, &how).await.unwrap(), told);
        assert_eq!(insist(|| nats::setup(&settings, &more, &how)).await, Vec::<String>::new());
        becomes(|| log.clients(), |clients| *clients == own(&["mx1", "mx2"])).await;
    });
}

/// Before the first setup nobody has an account: `--dry-run` still lists the changes, without passwords.
#[test]
fn a_dry_run_on_a_new_log_tells_what_would_be_done() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return };
        let (seed, _) = new_nkey().unwrap();
        std::fs::write(fleet.key("stranger"), seed).unwrap();
        let settings = fleet.settings("stranger", None);
        let secret = fleet.key("mx2.password");
        std::fs::write(&secret, "not to be seen").unwrap();
        let member = Member {
            name: "mx2".to_owned(),
            duty: Duty::Milter { limits: None, withdrawn: 0, rate: None },
            nkey: None,
            password_file: Some(secret),
        };
        let accounts = fleet.key("new-accounts.conf");
        let dry = SetUp { dry_run: true, accounts: Some(accounts.clone()), replicas: 3 };
        let told = nats::setup(&settings, &[member, fleet.aggregator_member()], &dry).await.unwrap();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with("accounts would be written to "), "{told:?}");
        assert!(told[0].contains("BULKMARK_mx2") && !told[0].contains("not to be seen"), "{told:?}");
        assert!(told[1].contains("streams cannot be looked at yet"), "{told:?}");
        assert!(!accounts.exists());
    });
}

/// A log from the previous version has no place for state reports. All else works, and `fleet setup` creates the place.
#[test]
fn members_speak_when_an_older_log_is_set_up_again() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return };
        let (mx1, log) = (fleet.client("mx1").await, fleet.aggregator().await);
        fleet.api("STREAM.DELETE.BULKMARK_MEMBERS", json!(null)).await;
        fleet.change("BULKMARK_CLIENTS", json!({ "subjects": ["bulkmark.clients"] })).await;
        mx1.publish_state(b"unheard".to_vec()).await.unwrap_err();
        let error = refused(|| log.state_reports()).await;
        assert!(matches!(&error, LogError::NotSetUp(what) if what.contains("fleet setup")), "{error}");
        append(&mx1, batch(1, 1), b"all else works").await;
        fleet.set_up(&own(&["mx1"])).await;
        insist(|| mx1.publish_state(b"heard".to_vec())).await;
        insist(|| log.publish_state(b"heard".to_vec())).await;
    });
}

/// If nodes lack room, the error names the room needed; with that, setup succeeds.
#[test]
fn room_that_is_missing_is_named() {
    run(async || {
        let clients = own(&["mx1"]);
        let Some(fleet) = Fleet::fresh(&clients).await else { return };
        // 20 GB in total.
        fleet.api("STREAM.DELETE.BULKMARK_SNAPSHOT", json!(null)).await;
        let other =
            json!({ "name": "OTHER", "subjects": ["other"], "num_replicas": 3, "max_bytes": 16_u64 << 30 });
        fleet.api("STREAM.CREATE.OTHER", other).await;

        let settings = fleet.settings("admin", None);
        let members = [fleet.aggregator_member()];
        let how = SetUp { dry_run: false, accounts: None, replicas: 3 };
        let deadline = Instant::now() + PATIENCE;
        let error = loop {
            assert!(Instant::now() < deadline, "nobody misses the room");
            match nats::setup(&settings, &members, &how).await {
                Err(error) if error.to_string().contains("BULKMARK_SNAPSHOT") => break error.to_string(),
                Err(_) => {}
                // The leader did not know the nodes' free space yet.
                Ok(_) => _ = fleet.api("STREAM.DELETE.BULKMARK_SNAPSHOT", json!(null)).await,
            }
        };
        for part in ["insufficient storage", "5.1 GB on each node", "max_file_store"] {
            assert!(error.contains(part), "{error}");
        }
        fleet.api("STREAM.DELETE.OTHER", json!(null)).await;
        fleet.set_up(&clients).await;
    });
}

/// A member without an account gets an error that names the reason; so does one whose stream is missing or of another version.
#[test]
fn what_is_missing_is_named() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1"])).await else { return };
        let log = fleet.client("mx1").await;
        fleet.change("BULKMARK_STEPS", json!({ "metadata": { "bulkmark": "99" } })).await;
        let error = refused(|| log.ends()).await;
        assert!(matches!(&error, LogError::NotSetUp(what) if what.contains("99")), "{error}");
        fleet.api("STREAM.DELETE.BULKMARK_STEPS", json!(null)).await;
        let error = refused(|| log.ends()).await;
        assert!(matches!(&error, LogError::NotSetUp(what) if what.contains("fleet setup")), "{error}");

        let (seed, _) = new_nkey().unwrap();
        std::fs::write(fleet.key("stranger"), seed).unwrap();
        let stranger = fleet.connect("stranger", Some("mx1")).await;
        let error = refused(|| stranger.ends()).await;
        assert!(
            matches!(&error, LogError::Denied(what) if what.contains("does not let this account in")),
            "{error}"
        );
    });
}
