// SPDX-License-Identifier: GPL-3.0-or-later
//! Clusters of three nodes with their accounts; all cases share them, and each cluster runs one case at a time.

use crate::conformance::Engine;
use bulkmark_sync::Link;
use bulkmark_sync::log::nats::{self, Nats, new_nkey};
use bulkmark_sync::log::{Client, Duty, LogError, Member, Place, SetUp, Settings};
use bulkmark_testing::PATIENCE;
use bulkmark_testing::nats::Cluster;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The clients with accounts.
const NAMES: [&str; 4] = ["mx1", "mx2", "mx3", "a-friend_2"];

/// The administrator and the aggregator.
const ADMIN: &str = "admin";
const AGGREGATOR: &str = "agg";

/// A cluster, and the lock of the case that uses it.
struct Shared {
    turn: Mutex<()>,
    cluster: OnceCell<Option<Cluster>>,
}

/// Cases mostly wait for their cluster, so there are several.
static CLUSTERS: [Shared; 3] =
    [const { Shared { turn: Mutex::const_new(()), cluster: OnceCell::const_new() } }; 3];
static CASES: AtomicUsize = AtomicUsize::new(0);

/// The cluster, for one case.
pub(crate) struct Fleet {
    _turn: MutexGuard<'static, ()>,
    pub(crate) cluster: &'static Cluster,
    kills: AtomicUsize,
}

impl Fleet {
    /// The path of a member's nkey.
    pub(crate) fn key(&self, name: &str) -> std::path::PathBuf {
        key(&self.cluster.directory, name)
    }

    /// The settings that a configuration would have.
    pub(crate) fn settings(&self, key: &str, client: Option<&str>) -> Settings {
        Settings {
            log: self.cluster.url(),
            name: client.map(str::to_owned),
            reports: client.is_some(),
            secret_file: Some(self.key(key)),
            ..Settings::default()
        }
    }

    pub(crate) async fn connect(&self, key: &str, client: Option<&str>) -> Nats {
        let settings = self.settings(key, client);
        Nats::new(&settings, Arc::new(Link::new(&settings.log))).await.unwrap()
    }

    /// The aggregator as the file of `fleet setup` describes it.
    pub(crate) fn aggregator_member(&self) -> Member {
        let seed = fs::read_to_string(self.key(AGGREGATOR)).unwrap();
        let nkey = Some(nkeys::KeyPair::from_seed(seed.trim()).unwrap().public_key());
        Member { name: AGGREGATOR.to_owned(), duty: Duty::Aggregator, nkey, password_file: None }
    }

    /// A connection without bulkmark's code.
    pub(crate) async fn raw(&self, key: &str) -> async_nats::Client {
        let seed = fs::read_to_string(self.key(key)).unwrap();
        let options = async_nats::ConnectOptions::new().nkey(seed).retry_on_initial_connect();
        options.connect(format!("127.0.0.1:{}", self.cluster.nodes[0].port)).await.unwrap()
    }

