// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark correspondents forget`: the addresses that one user wrote to are erased, on disk, too, and nobody else's.

use bulkmark_testing::milter::{Client, Mail, session};
use bulkmark_testing::{Site, program, status};
use std::process::Command;

/// A letter of this user to Ben and Carl.
fn write(client: &mut Client, user: &str) {
    client.login = Some(user.to_owned());
    let recipients = ["ben@friends.test", "carl@friends.test"].map(str::to_owned).to_vec();
    let mut mail = Mail::text(&format!("a letter of {user}"));
    (mail.sender, mail.recipients) = (format!("{user}@box.test"), recipients);
    assert_eq!(client.message(&mail).reply, "c");
}

#[test]
fn the_correspondents_of_one_user_are_erased() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let mut daemon = site.start();
    let mut client: Client = session(&daemon);
    ["anna", "dora"].iter().for_each(|user| write(&mut client, user));
    assert_eq!(status(&site)["correspondents"], 4);
    let output = Command::new(program())
        .args(["correspondents", "forget", "Anna+news@box.test", "--config"])
        .arg(site.config())
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(told, "2 correspondents of anna@box.test are forgotten\n");
    assert_eq!(status(&site)["correspondents"], 2);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let _daemon = site.start();
    assert_eq!(status(&site)["correspondents"], 2, "they are not on disk, either");
}
