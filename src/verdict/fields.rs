// SPDX-License-Identifier: GPL-3.0-or-later
//! The fields of the one log line of a message, the same whoever brought it.

use super::envelope::Envelope;
use super::finding::Finding;
use super::outcome::Outcome;
use super::rules::Rules;
use std::fmt::Write as _;
use std::time::Duration;

/// Recipients that are named in a log line.
const NAMED: usize = 5;

/// What is told of a message, in this order. Addresses come from outside: the logger takes control characters out of them.
/// `time` is how long it took, from its beginning to the verdict.
#[must_use]
pub fn fields(
    rules: &Rules,
    envelope: &Envelope,
    finding: &Finding,
    outcome: &Outcome,
    time: Duration,
) -> Vec<(&'static str, String)> {
    let ip = envelope.client.map_or_else(|| "local".to_owned(), |ip| ip.to_string());
    let host = envelope.host.as_deref().unwrap_or("unknown");
    let mut fields = vec![("client", format!("{host}[{ip}]"))];
    if let Some(helo) = &envelope.helo {
        fields.push(("helo", format!("<{helo}>")));
    }
    fields.push(("from", format!("<{}>", envelope.sender.as_deref().unwrap_or_default())));
    let named = envelope.recipients.iter().take(NAMED).map(|recipient| format!("<{recipient}>"));
    fields.push(("to", named.collect::<Vec<_>>().join(",")));
    fields.push(("nrcpt", envelope.recipients.len().to_string()));
    fields.push(("verdict", outcome.verdict.to_string()));
    match finding {
        Finding::Exempt(reason) => fields.push(("reason", reason.to_string())),
        Finding::Canary(_) => fields.push(("reason", "canary".to_owned())),
        Finding::Unknown(reason, detail) if detail.is_empty() => fields.push(("reason", reason.to_string())),
        Finding::Unknown(reason, detail) => fields.push(("reason", format!("{reason} ({detail})"))),
        Finding::Counted(counted) => {
            let counts = [("body", counted.counts.body), ("near", counted.counts.near)];
            fields.extend(counts.into_iter().filter_map(|(name, count)| Some((name, count?.to_string()))));
            fields.push(("threshold", rules.thresholds.body.get().to_string()));
            fields.extend(counted.decision.sources());
            fields.extend(counted.signature.map(|signature| ("signature", signature.to_string())));
            fields.extend(counted.decision.whitelist.as_ref().map(|entry| ("whitelist", entry.to_string())));
        }
    }
    fields.push(("action", outcome.action.to_string()));
    fields.push(("ms", format!("{:.1}", time.as_secs_f64() * 1000.0)));
    fields
}

/// The line: the queue id, then the fields.
#[must_use]
pub fn log_line(envelope: &Envelope, fields: &[(&'static str, String)]) -> String {
    let mut line = format!("{}:", envelope.id());
    for (name, value) in fields {
        // Writing to a String does not fail.
        let _ = write!(line, " {name}={value}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Exempt, Unknown};

    fn line(envelope: &Envelope, finding: &Finding) -> String {
        let rules = Rules::of_tests();
        let outcome = Outcome::new(&rules, envelope, finding, "mx.test");
        log_line(envelope, &fields(&rules, envelope, finding, &outcome, Duration::from_micros(1_260)))
    }

    #[test]
    fn a_line_tells_who_to_whom_and_what() {
        let envelope = Envelope {
            client: Some("192.0.2.7".parse().unwrap()),
            host: Some("client.example.org".to_owned()),
            helo: Some("me".to_owned()),
            sender: Some("a@example.org".to_owned()),
            recipients: (0..7).map(|n| format!("{n}@b.example")).collect(),
            authenticated: true,
            id: Some("4ID".to_owned()),
        };
        assert_eq!(
            line(&envelope, &Finding::Unknown(Unknown::Timeout, "why".to_owned())),
            "4ID: client=client.example.org[192.0.2.7] helo=<me> from=<a@example.org> \
             to=<0@b.example>,<1@b.example>,<2@b.example>,<3@b.example>,<4@b.example> nrcpt=7 verdict=unknown \
             reason=timeout (why) action=mark ms=1.3"
        );
        assert_eq!(
            line(&Envelope::default(), &Finding::Exempt(Exempt::Loopback)),
            "NOQUEUE: client=unknown[local] from=<> to= nrcpt=0 verdict=exempt reason=loopback action=mark ms=1.3"
        );
    }
}
