// SPDX-License-Identifier: GPL-3.0-or-later
//! A gate in front of a server. It forwards connections until a test cuts them off, holds answers back, or delays requests.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The delay of each piece that a slow client sends.
const WAY: Duration = Duration::from_millis(50);

/// The bytes of a connection that are kept from one piece to the next: a pattern may be parted by them.
const TAIL: usize = 255;

/// Forwards connections to a port of this machine.
#[derive(Clone)]
pub struct Gate {
    /// The port that it listens on.
    pub port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    mute: Arc<AtomicBool>,
    slow: Arc<AtomicBool>,
    last: Arc<Mutex<Option<&'static [u8]>>>,
}

impl Gate {
    /// Opens a gate in front of this port.
    pub fn new(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gate = Self {
            port,
            streams: Arc::default(),
            mute: Arc::default(),
            slow: Arc::default(),
            last: Arc::default(),
        };
        let at = gate.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                for stream in [&client, &server] {
                    at.streams.lock().unwrap().push(stream.try_clone().unwrap());
                }
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (asking, answering) = (at.clone(), at.clone());
                let mut tail = Vec::new();
                std::thread::spawn(move || pass(&from, &to, |piece| asking.hears(&mut tail, piece)));
                std::thread::spawn(move || {
                    pass(&server, &client, |_| !answering.mute.load(Ordering::SeqCst));
                });
            }
        });
        gate
    }

    /// Forwards requests to the server. The tail is the end of this connection's earlier pieces.
    fn hears(&self, tail: &mut Vec<u8>, piece: &[u8]) -> bool {
        if self.slow.load(Ordering::SeqCst) {
            std::thread::sleep(WAY);
        }
        let mut last = self.last.lock().unwrap();
        if last.is_some_and(|last| ends_within(last, tail, piece)) {
            *last = None;
            self.keep_answers();
        }
        tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL)..]);
        tail.drain(..tail.len().saturating_sub(TAIL));
        true
    }

    /// Breaks all connections.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// From now on the server receives everything, and none of its answers arrives.
    pub fn keep_answers(&self) {
        self.mute.store(true, Ordering::SeqCst);
    }

    /// The same from the next request that contains these bytes.
    pub fn keep_answers_to(&self, last: &'static [u8]) {
        assert!(!last.is_empty() && last.len() <= TAIL + 1, "the gate keeps {TAIL} bytes between pieces");
        *self.last.lock().unwrap() = Some(last);
    }

    /// Whether all answers of the server are held back.
    pub fn keeps_answers(&self) -> bool {
        self.mute.load(Ordering::SeqCst)
    }

    /// Sets whether requests are slow from now on: about a megabyte a second.
    pub fn slow_down(&self, slow: bool) {
        self.slow.store(slow, Ordering::SeqCst);
    }

    /// Lets answers arrive again, on new connections. Connections that lack answers are cut off.
    pub fn let_answers_pass(&self) {
        self.cut();
        self.mute.store(false, Ordering::SeqCst);
    }
}

/// Whether this pattern ends in this piece; it may begin in the tail of the pieces before.
fn ends_within(pattern: &[u8], tail: &[u8], piece: &[u8]) -> bool {
    let before = &tail[tail.len().saturating_sub(pattern.len() - 1)..];
    [before, piece].concat().windows(pattern.len()).any(|part| part == pattern)
}

/// Forwards bytes until one side ends; drops those for which `arrives` is false.
fn pass(mut from: &TcpStream, mut to: &TcpStream, mut arrives: impl FnMut(&[u8]) -> bool) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(n) = from.read(&mut piece) {
        if n == 0 || arrives(&piece[..n]) && to.write_all(&piece[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gate that waits for `STEP`, and whether it keeps answers after each of these pieces of one connection.
    fn kept_after(pieces: &[&[u8]]) -> Vec<bool> {
        let gate = Gate::new(1);
        gate.keep_answers_to(b"STEP");
        let mut tail = Vec::new();
        let mut after = |piece: &&[u8]| gate.hears(&mut tail, piece) && gate.keeps_answers();
        pieces.iter().map(&mut after).collect()
    }

    #[test]
    fn a_pattern_is_found_in_any_division_of_the_bytes() {
        assert_eq!(kept_after(&[b"xxSTEPxx"]), [true]);
        for cut in 1..4 {
            let (head, rest) = b"STEP".split_at(cut);
            assert_eq!(kept_after(&[&[b"xx", head].concat(), &[rest, b"xx"].concat()]), [false, true]);
        }
        assert_eq!(kept_after(&[b"S", b"T", b"E", b"P"]), [false, false, false, true]);
        assert_eq!(kept_after(&[b"ST", b"xEP"]), [false, false]);
        assert_eq!(kept_after(&[&[b'S'; 1000], b"TE", b"P"]), [false, false, true]);
    }

    #[test]
    fn a_pattern_that_passed_before_is_not_found() {
        let gate = Gate::new(1);
        let mut tail = Vec::new();
        gate.hears(&mut tail, b"xxSTEP");
        gate.keep_answers_to(b"STEP");
        gate.hears(&mut tail, b"xx");
        assert!(!gate.keeps_answers());
        gate.hears(&mut tail, b"STEP");
        assert!(gate.keeps_answers());
    }
}
