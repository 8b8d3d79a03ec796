// SPDX-License-Identifier: GPL-3.0-or-later
//! Connections to servers: passwords, TLS, several hosts, and servers that hang.

use super::{Rig, open, server};
use crate::conformance::{
    Engine, append, append_step, batch, batches_behind, bounded, insist, own, steps_behind, within,
};
use bulkmark_sync::log::{Log, LogError, Place, Reader as _, Settings};
use bulkmark_testing::authority::Authority;
use std::os::unix::fs::PermissionsExt;

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_is_denied_and_a_new_one_is_read() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let path = rig.server.secret("later.password", "wrong");
    let log = open(&Settings { secret_file: Some(path), ..rig.settings("mx1", "") });
    let error = log.ends().await.unwrap_err();
    assert!(matches!(&error, LogError::Denied(what) if what.contains("mx1")), "{error}");
    rig.server.secret("later.password", "mx1's own\n");
    insist(|| log.ends()).await;

    let none = Settings { secret_file: None, ..rig.settings("mx1", "") };
    let error = open(&none).ends().await.unwrap_err();
    assert!(matches!(&error, LogError::Denied(what) if what.contains("secret-file")), "{error}");
}

/// TLS only, with the channel binding of SCRAM: a server refuses one that does not fit its certificate.
#[tokio::test(flavor = "multi_thread")]
async fn connections_are_encrypted_to_the_right_server_only() {
    let Some(rig) = Rig::fresh(&own(&["mx1", "mx2"])).await else { return };
    let authority = Authority::new("the fleet's");
    let [certificate, key] = authority.issue("localhost");
    let files = [("server.crt", &*certificate), ("server.key", &*key), ("root.crt", authority.pem())];
    for (name, pem) in files {
        let path = rig.server.cluster().join("data").join(name);
        std::fs::write(&path, pem).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        rig.server.give(&path);
    }
    rig.server.configure("postgresql.conf", "ssl = on\nssl_ca_file = 'root.crt'");
    // The lines of docs/fleet-postgres.md.
    let lines = "hostssl bulkmark mx2 127.0.0.0/8 cert
        hostssl  bulkmark  fleet,+bulkmark_reporter,+bulkmark_aggregator  127.0.0.0/8  scram-sha-256
        host     bulkmark  all  all  reject";
    rig.server.configure("pg_hba.conf", lines);
    rig.server.kill_all();
    rig.server.run();
    rig.server.wait_until_ready();

    let ca = |name, authority: &Authority| Some(rig.server.secret(name, authority.pem()));
    let log = format!("postgres://localhost:{}/{}", rig.server.port, server::DATABASE);
    let right = Settings {
        log: log.clone(),
        tls: Some(true),
        ca_file: ca("ca", &authority),
        ..rig.settings("mx1", "mx1.password")
    };
    append(&open(&right), batch(1, 1), b"a").await;
    let encrypted = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) where usename = 'mx1' and not ssl";
    assert_eq!(rig.sql(encrypted), "0");

    // With a certificate instead of a password.
    let [certificate, key] = authority.issue("mx2");
    let shown = Settings {
        name: Some("mx2".to_owned()),
        secret_file: None,
        cert_file: Some(rig.server.secret("mx2.pem", &(certificate + &key))),
        ..right.clone()
    };
    append(&open(&shown), batch(1, 1), b"b").await;
    let of_another = Settings { name: Some("mx1".to_owned()), ..shown };
    let error = open(&of_another).ends().await.unwrap_err();
    assert!(matches!(&error, LogError::Denied(_)), "{error}");

    let plain = open(&Settings { tls: None, ca_file: None, ..right.clone() });
    let error = plain.ends().await.unwrap_err();
    assert!(matches!(&error, LogError::Denied(_)), "{error}");
    let other = Authority::new("another");
    let error = open(&Settings { ca_file: ca("other", &other), ..right.clone() }).ends().await.unwrap_err();
    assert!(error.to_string().contains("invalid peer certificate"), "{error}");
    let by_address = Settings { log: log.replace("localhost", "127.0.0.1"), ..right };
    let error = open(&by_address).ends().await.unwrap_err();
    assert!(error.to_string().contains("certificate not valid for name"), "{error}");
}