    /// Asks JetStream's API with full rights, until it answers without an error.
    pub(crate) async fn api(&self, subject: &str, question: Value) -> Value {
        let client = self.raw(ADMIN).await;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let question = if question.is_null() { String::new() } else { question.to_string() };
            let answer = client.request(format!("$JS.API.{subject}"), question.into()).await;
            let answer = answer.map(|m| serde_json::from_slice::<Value>(&m.payload).unwrap());
            if let Ok(answer) = &answer
                && (answer["error"].is_null() || is_done(subject, answer))
            {
                return answer.clone();
            }
            assert!(Instant::now() < deadline, "{subject}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Changes the configuration of a stream.
    pub(crate) async fn change(&self, stream: &str, change: Value) -> Value {
        let mut config = self.api(&format!("STREAM.INFO.{stream}"), Value::Null).await["config"].clone();
        for (key, value) in change.as_object().unwrap() {
            config[key] = value.clone();
        }
        self.api(&format!("STREAM.UPDATE.{stream}"), config).await
    }

    /// Sets up the streams, until that succeeds.
    pub(crate) async fn set_up(&self, clients: &[Client]) {
        let settings = self.settings(ADMIN, None);
        let members = clients.iter().map(|client| member(client.clone()));
        let members: Vec<_> = members.chain([self.aggregator_member()]).collect();
        let how = SetUp { dry_run: false, accounts: None, replicas: 3 };
        let (deadline, mut began, mut patience) =
            (Instant::now() + PATIENCE, Instant::now(), Duration::from_secs(20));
        while let Err(error) = nats::setup(&settings, &members, &how).await {
            assert!(matches!(error, LogError::Unavailable(_) | LogError::NotSetUp(_)), "{error}");
            assert!(Instant::now() < deadline, "it is not set up: {error}\n{}", self.cluster.logs());
            // After a kill, nodes do not always accept each other as peers (2.10.27), until all of them restart once more.
            if error.to_string().contains("no suitable peers") && began.elapsed() > patience {
                self.cluster.start_anew();
                (began, patience) = (Instant::now(), patience * 2);
            }
        }
    }
}

/// Ages are in nanoseconds; a stream's window for duplicates cannot be longer than its age.
fn age(age: u64) -> Value {
    json!({ "max_age": age, "duplicate_window": age })
}

/// Whether an earlier attempt, whose answer was lost, already had this effect.
fn is_done(subject: &str, answer: &Value) -> bool {
    subject.starts_with("STREAM.DELETE.") && answer["error"]["err_code"] == 10059
}

fn key(directory: &Path, name: &str) -> std::path::PathBuf {
    directory.join(format!("{name}.nk"))
}

/// A milter as the file of `fleet setup` describes it, without its key.
fn member(client: Client) -> Member {
    let Client { name, limits, withdrawn, rate } = client;
    Member { name, duty: Duty::Milter { limits, withdrawn, rate }, nkey: None, password_file: None }
}

/// Writes keys and accounts, and makes the nodes load these.
async fn begin() -> Option<Cluster> {
    let cluster = Cluster::start(3, "")?;
    let directory = &*cluster.directory;
    let new_key = |name: &str| {
        let (seed, public) = new_nkey().unwrap();
        fs::write(key(directory, name), seed).unwrap();
        Some(public)
    };
    let milter = |name: &&str| Member {
        nkey: new_key(name),
        ..member(Client { name: (*name).to_owned(), limits: None, withdrawn: 0, rate: None })
    };
    let mut members: Vec<_> = NAMES.iter().map(milter).collect();
    let nkey = new_key(AGGREGATOR);
    members.push(Member { name: AGGREGATOR.to_owned(), duty: Duty::Aggregator, nkey, password_file: None });
    new_key(ADMIN);
    let settings =
        Settings { log: cluster.url(), secret_file: Some(key(directory, ADMIN)), ..Settings::default() };
    let how = SetUp { dry_run: false, accounts: Some(cluster.accounts()), replicas: 3 };
    // Servers accept no client before they have read the accounts.
    cluster.wait_until_well();
    let error = nats::setup(&settings, &members, &how).await.unwrap_err().to_string();
    assert!(error.contains("accounts written to") && error.contains("reload"), "{error}");
    cluster.reload();
    Some(cluster)
}

impl Engine for Fleet {
    type Log = Nats;

    async fn fresh(clients: &[Client]) -> Option<Self> {
        let shared = &CLUSTERS[CASES.fetch_add(1, Ordering::Relaxed) % CLUSTERS.len()];
        let turn = shared.turn.lock().await;
        let cluster = shared.cluster.get_or_init(begin).await.as_ref()?;
        let fleet = Self { _turn: turn, cluster, kills: AtomicUsize::new(0) };
        cluster.start_all();
        cluster.wait_until_well();
        let streams = fleet.api("STREAM.NAMES", Value::Null).await;
        for stream in streams["streams"].as_array().into_iter().flatten() {
            fleet.api(&format!("STREAM.DELETE.{}", stream.as_str().unwrap()), Value::Null).await;
        }
        fleet.set_up(clients).await;
        Some(fleet)
    }

    async fn aggregator(&self) -> Nats {
        self.connect(AGGREGATOR, None).await
    }

    async fn client(&self, name: &str) -> Nats {
        self.connect(name, Some(name)).await
    }

    async fn kill_leader(&self) {
        let stream = ["BULKMARK_BATCHES", "BULKMARK_STEPS"][self.kills.fetch_add(1, Ordering::Relaxed) % 2];
        self.cluster.leader(stream).kill();
    }

    async fn kill_all(&self) {
        self.cluster.kill_all();
    }

    async fn restart(&self) {
        self.cluster.start_all();
        self.cluster.wait_until_well();
    }

    async fn cut(&self) {
        self.cluster.cut();
    }

    async fn drop_steps_before(&self, place: Place) {
        let state = self.api("STREAM.INFO.BULKMARK_STEPS", Value::Null).await["state"].clone();
        let last = state["last_seq"].as_u64().unwrap();
        let (limit, none) = match (last + 1).checked_sub(place.0) {
            Some(0) | None => (age(100_000_000), age(3_600_000_000_000)),
            Some(kept) => (json!({ "max_msgs": kept }), json!({ "max_msgs": -1 })),
        };
        self.change("BULKMARK_STEPS", limit).await;
        loop {
            let state = self.api("STREAM.INFO.BULKMARK_STEPS", Value::Null).await["state"].clone();
            if state["first_seq"].as_u64().unwrap() >= place.0.min(last + 1) {
                break;
            }
        }
        self.change("BULKMARK_STEPS", none).await;
    }

    async fn renew_batches(&self) {
        self.api("STREAM.DELETE.BULKMARK_BATCHES", Value::Null).await;
        let clients = [Client { name: "mx1".to_owned(), limits: None, withdrawn: 0, rate: None }];
        self.set_up(&clients).await;
    }
}
