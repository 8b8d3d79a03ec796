// SPDX-License-Identifier: GPL-3.0-or-later
//! The attackers' HTTP client, written after docs/protocol.md.

use bulkmark_testing::PATIENCE;
use bulkmark_testing::server::Server;
use socket2::{Domain, Socket, Type};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The most reports in one batch.
pub(crate) const BATCH: usize = 8192;

/// Connects from this loopback address. Reads have a time limit.
pub(crate) fn connect(port: u16, from: &str) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(from.parse().unwrap(), 0).into()).unwrap();
    socket.connect(&SocketAddr::from(([127, 0, 0, 1], port)).into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The value of `Bulkmark-Error`.
    pub(crate) error: String,
    pub(crate) body: String,
}

/// A client of a server with a token.
pub(crate) struct Http {
    port: u16,
    from: String,
    token: String,
    stream: Option<BufReader<TcpStream>>,
    /// The spool, and the number of its last batch.
    spool: u64,
    batch: u64,
}

/// The number of the next spool.
static SPOOLS: AtomicU64 = AtomicU64::new(1);

impl Http {
    pub(crate) fn new(port: u16, token: &str) -> Self {
        Self {
            port,
            from: "127.0.0.1".to_owned(),
            token: token.to_owned(),
            stream: None,
            spool: SPOOLS.fetch_add(1, Ordering::Relaxed),
            batch: 0,
        }
    }

    /// The same from another loopback address.
    pub(crate) fn from(port: u16, token: &str, from: &str) -> Self {
        Self { from: from.to_owned(), ..Self::new(port, token) }
    }

    /// Sends a request and waits for its answer, on the previous connection if that is still open.
    pub(crate) fn ask(&mut self, request: &str, fields: &str, body: &[u8]) -> Answer {
        let kept = self.stream.take();
        let answer = kept.and_then(|stream| self.ask_on(stream, request, fields, body));
        answer.or_else(|| self.ask_anew(request, fields, body)).expect("the server answers")
    }

    /// The same on a new connection; `None` if there is no answer.
    pub(crate) fn ask_anew(&mut self, request: &str, fields: &str, body: &[u8]) -> Option<Answer> {
        self.ask_on(BufReader::new(connect(self.port, &self.from)), request, fields, body)
    }

    fn ask_on(
        &mut self,
        mut stream: BufReader<TcpStream>,
        request: &str,
        fields: &str,
        body: &[u8],
    ) -> Option<Answer> {
        let head = format!(
            "{request} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n{fields}Content-Length: {}\r\n\r\n",
            self.token,
            body.len()
        );
        stream.get_mut().write_all(&[head.as_bytes(), body].concat()).ok()?;
        let (mut answer, mut length, mut closes) = (Answer::default(), 0, false);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim();
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            match name.to_ascii_lowercase().as_str() {
                "" => break,
                "content-length" => length = value.trim().parse().ok()?,
                "bulkmark-error" => value.trim().clone_into(&mut answer.error),
                "connection" => closes = value.trim() == "close",
                _ if answer.status == 0 => answer.status = line.split(' ').nth(1)?.parse().ok()?,
                _ => (),
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).ok()?;
        answer.body = String::from_utf8_lossy(&body).into_owned();
        self.stream = (!closes).then_some(stream);
        Some(answer)
    }

    /// Reports each of these signatures `times` times, in one batch.
    pub(crate) fn report(&mut self, signatures: &[u128], times: u32) -> Answer {
        assert!(signatures.len() <= BATCH && times < 128);
        self.batch += 1;
        let mut bytes = b"BMRP\x01".to_vec();
        bytes.extend(self.spool.to_le_bytes());
        bytes.extend(self.batch.to_le_bytes());
        for signature in signatures {
            bytes.extend(signature.to_be_bytes());
            bytes.push(u8::try_from(times).unwrap());
        }
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        loop {
            let answer = self.ask("POST /v1/reports", "", &bytes);
            // Too fast: repeats it a little later.
            if answer.status != 429 || answer.error != "rate" {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Reports all of these until one is refused. Returns the number accepted, and the refusal. Uses up the rest of a quota.
    pub(crate) fn report_all(&mut self, signatures: &[u128], times: u32) -> (usize, Option<Answer>) {
        let (mut taken, mut size) = (0, BATCH);
        while taken < signatures.len() {
            let end = signatures.len().min(taken + size);
            let answer = self.report(&signatures[taken..end], times);
            if answer.status == 200 {
                taken = end;
            } else if size == 1 {
                return (taken, Some(answer));
            } else {
                size /= 2;
            }
        }
        (taken, None)
    }

    /// The count of a signature.
    pub(crate) fn count(&mut self, signature: u128) -> u32 {
        let answer = self.ask(&format!("GET /v1/check?signature={signature:032x}"), "", b"");
        let value: serde_json::Value =
            serde_json::from_str(&answer.body).unwrap_or_else(|e| panic!("{e}: {answer:?}"));
        u32::try_from(value["count"].as_u64().unwrap()).unwrap()
    }
}

/// Runs `bulkmark client`. Returns its output, or `None` if it does not know these arguments.
fn manage(server: &Server, arguments: &[&str]) -> Option<String> {
    let output = server.try_client(arguments);
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// The token of a new partner, with these limits and otherwise the defaults.
pub(crate) fn partner(server: &Server, name: &str, limits: &[&str]) -> String {
    let now = [&["add", name, "--partner"], limits].concat();
    // Versions without partners required a limit.
    let limit: &[&str] = if limits.contains(&"--max-influence") { &[] } else { &["--max-influence", "5"] };
    let before = [&["add", name], limit, limits].concat();
    manage(server, &now).or_else(|| manage(server, &before)).unwrap()
}

/// The token of a new client that is a mail server of the same administrator.
pub(crate) fn own(server: &Server, name: &str) -> String {
    manage(server, &["add", name, "--own"]).or_else(|| manage(server, &["add", name])).unwrap()
}

/// Removes a client, with its reports if the version can do that.
pub(crate) fn remove(server: &Server, name: &str) {
    manage(server, &["remove", name, "--with-counts"]).or_else(|| manage(server, &["remove", name])).unwrap();
}