/// A dead host, a read-only one and a writable one, in any order.
#[tokio::test(flavor = "multi_thread")]
async fn of_several_servers_the_one_that_takes_writes_is_found() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let standby = rig.server.standby();
    let dead = bulkmark_testing::mta::free_port();
    for hosts in [[dead, standby.port, rig.server.port], [rig.server.port, standby.port, dead]] {
        let hosts = hosts.map(|port| format!("127.0.0.1:{port}")).join(",");
        let log = format!("postgres://{hosts}/{}", server::DATABASE);
        let log = open(&Settings { log, ..rig.settings("mx1", "mx1.password") });
        log.ends().await.unwrap();
    }
    let log = format!("postgres://127.0.0.1:{dead},127.0.0.1:{}/{}", standby.port, server::DATABASE);
    let error = open(&Settings { log, ..rig.settings("mx1", "mx1.password") }).ends().await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, LogError::Unavailable(_)), "{told}");
    assert!(told.contains(&dead.to_string()) && told.contains("does not allow writes"), "{told}");
}

/// A server that hangs is worse than a dead one: it gives no error.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_hang_are_errors_in_time() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let (known, new) = (rig.log("mx1"), rig.log("mx1"));
    append(&known, batch(1, 1), b"a").await;
    let mut follower = insist(|| known.steps(Place(0))).await;
    rig.server.hang(true);
    let (append, ends, fresh, waiting) = tokio::join!(
        bounded(known.append(batch(1, 2), b"b".to_vec())),
        bounded(known.ends()),
        bounded(new.ends()),
        bounded(follower.next()),
    );
    for error in [append.unwrap_err(), ends.unwrap_err(), fresh.unwrap_err(), waiting.unwrap_err()] {
        assert!(matches!(error, LogError::Unavailable(_)), "{error}");
    }
    rig.server.hang(false);
    crate::conformance::append(&known, batch(1, 2), b"b").await;
}

/// A member does not wait endlessly for another's open transaction.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_kept_waiting_by_another_is_told_in_time() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    let log = rig.log("mx1");
    append(&log, batch(1, 1), b"a").await;
    let blocker = rig.server.sql_in_background(
        "begin; update bulkmark.ends set last = last; select pg_advisory_lock(1); select pg_sleep(60)",
    );
    while rig.sql("select count(*) from pg_locks where locktype = 'advisory'") == "0" {
        tokio::task::yield_now().await;
    }
    let error = bounded(log.append(batch(1, 2), b"b".to_vec())).await.unwrap_err();
    assert!(matches!(&error, LogError::Unavailable(what) if what.contains("lock")), "{error}");
    rig.server.cut().unwrap();
    drop(blocker);
    append(&log, batch(1, 2), b"b").await;
    assert_eq!(batches_behind(&rig.log("agg"), Place(0), 2).await.len(), 2);
}

/// NOTIFY may be lost, or be missing, as in databases that only implement PostgreSQL's protocol.
#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_told_of_is_found_all_the_same() {
    let Some(rig) = Rig::fresh(&own(&["mx1"])).await else { return };
    append_step(&rig.log("agg"), b"first").await;
    let client = rig.log("mx1");
    let mut follower = insist(|| client.steps(Place(1))).await;
    rig.sql_as("agg", "select bulkmark.append_step(1, 'untold')").unwrap();
    assert_eq!(within("the step", follower.next()).await.unwrap().bytes, b"untold");
    assert_eq!(steps_behind(&rig.log("mx1"), Place(0), 2).await.len(), 2);
}
