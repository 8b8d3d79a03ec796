// SPDX-License-Identifier: GPL-3.0-or-later
//! Log lines as JSON objects, and back: `[log]` format = "json".

use humantime_serde::re::humantime::format_rfc3339_millis;
use serde_json::{Map, Number, Value};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::SystemTime;

/// Fields whose values are numbers; a count that may be higher ends in "+".
const NUMBERS: [&str; 11] = [
    "nrcpt",
    "size",
    "body",
    "near",
    "spam",
    "threshold",
    "sources",
    "own",
    "ms",
    "account-bulk",
    "account-recipients",
];

/// Fields whose values stand in angle brackets.
const BRACKETED: [&str; 4] = ["helo", "from", "message-id", "account"];

/// Returns one line as an object: time, level, and either text or the fields of a message's line.
pub(super) fn object(level: log::Level, line: &str, is_message: bool, at: SystemTime) -> String {
    let fields = if is_message { fields(line) } else { None };
    let mut object = fields.unwrap_or_else(|| Map::from_iter([("text".to_owned(), line.into())]));
    object.insert("time".to_owned(), format_rfc3339_millis(at).to_string().into());
    object.insert("level".to_owned(), level.as_str().to_lowercase().into());
    Value::Object(object).to_string()
}

/// Returns the fields of a message's line; none for other lines.
fn fields(line: &str) -> Option<Map<String, Value>> {
    let (id, mut rest) = line.split_once(": ")?;
    let mut object = Map::from_iter([("id".to_owned(), id.into())]);
    while !rest.is_empty() {
        let (name, behind) = rest.split_once('=')?;
        // Only the last field contains blanks.
        let (value, next) =
            if name == "detail" { (behind, "") } else { behind.split_once(' ').unwrap_or((behind, "")) };
        rest = next;
        add(&mut object, name, value);
    }
    Some(object)
}

fn add(object: &mut Map<String, Value>, name: &str, value: &str) {
    let mut insert = |name: &str, value: Value| drop(object.insert(name.to_owned(), value));
    let count = value.strip_suffix('+').unwrap_or(value);
    match name {
        "client" => {
            let (host, ip) =
                value.strip_suffix(']').and_then(|v| v.split_once('[')).unwrap_or((value, "local"));
            if host != "unknown" {
                insert("client-name", host.into());
            }
            if ip != "local" {
                insert("client-ip", ip.into());
            }
        }
        // A quoted local part may have a comma in it, and no address an angle bracket.
        "to" => insert(name, bare(value).split(">,<").map(Value::from).collect::<Vec<_>>().into()),
        "detail" => insert(name, value.trim_matches('"').into()),
        name if BRACKETED.contains(&name) => insert(name, bare(value).into()),
        name if NUMBERS.contains(&name) => match number(count) {
            Some(number) => {
                insert(name, Value::Number(number));
                if count.len() < value.len() {
                    insert("at-least", true.into());
                }
            }
            None => insert(name, value.into()),
        },
        name => insert(name, value.into()),
    }
}

fn number(text: &str) -> Option<Number> {
    text.parse::<u64>().map(Number::from).ok().or_else(|| Number::from_f64(text.parse().ok()?))
}

fn bare(value: &str) -> &str {
    value.strip_prefix('<').and_then(|v| v.strip_suffix('>')).unwrap_or(value)
}

/// Returns a line of a log file as with format = "text"; other lines are returned unchanged. Costs one parse of the line.
#[must_use]
pub fn as_text(line: &str) -> Cow<'_, str> {
    text_of(line).map_or(Cow::Borrowed(line), Cow::Owned)
}

fn text_of(line: &str) -> Option<String> {
    let at = line.find('{')?;
    let (before, object) = line.split_at(at);
    let object: Map<String, Value> = serde_json::from_str(object).ok()?;
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let (time, level) = (text("time")?, text("level")?);
    // On standard error nothing precedes the line.
    let mut line = match before {
        "" => format!("{time} - bulkmark: {level}: "),
        before => format!("{before}{level}: "),
    };
    if let Some(text) = text("text") {
        line.push_str(text);
        return Some(line);
    }
    let client = (text("client-name").unwrap_or("unknown"), text("client-ip").unwrap_or("local"));
    let _ = write!(line, "{}: client={}[{}]", text("id")?, client.0, client.1);
    for (name, value) in
        object.iter().filter(|(name, _)| !["id", "time", "level", "detail"].contains(&&***name))
    {
        let _ = match value {
            Value::String(text) if BRACKETED.contains(&&**name) => write!(line, " {name}=<{text}>"),
            Value::String(text) => write!(line, " {name}={text}"),
            Value::Number(number) => write!(line, " {name}={number}"),
            Value::Array(texts) => {
                let texts: Vec<_> =
                    texts.iter().filter_map(Value::as_str).map(|text| format!("<{text}>")).collect();
                write!(line, " {name}={}", texts.join(","))
            }
            _ => Ok(()),
        };
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::{Duration, UNIX_EPOCH};

    const LINE: &str = "4AB: client=mail.example.org[192.0.2.7] helo=<m> from=<news@example.org> to=<a@b.test>,<c@b.test> nrcpt=2 \
                        message-id=<7@example.org> size=900 verdict=bulk body=27+ near=31 spam=1.5 threshold=20 signature=dda7 action=mark \
                        ms=2.9 detail=\"a b\"";

    fn at() -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(1_795_000_000_500)
    }

    #[test]
    fn a_message_has_its_fields_by_type() {
        let text = object(log::Level::Info, LINE, true, at());
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({
                "time": "2026-11-18T11:06:40.500Z", "level": "info", "id": "4AB", "client-name": "mail.example.org",
                "client-ip": "192.0.2.7", "helo": "m", "from": "news@example.org", "to": ["a@b.test", "c@b.test"], "nrcpt": 2,
                "message-id": "7@example.org", "size": 900, "verdict": "bulk", "body": 27, "at-least": true, "near": 31,
                "spam": 1.5, "threshold": 20, "signature": "dda7", "action": "mark", "ms": 2.9, "detail": "a b",
            })
        );
        let comma =
            object(log::Level::Info, "4AB: to=<\\u{22}a,b@c\\u{22}@b.test>,<c@b.test> nrcpt=2", true, at());
        let comma: Value = serde_json::from_str(&comma).unwrap();
        assert_eq!(comma["to"], json!(["\\u{22}a,b@c\\u{22}@b.test", "c@b.test"]));
        let local = object(log::Level::Info, "NOQUEUE: client=unknown[local] from=<> to=", true, at());
        let local: Value = serde_json::from_str(&local).unwrap();
        assert!(local.get("client-ip").is_none() && local.get("client-name").is_none(), "{local}");
        assert_eq!(local["from"], "");
    }

    #[test]
    fn other_lines_are_text_and_break_nothing() {
        for line in ["the disk is full: \"no\" {", "", "a=b", "x: y z"] {
            let text = object(log::Level::Warn, line, line == "x: y z", at());
            let found: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((&found["text"], &found["level"]), (&line.into(), &"warn".into()));
            assert!(!text.contains('\n'));
            assert_eq!(
                as_text(&format!("Nov 22 16:08:01 mx bulkmark[1]: {text}")),
                format!("Nov 22 16:08:01 mx bulkmark[1]: warn: {line}")
            );
        }
        for line in ["no object", "{\"time\": 1}", "{", "bulkmark: {\"level\":\"info\"}"] {
            assert_eq!(as_text(line), line);
        }
    }
}
