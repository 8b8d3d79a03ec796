// SPDX-License-Identifier: GPL-3.0-or-later
//! A gate in front of a server: it hands connections on until they are cut off, and keeps answers back where a test wants so.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Hands connections on to a port of this machine.
pub struct Gate {
    pub port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    mute: Arc<AtomicBool>,
}

impl Gate {
    pub fn new(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let streams = Arc::<Mutex<Vec<TcpStream>>>::default();
        let mute = Arc::<AtomicBool>::default();
        let (all, is_mute) = (Arc::clone(&streams), Arc::clone(&mute));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                for stream in [&client, &server] {
                    all.lock().unwrap().push(stream.try_clone().unwrap());
                }
                let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || pass(&from, &to, None));
                let is_mute = Arc::clone(&is_mute);
                std::thread::spawn(move || pass(&server, &client, Some(&*is_mute)));
            }
        });
        Self { port, streams, mute }
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

    /// Answers arrive again, on new connections: those that lack some are cut off.
    pub fn let_answers_pass(&self) {
        self.cut();
        self.mute.store(false, Ordering::SeqCst);
    }
}

/// Hands bytes on until one side ends. Nothing arrives while it is mute.
fn pass(mut from: &TcpStream, mut to: &TcpStream, mute: Option<&AtomicBool>) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(n) = from.read(&mut piece) {
        let is_mute = mute.is_some_and(|mute| mute.load(Ordering::SeqCst));
        if n == 0 || !is_mute && to.write_all(&piece[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
