// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon behind real mail servers, and miltertest, which plays one: the replies to senders, and the mail of recipients.
//!
//! Each test has its own mail server and daemon. Clients come from elsewhere, since mail from loopback is exempt: to
//! Postfix they announce it by XCLIENT; for Sendmail they have other addresses of loopback, and the daemon does not exempt these.

/// Makes two tests of each of these functions, one for each kind of mail server.
macro_rules! with_both {
    ($($test:ident),+ $(,)?) => {
        mod postfix {
            $(#[test] fn $test() { super::$test(bulkmark_testing::mta::Kind::Postfix); })+
        }
        mod sendmail {
            $(#[test] fn $test() { super::$test(bulkmark_testing::mta::Kind::Sendmail); })+
        }
    };
}

mod actions;
mod authentication;
mod canary;
mod correspondents;
mod counting;
mod dovecot;
mod exempt;
mod federation_postfix;
mod idle;
mod life;
mod miltertest;
mod outbound;
mod postfix_guide;
mod retries;
mod sendmail_guide;
mod sources;
mod tables;
mod traps;
mod verified;
mod verifiers;
mod whitelist;

/// The first copy is bulk already: for tests of the actions on bulk.
const AT_ONCE: &str = "[thresholds]\nbody = 1\n";

const BULK_AT_ONCE: &str = "bulk; body=1; threshold=1; host=mx.test";

/// The header up to `host`.
fn count(header: &str) -> &str {
    header.split("; host=").next().unwrap()
}
