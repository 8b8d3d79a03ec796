// SPDX-License-Identifier: GPL-3.0-or-later
//! The envelope of a message by HTTP, from the request's query and header fields. Their names are those of rspamd's protocol; the query takes
//! precedence.

use crate::judging::address;
use axum::extract::Query;
use axum::http::Uri;
use bulkmark_verdict::Envelope;
use std::net::IpAddr;

/// The parameters of a request.
#[derive(Debug, Default)]
pub struct Asked {
    /// The envelope without recipients.
    pub envelope: Envelope,
    /// The recipients, as sent.
    pub recipients: Vec<String>,
    /// Whether the message is counted.
    pub counts: bool,
    /// Whether it is explained.
    pub explains: bool,
}

/// The parts of an envelope, by their names in a query.
const NAMES: [&str; 7] = ["ip", "hostname", "helo", "from", "rcpt", "user", "queue-id"];

/// The parameter that may come more than once.
const REPEATS: &str = "rcpt";

/// The prefix of an IPv6 address in SMTP.
const TAG: &str = "IPv6:";

/// Reads a query and header fields of these names.
///
/// # Errors
/// The problem of a parameter.
pub fn asked(query: &str, fields: impl Fn(&str) -> Vec<String>) -> Result<Asked, String> {
    let uri: Uri = format!("/?{query}").parse().map_err(|e| format!("the query cannot be read: {e}"))?;
    let Query(parameters) = Query::<Vec<(String, String)>>::try_from_uri(&uri).map_err(|e| e.to_string())?;
    let mut asked = Asked { counts: true, ..Asked::default() };
    for (at, (name, value)) in parameters.iter().enumerate() {
        // Of two addresses, the wrong one might be used.
        if name != REPEATS && parameters[..at].iter().any(|(other, _)| other == name) {
            return Err(format!("found {name} twice in the query, expected it once"));
        }
        match &**name {
            "count" => asked.counts = yes_or_no(name, value)?,
            "explain" => asked.explains = yes_or_no(name, value)?,
            name if NAMES.contains(&name) => set(&mut asked, name, value)?,
            _ => {
                let known = NAMES.join(", ");
                return Err(format!(
                    "found {name:?} in the query, expected count, explain, or one of {known}"
                ));
            }
        }
    }
    for name in NAMES {
        if parameters.iter().any(|(other, _)| other == name) {
            continue;
        }
        let values = fields(name);
        if name != REPEATS && values.len() > 1 {
            return Err(format!("found {} header fields {name}, expected one", values.len()));
        }
        for value in values {
            set(&mut asked, name, &value)?;
        }
    }
    Ok(asked)
}

fn yes_or_no(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err(format!("found {name}={value:?}, expected yes or no")),
    }
}

fn set(Asked { envelope, recipients, .. }: &mut Asked, name: &str, value: &str) -> Result<(), String> {
    let value = value.trim();
    let text = || Some(value.to_owned()).filter(|value| !value.is_empty());
    match name {
        // Some programs know no client, and some send SMTP's own literal (RFC 5321, 4.1.3).
        "ip" => {
            let is_tagged = value.get(..TAG.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(TAG));
            let address = Some(if is_tagged { &value[TAG.len()..] } else { value });
            let ip = address.filter(|address| !address.is_empty()).map(str::parse::<IpAddr>).transpose();
            let ip = ip.map_err(|_| format!("found ip={value:?}, expected an IP address"))?;
            envelope.client = ip.map(|ip| ip.to_canonical());
        }
        "hostname" => envelope.host = text().filter(|host| !host.eq_ignore_ascii_case("unknown")),
        "helo" => envelope.helo = text(),
        "from" => envelope.sender = Some(address(value).to_owned()),
        "rcpt" => recipients.push(value.to_owned()),
        "user" => {
            envelope.login = text();
            envelope.authenticated = envelope.login.is_some();
        }
        _ => envelope.id = text(),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_takes_precedence_over_fields() {
        let fields = |name: &str| match name {
            "ip" => vec!["198.51.100.1".to_owned()],
            "rcpt" => vec!["u@box.test".to_owned(), "<v@box.test>".to_owned()],
            "helo" => vec!["me".to_owned()],
            "user" => vec![String::new()],
            _ => Vec::new(),
        };
        let asked = asked("ip=::ffff:192.0.2.7&from=%3C%3E&queue-id=4A&count=no", fields).unwrap();
        let envelope = asked.envelope;
        assert_eq!(envelope.client, "192.0.2.7".parse().ok());
        assert_eq!(
            (envelope.sender.as_deref(), envelope.helo.as_deref(), envelope.id()),
            (Some(""), Some("me"), "4A")
        );
        assert_eq!(
            (&*asked.recipients, asked.counts),
            (&["u@box.test".to_owned(), "<v@box.test>".to_owned()][..], false)
        );
        assert!(!envelope.authenticated);
    }

    #[test]
    fn an_address_may_be_missing_or_as_smtp_writes_it() {
        let client = |query: &str| asked(query, |_| Vec::new()).unwrap().envelope.client;
        assert_eq!((client("ip="), client("ip=IPv6:")), (None, None));
        for query in ["ip=IPv6:2001:db8::7", "ip=ipv6:2001:db8::7", "ip=2001:db8::7"] {
            assert_eq!(client(query), "2001:db8::7".parse().ok(), "{query}");
        }
        assert!(asked("ip=IPv4:1.2.3.4", |_| Vec::new()).is_err());
    }

    #[test]
    fn errors_name_the_parameter() {
        let error = |query: &str| asked(query, |_| Vec::new()).unwrap_err();
        assert_eq!(error("ip=x"), "found ip=\"x\", expected an IP address");
        assert_eq!(error("count=maybe"), "found count=\"maybe\", expected yes or no");
        assert!(
            error("rcp=x").starts_with("found \"rcp\" in the query, expected count, explain, or one of ip, ")
        );
    }

    /// The client learns of a contradiction; neither of two values is taken for the other.
    #[test]
    fn only_recipients_come_more_than_once() {
        for name in ["ip", "hostname", "helo", "from", "user", "queue-id"] {
            let query = format!("{name}=192.0.2.7&rcpt=u@box.test&{name}=192.0.2.8");
            let error = asked(&query, |_| Vec::new()).unwrap_err();
            assert_eq!(error, format!("found {name} twice in the query, expected it once"));
            let twice = |field: &str| vec!["192.0.2.7".to_owned(); if field == name { 2 } else { 0 }];
            assert_eq!(asked("", twice).unwrap_err(), format!("found 2 header fields {name}, expected one"));
            assert!(asked(&format!("{name}=192.0.2.7"), twice).is_ok(), "the query takes precedence");
        }
        assert!(asked("count=no&explain=no&count=no", |_| Vec::new()).unwrap_err().contains("count twice"));
        let recipients = asked("rcpt=u@box.test&rcpt=v@box.test", |_| Vec::new()).unwrap().recipients;
        assert_eq!(recipients, ["u@box.test", "v@box.test"]);
    }
}
