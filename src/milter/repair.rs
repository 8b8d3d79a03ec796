// SPDX-License-Identifier: GPL-3.0-or-later
//! Repairs payloads of packets that `indymilter` cannot parse.

use bulkmark_types::plain_bytes;
use std::borrow::Cow;
use std::net::IpAddr;

/// The path that stands for an unreadable client address. No socket has it.
pub(super) const UNREADABLE: &[u8] = b"\x01unreadable";

/// The families of sockets: local (`SMFIA_UNIX`), unknown to the MTA, and those of addresses.
const UNIX: u8 = b'L';
const UNKNOWN: u8 = b'U';
const IPV4: u8 = b'4';
const IPV6: u8 = b'6';

/// An action that this milter never requests: replacing the body (`SMFIF_CHGBODY`).
const UNUSED_ACTION: u32 = 0x02;

/// An option that it never requests, either: seeing refused recipients (`SMFIP_RCPT_REJ`).
const UNUSED_OPTION: u32 = 0x800;

/// The lowest version that the library supports.
const MIN_VERSION: u32 = 2;

/// The most bytes of an address that are shown: more than any has.
const MAX_SHOWN: usize = 80;

/// The macros that the milter uses.
const MACROS: [&[u8]; 4] = [b"i", b"j", b"{auth_authen}", b"{auth_type}"];

/// The most bytes of a macro's value: more than is kept of a login, a host's name or a queue id.
const MAX_MACRO: usize = 1024;

/// The repair, if it should be logged.
pub(super) type Repaired = Option<Cow<'static, str>>;

/// A number of the protocol.
#[expect(clippy::big_endian_bytes, reason = "the order of the protocol")]
pub(super) const fn number(bytes: [u8; 4]) -> u32 {
    u32::from_be_bytes(bytes)
}

/// Its bytes.
#[expect(clippy::big_endian_bytes, reason = "the order of the protocol")]
pub(super) const fn bytes(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// The client of a session: host, family, port, address. Sendmail's addresses have a prefix (`IPv6:2001:db8::7`), and may have a zone. An
/// unreadable address becomes [`UNREADABLE`], so that the client is unknown and its mail is judged.
pub(super) fn connect(payload: &mut Vec<u8>) -> Repaired {
    let end = payload.iter().position(|&byte| byte == 0);
    let (host, rest) = payload.split_at(end.unwrap_or(payload.len()));
    let host = host.to_vec();
    let client = rest.get(1..).unwrap_or_default();
    let (family, rest) = client.split_first().map_or((0, client), |(family, rest)| (*family, rest));
    let port = rest.first_chunk::<2>().copied().unwrap_or_default();
    let address = rest.get(2..).unwrap_or_default();
    let address = address.split(|&byte| byte == 0).next().unwrap_or_default();
    let (family, address, repaired): (u8, Cow<'_, [u8]>, Repaired) = match (family, read_address(address)) {
        (UNKNOWN, _) => (UNKNOWN, Cow::Borrowed(&[]), None),
        (UNIX, _) if address != UNREADABLE => (UNIX, Cow::Borrowed(address), None),
        (IPV4 | IPV6, Some(ip)) => {
            let family = if ip.is_ipv4() { IPV4 } else { IPV6 };
            (family, ip.to_string().into_bytes().into(), None)
        }
        (family, _) => {
            let family = char::from(family).escape_default();
            let shown = plain_bytes(&address[..address.len().min(MAX_SHOWN)]);
            let repair = format!("the client's address \"{shown}\" of family {family} cannot be read");
            (UNIX, Cow::Borrowed(UNREADABLE), Some(repair.into()))
        }
    };
    let made = [&host, &[0, family][..], &port, &address, &[0]].concat();
    *payload = made;
    repaired
}

/// An address as mail servers write it.
fn read_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let text = match text.get(..5) {
        Some(prefix) if prefix.eq_ignore_ascii_case("ipv6:") || prefix.eq_ignore_ascii_case("ipv4:") => {
            &text[5..]
        }
        _ => text,
    };
    let address = text.split_once('%').map_or(text, |(address, _zone)| address);
    address.parse().ok()
}

