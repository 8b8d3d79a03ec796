// SPDX-License-Identifier: GPL-3.0-or-later
//! Real nats-servers, private to one test program: a cluster whose nodes are killed and restarted, behind proxies that cut
//! connections off.

use super::gate::Gate;
use super::mount::Mount;
use super::mta::{EX_UNAVAILABLE, free_port};
use super::process::start_server;
use super::{PATIENCE, skip, wait_for_some, wait_until};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Fetches nats-server and runs it.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/mta/nats");

/// The time that nodes may take to find one another, or to become healthy, before they are restarted. A busy machine may be slower, so each
/// restart is followed by twice the time of the one before it.
const FIRST_START: Duration = Duration::from_secs(20);

/// Some nodes of one cluster, or a single one.
pub struct Cluster {
    /// The directory of all files of all nodes.
    pub directory: PathBuf,
    /// The nodes.
    pub nodes: Vec<Node>,
    _disks: Vec<Mount>,
    _broom: Broom,
}

/// One nats-server.
pub struct Node {
    config: PathBuf,
    /// The port for clients without the proxy.
    pub port: u16,
    monitor: u16,
    /// The proxy in front of the port.
    pub proxy: Gate,
    running: Mutex<Option<(Child, String)>>,
}

impl Cluster {
    /// Starts so many nodes, with `extra` in the configuration of each. If there is no nats-server, it says so and returns None.
    pub fn start(count: usize, extra: &str) -> Option<Self> {
        Self::start_on(count, extra, None)
    }

    /// The same, each node with its own file system of so many megabytes. None, too, where none can be mounted.
    pub fn start_on(count: usize, extra: &str, disks: Option<u32>) -> Option<Self> {
        let fetched = Command::new(SCRIPT).arg("fetch").output().unwrap();
        if fetched.status.code() == Some(EX_UNAVAILABLE) {
            skip(&format!("no nats-server: {}", String::from_utf8_lossy(&fetched.stderr)));
            return None;
        }
        assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
        let directory = tempfile::Builder::new().prefix("bulkmark-nats-").tempdir().unwrap().keep();
        let accounts = directory.join("accounts.conf");
        if !accounts.exists() {
            fs::write(&accounts, "").unwrap();
        }
        let routes: Vec<u16> = (0..count).map(|_| free_port()).collect();
        let mut mounts = Vec::new();
        for (i, size) in (0..count).zip(disks.into_iter().cycle()) {
            mounts.push(Mount::new(&directory.join(format!("n{i}")), &format!("size={size}m"))?);
        }
        let nodes = (0..count).map(|i| Node::new(&directory, i, &routes, extra)).collect();
        let broom = Broom::new(&directory);
        let cluster = Self { directory, nodes, _disks: mounts, _broom: broom };
        cluster.start_all();
        cluster.wait_until_whole();
        Some(cluster)
    }

    /// Writes the file that all nodes include in their accounts.
    pub fn accounts(&self) -> PathBuf {
        self.directory.join("accounts.conf")
    }

