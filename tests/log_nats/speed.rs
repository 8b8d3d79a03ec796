//! How fast it is; not run with the other tests: `make bench-log`.

use crate::fleet::Fleet;
use crate::log_conformance::batches::join_all;
use crate::log_conformance::{Engine, append, append_step, batch, batches_behind, insist, own, run, take};
use bulkmark::sync::log::{Log, Place};
use std::time::{Duration, Instant};

/// Signatures of a full batch, and its bytes.
const SIGNATURES: u64 = 8192;
const BYTES: usize = 140_000;

/// Batches that each of two clients appends, and how many of them are outstanding.
const ROUNDS: u64 = 40;
const OUTSTANDING: u64 = 8;

/// Clients who only follow, for how long, and how often a step comes meanwhile.
const FOLLOWERS: usize = 50;
const IDLE: Duration = Duration::from_secs(20);

/// Full batches of two clients through three nodes with `sync_interval: always`, while an aggregator reads them; then what a
/// follower costs where nothing happens.
#[test]
#[ignore = "it measures"]
fn speed() {
    run(async || {
        let Some(fleet) = Fleet::fresh(&own(&["mx1", "mx2"])).await else { return };
        let clients = [fleet.client("mx1").await, fleet.client("mx2").await];
        let log = fleet.aggregator().await;
        append(&clients[0], batch(9, 9), b"warm").await;
        let count = 2 * ROUNDS * OUTSTANDING;
        let began = Instant::now();
        let write = async |client: usize| {
            for round in 0..ROUNDS {
                let numbers = round * OUTSTANDING..(round + 1) * OUTSTANDING;
                let appends = numbers.map(async |number| {
                    let bytes = vec![number as u8; BYTES];
                    append(&clients[client], batch(client as u64, number), &bytes).await
                });
                join_all(appends.collect()).await;
            }
            began.elapsed()
        };
        let (one, other, read) =
            tokio::join!(write(0), write(1), batches_behind(&log, Place(1), count as usize));
        assert_eq!(read.len() as u64, count);
        let all = began.elapsed().as_secs_f64();
        let appended = one.max(other).as_secs_f64();
        println!(
            "{count} batches of {SIGNATURES} signatures ({BYTES} bytes): appended in {appended:.2} s = {:.0} signatures/s; read by \
             an aggregator after {all:.2} s",
            (count * SIGNATURES) as f64 / appended
        );

        let mut latencies = Vec::new();
        let mut follower = insist(|| clients[0].steps(Place(0))).await;
        for _ in 0..100 {
            let began = Instant::now();
            append_step(&log, &[1; 6000]).await;
            take(&mut follower, 1).await;
            latencies.push(began.elapsed());
        }
        latencies.sort();
        println!(
            "a step of 6 kB, from its append to a follower: median {:?}, 95 % {:?}",
            latencies[50], latencies[95]
        );

        let before: f64 = fleet.cluster.nodes.iter().map(|node| node.cost().0).sum();
        tokio::time::sleep(IDLE).await;
        let none: f64 = fleet.cluster.nodes.iter().map(|node| node.cost().0).sum::<f64>() - before;
        let mut idle = Vec::new();
        for _ in 0..FOLLOWERS {
            let client = fleet.client("mx2").await;
            let after = insist(|| client.ends()).await.steps;
            idle.push((insist(|| client.steps(after)).await, client));
        }
        let before: f64 = fleet.cluster.nodes.iter().map(|node| node.cost().0).sum();
        let own = own_cost();
        tokio::time::sleep(IDLE).await;
        let some: f64 = fleet.cluster.nodes.iter().map(|node| node.cost().0).sum::<f64>() - before;
        let seconds = IDLE.as_secs_f64();
        println!(
            "idle: three nodes {:.2} % of a core, with {FOLLOWERS} followers {:.2} %; each follower itself {:.3} %",
            none / seconds * 100.0,
            some / seconds * 100.0,
            (own_cost() - own) / seconds * 100.0 / FOLLOWERS as f64
        );
        for node in &fleet.cluster.nodes {
            println!("a node has {} MB", node.cost().1);
        }
    });
}

/// Seconds of processor time of this process.
fn own_cost() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit_once(") ").unwrap().1.split(' ').map(str::to_owned).collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}
