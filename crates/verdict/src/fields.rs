// SPDX-License-Identifier: GPL-3.0-or-later
//! The fields of the log line of a message, the same for the milter and all interfaces.

use super::envelope::Envelope;
use super::finding::Finding;
use super::outcome::Outcome;
use super::reason::Exempt;
use super::rules::Rules;
use bulkmark_policy::Standing;
use bulkmark_types::{escaped, plain};
use std::fmt::Write as _;
use std::time::Duration;

/// The most recipients that a log line names.
const NAMED: usize = 5;

/// The most characters of a Message-ID in a log line.
const MOST_OF_ID: usize = 200;

/// The fields of a message, in order. Values from outside have no blanks, so they cannot forge a field: docs/monitoring.md describes how to
/// parse a line. `time` is the time from the beginning of the message to the verdict.
#[must_use]
pub fn fields(
    rules: &Rules,
    envelope: &Envelope,
    finding: &Finding,
    outcome: &Outcome,
    time: Duration,
) -> Vec<(&'static str, String)> {
    let ip = envelope.client.map_or_else(|| "local".to_owned(), |ip| ip.to_string());
    let host = plain(envelope.host.as_deref().unwrap_or("unknown"), "[]");
    let address = |address: &str| format!("<{}>", plain(address, "<>"));
    let mut fields = vec![("client", format!("{host}[{ip}]"))];
    if let Some(helo) = &envelope.helo {
        fields.push(("helo", address(helo)));
    }
    fields.push(("from", address(envelope.sender.as_deref().unwrap_or_default())));
    let named = envelope.recipients.iter().take(NAMED).map(|recipient| address(recipient));
    fields.push(("to", named.collect::<Vec<_>>().join(",")));
    fields.push(("nrcpt", envelope.recipients.len().to_string()));
    fields.extend(envelope.message_id.as_deref().map(|id| ("message-id", address(message_id(id)))));
    fields.extend(envelope.size.map(|size| ("size", size.to_string())));
    fields.push(("verdict", outcome.verdict.to_string()));
    match finding {
        Finding::Exempt(reason) => {
            fields.push(("reason", reason.to_string()));
            let by =
                rules.parties(envelope).first().filter(|_| *reason == Exempt::Policy).map(|party| party.by);
            fields.extend(by.and_then(|by| rules.name(by)).map(|name| ("policy", name.to_owned())));
        }
        Finding::Canary(_) => fields.push(("reason", "canary".to_owned())),
        Finding::Unknown(reason, _) => fields.push(("reason", reason.to_string())),
        Finding::Counted(counted) => {
            let counts = [("body", counted.counts.body), ("near", counted.counts.near)];
            fields.extend(counts.into_iter().filter_map(|(name, count)| Some((name, counted.shown(count?)))));
            let spam = counted.counts.spam.filter(|spam| spam.units() > 0);
            fields.extend(spam.map(|spam| ("spam", spam.to_string())));
            let decision = &counted.decision;
            fields.push(("threshold", rules.terms(decision.by).thresholds.body.get().to_string()));
            fields.extend(rules.name(decision.by).map(|name| ("policy", name.to_owned())));
            let milder = decision.milder.and_then(|by| rules.name(by));
            fields.extend(milder.map(|name| ("milder", name.to_owned())));
            fields.extend(counted.decision.sources());
            fields.extend(counted.unverified.map(|reason| ("unverified", reason.to_owned())));
            fields.extend(counted.signature.map(|signature| ("signature", signature.to_string())));
            fields.extend(
                counted.decision.whitelist.as_ref().map(|entry| ("whitelist", plain(&entry.to_string(), ""))),
            );
        }
    }
    fields.extend(outcome.trap.map(|result| ("trap", result.to_string())));
    if let Some(standing) = outcome.account {
        fields.extend(account(envelope, standing));
    }
    fields.push(("action", outcome.action.to_string()));
    fields.push(("ms", format!("{:.1}", time.as_secs_f64() * 1000.0)));
    if let Finding::Unknown(_, detail) = finding
        && !detail.is_empty()
    {
        let detail = escaped(detail, |c| "\"\\=".contains(c));
        fields.push(("detail", format!("\"{detail}\"")));
    }
    fields
}

/// A Message-ID without angle brackets, truncated if it is longer than any that a program makes.
fn message_id(field: &str) -> &str {
    let id = field.trim();
    let id = id.strip_prefix('<').and_then(|id| id.strip_suffix('>')).unwrap_or(id);
    id.char_indices().nth(MOST_OF_ID).map_or(id, |(end, _)| &id[..end])
}

/// The fields of the account that sent a message.
fn account(envelope: &Envelope, Standing { sent, is_over, .. }: Standing) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("account", format!("<{}>", plain(&envelope.account(), "<>"))),
        ("account-bulk", sent.bulk.to_string()),
        ("account-recipients", sent.recipients.to_string()),
    ];
    fields.extend(is_over.then(|| ("over", "limit".to_owned())));
    fields
}

