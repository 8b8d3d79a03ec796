// SPDX-License-Identifier: GPL-3.0-or-later
//! Requests and replies of both protocols.

use bulkmark_policy::{Protocol, RemoteTable};

/// The most bytes of a reply: Postfix accepts 100,000 from a socketmap, and 4,096 from a TCP table. Values are short here.
pub(super) const LONGEST_REPLY: usize = 4096;

/// The value of a key, `None` if there is none, or the table's error.
pub(super) type Reply = Result<Option<String>, String>;

/// The request for a key.
pub(super) fn request(table: &RemoteTable, key: &str) -> Vec<u8> {
    match &table.protocol {
        Protocol::Socketmap(name) => {
            let text = format!("{name} {key}");
            format!("{}:{text},", text.len()).into_bytes()
        }
        Protocol::Tcp => {
            let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
            let encoded: String = key
                .bytes()
                .map(
                    |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") },
                )
                .collect();
            format!("get {encoded}\n").into_bytes()
        }
    }
}

/// The length of the whole reply that begins so, once it is known.
///
/// # Errors
/// It is no reply.
pub(super) fn length(table: &RemoteTable, begun: &[u8]) -> Result<Option<usize>, String> {
    let found = match &table.protocol {
        Protocol::Tcp => begun.iter().position(|&byte| byte == b'\n').map(|at| at + 1),
        Protocol::Socketmap(_) => match begun.iter().position(|&byte| byte == b':') {
            Some(colon) => {
                let digits = str::from_utf8(&begun[..colon]).ok().filter(|digits| digits.len() <= 6);
                let length = digits.and_then(|digits| digits.parse::<usize>().ok());
                let length = length.ok_or("its reply is no netstring")?;
                Some(colon + 1 + length + 1)
            }
            None if begun.len() > 6 => return Err("its reply is no netstring".to_owned()),
            None => None,
        },
    };
    if found.unwrap_or(begun.len()) > LONGEST_REPLY {
        return Err(format!("its reply is longer than {LONGEST_REPLY} bytes"));
    }
    Ok(found)
}

/// Parses a whole reply.
pub(super) fn read(table: &RemoteTable, reply: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(reply);
    let (text, found, none) = match &table.protocol {
        Protocol::Socketmap(_) => {
            let text = text.split_once(':').map_or("", |(_, text)| text);
            let text = text.strip_suffix(',').ok_or("its reply is no netstring")?;
            (text, "OK", "NOTFOUND")
        }
        Protocol::Tcp => (text.trim_end_matches(['\r', '\n']), "200", "500"),
    };
    let (code, value) = text.split_once(' ').unwrap_or((text, ""));
    match code {
        _ if code == found => Ok(Some(value.to_owned())),
        _ if code == none => Ok(None),
        _ => Err(format!("it says {:?}", text.chars().take(200).collect::<String>())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(table: &str, reply: &str) -> Reply {
        let table: RemoteTable = table.parse().unwrap();
        for end in 0..reply.len() {
            assert_ne!(
                length(&table, &reply.as_bytes()[..end])?,
                Some(end),
                "{reply}: its first {end} bytes"
            );
        }
        assert_eq!(length(&table, reply.as_bytes())?, Some(reply.len()), "{reply}");
        read(&table, reply.as_bytes())
    }

    const MAP: &str = "socketmap:inet:h:1:wanted";

    #[test]
    fn requests_are_those_of_postfix() {
        let of = |table: &str, key| String::from_utf8(request(&table.parse().unwrap(), key)).unwrap();
        assert_eq!(of(MAP, "a@b.example"), "18:wanted a@b.example,");
        assert_eq!(of("tcp:h:1", "a b%c\u{e9}\n"), "get a%20b%25c%C3%A9%0A\n");
    }

    #[test]
    fn replies_say_found_not_found_or_nothing() {
        let some = |value: &str| Ok(Some(value.to_owned()));
        assert_eq!(reply(MAP, "5:OK hi,"), some("hi"));
        assert_eq!(reply(MAP, "9:NOTFOUND ,"), Ok(None));
        assert_eq!(reply(MAP, "7:TEMP no,"), Err("it says \"TEMP no\"".to_owned()));
        assert_eq!(reply("tcp:h:1", "200 OK\n"), some("OK"));
        assert_eq!(reply("tcp:h:1", "500 none\r\n"), Ok(None));
        assert!(reply("tcp:h:1", "400 later\n").is_err());
        assert!(
            reply(MAP, "nonsense").is_err()
                && reply(MAP, "99999:").is_err()
                && reply(MAP, "5:OK hi;").is_err()
        );
        assert!(length(&"tcp:h:1".parse().unwrap(), &[b'x'; LONGEST_REPLY + 1]).is_err());
    }
}
