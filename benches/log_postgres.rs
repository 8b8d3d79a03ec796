// SPDX-License-Identifier: GPL-3.0-or-later
//! The throughput of a fleet's log in PostgreSQL, and its cost while nothing happens.
//!
//!     cargo bench --bench log_postgres
//!     cargo bench --profile dev --bench log_postgres
//!
//! A server of PostgreSQL's own settings (every batch is on its disk before it is acknowledged), on this machine. Batches of 8,192
//! signatures (140 kB) and of 20 (400 B), with so many outstanding at a time at each of so many clients; a snapshot of 100 MB; then
//! followers who wait for steps that do not come, and for one a second. The second form is built sooner and nearly as fast: the
//! work is the server's.

use bulkmark_sync::Link;
use bulkmark_sync::log::postgres::{Postgres, setup};
use bulkmark_sync::log::{BatchId, Duty, Log, Member, Place, Reader as _, SetUp, Settings};
use bulkmark_testing::postgres as server;
use bulkmark_testing::process::processor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The duration of each part.
const WHILE: Duration = Duration::from_secs(10);

/// Signatures of the larger batches, and bytes of both.
const SIGNATURES: u64 = 8192;
const LARGE: usize = 140_000;
const SMALL: usize = 400;

/// Followers at most.
const FOLLOWERS: usize = 50;

fn main() {
    // `cargo test --benches` runs this without `--bench`: then there is nothing to measure.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

struct Rig {
    server: server::Postgres,
}

impl Rig {
    fn settings(&self, user: &str) -> Settings {
        Settings {
            log: format!("postgres://127.0.0.1:{}/{}", self.server.port, server::DATABASE),
            name: Some(user.to_owned()),
            secret_file: Some(self.server.path("password")),
            ..Settings::default()
        }
    }

    fn log(&self, user: &str) -> Arc<Postgres> {
        let settings = self.settings(user);
        Arc::new(Postgres::new(&settings, Arc::new(Link::new(&settings.log))).unwrap())
    }

    /// Seconds that the server worked, and those of this process.
    fn processors(&self) -> (f64, f64) {
        (self.server.processes().iter().map(|&pid| processor(pid)).sum(), processor(std::process::id()))
    }

    /// Prints the cost of a period, in shares of a core.
    async fn cost(&self, what: &str, while_: impl Future<Output = ()>) {
        let (before, began) = (self.processors(), Instant::now());
        while_.await;
        let (after, seconds) = (self.processors(), began.elapsed().as_secs_f64());
        let share = |before: f64, after: f64| (after - before) / seconds * 100.0;
        println!(
            "{what}: server {:.2} % of a core, all followers {:.2} %",
            share(before.0, after.0),
            share(before.1, after.1)
        );
    }
}

async fn measure() {
    let Some(server) = server::Postgres::init() else { return };
    // The settings of Debian's package.
    server.configure("postgresql.conf", "shared_buffers = 128MB\nmax_wal_size = 1GB\nmin_wal_size = 80MB");
    server.run();
    server.wait_until_ready();
    server.secret("password", server::OWNER_PASSWORD);
    let rig = Rig { server };
    let file = rig.server.path("password");
    let member = |name: String, duty| Member { name, duty, nkey: None, password_file: Some(file.clone()) };
    let milters = (0..FOLLOWERS)
        .map(|i| member(format!("mx{i}"), Duty::Milter { limits: None, rate: None, withdrawn: 0 }));
    let members: Vec<_> = milters.chain([member("agg".to_owned(), Duty::Aggregator)]).collect();
    let how = SetUp { dry_run: false, accounts: None, replicas: 1 };
    setup(&rig.settings(server::OWNER), &members, &how).await.unwrap();
    for (bytes, clients, outstanding) in
        [(LARGE, 1, 1), (LARGE, 1, 8), (LARGE, 4, 8), (SMALL, 1, 1), (SMALL, 1, 64), (SMALL, 8, 64)]
    {
        append(&rig, bytes, clients, outstanding).await;
    }
    read(&rig).await;
    snapshot(&rig).await;
    follow(&rig, 0).await;
    follow(&rig, 1).await;
    follow(&rig, FOLLOWERS).await;
}

async fn append(rig: &Rig, size: usize, clients: usize, outstanding: usize) {
    static SPOOL: AtomicU64 = AtomicU64::new(1);
    let (done, slowest) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let log = rig.log(&format!("mx{client}"));
        for _ in 0..outstanding {
            let spool = SPOOL.fetch_add(1, Ordering::Relaxed);
            let (log, done, slowest) = (Arc::clone(&log), Arc::clone(&done), Arc::clone(&slowest));
            tasks.spawn(async move {
                // A payload that cannot be compressed.
                let bytes: Vec<u8> =
                    (0..size as u64).map(|i| ((i * i) ^ ((spool * 31 + i) >> 3)) as u8).collect();
                for number in 1.. {
                    let start = Instant::now();
                    log.append(BatchId { spool, number, attempt: 0 }, bytes.clone()).await.unwrap();
                    slowest.fetch_max(start.elapsed().as_millis() as u64, Ordering::Relaxed);
                    done.fetch_add(1, Ordering::Relaxed);
                    if began.elapsed() > WHILE {
                        break;
                    }
                }
            });
        }
    }
    tasks.join_all().await;
    let rate = done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
    let signatures = if size == LARGE { SIGNATURES } else { 20 };
    println!(
        "batches of {size} B, {clients} clients, {outstanding} outstanding each: {rate:.0}/s = {:.0} signatures/s, slowest {} ms",
        rate * signatures as f64,
        slowest.load(Ordering::Relaxed)
    );
}

