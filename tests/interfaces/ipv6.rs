// SPDX-License-Identifier: GPL-3.0-or-later
//! Interfaces at IPv6 addresses, and one socket for both families.

use crate::asking::rest_of;
use crate::pyzor::{DIGEST, answered, ask, open_at, request};
use bulkmark_testing::letters::letter;
use bulkmark_testing::namespace::Namespaces;
use bulkmark_testing::{Daemon, PATIENCE, Site};
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};

/// A running site with this interface at an IPv6 address.
fn interface(name: &str, keys: &str) -> (Site, Daemon, SocketAddr) {
    let site = Site::new(&format!("[interfaces.{name}]\nlisten = \"[::1]:0\"\n{keys}"));
    let daemon = site.start();
    let line = daemon.log.wait_for(0, &format!("the interface {name} is at "));
    let at = line.rsplit(" is at ").next().unwrap().split([' ', ',', ';']).next().unwrap();
    let at: SocketAddr = at.parse().unwrap_or_else(|e| panic!("{e}: {line}"));
    assert!(at.is_ipv6(), "{line}");
    (site, daemon, at)
}

fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn pyzor_by_ipv6() {
    let mut site = Site::new("");
    let (_daemon, at) = open_at(&mut site, "[::1]:0", "");
    assert!(at.is_ipv6(), "{at}");
    assert!(ask("::1", at, "report", DIGEST).starts_with("Code: 200\nDiag: OK\n"));
    assert!(ask("::1", at, "check", DIGEST).ends_with("\nCount: 1\nWL-Count: 0\n\n"));
}

/// At `[::]` clients are served by IPv4 and by IPv6; clients of the machine itself are one reporter, by both.
#[test]
fn one_pyzor_socket_for_both_families() {
    let mut site = Site::new("");
    let (_daemon, at) = open_at(&mut site, "[::]:0", "[interfaces]\nnetworks = [\"192.0.2.0/24\"]\n");
    let [four, six] = ["127.0.0.1", "::1"].map(|ip| SocketAddr::new(ip.parse().unwrap(), at.port()));
    for _ in 0..2 {
        ask("127.0.0.1", four, "report", DIGEST);
        ask("::1", six, "report", DIGEST);
    }
    for (from, at) in [("127.0.0.1", four), ("::1", six)] {
        let answer = ask(from, at, "check", DIGEST);
        assert!(answer.ends_with("\nCount: 1\nWL-Count: 0\n\n"), "{from}: {answer}");
    }
}

/// At `[::]` an IPv4 address arrives as a mapped one, and `networks` matches it as IPv4.
#[test]
fn networks_of_ipv4_at_a_socket_of_ipv6() {
    let Some(all) = Namespaces::new(2) else { return };
    let networks = "networks = [\"10.77.0.0/24\"]";
    let site = Site::new(&format!(
        "[interfaces]\n{networks}\n[interfaces.dccifd]\nlisten = \"[::]:10045\"\n\
         [interfaces.razor]\nlisten = \"[::]:2703\"\n\
         [interfaces.pyzor]\nlisten = \"[::]:24441\"\n"
    ));
    let daemon = all.at_server(|| site.start());
    daemon.log.wait_for(0, "the interface pyzor is at");
    for (client, is_friend) in [(1, false), (0, true)] {
        let server = format!("10.77.{client}.1");
        let socket = all.at_client(client, || UdpSocket::bind("0.0.0.0:0").unwrap());
        socket.connect((&*server, 24441)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let tcp = |port| {
            let stream = all.at_client(client, || TcpStream::connect((&*server, port)).unwrap());
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream
        };
        // It may be closed already.
        let mut dccifd = tcp(10045);
        let _ = dccifd
            .write_all(&[b"header\n192.0.2.7\rh\nh\ns@example.org\nu@box.test\n\n", &*letter(1)].concat());
        let _ = dccifd.shutdown(Shutdown::Write);
        assert_eq!(rest_of(&mut dccifd).contains("; Body=1 "), is_friend, "dccifd");
        let mut first = String::new();
        let _ = BufReader::new(tcp(2703)).read_line(&mut first);
        assert_eq!(first.starts_with("sn="), is_friend, "razor: {first}");
        if is_friend {
            assert!(answered(&socket, request("ping", DIGEST).as_bytes()).starts_with("Code: 200\n"));
        } else {
            socket.send(request("ping", DIGEST).as_bytes()).unwrap();
            // A later client was answered: so this one gets no answer.
            all.at_server(|| ask("::1", "[::1]:24441".parse().unwrap(), "ping", DIGEST));
            socket.set_nonblocking(true).unwrap();
            assert_eq!(socket.recv(&mut [0; 9000]).unwrap_err().kind(), ErrorKind::WouldBlock);
        }
    }
}

#[test]
fn dccifd_by_ipv6() {
    let (_site, daemon, at) = interface("dccifd", "");
    let mut stream = connect(at);
    stream
        .write_all(
            &[b"header\n2001:db8::7\rh.example\nh.example\ns@example.org\nu@box.test\n\n", &*letter(1)]
                .concat(),
        )
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = rest_of(&mut stream);
    assert!(answer.starts_with("A\n") && answer.contains("; Body=1 Fuz1=1 Fuz2=1"), "{answer}");
    let line = daemon.log.wait_for(0, "interface=dccifd");
    assert!(line.contains("client=h.example[2001:db8::7]"), "{line}");
}

/// razor-agents use IPv4 only; other clients do not. Discovery returns the address that the client connected to.
#[test]
fn razor_by_ipv6() {
    let (_site, _daemon, at) = interface("razor", "");
    let mut reader = BufReader::new(connect(at));
    let mut ask = |line: &str| {
        reader.get_mut().write_all(line.as_bytes()).unwrap();
        let mut answered = String::new();
        reader.read_line(&mut answered).unwrap();
        answered
    };
    assert!(ask("").starts_with("sn=CN&"));
    assert_eq!(ask("a=reg&user=anna&pass=a-password\r\n"), "pass=a-password&res=1&user=anna\r\n");
    assert_eq!(ask("a=c&e=4&ep4=7542-10&s=abc\r\n"), "p=0\r\n");
    assert_eq!(ask("a=g&pm=csl\r\n"), "-csl=?\r\n");
    assert_eq!(ask(""), format!("{at}\r\n"));
}
