// SPDX-License-Identifier: GPL-3.0-or-later
//! An MTA's end of the milter protocol, byte by byte, so that tests can also break the protocol.

use super::{Daemon, PATIENCE};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// All actions and all protocol options of version 6, as Sendmail offers them.
pub const ALL_ACTIONS: u32 = 0x1FF;
/// All existing protocol options (`SMFIP_*`).
pub const ALL_OPTIONS: u32 = 0x1F_FFFF;

/// The right to add header fields (`SMFIF_ADDHDRS`).
pub const ADD_HEADER: u32 = 0x01;
/// The right to change them (`SMFIF_CHGHDRS`).
pub const CHANGE_HEADER: u32 = 0x10;
/// The right to hold messages back (`SMFIF_QUARANTINE`).
pub const QUARANTINE: u32 = 0x20;
/// The right to ask for macros (`SMFIF_SETSYMLIST`).
pub const REQUEST_MACROS: u32 = 0x100;

/// The milter wants no HELO (`SMFIP_NOHELO`).
pub const NO_HELO: u32 = 0x02;
const NO_EOH: u32 = 0x40;
const NO_DATA: u32 = 0x200;
/// No reply to header fields (`SMFIP_NR_HDR`).
pub const NOREPLY_HEADER: u32 = 0x80;
/// No reply to the connection (`SMFIP_NR_CONN`).
pub const NOREPLY_CONNECT: u32 = 0x1000;
/// No reply to HELO (`SMFIP_NR_HELO`).
pub const NOREPLY_HELO: u32 = 0x2000;
/// No reply to MAIL (`SMFIP_NR_MAIL`).
pub const NOREPLY_MAIL: u32 = 0x4000;
/// No reply to RCPT (`SMFIP_NR_RCPT`).
pub const NOREPLY_RCPT: u32 = 0x8000;
const NOREPLY_DATA: u32 = 0x1_0000;
const NOREPLY_EOH: u32 = 0x4_0000;
/// No reply to pieces of the body (`SMFIP_NR_BODY`).
pub const NOREPLY_BODY: u32 = 0x8_0000;

/// Bytes of a body chunk, as MTAs send them.
const CHUNK: usize = 65_535;

trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

/// A connection, which collects commands until it waits for an answer.
pub struct Client {
    stream: Box<dyn Duplex>,
    out: Vec<u8>,
    /// The milter's protocol version.
    pub version: u32,
    /// The agreed actions.
    pub actions: u32,
    /// The protocol options that the milter wants.
    pub options: u32,
    /// The macros that the milter asked for: stage and names.
    pub macros: Vec<(u32, String)>,
    /// The login name of the SMTP client.
    pub login: Option<String>,
}

impl Client {
    /// Connects without negotiating.
    pub fn open(daemon: &Daemon) -> Self {
        Self::open_at(&daemon.address)
    }

    /// The same at an address in Postfix's notation.
    pub fn open_at(address: &str) -> Self {
        Self::try_open_at(address).unwrap()
    }

    /// The same where perhaps nobody listens.
    pub fn try_open_at(address: &str) -> std::io::Result<Self> {
        let stream: Box<dyn Duplex> = if let Some(path) = address.strip_prefix("unix:") {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            Box::new(stream)
        } else {
            let stream = TcpStream::connect(address.strip_prefix("inet:").unwrap())?;
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.set_write_timeout(Some(PATIENCE)).unwrap();
            stream.set_nodelay(true).unwrap();
            Box::new(stream)
        };
        Ok(Self {
            stream,
            out: Vec::new(),
            version: 6,
            actions: 0,
            options: 0,
            macros: Vec::new(),
            login: None,
        })
    }

    /// Connects and negotiates as an MTA that offers everything.
    pub fn connect(daemon: &Daemon) -> Self {
        Self::negotiated(daemon, 6, ALL_ACTIONS, ALL_OPTIONS)
    }

    /// Connects and negotiates as an MTA with this offer.
    pub fn negotiated(daemon: &Daemon, version: u32, actions: u32, options: u32) -> Self {
        let mut client = Self::open(daemon);
        client.negotiate(version, actions, options);
        client
    }

