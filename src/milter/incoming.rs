// SPDX-License-Identifier: GPL-3.0-or-later
//! Packets of the MTA on their way to `indymilter`, which ends a session at the first packet that it cannot parse. Understandable packets are
//! repaired; at any other the session ends, with a reason.

use super::repair;
use std::borrow::Cow;
use std::fmt;

/// The longest payload that the protocol allows.
const MAX_PAYLOAD: usize = (1 << 20) - 1;

/// The longest payload of a command. An SMTP command is much shorter, and a connection takes so much memory before anything is known of it.
const MAX_COMMAND: usize = 64 << 10;

/// The most bytes of a header field that are kept: no more of a whole header is used.
const MAX_FIELD: usize = bulkmark_mail::MAX_HEADERS;

/// The size of the pieces of a longer chunk of a body, in bytes.
const PIECE: usize = 64 << 10;

/// Commands of the protocol (`SMFIC_*`).
const COMMANDS: &[u8] = b"ABCDEHKLMNOQRTU";

/// The milter does not answer header fields (`SMFIP_NR_HDR`).
const NOREPLY_HEADER: u32 = 0x80;

/// The milter does not answer pieces of the body (`SMFIP_NR_BODY`).
const NOREPLY_BODY: u32 = 0x8_0000;

/// The reason why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A packet without a command.
    Empty,
    /// A byte that is no command; the connection most likely uses another protocol.
    Unknown(u8),
    /// A command with too many bytes.
    TooLong(u8, u32),
    /// An offer that is too short, or of an obsolete version.
    Offer,
    /// The connection ended within a packet.
    Torn,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a packet is empty"),
            Self::Unknown(byte) => {
                write!(f, "a packet begins with the byte {byte:#04x}, which is no command")
            }
            Self::TooLong(kind, length) => {
                write!(f, "the packet {:?} has {length} bytes", char::from(*kind))
            }
            Self::Offer => f.write_str("the offer is too short, or of a version below 2"),
            Self::Torn => f.write_str("the connection ended within a packet"),
        }
    }
}

/// The findings in some bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The command of each packet that began.
    pub(super) commands: Vec<u8>,
    /// The repairs, as sentences.
    pub(super) repaired: Vec<Cow<'static, str>>,
    /// The number of answers that the MTA waits for, and the library does not give, to omitted packets.
    pub(super) owed: usize,
}

/// The state of the reader.
#[derive(Debug)]
enum At {
    /// In the length and command of a packet.
    Head,
    /// In a packet that is collected before it is passed on; with the number of missing bytes.
    Kept(usize),
    /// In a packet that is passed on as it arrives; with the number of missing bytes.
    Passed(usize),
    /// In the chunk of a body that is too long: missing bytes of this piece, and after it.
    Cut(usize, usize),
    /// In the end of a field that is too long; with the number of missing bytes.
    Left(usize),
}

/// The reader of packets.
#[derive(Debug)]
pub(super) struct Incoming {
    at: At,
    kind: u8,
    /// Length and command, or the payload, as far as received.
    kept: Vec<u8>,
    /// The options that were agreed on with the MTA.
    options: u32,
    /// The number of the library's answers to pieces of a chunk, which the MTA does not expect.
    surplus: usize,
}

impl Incoming {
    pub(super) const fn new() -> Self {
        Self { at: At::Head, kind: 0, kept: Vec::new(), options: 0, surplus: 0 }
    }

    /// Stores the options of the library's answer to the offer.
    pub(super) const fn agree(&mut self, options: u32) {
        self.options = options;
    }

    /// Whether the MTA does not expect the answer that the library gives now.
    pub(super) const fn is_surplus(&mut self) -> bool {
        let is_surplus = self.surplus > 0;
        self.surplus = self.surplus.saturating_sub(1);
        is_surplus
    }

    /// Whether all packets are complete.
    pub(super) const fn is_between(&self) -> bool {
        matches!(self.at, At::Head) && self.kept.is_empty()
    }

