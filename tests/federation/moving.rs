// SPDX-License-Identifier: GPL-3.0-or-later
//! A server moves to another machine, as docs/federation.md describes: nothing is lost, nothing is counted twice.

use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::server::{Server, milter};
use std::fs;

#[test]
fn a_server_moves_to_another_machine() {
    let old = Server::new("");
    let [a, b] = ["a", "b"].map(|name| milter(&[old.entry(name, "report")]));
    let running = old.start();
    let (at_a, at_b) = (a.start(), b.start());
    send(&at_a, &letter(1), 5);
    wait_for(&b, &letter(1), 5);

    assert!(running.terminate().success());
    // Reports made while no server runs wait.
    send(&at_a, &letter(1), 2);
    let mut new = Server::new("");
    for entry in fs::read_dir(old.site.path("state")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, new.site.path("state").join(path.file_name().unwrap())).unwrap();
    }
    // The host name leads to the new machine; here, the same port does.
    new.listen.clone_from(&old.listen);
    let running = new.start();
    send(&at_b, &letter(1), 3);
    for site in [&a, &b] {
        wait_for(site, &letter(1), 10);
    }
    let told = running.log.lines();
    assert!(!told.iter().any(|line| line.contains("old copy") || line.contains("refused")), "{told:?}");
}
