// SPDX-License-Identifier: GPL-3.0-or-later
//! Partial milters: the counts that they hold, and the updates that they receive about a letter.

use super::milter::{Answer, Client, Mail};
use super::{Daemon, Site, crlf, program, status, wait_until};
use serde_json::Value;
use std::process::Command;

/// The JSON of `check` or `explain` for a letter, without the file's name.
pub fn answer_of(site: &Site, command: &str, letter: &[u8]) -> Value {
    let file = site.path("letter.eml");
    std::fs::write(&file, letter).unwrap();
    let output = Command::new(program())
        .args([command, "--json", "--ip", "198.51.100.9", "--config"])
        .arg(site.config())
        .arg(file)
        .output()
        .unwrap();
    let mut answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    match answer.get_mut("messages") {
        Some(messages) => {
            messages[0]["file"].take();
            messages[0].take()
        }
        None => answer,
    }
}

/// Returns a milter's copy of others' counts for a letter's body.
pub fn held(site: &Site, letter: &[u8]) -> u64 {
    let answer = answer_of(site, "explain", letter);
    let others = answer["body"]["seen"]["others"].as_array().unwrap_or_else(|| panic!("{answer}"));
    others.iter().map(|share| share["count"].as_u64().unwrap()).sum()
}

/// Waits until a milter holds this count from others.
pub fn wait_for_held(site: &Site, letter: &[u8], expected: u64) {
    wait_until("what is held", || {
        let found = held(site, letter);
        if found == expected {
            Ok(())
        } else {
            Err(format!("{found} instead of {expected}: {}", status(site)))
        }
    });
}

/// A letter that shares no signature with others.
pub fn lonely() -> Vec<u8> {
    crlf(
        "Subject: y\n\nQuite other words stand here, of which nobody else has any among his own letters today, since each was chosen for this one alone.\n",
    )
}

/// A message from this client.
pub fn from(daemon: &Daemon, ip: &str, letter: &[u8]) -> Answer {
    let mut client = Client::connect(daemon);
    client.client("client.example.org", ip);
    client.message(&Mail::raw(letter))
}
