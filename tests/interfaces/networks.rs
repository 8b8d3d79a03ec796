// SPDX-License-Identifier: GPL-3.0-or-later
//! Clients of other machines: one in an allowed network, and one in another, each in its own network namespace.

use crate::asking::{parsed, rest_of};
use crate::pyzor::{DIGEST, request};
use bulkmark_testing::letters::letter;
use bulkmark_testing::namespace::Namespaces;
use bulkmark_testing::{Daemon, PATIENCE, Site, http, status, wait_until};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::path::Path;

/// The client in the allowed network, and the one outside.
const FRIEND: usize = 0;
const STRANGER: usize = 1;

/// The server's address for each of them.
const SERVER: [&str; 2] = ["10.77.0.1", "10.77.1.1"];

const TOKEN: &str = "0123456789abcdef0123";

/// A site with all interfaces at all addresses.
fn site() -> Site {
    let mut site = Site::new("");
    let token = site.path("token");
    fs::write(&token, TOKEN).unwrap();
    let networks = "networks = [\"10.77.0.0/24\"]";
    site.extra = format!(
        "[interfaces]\n{networks}\n[interfaces.http]\nlisten = \"0.0.0.0:8725\"\ntoken-file = {token:?}\n[interfaces.dccifd]\nlisten = \"0.0.0.0:10045\"\n\
         [interfaces.razor]\nlisten = \"0.0.0.0:2703\"\n\
         [interfaces.pyzor]\nlisten = \"0.0.0.0:24441\"\n"
    );
    site
}

fn start(all: &Namespaces, site: &Site) -> Daemon {
    let daemon = all.at_server(|| site.start());
    daemon.log.wait_for(0, "the interface pyzor is at");
    daemon
}

