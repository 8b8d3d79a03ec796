// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark client`: kinds of clients and their limits.

use bulkmark_testing::server::Server;

/// What a client is must be said, and what cannot be taken back is not removed as if it could.
#[test]
fn what_a_client_is_must_be_said() {
    let server = Server::new("");
    let run = |args: &[&str]| server.try_client(args);
    let refused = run(&["add", "mx"]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("add --own mx") && text.contains("add --partner mx"), "{text}");
    assert!(run(&["add", "--own", "mx"]).status.success());
    let refused = run(&["remove", "--with-counts", "mx"]);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("cannot be told apart"), "{text}");
    assert!(run(&["remove", "mx"]).status.success());
    assert!(run(&["add", "--role", "read", "reader"]).status.success());
}

/// A limit that only partners have makes a client a partner, whether it is added or changed, with the defaults for the other limits.
#[test]
fn a_limit_of_partners_makes_a_partner() {
    let server = Server::new("");
    let shown = |arguments: &[&str]| {
        server.client(arguments);
        let list = server.client(&["list"]);
        let line = list.lines().nth(1).unwrap();
        line.split_whitespace().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(shown(&["add", "--quota", "1/8", "mx"]), ["partner", "5", "12.5%", "1000"]);
    assert_eq!(shown(&["set", "--own", "--rate", "70", "mx"]), ["own", "-", "-", "70"]);
    assert_eq!(shown(&["set", "--quota", "1/4", "mx"]), ["partner", "5", "25%", "70"]);
    assert_eq!(shown(&["set", "--max-influence", "3", "mx"]), ["partner", "3", "25%", "70"]);
    server.client(&["remove", "mx"]);
    assert_eq!(shown(&["add", "--own", "mx"]), ["own", "-", "-", "-"]);
    assert_eq!(shown(&["set", "--max-influence", "3", "mx"]), ["partner", "3", "6.25%", "1000"]);
}
