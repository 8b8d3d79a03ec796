// SPDX-License-Identifier: GPL-3.0-or-later
//! A gate in front of a server: it hands connections on until they are cut off, keeps answers back where a test wants so, and questions
//! for a while.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long each piece of what a slow client says is on its way.
const WAY: Duration = Duration::from_millis(50);

/// Hands connections on to a port of this machine.
#[derive(Clone)]
pub struct Gate {
    /// Where it listens.
    pub port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    mute: Arc<AtomicBool>,
    slow: Arc<AtomicBool>,
    last: Arc<Mutex<Option<&'static [u8]>>>,
}

impl Gate {
    /// A gate in front of this port.
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
                std::thread::spawn(move || pass(&from, &to, |piece| asking.hears(piece)));
                std::thread::spawn(move || {
                    pass(&server, &client, |_| !answering.mute.load(Ordering::SeqCst));
                });
            }
        });
        gate
    }

    /// What the server is told is handed on.
    fn hears(&self, piece: &[u8]) -> bool {
        if self.slow.load(Ordering::SeqCst) {
            std::thread::sleep(WAY);
        }
        let mut last = self.last.lock().unwrap();
        if last.is_some_and(|last| piece.windows(last.len()).any(|part| part == last)) {
            *last = None;
            self.keep_answers();
        }
        true
    }

    /// Breaks all connections.
    pub fn cut(&self) {
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// From now on the server hears everything, and nothing that it answers arrives.
    pub fn keep_answers(&self) {
        self.mute.store(true, Ordering::SeqCst);
    }

    /// The same from the moment on when the server is told something that has these bytes.
    pub fn keep_answers_to(&self, last: &'static [u8]) {
        *self.last.lock().unwrap() = Some(last);
    }

    /// Whether nothing that the server answers arrives.
    pub fn keeps_answers(&self) -> bool {
        self.mute.load(Ordering::SeqCst)
    }

    /// From now on what the server is told takes a while, a megabyte about a second; or no more.
    pub fn slow_down(&self, slow: bool) {
        self.slow.store(slow, Ordering::SeqCst);
    }

    /// Answers arrive again, on new connections: those that lack some are cut off.
    pub fn let_answers_pass(&self) {
        self.cut();
        self.mute.store(false, Ordering::SeqCst);
    }
}

/// Hands bytes on until one side ends, those of which `arrives` says so.
fn pass(mut from: &TcpStream, mut to: &TcpStream, arrives: impl Fn(&[u8]) -> bool) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(n) = from.read(&mut piece) {
        if n == 0 || arrives(&piece[..n]) && to.write_all(&piece[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
