// SPDX-License-Identifier: GPL-3.0-or-later
//! Two mail servers, each a real Postfix with its own milter, behind one signature server; all with default settings.

use bulkmark_testing::mta::Kind;
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::server::Server;
use bulkmark_testing::wait_until;
use std::time::Instant;

/// A message sent 20 times at one is bulk with the 21st at the other. `cargo test --test delivery federation_postfix:: -- --nocapture`
/// prints how long the counts took to arrive.
#[test]
fn what_one_mail_server_saw_is_bulk_at_the_other() {
    let mut server = Server::new("");
    server.sync = String::new();
    let _daemon = server.start();
    let rig = |name| Rig::start(Kind::Postfix, &format!("upstream = [{}]\n", server.entry(name, "report")));
    let (Some(a), Some(b)) = (rig("a"), rig("b")) else { return };
    let text = message("", NEWS);
    for n in 1..=20 {
        let verdict = a.verdict_for(&format!("user{n}@box.test"), &text);
        assert!(verdict.contains(&format!("; body={n};")), "{verdict}");
    }
    let sent = Instant::now();
    wait_until("the count at the other", || {
        let told = b.site.check(&text).1;
        if told.contains("\"count\":20,") { Ok(()) } else { Err(told) }
    });
    println!("the other mail server knew after {:.2} s", sent.elapsed().as_secs_f64());
    let verdict = b.verdict_for("user@box.test", &text);
    assert!(verdict.starts_with("bulk; body=21; threshold=20"), "{verdict}");
}
