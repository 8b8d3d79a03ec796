// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 25: one text, each copy from another verified domain and another network.

use super::client::Http;
use super::flood::{mb, memory};
use super::{Outcome, Scale};
use bulkmark_testing::Site;
use bulkmark_testing::letters::offer;
use bulkmark_testing::process::processor;

/// The most memory that they may cost, in bytes: a window's cells, and bounded tables.
const MOST_MEMORY: u64 = 64 << 20;

/// Copies of which the domain is verified, the network is new, and a part of the text differs.
fn copy(n: u32) -> (String, String) {
    let [a, b, c, _] = n.to_be_bytes().map(|byte| byte.wrapping_mul(151));
    let ip = if n.is_multiple_of(2) {
        format!("{}.{b}.{c}.7", 11 + a % 200)
    } else {
        format!("2a{a:02x}:{b:02x}{c:02x}::7")
    };
    let domain = format!("d{n}.example");
    let target = format!("POST /v1/judge?ip={ip}&from=a%40{domain}&rcpt=u{n}%40box.test&helo=h.{domain}");
    let mail = format!(
        "Authentication-Results: mx.test; dkim=pass header.d={domain}\r\nFrom: a@{domain}\r\nMessage-ID: <{n}@{domain}>\r\n\
         Subject: {n}\r\n\r\n{}\r\nreader {n} of the list {}\r\n",
        text(),
        n.wrapping_mul(7919)
    );
    (target, mail)
}

/// A text that all copies share.
fn text() -> String {
    let all = offer("everybody");
    let at = all.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    String::from_utf8_lossy(&all[at + 4..]).into_owned()
}

pub(crate) fn many_senders(scale: Scale) -> Outcome {
    let number: u32 = if scale == Scale::Full { 200_000 } else { 4_000 };
    let site = Site::new(
        "[authentication]\nauthenticate = \"header\"\nauthserv-ids = [\"mx.test\"]\n[interfaces.http]\nlisten = \"127.0.0.1:0\"\n",
    );
    let daemon = site.start();
    let at = daemon.log.wait_for(0, "the interface http is at ");
    let digits = at.rsplit(':').next().unwrap_or_default().chars().take_while(char::is_ascii_digit);
    let port = digits.collect::<String>().parse().unwrap();
    let mut http = Http::new(port, "");
    let fields = "Content-Type: message/rfc822\r\n";
    let mut send = |from: u32, to: u32| {
        let before = processor(daemon.pid());
        for n in from..to {
            let (target, mail) = copy(n);
            assert_eq!(http.ask(&target, fields, mail.as_bytes()).status, 200);
        }
        (processor(daemon.pid()) - before) / f64::from(to - from)
    };
    // Its tables and pools are filled.
    send(0, number / 8);
    let (before, first) = (memory(&daemon, "VmRSS"), send(number / 8, number / 4));
    let last = send(number / 4, number);
    let grown = memory(&daemon, "VmRSS").saturating_sub(before);
    Outcome::new(
        format!("{number} copies of one text, each from another verified domain and network"),
        format!(
            "{} more memory after the last seven eighths; {:.2} ms of processor time a copy at first, {:.2} ms later",
            mb(grown),
            1e3 * first,
            1e3 * last
        ),
        // Beside other tests, processor time is no measure.
        grown <= MOST_MEMORY && (scale != Scale::Full || last <= 2.0 * first),
    )
}