    /// The address of the cluster, by proxies.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.proxy.port)).collect();
        format!("nats://{}", hosts.join(","))
    }

    /// Starts the stopped nodes.
    pub fn start_all(&self) {
        self.nodes.iter().for_each(Node::start);
    }

    /// Waits until new nodes are one cluster. They sometimes fail (2.10.27: now and then one of three nodes never becomes a peer, and all
    /// streams are refused). Then they start over with empty disks, as an administrator would do it.
    fn wait_until_whole(&self) {
        let knows_all = |node: &Node| {
            let told: Option<serde_json::Value> =
                node.get("/jsz").and_then(|told| serde_json::from_str(&told).ok());
            told.is_some_and(|told| told["meta_cluster"]["cluster_size"] == self.nodes.len())
        };
        self.wait_or_start_again(
            "the nats-servers are not one cluster",
            || self.nodes.len() == 1 || self.nodes.iter().all(knows_all),
            || self.empty(),
        );
    }

    /// Restarts all nodes with empty disks.
    fn empty(&self) {
        self.kill_all();
        for store in (0..self.nodes.len()).map(|i| self.store(i)) {
            // It may be a mount point.
            for entry in fs::read_dir(store).into_iter().flatten() {
                fs::remove_dir_all(entry.unwrap().path()).unwrap();
            }
        }
        self.start_all();
    }

    /// Repairs new nodes that refuse streams because one of them is no peer: see `wait_until_whole`.
    pub fn begin_anew(&self) {
        self.empty();
        self.wait_until_whole();
    }

    /// Waits until all nodes are healthy. A killed node does not always find its streams again (2.10.27: "group node unhealthy" for
    /// ever); then it is restarted, as an administrator would do it.
    pub fn wait_until_well(&self) {
        let start_again = || {
            for node in self.nodes.iter().filter(|node| !node.is_well()) {
                node.kill();
                node.start();
            }
        };
        self.wait_or_start_again(
            "the nats-servers are not well",
            || self.nodes.iter().all(Node::is_well),
            start_again,
        );
    }

    /// Waits for a condition, and restarts nodes if it is not met.
    fn wait_or_start_again(&self, what: &str, is_so: impl Fn() -> bool, start_again: impl Fn()) {
        let (mut began, mut patience) = (Instant::now(), FIRST_START);
        wait_until(what, || {
            if is_so() {
                return Ok(());
            }
            if began.elapsed() > patience {
                start_again();
                (began, patience) = (Instant::now(), patience * 2);
            }
            Err(self.logs())
        });
    }

    /// Repairs a cluster that lost track of its nodes: it finds them again so.
    pub fn start_anew(&self) {
        self.kill_all();
        self.start_all();
        self.wait_until_well();
    }

    /// Reloads the configuration of all nodes twice: after the first time, a new account does not get its imports.
    pub fn reload(&self) {
        for _ in 0..2 {
            let done: Vec<_> = (0..self.nodes.len()).map(|i| self.reloads(i)).collect();
            self.nodes.iter().for_each(|node| node.signal("HUP"));
            for (i, before) in done.into_iter().enumerate() {
                wait_for_some("a reloaded configuration", || (self.reloads(i) > before).then_some(()));
            }
        }
    }

    fn reloads(&self, node: usize) -> usize {
        let log = fs::read_to_string(self.directory.join(format!("n{node}.log")));
        log.unwrap_or_default().matches("Reloaded server configuration").count()
    }

    /// Kills all nodes at once.
    pub fn kill_all(&self) {
        self.nodes.iter().for_each(|node| node.signal("KILL"));
        self.nodes.iter().for_each(Node::kill);
    }

    /// Kills all nodes, copies their data, and restarts them.
    pub fn save(&self) {
        self.kill_all();
        (0..self.nodes.len()).for_each(|i| copy(&self.store(i), &self.directory.join(format!("saved{i}"))));
        self.start_all();
        self.wait_until_well();
    }

    /// Kills all nodes, and restarts them with the copies instead of their data.
    pub fn put_back(&self) {
        self.kill_all();
        for i in 0..self.nodes.len() {
            fs::remove_dir_all(self.store(i)).unwrap();
            copy(&self.directory.join(format!("saved{i}")), &self.store(i));
        }
        self.start_all();
        self.wait_until_well();
    }

    /// Breaks all connections through proxies.
    pub fn cut(&self) {
        self.nodes.iter().for_each(|node| node.proxy.cut());
    }

    /// Returns the leader of a stream, once there is one.
    pub fn leader(&self, stream: &str) -> &Node {
        let name = wait_for_some("a leader", || {
            let told = self.nodes.iter().find_map(|node| {
                let told: serde_json::Value =
                    serde_json::from_str(&node.get("/jsz?accounts=true&streams=true&config=false")?).ok()?;
                let accounts = told["account_details"].as_array()?.clone();
                let streams = accounts.iter().filter_map(|account| account["stream_detail"].as_array());
                let found = streams.flatten().find(|found| found["name"] == stream)?;
                let leader = found["cluster"]["leader"].as_str().filter(|leader| !leader.is_empty())?;
                Some(leader.to_owned())
            });
            let alive = |name: &String| self.named(name).running.lock().unwrap().is_some();
            told.filter(alive)
        });
        self.named(&name)
    }

    fn named(&self, name: &str) -> &Node {
        &self.nodes[name.trim_start_matches('n').parse::<usize>().unwrap()]
    }

    /// The directory of a node's data.
    pub fn store(&self, node: usize) -> PathBuf {
        self.directory.join(format!("n{node}"))
    }

    /// The last lines of all nodes' logs.
    pub fn logs(&self) -> String {
        let tail = |i: usize| {
            let text = fs::read_to_string(self.directory.join(format!("n{i}.log"))).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(30)..].join("\n")
        };
        (0..self.nodes.len()).map(tail).collect::<Vec<_>>().join("\n\n")
    }
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