    /// Takes bytes of the MTA, and adds bytes for the library to `out`. Keeps a megabyte at most.
    pub(super) fn take(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        while !bytes.is_empty() {
            match self.at {
                At::Head => {
                    let (head, rest) = bytes.split_at(bytes.len().min(5 - self.kept.len()));
                    self.kept.extend_from_slice(head);
                    bytes = rest;
                    if let Some((length, &[kind])) = self.kept.split_first_chunk::<4>() {
                        let length = repair::number(*length);
                        self.kept.clear();
                        self.begin(length, kind, out, findings)?;
                    } else if self.kept.starts_with(&[0; 4]) {
                        return Err(Fault::Empty);
                    }
                }
                At::Kept(left) | At::Passed(left) | At::Left(left) => {
                    let (now, rest) = bytes.split_at(bytes.len().min(left));
                    bytes = rest;
                    let left = left - now.len();
                    match &mut self.at {
                        At::Kept(to_come) => {
                            *to_come = left;
                            self.kept.extend_from_slice(now);
                            if self.kept.len() >= MAX_FIELD {
                                self.at = At::Left(left);
                            }
                        }
                        At::Passed(to_come) => {
                            *to_come = left;
                            out.extend_from_slice(now);
                        }
                        At::Head | At::Cut(..) | At::Left(_) => self.at = At::Left(left),
                    }
                    if left == 0 {
                        self.end(out, findings)?;
                    }
                }
                At::Cut(left, behind) => {
                    let (now, rest) = bytes.split_at(bytes.len().min(left));
                    bytes = rest;
                    out.extend_from_slice(now);
                    match (left - now.len(), behind) {
                        (0, 0) => self.at = At::Head,
                        (0, behind) => self.piece(behind, out),
                        (left, behind) => self.at = At::Cut(left, behind),
                    }
                }
            }
        }
        Ok(())
    }

    /// Begins a packet.
    fn begin(
        &mut self,
        length: u32,
        kind: u8,
        out: &mut Vec<u8>,
        findings: &mut Findings,
    ) -> Result<(), Fault> {
        if length == 0 {
            return Err(Fault::Empty);
        }
        if !COMMANDS.contains(&kind) {
            return Err(Fault::Unknown(kind));
        }
        self.kind = kind;
        // The MTA has waited for all earlier answers.
        self.surplus = 0;
        findings.commands.push(kind);
        let payload = usize::try_from(length - 1).unwrap_or(usize::MAX);
        match kind {
            b'B' | b'E' if payload > PIECE => {
                if payload > MAX_PAYLOAD {
                    findings.repaired.push("a chunk of a body is longer than a megabyte".into());
                }
                self.piece(payload, out);
                return Ok(());
            }
            b'L' => (),
            _ if payload > MAX_COMMAND => return Err(Fault::TooLong(kind, length)),
            _ => (),
        }
        let is_kept = match kind {
            b'C' | b'D' | b'H' | b'L' | b'M' | b'O' | b'R' | b'U' => true,
            b'B' => payload == 0,
            _ => false,
        };
        if is_kept {
            self.at = At::Kept(payload);
        } else {
            head(payload, kind, out);
            self.at = At::Passed(payload);
        }
        if payload == 0 { self.end(out, findings) } else { Ok(()) }
    }

    /// Begins the next piece of a chunk that is too long. The library answers each, and the MTA waits for one answer.
    fn piece(&mut self, payload: usize, out: &mut Vec<u8>) {
        let now = payload.min(PIECE);
        let is_last = now == payload;
        head(now, if is_last { self.kind } else { b'B' }, out);
        if !is_last && self.options & NOREPLY_BODY == 0 {
            self.surplus = self.surplus.saturating_add(1);
        }
        self.at = At::Cut(now, payload - now);
    }

    /// Ends a complete packet.
    fn end(&mut self, out: &mut Vec<u8>, findings: &mut Findings) -> Result<(), Fault> {
        let is_kept = matches!(self.at, At::Kept(_) | At::Left(_));
        self.at = At::Head;
        if !is_kept {
            return Ok(());
        }
        let mut payload = std::mem::take(&mut self.kept);
        let repaired = match self.kind {
            b'C' => Ok(repair::connect(&mut payload)),
            b'L' => repair::field(&mut payload, MAX_FIELD),
            b'O' => repair::offer(&mut payload).map(|()| None).map_err(|()| Fault::Offer).map(Ok)?,
            b'B' => Err("a chunk of a body is empty"),
            b'D' if !payload.is_empty() => {
                repair::macros(&mut payload);
                Ok(None)
            }
            _ => Ok(repair::texts(&mut payload)),
        };
        match repaired {
            Ok(repaired) => {
                findings.repaired.extend(repaired);
                head(payload.len(), self.kind, out);
                out.append(&mut payload);
            }
            Err(left_out) => {
                findings.repaired.push(left_out.into());
                let unanswered = if self.kind == b'L' { NOREPLY_HEADER } else { NOREPLY_BODY };
                findings.owed += usize::from(self.options & unanswered == 0);
                payload.clear();
            }
        }
        // Frees the memory of a large packet.
        if payload.capacity() <= PIECE {
            self.kept = payload;
        }
        Ok(())
    }
}

