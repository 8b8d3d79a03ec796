// SPDX-License-Identifier: GPL-3.0-or-later
//! TLS and passwords, on a single node.

use crate::conformance::{insist, run};
use bulkmark_sync::Link;
use bulkmark_sync::log::nats::{self, Nats};
use bulkmark_sync::log::{Duty, Log, LogError, Member, SetUp, Settings};
use bulkmark_testing::PATIENCE;
use bulkmark_testing::nats::Cluster;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use tokio::time::Instant;

/// An authority, whose certificate is written to the file.
fn authority(file: &Path) -> Issuer<'static, KeyPair> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(file, params.self_signed(&key).unwrap().pem()).unwrap();
    Issuer::new(params, key)
}

fn certify(issuer: &Issuer<'static, KeyPair>, directory: &Path, expired: bool) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    if expired {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2020, 2, 1));
    }
    fs::write(directory.join("cert.pem"), params.signed_by(&key, issuer).unwrap().pem()).unwrap();
    fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
}

async fn connect(settings: &Settings) -> Nats {
    Nats::new(settings, Arc::new(Link::new(&settings.log))).await.unwrap()
}

/// The log is reached with the right authority and password; a faulty certificate is named in the error.
#[test]
fn a_wrong_certificate_is_told() {
    run(async || {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let issuer = authority(&at("ca.pem"));
        authority(&at("other.pem"));
        certify(&issuer, directory.path(), false);
        fs::write(at("password"), "a \"long\" one\n").unwrap();
        let shown = directory.path().display();
        let tls = format!("tls {{ cert_file: \"{shown}/cert.pem\", key_file: \"{shown}/key.pem\" }}");
        let Some(cluster) = Cluster::start(1, &tls) else { return };
        cluster.wait_until_well();
        let settings = Settings {
            log: cluster.url(),
            name: Some("agg".to_owned()),
            secret_file: Some(at("password")),
            tls: Some(true),
            ca_file: Some(at("ca.pem")),
            ..Settings::default()
        };
        let member = Member {
            name: "agg".to_owned(),
            duty: Duty::Aggregator,
            nkey: None,
            password_file: Some(at("password")),
        };
        let how = SetUp { dry_run: false, accounts: Some(cluster.accounts()), replicas: 1 };
        let members = [member];
        // Whoever sets up has all rights, and members have few.
        let error = nats::setup(&settings, &members, &how).await.unwrap_err().to_string();
        assert!(error.contains("agg has the credentials of the user who runs fleet setup"), "{error}");
        let owner = Settings { name: Some("owner".to_owned()), ..settings.clone() };
        let error = nats::setup(&owner, &members, &how).await.unwrap_err().to_string();
        assert!(error.contains("does not let this account in"), "{error}");
        cluster.reload();
        insist(|| nats::setup(&owner, &members, &how)).await;
        let log = connect(&settings).await;
        assert!(insist(|| log.ends()).await.made > 0);

        let other = Settings { ca_file: Some(at("other.pem")), ..owner.clone() };
        assert!(trouble(&other).await.contains("certificate"));
        certify(&issuer, directory.path(), true);
        cluster.reload();
        let error = trouble(&settings).await;
        assert!(error.to_lowercase().contains("expired"), "{error}");

        // `fleet setup` makes the file readable by its owner only, since it contains passwords.
        let new = SetUp { accounts: Some(at("new.conf")), ..how };
        let _ = nats::setup(&other, &members, &new).await;
        assert_eq!(fs::metadata(at("new.conf")).unwrap().permissions().mode() & 0o777, 0o640);
    });
}

/// The reason why there is no connection, once it is known.
async fn trouble(settings: &Settings) -> String {
    let log = connect(settings).await;
    let deadline = Instant::now() + PATIENCE;
    loop {
        match log.ends().await {
            Err(LogError::Unavailable(what)) if what.contains("certificate") => return what,
            other => assert!(Instant::now() < deadline, "{other:?}"),
        }
    }
}
