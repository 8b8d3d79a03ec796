// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 21: thousands of made-up sites register.

use super::client::{self, Http};
use super::flood::{mb, memory};
use super::{Outcome, Scale};
use bulkmark_testing::ends::Ends;
use bulkmark_testing::random::element;
use bulkmark_testing::server::Server;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most bytes that they may cost in the file of clients, and in memory.
const MOST_FILE: u64 = 1 << 20;
const MOST_MEMORY: u64 = 16 << 20;

pub(crate) fn made_up_sites(scale: Scale) -> Outcome {
    // All of them report this signature.
    let victim = element(1);
    let number: u32 = if scale == Scale::Full { 10_000 } else { 300 };
    let server = Server::new("registration = \"open\"");
    let mut honest = Http::new(server.port, &client::partner(&server, "honest", &[]));
    let daemon = server.start();
    assert_eq!(honest.report(&[victim], 3).status, 200);
    let before = memory(&daemon, "VmRSS");
    let mut tokens = Vec::new();
    for n in 0..number {
        // From 250 different /16 networks, as diverse as one attacker can hope for.
        let from = format!("127.{}.{}.{}", n % 250, n / 250 % 250, n % 200 + 1);
        let body = format!("{{\"name\":\"honest\",\"contact\":\"{}\"}}", "x".repeat(200));
        let answer = Http::from(server.port, "", &from).ask("POST /v1/register", "", body.as_bytes());
        if answer.status == 200 {
            let told: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
            tokens.push((told["token"].as_str().unwrap().to_owned(), from));
        }
    }
    let statuses: Vec<_> = tokens
        .iter()
        .map(|(token, from)| Http::from(server.port, token, from).report(&[victim], 100).status)
        .collect();
    let reported = statuses.iter().filter(|&&status| status == 200).count();
    let grown = memory(&daemon, "VmRSS").saturating_sub(before);
    let file = fs::metadata(server.site.path("state/clients.json")).unwrap().len();
    let lines = server.client(&["list"]).lines().count();
    let (taken, counted) = (honest.report(&[element(2)], 1).status, honest.count(victim));
    // Others register meanwhile, as fast as they can.
    let ends = AtomicBool::new(false);
    let left = std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in (0..250).cycle().take_while(|_| !ends.load(Ordering::Relaxed)) {
                let from = format!("127.{n}.7.7");
                Http::from(server.port, "", &from).ask("POST /v1/register", "", b"{\"name\":\"late\"}");
            }
        });
        let end = Ends(&ends);
        server.client(&["remove", "--unapproved"]);
        let taken_back = "all reports of the client (unapproved) are withdrawn";
        let waiting = AssertUnwindSafe(|| daemon.log.wait_for(0, taken_back));
        let done = catch_unwind(waiting);
        drop(end);
        done.map_or(counted, |_| honest.count(victim))
    });
    Outcome::new(
        format!("{number} sites register, and {reported} of them report one signature 100 times"),
        format!(
            "{} are registered, in a file of {} kB and {} of memory; the operator's list has {lines} lines; the count rises from 3 to \
             {counted}, and is {left} when they are removed; an honest client gets {taken}",
            tokens.len(),
            file / 1000,
            mb(grown)
        ),
        tokens.len() <= 1000
            && reported > 0
            && counted <= 8
            && left == 3
            && file <= MOST_FILE
            && grown <= MOST_MEMORY
            && lines == 3
            && taken == 200,
    )
}