/// The log line for an account over its limit.
#[must_use]
pub fn account_line(rules: &Rules, envelope: &Envelope, standing: Standing) -> String {
    let ip = envelope.client.map_or_else(|| "local".to_owned(), |ip| ip.to_string());
    let window = humantime_serde::re::humantime::format_duration(rules.outbound.window);
    let more = [
        ("client", format!("[{ip}]")),
        ("window", window.to_string().replace(' ', "")),
        ("action", rules.outbound.action.to_string()),
    ];
    let fields = [account(envelope, standing), more.to_vec()].concat();
    line(&format!("{}: outbound account over its limit:", plain(envelope.id(), "")), &fields)
}

/// The log line: the queue id, then the fields.
#[must_use]
pub fn log_line(envelope: &Envelope, fields: &[(&'static str, String)]) -> String {
    line(&format!("{}:", plain(envelope.id(), "")), fields)
}

fn line(begin: &str, fields: &[(&'static str, String)]) -> String {
    let mut line = begin.to_owned();
    for (name, value) in fields {
        // Writing to a String does not fail.
        let _ = write!(line, " {name}={value}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Exempt, Unknown};

    fn line(envelope: &Envelope, finding: &Finding) -> String {
        let rules = Rules::default();
        let outcome = Outcome::new(&rules, envelope, finding, "mx.test");
        log_line(envelope, &fields(&rules, envelope, finding, &outcome, Duration::from_micros(1_260)))
    }

    #[test]
    fn a_line_has_client_sender_recipients_and_verdict() {
        let envelope = Envelope {
            client: Some("192.0.2.7".parse().unwrap()),
            host: Some("client.example.org".to_owned()),
            helo: Some("me".to_owned()),
            sender: Some("a@example.org".to_owned()),
            recipients: (0..7).map(|n| format!("{n}@b.example")).collect(),
            authenticated: true,
            id: Some("4ID".to_owned()),
            message_id: Some(" <1@a.example> ".to_owned()),
            size: Some(1234),
            ..Envelope::default()
        };
        assert_eq!(
            line(&envelope, &Finding::Unknown(Unknown::Timeout, "why".to_owned())),
            "4ID: client=client.example.org[192.0.2.7] helo=<me> from=<a@example.org> \
             to=<0@b.example>,<1@b.example>,<2@b.example>,<3@b.example>,<4@b.example> nrcpt=7 message-id=<1@a.example> size=1234 \
             verdict=unknown reason=timeout action=mark ms=1.3 detail=\"why\""
        );
        assert_eq!(
            line(&Envelope::default(), &Finding::Exempt(Exempt::Loopback)),
            "NOQUEUE: client=unknown[local] from=<> to= nrcpt=0 verdict=exempt reason=loopback action=mark ms=1.3"
        );
    }

    /// A reader who parses a line as docs/monitoring.md describes finds each field once, with its true value, whatever names a sender or a
    /// recipient uses.
    #[test]
    fn nobody_can_forge_a_field() {
        let evil = "\"a verdict=clean client=b[192.0.2.99] \t\u{a0}\u{2003}x\\\"> to=<y>,<z\"@x.example";
        let envelope = Envelope {
            client: Some("192.0.2.7".parse().unwrap()),
            host: Some("a[192.0.2.98] verdict=clean".to_owned()),
            helo: Some(evil.to_owned()),
            sender: Some(evil.to_owned()),
            recipients: vec![evil.to_owned(), "list=b@x.example".to_owned()],
            authenticated: false,
            id: Some("4ID: verdict=clean".to_owned()),
            message_id: Some(format!("<{evil}{}>", "x".repeat(1000))),
            size: Some(1),
            ..Envelope::default()
        };
        let detail = "found \"a verdict=clean\", expected none".to_owned();
        let line = line(&envelope, &Finding::Unknown(Unknown::Timeout, detail));
        let (line, detail) = line.split_once(" detail=\"").unwrap();
        assert_eq!(detail, "found \\u{22}a verdict\\u{3d}clean\\u{22}, expected none\"");
        let fields: Vec<_> = line.split(' ').skip(1).map(|field| field.split_once('=').unwrap()).collect();
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        let expected = [
            "client",
            "helo",
            "from",
            "to",
            "nrcpt",
            "message-id",
            "size",
            "verdict",
            "reason",
            "action",
            "ms",
        ];
        assert_eq!(names, expected, "{line}");
        assert!(fields[5].1.starts_with("<\\u{22}a\\u{20}") && fields[5].1.len() < 500, "{line}");
        assert_eq!((fields[7].1, fields[3].1.matches(",<").count()), ("unknown", 1));
        let host = fields[0].1;
        assert_eq!((host.matches('[').count(), host.ends_with("[192.0.2.7]")), (1, true), "{host}");
        assert_eq!(line.matches(" verdict=").count(), 1);
    }
}
