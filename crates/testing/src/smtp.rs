// SPDX-License-Identifier: GPL-3.0-or-later
//! A small SMTP client that sends exactly the lines of a test.

use super::PATIENCE;
use bulkmark_samples::encode::base64;
use socket2::{Domain, Socket, Type};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

/// A reply of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The three digits.
    pub code: u16,
    /// The text behind the code; lines are joined by LF.
    pub text: String,
}

impl Reply {
    /// Returns the reply, if it has this code.
    #[track_caller]
    pub fn expect(self, code: u16) -> Self {
        assert_eq!(self.code, code, "the server says {self:?}");
        self
    }
}

/// The identity of a client. Postfix gets it by XCLIENT; for Sendmail the client connects from the address (see `Kind::seen`) and
/// logs in.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The address.
    pub ip: &'a str,
    /// The verified name, if there is one. For Sendmail, tests/mta/sendmail lists the names of addresses.
    pub name: Option<&'a str>,
    /// The login of a user.
    pub login: Option<&'a str>,
}

impl Default for Origin<'_> {
    fn default() -> Self {
        Self { ip: "192.0.2.25", name: None, login: None }
    }
}

/// A connection to a mail server, past EHLO.
pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    /// Connects as a client on loopback, without XCLIENT.
    pub fn connect(port: u16) -> Self {
        Self::connect_from(port, "127.0.0.1")
    }

    /// Connects from this address of loopback.
    pub fn connect_from(port: u16, address: &str) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(address.parse().unwrap(), 0).into()).unwrap();
        socket.connect(&SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
        Self::on(TcpStream::from(socket))
    }

    /// Connects over IPv6, on loopback.
    pub fn connect_over_ipv6(port: u16) -> Self {
        Self::on(TcpStream::connect((std::net::Ipv6Addr::LOCALHOST, port)).unwrap())
    }

    fn on(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut client = Self { stream: BufReader::new(stream) };
        client.reply().expect(220);
        client.command("EHLO client.test").expect(250);
        client
    }

    /// Logs in; every user's password is `secret`.
    pub fn log_in(&mut self, user: &str) {
        let words = base64(format!("\0{user}\0secret").as_bytes());
        self.command(&format!("AUTH PLAIN {}", words.trim_end())).expect(235);
    }

    /// Connects as another client by XCLIENT.
    pub fn connect_as(port: u16, origin: Origin<'_>) -> Self {
        let mut client = Self::connect(port);
        let mut command =
            format!("XCLIENT ADDR={} NAME={}", origin.ip, origin.name.unwrap_or("[UNAVAILABLE]"));
        if let Some(login) = origin.login {
            command = format!("{command} LOGIN={login}");
        }
        client.command(&command).expect(220);
        client.command("EHLO client.test").expect(250);
        client
    }

    /// Sends one line.
    pub fn command(&mut self, line: &str) -> Reply {
        self.write(format!("{line}\r\n").as_bytes());
        self.reply()
    }

    /// Begins a message; returns the replies to MAIL and to each RCPT.
    pub fn envelope(&mut self, sender: &str, recipients: &[&str]) -> (Reply, Vec<Reply>) {
        let mail = self.command(&format!("MAIL FROM:<{sender}>"));
        (mail, recipients.iter().map(|recipient| self.command(&format!("RCPT TO:<{recipient}>"))).collect())
    }

    /// Sends the message, which has CRLF or LF line ends, and returns the reply to its end.
    pub fn data(&mut self, message: &[u8]) -> Reply {
        self.command("DATA").expect(354);
        self.write(&stuffed(message));
        self.end_data()
    }

    /// Writes bytes unchanged.
    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Ends a message after [`Self::write`].
    pub fn end_data(&mut self) -> Reply {
        self.write(b".\r\n");
        self.reply()
    }

    /// Sends a whole message, whose envelope must be accepted; returns the reply to its end.
    pub fn send(&mut self, sender: &str, recipients: &[&str], message: &[u8]) -> Reply {
        let (mail, recipients) = self.envelope(sender, recipients);
        mail.expect(250);
        for reply in recipients {
            reply.expect(250);
        }
        self.data(message)
    }

    fn reply(&mut self) -> Reply {
        let mut text = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("the server does not answer");
            assert!(line.len() >= 5, "the server hung up; it said {line:?} after {text:?}");
            let (code, rest) = line.trim_end().split_at(3);
            text.push(rest.get(1..).unwrap_or_default().to_owned());
            if !rest.starts_with('-') {
                return Reply { code: code.parse().unwrap(), text: text.join("\n") };
            }
        }
    }
}

/// The message with CRLF line ends, one at the end, and with doubled dots at line starts (RFC 5321, 4.5.2).
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    for line in message.strip_suffix(b"\n").unwrap_or(message).split(|&b| b == b'\n') {
        if line.starts_with(b".") {
            wire.push(b'.');
        }
        wire.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        wire.extend_from_slice(b"\r\n");
    }
    wire
}
