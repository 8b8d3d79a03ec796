// SPDX-License-Identifier: GPL-3.0-or-later
//! The MTA's side of the milter protocol, and the mail that it sends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Header fields of a message but its Message-ID, with their values.
pub(crate) const FIELDS: [(&str, &str); 6] = [
    ("Received", "from a by b; Sat, 21 Nov 2026 00:00:00 +0000"),
    ("From", "News <news@example.net>"),
    ("To", "you@example.org"),
    ("Subject", "prices of the week"),
    ("Date", "Sat, 21 Nov 2026 00:00:00 +0000"),
    ("Content-Type", "text/plain; charset=utf-8"),
];

pub(crate) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The MTA's side of a connection. Packets are collected until an answer is due, as Postfix does.
pub(crate) struct Session {
    stream: Box<dyn Stream>,
    out: Vec<u8>,
    options: u32,
}

impl Session {
    pub(crate) fn open(address: &str) -> Self {
        let stream: Box<dyn Stream> = if let Some(path) = address.strip_prefix("unix:") {
            Box::new(UnixStream::connect(path).expect("connect"))
        } else {
            Box::new(TcpStream::connect(address.trim_start_matches("inet:")).expect("connect"))
        };
        let mut session = Self { stream, out: Vec::new(), options: 0 };
        session.command(b'O', &[6u32, 0x1FF, 0x1F_FFFF].map(u32::to_be_bytes).concat());
        let (kind, answer) = session.answer();
        assert_eq!(kind, b'O');
        session.options = u32::from_be_bytes(answer[8..12].try_into().expect("options"));
        session.command(b'D', b"Cj\0mx.example.org\0{daemon_name}\0mx\0v\0Postfix\0");
        session.event(b'C', b"mail.example.net\x004\x30\x39192.0.2.10\0", 0x1, 0x1000);
        session.event(b'H', b"mail.example.net\0", 0x2, 0x2000);
        session
    }

    pub(crate) fn message(&mut self, n: usize, size: usize) -> Duration {
        let id = format!("i\x004{n:X}\0");
        self.command(b'D', b"M{mail_addr}\0news@example.net\0{mail_host}\0mx\0{mail_mailer}\0smtp\0");
        self.event(b'M', b"<news@example.net>\0", 0x4, 0x4000);
        self.command(b'D', b"R{rcpt_addr}\0you@example.org\0{rcpt_host}\0mx\0{rcpt_mailer}\0local\0");
        self.event(b'R', b"<you@example.org>\0", 0x8, 0x8000);
        self.command(b'D', format!("T{id}").as_bytes());
        self.event(b'T', b"", 0x200, 0x1_0000);
        let message_id = ("Message-ID", &*format!("<{n}@example.net>"));
        for (name, value) in FIELDS.into_iter().chain([message_id]) {
            self.command(b'D', format!("L{id}").as_bytes());
            self.event(b'L', format!("{name}\0{value}\0").as_bytes(), 0x20, 0x80);
        }
        self.event(b'N', b"", 0x40, 0x4_0000);
        self.event(b'B', body(n, size).as_bytes(), 0x10, 0x8_0000);
        self.command(b'D', format!("E{id}").as_bytes());
        self.command(b'E', &[]);
        let start = Instant::now();
        loop {
            let (kind, _) = self.answer();
            match kind {
                b'h' => (),
                b'c' => return start.elapsed(),
                other => panic!("unexpected answer {:?}", char::from(other)),
            }
        }
    }

    /// Sends a stage unless it was negotiated away, and reads the answer unless that was.
    fn event(&mut self, kind: u8, payload: &[u8], no: u32, no_reply: u32) {
        if self.options & no == 0 {
            self.command(kind, payload);
            if self.options & no_reply == 0 {
                assert_eq!(self.answer().0, b'c');
            }
        }
    }

    pub(crate) fn command(&mut self, kind: u8, payload: &[u8]) {
        self.out.extend_from_slice(&u32::try_from(payload.len() + 1).expect("small").to_be_bytes());
        self.out.push(kind);
        self.out.extend_from_slice(payload);
    }

    pub(crate) fn send(&mut self) {
        self.stream.write_all(&self.out).expect("write");
        self.out.clear();
    }

    fn answer(&mut self) -> (u8, Vec<u8>) {
        self.send();
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("read");
        let mut packet = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut packet).expect("read");
        (packet[0], packet[1..].to_vec())
    }
}

/// About `size` bytes of unique prose.
pub(crate) fn body(n: usize, size: usize) -> String {
    let mut text = format!("Dear reader number {n},\r\n\r\n");
    while text.len() < size {
        text.push_str(
            "our prices of this week are lower than those of the last one, see below and answer soon\r\n",
        );
    }
    text
}
