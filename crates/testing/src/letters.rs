// SPDX-License-Identifier: GPL-3.0-or-later
//! Letters and their counts.

use super::milter::{Client, Mail, session};
use super::{Daemon, Site, status, wait_until};

/// The message with this number, in wire form; different numbers are different messages.
pub fn letter(n: usize) -> Vec<u8> {
    let own: String = ["number", "alpha", "nu", "xi", "omicron", "pi", "rho", "sigma", "tau", "upsilon"]
        .map(|word| format!("{word}{n} "))
        .concat();
    let text = format!("{own}beta gamma delta epsilon zeta eta theta iota kappa lambda mu");
    super::crlf(&format!("Subject: x\n\n{text}\n"))
}

/// An offer to somebody. Copies are alike, but no two are equal.
pub fn offer(name: &str) -> Vec<u8> {
    let code: String = name.chars().rev().collect();
    super::crlf(&format!(
        "From: Winning House <prize@offers.test>\nSubject: {name}, your parcel waits\n\n\
         Dear {name},\n\n\
         our depot at the canal holds a parcel which could not be handed over on Tuesday, since the house number on its label had \
         become wet in the rain. Please tell us within three working days whether the driver should bring it again between eight \
         and noon, or whether a neighbour may take it for you. For a second delivery our tariff of this spring asks a fee of one \
         euro and ninety nine cents, which every larger card and most pocket banks will settle for you in a moment. Parcels that \
         nobody asks for go back to the sender on Friday evening, together with all vouchers and samples that lie inside of them.\n\n\
         Number of your parcel: {code}\n"
    ))
}

/// Sends a letter through a milter so many times.
pub fn send(milter: &Daemon, letter: &[u8], times: usize) {
    let mut client: Client = session(milter);
    for _ in 0..times {
        assert!(client.message(&Mail::raw(letter)).count().is_some(), "a message was not counted");
    }
}

/// Returns the count that `bulkmark check` prints.
pub fn count(site: &Site, letter: &[u8]) -> u64 {
    let (_, answer) = site.check(letter);
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{e}: {answer}"));
    answer["body"]["count"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

/// Repeats the question until the count is as expected.
pub fn wait_for(site: &Site, letter: &[u8], expected: u64) {
    wait_until("a count", || {
        let found = count(site, letter);
        if found == expected { Ok(()) } else { Err(format!("{found} instead of {expected}")) }
    });
}

/// Waits until others have counted all reports of a milter.
#[track_caller]
pub fn wait_for_empty_spool(site: &Site) {
    wait_until("an empty spool", || {
        let spool = status(site)["ledger"]["spool"].clone();
        if spool == 0 { Ok(()) } else { Err(spool.to_string()) }
    });
}
