// SPDX-License-Identifier: GPL-3.0-or-later
//! The page while something is wrong.

use bulkmark_testing::Site;
use bulkmark_testing::browser::{Browser, DESKTOP, PHONE};
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::mta::free_port;
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

/// The page names a webhook that does not answer: the webhook itself reports nothing then.
#[test]
fn a_webhook_that_fails_is_named() {
    let Some(mut browser) = Browser::start() else { return };
    let (upstream, hook) = (free_port(), free_port());
    let site = Site::new(&format!(
        "upstream = [{{ url = \"http://127.0.0.1:{upstream}\" }}]\n\
         [alerts]\nwebhook = \"http://127.0.0.1:{hook}/hook-7f2e\"\n{STATUS}"
    ));
    let daemon = site.start();
    browser.open(&format!("http://127.0.0.1:{}/", port(&daemon)), PHONE);
    let told = "The webhook at 127.0.0.1 has accepted no event since ";
    browser.wait_for(&format!("document.getElementById('problems').textContent.includes('{told}')"));
    assert_eq!(browser.value("document.body.textContent.includes('hook-7f2e')"), false);
}
