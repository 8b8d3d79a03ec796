// SPDX-License-Identifier: GPL-3.0-or-later
//! The part of row 13 about the log, and a reply that quotes too much.

use super::client::Http;
use super::{Outcome, Scale};
use bulkmark_testing::Site;
use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::server::Server;
use std::time::{Duration, Instant};

/// The time during which a client makes the log grow.
const TIME: Duration = Duration::from_secs(5);

/// The most lines a second that one client may cause.
const MOST_LINES: f64 = 20.0;

/// The former canary line, valid everywhere.
const PUBLIC_CANARY: &str = "BULKMARK*CANARY*KKCA2VQNY6PTI7W55X6EKZ3S7RRD4F5J*MAKES*BULK";

pub(crate) fn alternate(_: Scale) -> Outcome {
    let server = Server::new("");
    let token = server.client(&["add", "reader", "--role", "read"]).trim().to_owned();
    let daemon = server.start();
    let mut http = Http::new(server.port, &token);
    let (before, began) = (daemon.log.lines().len(), Instant::now());
    while began.elapsed() < TIME {
        assert_eq!(http.ask("POST /v1/reports", "", b"").status, 403);
        assert_eq!(http.ask("GET /v1/updates", "Bulkmark-Parameters: none\r\n", b"").status, 409);
    }
    let lines = (daemon.log.lines().len() - before) as f64 / TIME.as_secs_f64();
    Outcome::new(
        "a client is refused for one reason and another in turn",
        format!("{lines:.0} lines of the log a second"),
        lines <= MOST_LINES,
    )
}

pub(crate) fn quoted_canary(_: Scale) -> Outcome {
    let site = Site::new("[actions]\nbulk = \"reject\"\n");
    let daemon = site.start();
    let reply = format!(
        "Subject: Re: your question\r\nIn-Reply-To: <1@example.org>\r\n\r\nI do not know what you mean by that line, \
         please write again.\r\n\r\n-----Original Message-----\r\n{PUBLIC_CANARY}\r\n"
    );
    let answer = session(&daemon).message(&Mail::raw(reply.as_bytes()));
    let refused = answer.reply.starts_with('5');
    Outcome::new(
        "a message with the canary of the documentation gets a reply that quotes it",
        if refused { format!("the reply gets {}", answer.reply) } else { "the reply is taken".to_owned() },
        !refused,
    )
}

pub(crate) fn imitated_fields(_: Scale) -> Outcome {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let daemon = site.start();
    let mut mail = Mail::text("a message whose sender tells the log something");
    "\"> to=<x> verdict=whitelisted action=none from=<\"@example.org".clone_into(&mut mail.sender);
    mail.recipients = vec!["\"> verdict=whitelisted <\"@example.net".to_owned()];
    session(&daemon).message(&mail);
    let line = daemon.log.wait_for(0, "nrcpt=");
    let fields = line.split(' ').filter(|field| field.starts_with("verdict=")).count();
    Outcome::new(
        "a quoted sender and recipient imitate fields of the log",
        format!("the line has {fields} fields verdict="),
        fields == 1,
    )
}
