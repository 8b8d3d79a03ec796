// SPDX-License-Identifier: GPL-3.0-or-later
//! A proxy that disturbs connections: it cuts them off, delays bytes, and sends requests a second time.

use super::random::Random;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most bytes of requests that are kept for sending them again.
const REMEMBERED: usize = 1 << 20;

/// The most bytes after which a connection is cut.
const CUT_WITHIN: usize = 20_000;

/// The numbers of disturbances.
#[derive(Default)]
pub struct Harm {
    /// Connections that it cut off.
    pub cut: AtomicUsize,
    /// Connections that it delayed.
    pub delayed: AtomicUsize,
    /// Requests that it sent twice.
    pub repeated: AtomicUsize,
}

/// A proxy that disturbs connections.
pub struct Proxy {
    /// The port that it listens on.
    pub port: u16,
    /// The disturbances so far.
    pub harm: Arc<Harm>,
    harmful: Arc<AtomicBool>,
}

#[derive(Clone, Copy, PartialEq)]
enum Plan {
    Fair,
    /// Both directions are cut after so many bytes.
    Cut(usize),
    /// Each piece is delayed by so much.
    Delay(Duration),
    /// The connection is cut, and the client's bytes are sent again.
    Repeat(usize),
}

impl Proxy {
    /// Opens a proxy in front of a port of this machine.
    pub fn new(target: u16, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (harm, harmful) = (Arc::new(Harm::default()), Arc::new(AtomicBool::new(true)));
        let (harm_of_all, harmful_to_all) = (Arc::clone(&harm), Arc::clone(&harmful));
        std::thread::spawn(move || {
            let mut random = Random::new(seed);
            for client in listener.incoming().map_while(Result::ok) {
                let size = random.below(CUT_WITHIN);
                let plan = match random.below(6) {
                    _ if !harmful_to_all.load(Ordering::Relaxed) => Plan::Fair,
                    0 | 1 => Plan::Cut(size),
                    2 => Plan::Delay(Duration::from_millis(1 + random.next() % 100)),
                    3 => Plan::Repeat(size),
                    _ => Plan::Fair,
                };
                let harm = Arc::clone(&harm_of_all);
                std::thread::spawn(move || carry(&client, target, plan, &harm));
            }
        });
        Self { port, harm, harmful }
    }

    /// Leaves new connections undisturbed from now on.
    pub fn behave(&self) {
        self.harmful.store(false, Ordering::Relaxed);
    }
}

fn carry(client: &TcpStream, target: u16, plan: Plan, harm: &Harm) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { return };
    let left = match plan {
        Plan::Cut(size) | Plan::Repeat(size) => AtomicUsize::new(size),
        Plan::Fair | Plan::Delay(_) => AtomicUsize::new(usize::MAX),
    };
    let sent = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| pass(client, &server, plan, &left, Some(&sent)));
        pass(&server, client, plan, &left, None);
    });
    match plan {
        Plan::Fair => (),
        Plan::Delay(_) => _ = harm.delayed.fetch_add(1, Ordering::Relaxed),
        Plan::Cut(_) => _ = harm.cut.fetch_add(1, Ordering::Relaxed),
        Plan::Repeat(_) => {
            if let Ok(mut again) = TcpStream::connect(("127.0.0.1", target)) {
                let _ = again.set_read_timeout(Some(Duration::from_millis(300)));
                let _ = again.write_all(&sent.lock().unwrap());
                let mut answer = [0; 4096];
                while again.read(&mut answer).is_ok_and(|n| n > 0) {}
                harm.repeated.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// Forwards bytes until one side ends or no more are allowed.
fn pass(
    mut from: &TcpStream,
    mut to: &TcpStream,
    plan: Plan,
    left: &AtomicUsize,
    sent: Option<&Mutex<Vec<u8>>>,
) {
    let mut piece = [0; 8192];
    while let Ok(n) = from.read(&mut piece) {
        if n == 0 {
            break;
        }
        if let Plan::Delay(time) = plan {
            std::thread::sleep(time);
        }
        let allowed =
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(n)));
        let allowed = allowed.unwrap_or(0).min(n);
        if let Some(sent) = sent {
            let mut sent = sent.lock().unwrap();
            if sent.len() < REMEMBERED {
                sent.extend_from_slice(&piece[..n]);
            }
        }
        if to.write_all(&piece[..allowed]).is_err() || allowed < n {
            break;
        }
    }
    // The other direction must end, too.
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
