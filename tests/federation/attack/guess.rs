// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 7: a member with the key asks for all values of a short secret in a text that he knows.

use super::client::{self, Http};
use super::{Outcome, Scale};
use bulkmark_testing::program;
use bulkmark_testing::server::Server;
use std::process::Command;
use std::time::{Duration, Instant};

/// The duration of the attack.
const TIME: Duration = Duration::from_secs(20);

/// The message with this code.
fn message(code: u32) -> String {
    format!(
        "Subject: Your code\r\n\r\nDear customer, the code for your order at our shop is {code:04}. It is valid for ten \
         minutes. Please do not give it to anybody else.\r\n"
    )
}

/// The exact signatures of messages.
fn signatures(server: &Server) -> Vec<u128> {
    let files: Vec<_> = (0..10_000)
        .map(|code| {
            let path = server.site.path(&format!("{code}.eml"));
            std::fs::write(&path, message(code)).unwrap();
            path
        })
        .collect();
    let output = Command::new(program()).arg("signature").args(files).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let body = text.lines().filter(|line| line.contains("\tbody\t"));
    body.map(|line| u128::from_str_radix(line.rsplit('\t').next().unwrap(), 16).unwrap()).collect()
}

pub(crate) fn enumerate(_: Scale) -> Outcome {
    let server = Server::new("");
    let (own, partner) = (client::own(&server, "member"), client::partner(&server, "partner", &[]));
    let _daemon = server.start();
    let codes = signatures(&server);
    assert_eq!(codes.len(), 10_000);
    assert_eq!(Http::new(server.port, &own).report(&[codes[7_351]], 1).status, 200);
    let (mut http, began, mut asked, mut slowed) = (Http::new(server.port, &partner), Instant::now(), 0, 0);
    let mut found = None;
    while found.is_none() && asked < codes.len() && began.elapsed() < TIME {
        let answer = http.ask(&format!("GET /v1/check?signature={:032x}", codes[asked]), "", b"");
        match answer.status {
            200 if !answer.body.contains("\"count\":0,") => found = Some(asked),
            200 => asked += 1,
            _ => {
                slowed += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let came = match found {
        Some(code) => format!("found the code {code} in {seconds:.1} s"),
        None => format!("{asked} values in {seconds:.0} s, not found; {slowed} questions refused"),
    };
    Outcome::new(
        "a member asks /v1/check for all four-digit codes in a text that he knows",
        came,
        found.is_none(),
    )
}