/// A header field: name and value, each with a zero at its end. A field without a name is omitted. Bytes beyond `max` are cut.
pub(super) fn field(payload: &mut Vec<u8>, max: usize) -> Result<Repaired, &'static str> {
    let name = payload.iter().position(|&byte| byte == 0);
    if name == Some(0) || payload.is_empty() {
        return Err("a header field has no name");
    }
    let is_long = payload.len() > max;
    payload.truncate(max);
    match name {
        Some(name) if payload.len() > name + 1 && payload.ends_with(&[0]) => return Ok(None),
        // The name and nothing else.
        Some(name) if payload.len() == name + 1 => (),
        Some(name) if name < payload.len() => {
            payload.truncate(max - 1);
        }
        _ => {
            payload.truncate(max - 2);
            payload.push(0);
        }
    }
    payload.push(0);
    Ok(Some(
        if is_long { "a header field is longer than 256 KiB" } else { "a header field has no end" }.into(),
    ))
}

/// The definitions of macros for a stage: those that the milter uses, each once and cut. All others are left out. Without any, an empty one
/// stays, by which the library forgets those of an earlier message.
pub(super) fn macros(payload: &mut Vec<u8>) {
    let Some((&stage, rest)) = payload.split_first() else { return };
    let mut used = MACROS.to_vec();
    let (mut kept, mut texts) = (vec![stage], rest.split(|&byte| byte == 0));
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        let plain = if let [b'{', name, b'}'] = name { std::slice::from_ref(name) } else { name };
        if let Some(at) = used.iter().position(|used| *used == plain) {
            used.remove(at);
            kept.extend([name, &[0], &value[..value.len().min(MAX_MACRO)], &[0]].concat());
        }
    }
    if kept.len() == 1 {
        kept.push(0);
    }
    *payload = kept;
}

/// Texts, each with a zero at its end: at least one.
pub(super) fn texts(payload: &mut Vec<u8>) -> Repaired {
    if payload.ends_with(&[0]) {
        return None;
    }
    payload.push(0);
    Some("a command's text has no end".into())
}

