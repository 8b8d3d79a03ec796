// SPDX-License-Identifier: GPL-3.0-or-later
//! HTTP byte by byte, so that tests can also send bad requests.

use super::PATIENCE;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// A connection to a port of this machine.
pub fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns everything that is answered until the other side closes the connection.
pub fn answer(mut stream: &TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        // A reset after the answer is an end, too.
        Err(e) if e.kind() != ErrorKind::ConnectionReset => panic!("the server does not end it: {e}"),
        _ => (),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a request, whose head lacks its end, and returns the answer.
pub fn ask(port: u16, head: &str, body: &[u8]) -> String {
    let stream = connect(port);
    let head = format!("{head}\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
    (&stream).write_all(head.as_bytes()).unwrap();
    // The server may refuse before it has read everything.
    let _ = (&stream).write_all(body);
    answer(&stream)
}