/// Reads all batches once more, as after an epoch change.
async fn read(rig: &Rig) {
    let log = rig.log("agg");
    let last = log.ends().await.unwrap().batches;
    let (began, mut bytes) = (Instant::now(), 0);
    let mut reader = log.batches(Place(0)).await.unwrap();
    loop {
        let batch = reader.next().await.unwrap();
        bytes += batch.bytes.len();
        if batch.place == last {
            break;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    println!("reading {} batches: {:.0} MB/s", last.0, bytes as f64 / 1e6 / seconds);
}

async fn snapshot(rig: &Rig) {
    let log = rig.log("agg");
    let began = Instant::now();
    let (sender, receiver) = mpsc::channel(2);
    let feed = async {
        for i in 0..110_u32 {
            let part = (0..900_000_u32).map(|j| ((i * j) ^ (j >> 5)) as u8).collect();
            sender.send(Some(part)).await.unwrap();
        }
        sender.send(None).await.unwrap();
    };
    let (put, ()) = tokio::join!(log.put_snapshot(receiver), feed);
    put.unwrap();
    let putting = began.elapsed();
    let began = Instant::now();
    let mut reader = log.snapshot().await.unwrap();
    while reader.next().await.unwrap().is_some() {}
    println!("snapshot of 100 MB: put {putting:.1?}, read {:.1?}", began.elapsed());
}

async fn follow(rig: &Rig, followers: usize) {
    let aggregator = rig.log("agg");
    let end = aggregator.ends().await.unwrap().steps;
    let mut tasks = JoinSet::new();
    let (told, mut applied) = mpsc::unbounded_channel();
    for i in 0..followers {
        let (log, told) = (rig.log(&format!("mx{i}")), told.clone());
        let mut steps = log.steps(end).await.unwrap();
        tasks.spawn(async move {
            loop {
                steps.next().await.unwrap();
                told.send(Instant::now()).unwrap();
            }
        });
    }
    rig.cost(&format!("{followers} followers, nothing happens"), tokio::time::sleep(WHILE)).await;
    if followers == 0 {
        return;
    }
    let mut latest = Duration::ZERO;
    let steps = async {
        let mut after = end;
        for _ in 0..WHILE.as_secs() {
            let began = Instant::now();
            after = aggregator.append_step(after, vec![7; 6000]).await.unwrap().unwrap();
            for _ in 0..followers {
                latest = latest.max(applied.recv().await.unwrap() - began);
            }
            tokio::time::sleep(Duration::from_secs(1).saturating_sub(began.elapsed())).await;
        }
    };
    rig.cost(&format!("{followers} followers, a step of 6 kB each second"), steps).await;
    println!("{followers} followers have a step at the latest after {} ms", latest.as_millis());
    println!("memory of a connection: {} kB", rig.server.memory_of_a_connection());
}