/// The MTA's offer: version, actions, options. Like libmilter, the library treats no actions, or no options, as version 1. That is right if
/// both are missing; an MTA that offers only one of them means it. `Err` if it is unreadable.
pub(super) fn offer(payload: &mut [u8]) -> Result<(), ()> {
    let (version, rest) = payload.split_first_chunk::<4>().ok_or(())?;
    if rest.len() < 8 || number(*version) < MIN_VERSION {
        return Err(());
    }
    if rest[..8] == [0; 8] {
        return Ok(());
    }
    for (at, unused) in [(4, UNUSED_ACTION), (8, UNUSED_OPTION)] {
        if payload[at..at + 4] == [0; 4] {
            payload[at..at + 4].copy_from_slice(&bytes(unused));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(family: u8, address: &str) -> Vec<u8> {
        [b"mail.example.org\0", &[family, 0, 25][..], address.as_bytes(), b"\0"].concat()
    }

    #[test]
    fn addresses_as_mail_servers_write_them() {
        for (family, address, is) in [
            (b'4', "192.0.2.7", "192.0.2.7"),
            (b'6', "2001:db8::7", "2001:db8::7"),
            (b'6', "IPv6:2001:db8:0:0:0:0:0:25", "2001:db8::25"),
            (b'6', "ipv6:2001:DB8::7", "2001:db8::7"),
            (b'4', "IPv4:192.0.2.7", "192.0.2.7"),
            (b'6', "fe80::1%eth0", "fe80::1"),
            (b'6', "IPv6:fe80::1%2", "fe80::1"),
            (b'6', "[2001:db8::7]", "2001:db8::7"),
            (b'6', " 2001:db8::7 ", "2001:db8::7"),
            (b'6', "192.0.2.7", "192.0.2.7"),
            (b'4', "2001:db8::7", "2001:db8::7"),
            (b'6', "::ffff:192.0.2.7", "::ffff:192.0.2.7"),
        ] {
            let mut payload = client(family, address);
            assert_eq!(connect(&mut payload), None, "{address}");
            let family = if is.contains(':') { b'6' } else { b'4' };
            assert_eq!(payload, client(family, is), "{address}");
        }
    }

    #[test]
    fn clients_that_cannot_be_read() {
        let unreadable = client(b'L', std::str::from_utf8(UNREADABLE).unwrap());
        for (family, address) in
            [(b'4', ""), (b'6', "IPv6:"), (b'6', "nonsense"), (b'X', "192.0.2.7"), (b'L', "\x01unreadable")]
        {
            let mut payload = client(family, address);
            assert!(connect(&mut payload).is_some(), "{address}");
            assert_eq!((&payload[..18], &payload[20..]), (&unreadable[..18], &unreadable[20..]), "{address}");
        }
        for short in [&b""[..], b"host", b"host\0", b"host\x004", b"host\x004\0", b"host\x004\0\x19"] {
            let mut payload = short.to_vec();
            assert!(connect(&mut payload).is_some(), "{short:?}");
            assert!(payload.ends_with(&[UNREADABLE, &[0]].concat()), "{short:?}");
        }
        // A client that the MTA calls unknown, or local, stays so.
        for (family, address) in [(UNKNOWN, ""), (UNIX, "/run/socket")] {
            let mut payload = client(family, address);
            assert_eq!((connect(&mut payload), payload), (None, client(family, address)));
        }
    }

    #[test]
    fn fields_and_texts_get_their_ends() {
        for (broken, repaired) in [
            (&b"name\0value"[..], &b"name\0value\0"[..]),
            (b"name", b"name\0\0"),
            (b"name\0", b"name\0\0"),
            (b"name\0val", b"name\0val\0"),
        ] {
            let mut payload = broken.to_vec();
            assert!(field(&mut payload, 100).unwrap().is_some());
            assert_eq!(payload, repaired);
        }
        for whole in [&b"name\0\0"[..], b"name\0value\0", b"name\0value\0more\0"] {
            let mut payload = whole.to_vec();
            assert_eq!((field(&mut payload, 100), &*payload), (Ok(None), whole));
        }
        for (long, cut) in
            [(&b"name\0values"[..], &b"name\0va\0"[..]), (b"names_and_names\0v\0", b"names_\0\0")]
        {
            let mut payload = long.to_vec();
            assert!(field(&mut payload, 8).unwrap().is_some());
            assert_eq!(payload, cut);
        }
        for nameless in [&b""[..], b"\0value\0"] {
            assert!(field(&mut nameless.to_vec(), 100).is_err());
        }
        for (broken, repaired) in [(&b""[..], &b"\0"[..]), (b"no end", b"no end\0")] {
            let mut payload = broken.to_vec();
            assert!(texts(&mut payload).is_some());
            assert_eq!(payload, repaired);
        }
    }

    #[test]
    fn an_mta_without_offers_gets_no_requests() {
        let of = |numbers: [u32; 3]| numbers.map(u32::to_be_bytes).concat();
        for (offered, repaired) in [
            ([6, 0, 0x1F_FFFF], [6, UNUSED_ACTION, 0x1F_FFFF]),
            ([6, 0x1FF, 0], [6, 0x1FF, UNUSED_OPTION]),
            ([6, 0x1FF, 0x1F_FFFF], [6, 0x1FF, 0x1F_FFFF]),
            ([2, 0, 0], [2, 0, 0]),
        ] {
            let mut payload = of(offered);
            assert_eq!((offer(&mut payload), payload), (Ok(()), of(repaired)));
        }
        assert_eq!(offer(&mut of([1, 1, 1])), Err(()));
        assert_eq!(offer(&mut [0; 11]), Err(()));
    }
}
