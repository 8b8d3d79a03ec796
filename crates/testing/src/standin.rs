// SPDX-License-Identifier: GPL-3.0-or-later
//! Servers that are no signature servers, at the address of one.

use super::wait_for_some;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Listens until dropped; then the port is free for a server.
pub struct StandIn {
    /// The port that it listens on.
    pub port: u16,
    /// The number of connections so far.
    pub asked: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    thread: Option<JoinHandle<()>>,
}

impl StandIn {
    /// Answers the head of each request with the result of `answer`, and closes the connection. If that is None, the connection
    /// stays open without an answer.
    pub fn new(port: u16, answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        // A process that another test is just starting has the listener before this one open until it runs its program.
        let listener = wait_for_some("a free port", || TcpListener::bind(("127.0.0.1", port)).ok());
        let port = listener.local_addr().unwrap().port();
        let (asked, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let open = Arc::new(Mutex::new(Vec::new()));
        let (count, end, streams, answer) =
            (Arc::clone(&asked), Arc::clone(&ended), Arc::clone(&open), Arc::new(answer));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if end.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                streams.lock().unwrap().push(stream.try_clone().unwrap());
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || serve(&stream, &*answer));
            }
        });
        Self { port, asked, ended, open, thread: Some(thread) }
    }
}

/// An endless answer: head and beginning, and a repeated piece.
pub fn endless(fields: &str, beginning: &[u8], again: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}\r\n");
    [head.as_bytes(), beginning, MARK, again].concat()
}

/// The beginning, before the repeated piece.
const MARK: &[u8] = b"\0again\0and\0again\0";

/// The time between two pieces.
const PAUSE: Duration = Duration::from_millis(50);

impl Drop for StandIn {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // Wakes the accept loop.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.thread.take().unwrap().join();
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

fn serve(mut stream: &TcpStream, answer: &dyn Fn(&str) -> Option<Vec<u8>>) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    match answer(&String::from_utf8_lossy(&head)) {
        Some(bytes) => {
            if let Some(at) = bytes.windows(MARK.len()).position(|found| found == MARK) {
                let (beginning, again) = (&bytes[..at], &bytes[at + MARK.len()..]);
                let _ = stream.write_all(beginning);
                while stream.write_all(again).is_ok() {
                    std::thread::sleep(PAUSE);
                }
                return;
            }
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            // Until the other side has received everything.
            while stream.read(&mut byte).is_ok_and(|n| n > 0) {}
        }
        None => while stream.read(&mut byte).is_ok_and(|n| n > 0) {},
    }
}

/// An answer with this status and these header fields, each on a line of its own.
pub fn answer(status: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    [head.as_bytes(), body].concat()
}