fn connect(all: &Namespaces, client: usize, port: u16) -> TcpStream {
    let stream = all.at_client(client, || TcpStream::connect((SERVER[client], port)).unwrap());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A socket of a client at this address of the client's.
fn socket(all: &Namespaces, client: usize, from: &str, to: usize) -> UdpSocket {
    let socket = all.at_client(client, || UdpSocket::bind((from, 0)).unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.connect((SERVER[to], 24441)).unwrap();
    socket
}

fn received(socket: &UdpSocket) -> String {
    let mut answer = [0; 9000];
    let size = socket.recv(&mut answer).unwrap_or_else(|e| panic!("no answer: {e}"));
    String::from_utf8(answer[..size].to_vec()).unwrap()
}

fn has_nothing(socket: &UdpSocket) {
    socket.set_nonblocking(true).unwrap();
    assert_eq!(socket.recv(&mut [0; 9000]).unwrap_err().kind(), ErrorKind::WouldBlock);
    socket.set_nonblocking(false).unwrap();
}

/// Requests at the Pyzor interface so far, by result.
fn requests(site: &Site) -> BTreeMap<String, u64> {
    let status = status(site);
    let interfaces = status["interfaces"].as_array().cloned().unwrap_or_default();
    let interface = interfaces.into_iter().find(|interface| interface["name"] == "pyzor").unwrap_or_default();
    serde_json::from_value(interface["requests"].clone()).unwrap_or_default()
}

fn wait_for_requests(site: &Site, result: &str, least: u64) {
    wait_until("requests", || {
        let found = requests(site);
        if found.get(result).is_some_and(|&n| n >= least) { Ok(()) } else { Err(format!("{found:?}")) }
    });
}

/// `dccifd` and Razor answer the allowed network and close the other's connections; HTTP answers a client with the token.
#[test]
fn networks_by_tcp() {
    let Some(all) = Namespaces::new(2) else { return };
    let site = site();
    let _daemon = start(&all, &site);
    let dccifd = |client| {
        let mut stream = connect(&all, client, 10045);
        let lines = b"header\n192.0.2.7\rh\nh\ns@example.org\nu@box.test\n\n";
        // It may be closed already.
        let _ = stream.write_all(&[lines, &*letter(1)].concat());
        let _ = stream.shutdown(Shutdown::Write);
        rest_of(&mut stream)
    };
    assert_eq!(dccifd(STRANGER), "");
    assert!(dccifd(FRIEND).contains("; Body=1 "), "the stranger's was not counted");
    let mut stranger = connect(&all, STRANGER, 2703);
    assert_eq!(rest_of(&mut stranger), "");
    let ask = |client, fields: &str| {
        let stream = connect(&all, client, 8725);
        let head = format!(
            "POST /v1/judge?count=no HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: message/rfc822\r\n\
             Content-Length: {}\r\n{fields}\r\n",
            letter(1).len()
        );
        let _ = (&stream).write_all(&[head.as_bytes(), &letter(1)].concat());
        parsed(&http::answer(&stream)).0
    };
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for client in [FRIEND, STRANGER] {
        assert_eq!((ask(client, ""), ask(client, &token)), (401, 200));
    }
}

/// Razor accounts are made on this machine, since the password comes in plain text.
#[test]
fn who_makes_an_account() {
    let Some(all) = Namespaces::new(2) else { return };
    let site = site();
    let _daemon = start(&all, &site);
    let register = |stream: TcpStream| {
        let mut stream = BufReader::new(stream);
        let mut line = |send: &str| {
            stream.get_mut().write_all(send.as_bytes()).unwrap();
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            line
        };
        assert!(line("").starts_with("sn=CN&"));
        line("cn=razor-agents&cv=2.85\r\na=reg&user=anna&pass=a-password\r\n")
    };
    let told = register(connect(&all, FRIEND, 2703));
    assert!(told.contains("err=203"), "{told}");
    assert_eq!(rest_of(&mut connect(&all, STRANGER, 2703)), "");
    assert!(!Path::new(&site.path("state/razor-accounts")).exists());
    let told = register(all.at_server(|| TcpStream::connect(("127.0.0.1", 2703)).unwrap()));
    assert!(told.contains("res=1"), "{told}");
}

/// By UDP, others get no answer, and no answer is longer than twice the request.
#[test]
fn networks_by_udp() {
    let Some(all) = Namespaces::new(2) else { return };
    let site = site();
    let _daemon = start(&all, &site);
    let (friend, stranger) =
        (socket(&all, FRIEND, "10.77.0.2", FRIEND), socket(&all, STRANGER, "10.77.1.2", STRANGER));
    for op in ["ping", "check", "report"] {
        stranger.send(request(op, DIGEST).as_bytes()).unwrap();
    }
    wait_for_requests(&site, "refused", 3);
    has_nothing(&stranger);
    for op in ["ping", "pong", "check", "info", "report", "whitelist", "frobnicate"] {
        let asked = request(op, DIGEST);
        friend.send(asked.as_bytes()).unwrap();
        let answer = received(&friend);
        let most = if answer.starts_with("Code: 200\n") { 2 * asked.len() } else { asked.len() };
        assert!(answer.len() <= most, "{op}: {} to {}: {answer}", answer.len(), asked.len());
    }
    friend.send(request("check", DIGEST).as_bytes()).unwrap();
    assert!(received(&friend).ends_with("\nCount: 1\nWL-Count: 0\n\n"), "the stranger's was not counted");
}

/// A client that asks too often gets no answers; another address of the same network does.
#[test]
fn each_address_has_its_rate() {
    let Some(all) = Namespaces::new(1) else { return };
    let site = site();
    let _daemon = start(&all, &site);
    let (greedy, other) =
        (socket(&all, FRIEND, "10.77.0.2", FRIEND), socket(&all, FRIEND, "10.77.0.3", FRIEND));
    let ping = request("ping", DIGEST);
    wait_until("a refusal", || {
        for _ in 0..2000 {
            greedy.send(ping.as_bytes()).unwrap();
        }
        if requests(&site).contains_key("refused") { Ok(()) } else { Err(format!("{:?}", requests(&site))) }
    });
    other.send(ping.as_bytes()).unwrap();
    assert!(received(&other).starts_with("Code: 200\n"));
    assert!(received(&greedy).starts_with("Code: 200\n"), "the first ones were answered");
}

/// A client with a forged address learns nothing, and the owner of the address gets no more than twice the sent bytes.
#[test]
fn addresses_that_are_made_up() {
    let Some(all) = Namespaces::new(2) else { return };
    all.believe_senders();
    all.take_address(STRANGER, "10.77.0.2");
    all.take_address(STRANGER, "198.51.100.7");
    let site = site();
    let _daemon = start(&all, &site);
    let victim = all.at_client(FRIEND, || UdpSocket::bind("10.77.0.2:40000").unwrap());
    victim.set_read_timeout(Some(PATIENCE)).unwrap();
    let liar = all.at_client(STRANGER, || UdpSocket::bind("10.77.0.2:40000").unwrap());
    let asked = request("info", DIGEST);
    liar.send_to(asked.as_bytes(), (SERVER[STRANGER], 24441)).unwrap();
    let mut answer = [0; 9000];
    let (size, _) = victim.recv_from(&mut answer).unwrap_or_else(|e| panic!("nothing came: {e}"));
    assert!(size <= 2 * asked.len(), "{size} to {}", asked.len());
    has_nothing(&liar);
    // An error is no longer than the request, and an invalid request has no answer that would fit.
    let wrong = asked.replace("info", "frobnicate");
    liar.send_to(wrong.as_bytes(), (SERVER[STRANGER], 24441)).unwrap();
    let (size, _) = victim.recv_from(&mut answer).unwrap();
    assert!(size <= wrong.len(), "{size} to {}", wrong.len());
    let before = requests(&site).get("refused").copied().unwrap_or_default();
    liar.send_to(b"x", (SERVER[STRANGER], 24441)).unwrap();
    let outside = all.at_client(STRANGER, || UdpSocket::bind("198.51.100.7:40000").unwrap());
    outside.send_to(asked.as_bytes(), (SERVER[STRANGER], 24441)).unwrap();
    wait_for_requests(&site, "refused", before + 2);
    has_nothing(&victim);
    has_nothing(&liar);
}