impl Node {
    fn new(directory: &Path, i: usize, routes: &[u16], extra: &str) -> Self {
        let (port, monitor) = (free_port(), free_port());
        let config = directory.join(format!("n{i}.conf"));
        let all: Vec<_> = routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
        let cluster = match routes.len() {
            1 => String::new(),
            _ => format!(
                "cluster {{ name: bulkmark, listen: \"127.0.0.1:{}\", routes: [{}] }}\n",
                routes[i],
                all.join(", ")
            ),
        };
        let shown = directory.display();
        let text = format!(
            "server_name: n{i}\nlisten: \"127.0.0.1:{port}\"\nhttp: \"127.0.0.1:{monitor}\"\n\
             log_file: \"{shown}/n{i}.log\"\npid_file: \"{shown}/n{i}.pid\"\n\
             jetstream {{ store_dir: \"{shown}/n{i}\", sync_interval: always, max_file: 20GB }}\n{cluster}\
             accounts {{\n  $SYS {{ users: [ {{ user: system, password: system }} ] }}\n  OTHERS {{ users: [ {{ user: other, password: other }} ] }}\n  include \"accounts.conf\"\n}}\n{extra}\n"
        );
        fs::write(&config, text).unwrap();
        Self { config, port, monitor, proxy: Gate::new(port), running: Mutex::default() }
    }

    /// Starts it if it is stopped.
    pub fn start(&self) {
        let mut running = self.running.lock().unwrap();
        if running.is_some() {
            return;
        }
        *running = Some(start_server(Command::new(SCRIPT).arg("run").arg(&self.config)));
    }

    /// Whether it reports that it is healthy.
    fn is_well(&self) -> bool {
        self.get("/healthz").is_some_and(|told| told.contains("\"ok\""))
    }

    /// Kills it with SIGKILL.
    pub fn kill(&self) {
        self.signal("KILL");
        if let Some((mut child, _)) = self.running.lock().unwrap().take() {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    /// Sends it a signal, if it runs.
    pub fn signal(&self, signal: &str) {
        if let Some((_, pid)) = &*self.running.lock().unwrap() {
            let _ = Command::new("kill").arg(format!("-{signal}")).arg(pid).stderr(Stdio::null()).status();
        }
    }

    /// Returns a page of its HTTP monitoring.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.monitor)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
    }

    /// The number of its process, which must run.
    pub fn pid(&self) -> u32 {
        self.running.lock().unwrap().as_ref().unwrap().1.parse().unwrap()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Removes a directory when this process ends in any way: data shared by all tests of a program is never dropped.
struct Broom(Child);

impl Broom {
    fn new(directory: &Path) -> Self {
        let script = "read -r _; until rm -rf \"$0\" 2>/dev/null; do sleep 0.1; done";
        Self(Command::new("sh").args(["-c", script]).arg(directory).stdin(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Broom {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