    /// Offers version, actions and options, and stores the answer.
    pub fn negotiate(&mut self, version: u32, actions: u32, options: u32) {
        self.try_negotiate(version, actions, options).expect("the negotiation is answered");
    }

    /// The same; nothing when the milter closed the connection.
    fn try_negotiate(&mut self, version: u32, actions: u32, options: u32) -> Option<()> {
        self.send(b'O', &[version, actions, options].map(u32::to_be_bytes).concat());
        let (kind, payload) = self.receive()?;
        assert_eq!(kind, b'O');
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().unwrap());
        (self.version, self.actions, self.options) = (number(0), number(4), number(8));
        assert!(self.version <= version, "a version that was not offered");
        assert_eq!(self.actions & !actions, 0, "actions that were not offered");
        assert_eq!(self.options & !options, 0, "options that were not offered");
        let mut rest = &payload[12..];
        while let Some((stage, after)) = rest.split_first_chunk::<4>() {
            let end = after.iter().position(|&b| b == 0).unwrap();
            self.macros
                .push((u32::from_be_bytes(*stage), String::from_utf8_lossy(&after[..end]).into_owned()));
            rest = &after[end + 1..];
        }
        Some(())
    }

    /// Sends a packet; it leaves at the next [`receive`](Self::receive) or [`flush`](Self::flush).
    pub fn send(&mut self, kind: u8, payload: &[u8]) {
        let length = u32::try_from(payload.len() + 1).unwrap();
        self.raw(&[&length.to_be_bytes(), &[kind][..], payload].concat());
    }

    /// Sends bytes that may be no packet.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        if self.out.len() > 1 << 20 {
            self.flush();
        }
    }

    /// Flushes everything that was written.
    pub fn flush(&mut self) {
        self.stream.write_all(&self.out).unwrap();
        self.out.clear();
    }

    /// As `flush`, where the other side may have closed the connection.
    pub fn try_flush(&mut self) {
        let _ = self.stream.write_all(&self.out);
        self.out.clear();
    }

    /// Receives one packet, or nothing when the milter closed the connection.
    pub fn receive(&mut self) -> Option<(u8, Vec<u8>)> {
        self.try_flush();
        let mut head = [0; 5];
        self.read_exact(&mut head)?;
        let length = u32::from_be_bytes(head[..4].try_into().unwrap()) as usize;
        let mut payload = vec![0; length - 1];
        self.read_exact(&mut payload)?;
        Some((head[4], payload))
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self.stream.read_exact(bytes) {
            Ok(()) => Some(()),
            Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => None,
            Err(e) => panic!("no answer: {e}"),
        }
    }

    /// Returns the bytes of one read: one segment or more.
    pub fn read_once(&mut self) -> Vec<u8> {
        self.flush();
        let mut buffer = vec![0; 65_536];
        let n = self.stream.read(&mut buffer).unwrap();
        buffer.truncate(n);
        buffer
    }

    /// Whether the milter closes the connection, whatever it sends before.
    pub fn is_closed(&mut self) -> bool {
        self.try_flush();
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(e) => e.kind() == ErrorKind::ConnectionReset,
        }
    }

    /// Sends a stage of the session, and reads its answer unless it was negotiated away.
    pub fn stage(&mut self, kind: u8, payload: &[u8], unanswered: u32) {
        let answer = self.try_stage(kind, payload, unanswered);
        assert_eq!(answer, Some(()), "the connection was closed after {:?}", char::from(kind));
    }

    /// The same; nothing when the connection ends before the answer.
    fn try_stage(&mut self, kind: u8, payload: &[u8], unanswered: u32) -> Option<()> {
        self.send(kind, payload);
        if self.options & unanswered == 0 {
            assert_eq!(self.receive()?, (b'c', Vec::new()), "after {:?}", char::from(kind));
        }
        Some(())
    }

    /// Sends macros for the stage of the command `stage`.
    pub fn macros(&mut self, stage: u8, pairs: &[(&str, &str)]) {
        let mut payload = vec![stage];
        for (name, value) in pairs {
            payload.extend([name.as_bytes(), b"\0", value.as_bytes(), b"\0"].concat());
        }
        self.send(b'D', &payload);
    }

    /// Sends the client of the SMTP session.
    pub fn client(&mut self, host: &str, ip: &str) {
        self.try_client(host, ip).expect("the connection was closed");
    }

    fn try_client(&mut self, host: &str, ip: &str) -> Option<()> {
        let family = if ip.contains(':') { b'6' } else { b'4' };
        let payload = [host.as_bytes(), &[0, family], &25u16.to_be_bytes(), ip.as_bytes(), &[0]].concat();
        self.try_stage(b'C', &payload, NOREPLY_CONNECT)?;
        if self.options & NO_HELO == 0 {
            self.try_stage(b'H', b"client.test\0", NOREPLY_HELO)?;
        }
        Some(())
    }

    /// Sends the stages of a message up to its end, but not its end.
    pub fn begin(&mut self, mail: &Mail) {
        self.try_begin(mail).expect("the connection was closed");
    }

    fn try_begin(&mut self, mail: &Mail) -> Option<()> {
        let mut macros = vec![("i", &*mail.id)];
        let login = self.login.clone();
        macros.extend(login.as_deref().map(|login| ("{auth_authen}", login)));
        self.macros(b'M', &macros);
        self.try_stage(b'M', format!("<{}>\0", mail.sender).as_bytes(), NOREPLY_MAIL)?;
        for recipient in &mail.recipients {
            self.try_stage(b'R', format!("<{recipient}>\0").as_bytes(), NOREPLY_RCPT)?;
        }
        if self.version >= 4 && self.options & NO_DATA == 0 {
            self.try_stage(b'T', b"", NOREPLY_DATA)?;
        }
        for (name, value) in &mail.headers {
            self.try_stage(b'L', &[name, &[0][..], value, &[0]].concat(), NOREPLY_HEADER)?;
        }
        if self.options & NO_EOH == 0 {
            self.try_stage(b'N', b"", NOREPLY_EOH)?;
        }
        for chunk in mail.body.chunks(CHUNK) {
            self.try_stage(b'B', chunk, NOREPLY_BODY)?;
        }
        Some(())
    }

    /// Sends a message and returns the answer.
    pub fn message(&mut self, mail: &Mail) -> Answer {
        self.begin(mail);
        self.end()
    }

    /// The same, or nothing when the connection ends before the final answer.
    pub fn try_message(&mut self, mail: &Mail) -> Option<Answer> {
        self.try_begin(mail)?;
        self.try_end()
    }

    /// Sends the end of a message and returns the answer.
    pub fn end(&mut self) -> Answer {
        self.try_end().expect("the connection was closed before the answer")
    }

    /// The same, or nothing when the connection ends before the final answer.
    pub fn try_end(&mut self) -> Option<Answer> {
        self.send(b'E', b"");
        self.answer()
    }

    /// Returns the answer to an end that was sent.
    pub fn answer(&mut self) -> Option<Answer> {
        let mut answer = Answer::default();
        loop {
            let (kind, payload) = self.receive()?;
            let fields: Vec<String> =
                payload.split(|&b| b == 0).map(|f| String::from_utf8_lossy(f).into_owned()).collect();
            match kind {
                b'h' => answer.added.push((fields[0].clone(), fields[1].clone())),
                b'i' => {
                    assert_eq!(payload[..4], [0; 4], "inserted, and not at the top");
                    let field: Vec<_> = payload[4..].split(|&b| b == 0).collect();
                    let text = |i: usize| String::from_utf8_lossy(field[i]).into_owned();
                    answer.inserted.push((text(0), text(1)));
                }
                b'm' => {
                    assert!(payload.len() > 5 && payload.ends_with(&[0, 0]), "a change that is no removal");
                    let name = payload[4..].split(|&b| b == 0).next().unwrap();
                    let index = u32::from_be_bytes(payload[..4].try_into().unwrap());
                    answer.removed.push((index, String::from_utf8_lossy(name).into_owned()));
                }
                b'-' => answer.taken_out.push(fields[0].clone()),
                b'q' => answer.quarantine = Some(fields[0].clone()),
                b'y' => {
                    answer.reply = fields[0].clone();
                    return Some(answer);
                }
                b'c' | b'a' | b'r' | b't' | b'd' => {
                    answer.reply = char::from(kind).to_string();
                    return Some(answer);
                }
                other => panic!("an unknown answer {:?}", char::from(other)),
            }
        }
    }
}