/// Writes length and command of a packet. The payload is never longer than the library accepts.
fn head(payload: usize, kind: u8, out: &mut Vec<u8>) {
    let length = u32::try_from(payload + 1).unwrap_or(u32::MAX);
    out.extend_from_slice(&repair::bytes(length));
    out.push(kind);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        head(payload.len(), kind, &mut out);
        [out, payload.to_vec()].concat()
    }

    /// The bytes for the library, from pieces of that size.
    fn taken(incoming: &mut Incoming, bytes: &[u8], size: usize) -> Result<(Vec<u8>, Findings), Fault> {
        let (mut out, mut findings) = (Vec::new(), Findings::default());
        for piece in bytes.chunks(size) {
            incoming.take(piece, &mut out, &mut findings)?;
        }
        assert!(incoming.is_between());
        Ok((out, findings))
    }

    #[test]
    fn well_formed_packets_pass_unchanged_in_pieces_of_any_size() {
        let stream = [
            packet(b'O', &[6, 0x1FF, 0x1F_FFFF].map(u32::to_be_bytes).concat()),
            packet(b'D', b"Cj\0mx.test\0"),
            packet(b'D', b"M\0"),
            packet(b'D', b"M{i}\x004ID\0{auth_authen}\0anna\0{auth_type}\0PLAIN\0"),
            packet(b'C', b"host\x004\0\x19192.0.2.7\0"),
            packet(b'H', b"helo\0"),
            packet(b'M', b"<a@example.org>\0SIZE=5\0"),
            packet(b'R', b"<b@example.org>\0"),
            packet(b'T', b""),
            packet(b'L', b"Subject\0s\0"),
            packet(b'N', b""),
            packet(b'B', &[b'x'; 300]),
            packet(b'E', b""),
            packet(b'Q', b""),
        ]
        .concat();
        for size in [1, 2, 3, 7, 100, 5000] {
            let (out, findings) = taken(&mut Incoming::new(), &stream, size).unwrap();
            assert_eq!(out, stream, "in pieces of {size}");
            assert_eq!((&*findings.commands, findings.repaired.len()), (&b"ODDDCHMRTLNBEQ"[..], 0));
        }
    }

    #[test]
    fn long_chunks_are_cut_and_answered_once() {
        for (options, kind) in [(0, b'B'), (NOREPLY_BODY, b'B'), (0, b'E')] {
            let body: Vec<u8> = (0..=250).cycle().take(MAX_PAYLOAD + 3).collect();
            let mut incoming = Incoming::new();
            incoming.agree(options);
            let (out, findings) = taken(&mut incoming, &packet(kind, &body), 10_000).unwrap();
            assert_eq!(findings.repaired.len(), 1);
            let (mut rest, mut joined, mut kinds) = (&out[..], Vec::new(), Vec::new());
            while let Some((length, [command, behind @ ..])) = rest.split_first_chunk::<4>() {
                let (payload, behind) = behind.split_at(repair::number(*length) as usize - 1);
                joined.extend_from_slice(payload);
                kinds.push(*command);
                rest = behind;
            }
            assert!(joined == body);
            assert_eq!((kinds.len(), kinds.pop()), (17, Some(kind)));
            assert!(kinds.iter().all(|&kind| kind == b'B'));
            let surplus = (0..20).filter(|_| incoming.is_surplus()).count();
            assert_eq!(surplus, if options == 0 { 16 } else { 0 });
        }
    }

    #[test]
    fn unreadable_packets_are_omitted_and_answered() {
        for (left_out, options) in
            [(packet(b'B', b""), NOREPLY_BODY), (packet(b'L', b"\0value\0"), NOREPLY_HEADER)]
        {
            for agreed in [0, options] {
                let mut incoming = Incoming::new();
                incoming.agree(agreed);
                let (out, findings) = taken(&mut incoming, &left_out, 1).unwrap();
                assert_eq!((out.len(), findings.owed), (0, usize::from(agreed == 0)));
                assert_eq!(findings.repaired.len(), 1);
            }
        }
    }

    /// The library keeps all macros of each stage, in a map: thousands of short ones would take a hundred times their size.
    #[test]
    fn no_macro_that_is_not_used_takes_memory() {
        let many: Vec<u8> = (0..10_000).flat_map(|n| format!("{n:04}\0\0").into_bytes()).collect();
        for (sent, passed) in [
            ([b"M", &*many].concat(), b"M\0".to_vec()),
            ([b"M", &*many, b"i\x004ID\0"].concat(), b"Mi\x004ID\0".to_vec()),
            ([b"M".to_vec(), b"i\0a\0".repeat(9000)].concat(), b"Mi\0a\0".to_vec()),
            (
                [b"Mi\0", &[b'x'; 50_000][..], b"\0j\0mx\0"].concat(),
                [b"Mi\0", &[b'x'; 1024][..], b"\0j\0mx\0"].concat(),
            ),
            (b"Mi\0a\0j".to_vec(), b"Mi\0a\0".to_vec()),
            // Macros of an earlier message end.
            (b"M".to_vec(), b"M\0".to_vec()),
        ] {
            let (out, findings) = taken(&mut Incoming::new(), &packet(b'D', &sent), 4000).unwrap();
            assert_eq!((&out[5..], findings.repaired.len()), (&*passed, 0));
        }
    }

    /// Of a packet that has not ended, no more is kept than a connection may take.
    #[test]
    fn an_unfinished_packet_takes_little_memory() {
        for (kind, length, most) in [
            (b'L', MAX_PAYLOAD, MAX_FIELD),
            (b'B', MAX_PAYLOAD, PIECE),
            (b'M', MAX_COMMAND, MAX_COMMAND),
            (b'D', MAX_COMMAND, MAX_COMMAND),
        ] {
            let (mut incoming, mut out) = (Incoming::new(), Vec::new());
            let begun = packet(kind, &vec![b'x'; length]);
            for piece in begun[..begun.len() - 1].chunks(1000) {
                incoming.take(piece, &mut out, &mut Findings::default()).unwrap();
            }
            assert!(incoming.kept.capacity() <= 2 * most, "{}", char::from(kind));
            // Nor does the library wait for more.
            let first = out.first_chunk::<4>().map_or(0, |length| repair::number(*length));
            assert!(first as usize <= PIECE + 1, "{} {first}", char::from(kind));
        }
    }

    #[test]
    fn a_field_that_is_too_long_is_cut() {
        let field = [b"Subject\0", &[b'x'; 2 << 20][..], b"\0"].concat();
        let (out, findings) = taken(&mut Incoming::new(), &packet(b'L', &field), 70_000).unwrap();
        assert_eq!(out, packet(b'L', &[&field[..MAX_FIELD - 1], b"\0"].concat()));
        assert_eq!(findings.repaired.len(), 1);
    }

    #[test]
    fn other_protocols_end_at_once() {
        for (bytes, fault) in [
            (&b"GET / HTTP/1.1"[..], Fault::Unknown(b'/')),
            (b"\0\0\0\0Z", Fault::Empty),
            (b"\0\0\0\x01Z", Fault::Unknown(b'Z')),
            (b"\xFF\xFF\xFF\xFFMx", Fault::TooLong(b'M', u32::MAX)),
            (b"\0\x01\0\x02Dx", Fault::TooLong(b'D', 0x1_0002)),
            (b"\0\0\0\x03Oxy", Fault::Offer),
            (b"\0\0\0\x0DO\0\0\0\x01\0\0\0\0\0\0\0\0", Fault::Offer),
        ] {
            for size in [1, 100] {
                let (mut incoming, mut out) = (Incoming::new(), Vec::new());
                let mut pieces = bytes.chunks(size);
                let found =
                    pieces.find_map(|piece| incoming.take(piece, &mut out, &mut Findings::default()).err());
                assert_eq!((found, out.len()), (Some(fault), 0), "{bytes:?}");
            }
        }
    }
}
