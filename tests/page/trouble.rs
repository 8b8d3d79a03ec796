// SPDX-License-Identifier: GPL-3.0-or-later
//! The page while something is wrong.

use bulkmark_testing::Site;
use bulkmark_testing::browser::{Browser, DESKTOP};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::page::{STATUS, port};
use std::fs;

/// A full disk and mail that is not judged are red, and the sentences at the top name them.
#[test]
fn a_full_disk_is_red() {
    let Some(mut browser) = Browser::start() else { return };
    let site = Site::new(&format!("exempt = [\"authenticated\"]\n{STATUS}"));
    let state = site.path("state");
    let Some(_mount) = Mount::new(&state, "size=6m") else { return };
    let daemon = site.start();
    let mut client = session(&daemon);
    let mut send = |n: usize| client.message(&Mail::text(&format!("message {n}"))).count();
    assert_eq!(send(0), Some(1));
    browser.open(&format!("http://127.0.0.1:{}/", port(&daemon)), DESKTOP);
    browser.wait_for("document.getElementById('state').textContent === 'live'");
    let is_red = |what: &str| {
        format!(
            "[...document.querySelectorAll('#tiles div')].some(tile => tile.firstChild.textContent === '{what}' && \
             getComputedStyle(tile.querySelector('dd span')).color !== getComputedStyle(document.querySelector('dd')).color)"
        )
    };
    for what in ["disk left", "not judged"] {
        assert_eq!(browser.value(&is_red(what)), false, "{what}");
    }
    assert!(fs::write(state.join("filler"), vec![0x55; 8 << 20]).is_err(), "the disk is not full");
    assert!((1..5000).any(|n| send(n).is_none()), "the ledger needs no space");
    for n in 5000..5100 {
        send(n);
    }
    for what in ["disk left", "not judged"] {
        browser.wait_for(&is_red(what));
    }
    for told in ["The ledger cannot be read or written", " of 6.3 MB are left."] {
        browser.wait_for(&format!("document.getElementById('problems').textContent.includes('{told}')"));
    }
}
