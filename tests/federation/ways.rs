// SPDX-License-Identifier: GPL-3.0-or-later
//! Ways to a server other than a direct TCP connection: a Unix socket, and proxies from the environment.

use bulkmark_testing::authority::{Authority, https, tls_server};
use bulkmark_testing::letters::{letter, send, wait_for};
use bulkmark_testing::mta::free_port;
use bulkmark_testing::server::{Server, milter, wait_until_equal};
use bulkmark_testing::{Daemon, Site, skip, wait_until};
use std::net::TcpStream;
use std::process::Command;

/// A server that listens on a Unix socket, for the milters and the peer on its machine.
#[test]
fn a_unix_socket() {
    let mut one = Server::new("anonymous-reading = true");
    one.listen = format!("unix:{}", one.site.path("http.sock").display());
    let mut two = Server::new("anonymous-reading = true");
    two.extra += &format!("\npeer = [{}]", one.entry("two", "peer"));
    let (daemon, _two_runs) = (one.start(), two.start());
    let (a, b) = (milter(&[one.entry("a", "report")]), milter(&[two.entry("b", "report")]));
    // A Unix socket ignores host names and proxies.
    let mut a = a;
    a.environment.push(("HTTP_PROXY".to_owned(), "http://proxy.invalid:3128".to_owned()));
    let (at_a, _at_b) = (a.start(), b.start());
    send(&at_a, &letter(1), 5);
    wait_for(&b, &letter(1), 5);
    daemon.kill();
    at_a.log.wait_for(0, &format!("{}: it cannot be reached: ", one.url()));
    send(&at_a, &letter(1), 4);
    let _daemon = one.start();
    wait_for(&b, &letter(1), 9);
    wait_for(&a, &letter(1), 9);
    wait_until_equal(&one, &two, 1);
}

/// A tinyproxy that the test starts.
struct Proxy {
    site: Site,
    port: u16,
}

impl Proxy {
    /// Returns `None` without tinyproxy, which a CI machine must have.
    fn new() -> Option<Self> {
        if Command::new("tinyproxy").arg("-v").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "there is no tinyproxy; run tests/mta/install");
            skip("there is no tinyproxy here");
            return None;
        }
        let (site, port) = (Site::new(""), free_port());
        let text = format!(
            "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 600\nMaxClients 50\nLogLevel Connect\nLogFile \"{}\"\n",
            site.path("proxy.log").display()
        );
        std::fs::write(site.path("proxy.conf"), text).unwrap();
        Some(Self { site, port })
    }

    /// Starts it and waits until it listens.
    fn start(&self) -> Daemon {
        let daemon = self
            .site
            .spawn_by(Command::new("tinyproxy").args(["-d", "-c"]).arg(self.site.path("proxy.conf")));
        wait_until("tinyproxy", || {
            TcpStream::connect(("127.0.0.1", self.port)).map_err(|_| format!("{:?}", daemon.log.lines()))
        });
        daemon
    }

    /// The number of requests that it forwarded, by its log.
    fn carried(&self, request: &str) -> usize {
        let log = std::fs::read_to_string(self.site.path("proxy.log")).unwrap_or_default();
        log.lines().filter(|line| line.contains("Request") && line.contains(request)).count()
    }

    fn environment(&self, name: &str) -> (String, String) {
        (name.to_owned(), format!("http://127.0.0.1:{}", self.port))
    }
}

/// Reports and updates use the proxy in HTTP_PROXY; without the proxy none get through, and with it again all are counted.
#[test]
fn a_proxy_for_http() {
    let Some(proxy) = Proxy::new() else { return };
    let runs = proxy.start();
    let server = Server::new("");
    let _daemon = server.start();
    let (mut a, b) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("b", "report")]));
    a.environment.push(proxy.environment("HTTP_PROXY"));
    let (at_a, _at_b) = (a.start(), b.start());
    send(&at_a, &letter(2), 5);
    wait_for(&b, &letter(2), 5);
    wait_for(&a, &letter(2), 5);
    for path in ["/v1/reports", "/v1/updates"] {
        let request = format!("{}{path}", server.url());
        wait_until("the proxy", || {
            if proxy.carried(&request) > 0 { Ok(()) } else { Err(format!("it did not carry {request}")) }
        });
    }
    let skip = at_a.log.lines().len();
    runs.kill();
    send(&at_a, &letter(2), 2);
    at_a.log.wait_for(skip, &format!("{}: it cannot be reached: ", server.url()));
    let _runs = proxy.start();
    wait_for(&b, &letter(2), 7);
    wait_for(&a, &letter(2), 7);
}

/// Hosts in NO_PROXY are reached directly.
#[test]
fn a_host_for_which_there_is_no_proxy() {
    let server = Server::new("");
    let _daemon = server.start();
    let (mut a, b) = (milter(&[server.entry("a", "report")]), milter(&[server.entry("b", "report")]));
    a.environment.push(("HTTP_PROXY".to_owned(), "http://proxy.invalid:3128".to_owned()));
    let at_a = a.start();
    at_a.log.wait_for(0, &format!("{}: its name, or its proxy's, has no address: ", server.url()));
    assert!(at_a.terminate().success());
    a.environment.push(("NO_PROXY".to_owned(), "127.0.0.0/8".to_owned()));
    let (at_a, _at_b) = (a.start(), b.start());
    send(&at_a, &letter(3), 5);
    wait_for(&b, &letter(3), 5);
}

/// A proxy in HTTPS_PROXY forwards TLS without reading it.
#[test]
fn a_proxy_for_https() {
    let Some(proxy) = Proxy::new() else { return };
    let _runs = proxy.start();
    let (server, authority) = (tls_server(), Authority::new("ours"));
    authority.certify(&server, "127.0.0.1", false);
    let _daemon = server.start();
    let [mut a, b] = ["a", "b"].map(|name| milter(&[authority.entry(&server, &https(&server), name)]));
    a.environment.push(proxy.environment("HTTPS_PROXY"));
    let (at_a, _at_b) = (a.start(), b.start());
    send(&at_a, &letter(4), 5);
    wait_for(&b, &letter(4), 5);
    wait_for(&a, &letter(4), 5);
    let request = format!("CONNECT 127.0.0.1:{}", server.port);
    wait_until("the proxy", || {
        if proxy.carried(&request) > 0 { Ok(()) } else { Err(format!("it did not carry {request}")) }
    });
}
