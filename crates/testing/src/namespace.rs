// SPDX-License-Identifier: GPL-3.0-or-later
//! Separate networks for a test: one namespace for a server, and one for each client, each with its own cable.

use super::skip;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server's network with those of so many clients. The n-th client has 10.77.n.2 and .3, and reaches the server at 10.77.n.1.
pub struct Namespaces {
    server: String,
    clients: Vec<String>,
}

impl Namespaces {
    /// Makes the networks. None, with a log line, where that is not possible.
    pub fn new(clients: u8) -> Option<Self> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("bm-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let names = (0..clients).map(|n| format!("{name}-{n}")).collect();
        // After a failure, drop removes those that were made.
        let all = Self { server: name, clients: names };
        match all.make() {
            Ok(()) => Some(all),
            Err(why) => {
                skip(&format!("network namespaces cannot be made, which takes root: {why}"));
                None
            }
        }
    }

    fn make(&self) -> Result<(), String> {
        let server = &self.server;
        ip(&format!("netns add {server}"))?;
        ip(&format!("-n {server} link set lo up"))?;
        for (n, client) in self.clients.iter().enumerate() {
            ip(&format!("netns add {client}"))?;
            ip(&format!("-n {client} link set lo up"))?;
            ip(&format!("link add to{n} netns {server} type veth peer name out netns {client}"))?;
            ip(&format!("-n {server} addr add 10.77.{n}.1/24 dev to{n}"))?;
            ip(&format!("-n {server} link set to{n} up"))?;
            ip(&format!("-n {client} addr add 10.77.{n}.2/24 dev out"))?;
            ip(&format!("-n {client} addr add 10.77.{n}.3/24 dev out"))?;
            ip(&format!("-n {client} link set out up"))?;
            ip(&format!("-n {client} route add default via 10.77.{n}.1"))?;
        }
        Ok(())
    }

    /// Runs something in the server's network. Processes and sockets that it makes stay there.
    pub fn at_server<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        within(&self.server, work)
    }

    /// The same in the network of the n-th client.
    pub fn at_client<T: Send>(&self, n: usize, work: impl FnOnce() -> T + Send) -> T {
        within(&self.clients[n], work)
    }

    /// Gives the n-th client another's address, so that it can send under it.
    pub fn take_address(&self, n: usize, address: &str) {
        ip(&format!("-n {} addr add {address}/32 dev lo", self.clients[n])).unwrap();
    }

    /// Lets the server accept packets from any sender address, as behind a router without filtering.
    pub fn believe_senders(&self) {
        self.at_server(|| {
            for entry in std::fs::read_dir("/proc/sys/net/ipv4/conf").unwrap() {
                let path = entry.unwrap().path().join("rp_filter");
                if std::fs::read_to_string(&path).unwrap().trim() != "0" {
                    std::fs::write(&path, "0").unwrap();
                }
            }
        });
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in self.clients.iter().chain([&self.server]) {
            // It may not exist.
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|e| format!("ip: {e}"))?;
    let why = || format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim());
    output.status.success().then_some(()).ok_or_else(why)
}

/// Runs something in a separate thread in that namespace.
fn within<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{name}")).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
    })
}