/// A connection of an unknown client outside this machine.
pub fn session(daemon: &Daemon) -> Client {
    let mut client = Client::connect(daemon);
    client.client("client.example.org", "192.0.2.7");
    client
}

/// The same, with a milter that may be killed at any time; nothing where it is not running.
pub fn try_session(address: &str) -> Option<Client> {
    let mut client = Client::try_open_at(address).ok()?;
    client.try_negotiate(6, ALL_ACTIONS, ALL_OPTIONS)?;
    client.try_client("client.example.org", "192.0.2.7")?;
    Some(client)
}

/// The milter's changes to a message, and its answer.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Names and values of added header fields.
    pub added: Vec<(String, String)>,
    /// Names and values of header fields added at the top.
    pub inserted: Vec<(String, String)>,
    /// Index and name of deleted header fields.
    pub removed: Vec<(u32, String)>,
    /// The reason for the quarantine, if any.
    pub quarantine: Option<String>,
    /// Deleted recipients.
    pub taken_out: Vec<String>,
    /// `c` for continue, ..., or the text of an SMTP reply.
    pub reply: String,
}

impl Answer {
    /// The value of the one header that was added.
    pub fn header(&self) -> &str {
        assert_eq!(self.added.len(), 1, "{self:?}");
        assert_eq!(self.added[0].0, "X-Bulkmark");
        &self.added[0].1
    }

    /// The same without its parts about near signatures.
    pub fn verdict(&self) -> String {
        super::without_near(self.header())
    }

    /// The count in the header.
    pub fn count(&self) -> Option<u32> {
        let field = self.added.first()?.1.split("; ").find_map(|f| f.strip_prefix("body="))?;
        field.trim_end_matches('+').parse().ok()
    }
}

/// A message with its envelope.
#[derive(Debug, Clone)]
pub struct Mail {
    /// The queue id.
    pub id: String,
    /// The sender of the envelope.
    pub sender: String,
    /// The recipients of the envelope.
    pub recipients: Vec<String>,
    /// Names and values of the header fields.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Mail {
    /// A message with enough text to be counted; different texts are different messages.
    pub fn text(text: &str) -> Self {
        Self::raw(
            format!("Subject: s\r\n\r\nThis is a message of many words, and it says: {text}\r\n").as_bytes(),
        )
    }

    /// A message from its wire form, cut into fields as an MTA does it: the first line that is no field begins the body.
    pub fn raw(raw: &[u8]) -> Self {
        let mut headers: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut rest = raw;
        loop {
            let end = rest.iter().position(|&b| b == b'\n').map_or(rest.len(), |i| i + 1);
            let line = rest[..end].strip_suffix(b"\n").unwrap_or(&rest[..end]);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                rest = &rest[end..];
                break;
            }
            if line[0] == b' ' || line[0] == b'\t' {
                let Some((_, value)) = headers.last_mut() else { break };
                value.push(b'\n');
                value.extend_from_slice(line);
            } else {
                let Some(colon) = line.iter().position(|&b| b == b':') else { break };
                let name = line[..colon].trim_ascii_end();
                if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
                    break;
                }
                headers.push((name.to_vec(), line[colon + 1..].trim_ascii_start().to_vec()));
            }
            rest = &rest[end..];
        }
        Self {
            id: "4TEST".to_owned(),
            sender: "sender@example.org".to_owned(),
            recipients: vec!["recipient@example.net".to_owned()],
            headers,
            body: rest.to_vec(),
        }
    }
}
