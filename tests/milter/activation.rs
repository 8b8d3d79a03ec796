// SPDX-License-Identifier: GPL-3.0-or-later
//! Sockets that systemd opens and passes (`listen = "systemd"`): real daemons with real sockets.

use bulkmark_testing::authority::{Authority, tls_server};
use bulkmark_testing::http::{answer, ask, connect};
use bulkmark_testing::milter::{ALL_ACTIONS, ALL_OPTIONS, Client, Mail, session};
use bulkmark_testing::passed::start_with;
use bulkmark_testing::server::Server;
use bulkmark_testing::{Daemon, Site, program, skip, status, wait_for_some};
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, ExitStatus, Stdio};

/// More connections than wait by chance.
const WAITING: usize = 30;

/// A milter that needs a socket from systemd.
fn site() -> Site {
    let mut site = Site::new("");
    site.listen = "systemd".to_owned();
    site
}

fn milter(site: &Site, socket: impl Into<OwnedFd>) -> Daemon {
    start_with(site, &["milter"], &site.config(), socket, 1)
}

/// A server that needs a socket from systemd.
fn server(extra: &str) -> Server {
    let mut server = Server::new(extra);
    server.listen = "systemd".to_owned();
    server
}

fn serve(server: &Server, socket: &TcpListener) -> Daemon {
    start_with(&server.site, &["server"], &server.config(), socket.try_clone().unwrap(), 1)
}

/// Waits for the end of a daemon whose address is needed again.
#[track_caller]
fn exit(daemon: &mut Daemon) -> ExitStatus {
    wait_for_some("the end of the daemon", || daemon.child.try_wait().unwrap())
}

/// Checks that the daemon does not start, and that one line of its error contains all of this.
#[track_caller]
fn refuses(mut daemon: Daemon, wanted: &[&str]) {
    let status = exit(&mut daemon);
    let line = daemon.log.wait_for(0, wanted[0]);
    assert_eq!(status.code(), Some(1), "{line}");
    for wanted in wanted {
        assert!(line.contains(wanted), "no {wanted:?} in {line:?}");
    }
}

fn end(daemon: &mut Daemon) {
    daemon.signal("TERM");
    assert!(exit(daemon).success());
}

/// The first connection starts the milter, as under systemd, and gets an answer.
#[test]
fn the_first_connection_starts_the_milter() {
    let site = site();
    let path = site.path("m.sock");
    let mut command = Command::new("systemd-socket-activate");
    command.arg("--listen").arg(&path).args([program(), "milter", "--config"]).arg(site.config());
    if let Err(e) = Command::new("systemd-socket-activate").arg("--version").stdout(Stdio::null()).status() {
        assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
        return skip("systemd-socket-activate is not installed");
    }
    let mut daemon = site.spawn_by(&mut command);
    daemon.log.wait_for(0, "Listening on");
    daemon.address = format!("unix:{}", path.display());
    let mut client = session(&daemon);
    assert!(client.message(&Mail::text("the first")).verdict().starts_with("clean; body=1; "));
    daemon.log.wait_for(0, &format!("listens on {}", daemon.address));
    drop(client);
    end(&mut daemon);
    assert!(path.exists(), "the socket is systemd's, not ours to remove");
}

#[test]
fn connections_wait_while_the_milter_is_started_again() {
    let site = site();
    let path = site.path("m.sock");
    let socket = UnixListener::bind(&path).unwrap();
    let mut first = milter(&site, socket.try_clone().unwrap()).listening();
    assert_eq!(first.address, format!("unix:{}", path.display()));
    assert_eq!(session(&first).message(&Mail::text("sale")).count(), Some(1));
    end(&mut first);
    let waiting: Vec<_> = (0..WAITING).map(|_| Client::open(&first)).collect();
    let second = milter(&site, socket.try_clone().unwrap()).listening();
    for (n, mut client) in waiting.into_iter().enumerate() {
        client.negotiate(6, ALL_ACTIONS, ALL_OPTIONS);
        client.client("client.example.org", "192.0.2.7");
        assert_eq!(client.message(&Mail::text("sale")).count(), Some(2 + u32::try_from(n).unwrap()));
    }
    assert!(second.terminate().success());
    drop(UnixStream::connect(&path).expect("the socket is as it was"));
}

#[test]
fn requests_wait_while_the_server_is_started_again() {
    let server = server("");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut first = serve(&server, &socket).listening();
    assert_eq!(first.address, address.to_string());
    let head = "GET /healthz HTTP/1.1";
    assert!(ask(address.port(), head, b"").starts_with("HTTP/1.1 200"));
    end(&mut first);
    let waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            let mut stream = connect(address.port());
            stream.write_all(format!("{head}\r\nHost: x\r\nConnection: close\r\n\r\n").as_bytes()).unwrap();
            stream
        })
        .collect();
    let second = serve(&server, &socket).listening();
    for stream in &waiting {
        assert!(answer(stream).starts_with("HTTP/1.1 200"));
    }
    assert!(second.terminate().success());
}

/// The daemon shows the socket's address everywhere.
#[test]
fn the_address_is_that_of_the_socket() {
    let site = site();
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("inet:{}", socket.local_addr().unwrap());
    let daemon = milter(&site, socket).listening();
    assert_eq!(daemon.address, address);
    daemon.log.wait_for(0, "listen-mode is not used");
    assert_eq!(status(&site)["listens"], address.as_str());
    let text = Command::new(program()).args(["status", "--config"]).arg(site.config()).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains(&format!("\nlistens on {address}\n")), "{text}");
    assert!(daemon.reload().ends_with("milter.toml: read again"), "the socket stays");
    assert_eq!(session(&daemon).message(&Mail::text("after")).count(), Some(1));
}

#[test]
fn without_the_key_a_socket_is_not_used() {
    let site = Site::new("");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let passed = format!("inet:{}", socket.local_addr().unwrap());
    let daemon = milter(&site, socket).listening();
    let line = daemon.log.wait_for(0, "systemd passed a socket");
    let wanted = format!("write listen = \"systemd\" in {}", site.config().display());
    assert!(line.contains(&wanted) && line.contains("disable --now bulkmark-milter.socket"), "{line}");
    assert_ne!(daemon.address, passed);
    assert_eq!(session(&daemon).message(&Mail::text("own")).count(), Some(1));

    let server = Server::new("");
    let daemon = serve(&server, &TcpListener::bind("127.0.0.1:0").unwrap()).listening();
    let line = daemon.log.wait_for(0, "systemd passed a socket");
    assert!(line.contains(&format!("in {}", server.config().display())), "{line}");
    assert_eq!(daemon.address, server.listen);
}

#[test]
fn without_a_socket_the_error_says_what_to_enable() {
    let site = site();
    let advice = "systemd passed no socket: systemctl enable --now";
    refuses(site.spawn(), &["milter.toml: listen = \"systemd\": ", advice, "bulkmark-milter.socket"]);
    let server = server("");
    refuses(server.spawn(), &["server.toml: listen = \"systemd\": ", advice, "bulkmark-server.socket"]);
    // Variables meant for another process are ignored.
    let mut other = site;
    other.environment.push(("PID".to_owned(), "1".to_owned()));
    refuses(milter(&other, TcpListener::bind("127.0.0.1:0").unwrap()), &[advice]);
}

#[test]
fn what_is_no_listening_socket_is_named() {
    let site = site();
    let wanted = "expected one stream socket that listens: see systemctl cat bulkmark-milter.socket";
    let is_named = |socket: OwnedFd, found: &str| {
        refuses(milter(&site, socket), &[&format!("systemd passed {found}, {wanted}")]);
    };
    is_named(UdpSocket::bind("127.0.0.1:0").unwrap().into(), "a datagram socket");
    is_named(UnixDatagram::unbound().unwrap().into(), "a datagram socket");
    // As with Accept=yes.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    is_named(connected.into(), "a stream socket that does not listen");
    is_named(UnixStream::pair().unwrap().0.into(), "a stream socket that does not listen");
    is_named(std::fs::File::create(site.path("file")).unwrap().into(), "no stream socket of TCP or Unix");
    let address = listener.local_addr().unwrap();
    let two = start_with(&site, &["milter"], &site.config(), listener, 2);
    refuses(two, &[&format!("systemd passed 2 sockets: {address}, {address}, {wanted}")]);
}

/// The socket's kind counts, not the configured address.
#[test]
fn plain_http_stays_on_this_machine() {
    let socket = TcpListener::bind("0.0.0.0:0").unwrap();
    let address = socket.local_addr().unwrap();
    refuses(
        serve(&server(""), &socket),
        &[&format!("cannot listen on {address}: plain HTTP is for loopback")],
    );

    let anywhere = server("plain-http-anywhere = true\n");
    let daemon = serve(&anywhere, &socket).listening();
    assert!(ask(address.port(), "GET /healthz HTTP/1.1", b"").starts_with("HTTP/1.1 200"));
    assert!(daemon.terminate().success());

    let mut tls = tls_server();
    let authority = Authority::new("test");
    authority.certify(&tls, "127.0.0.1", false);
    tls.listen = "systemd".to_owned();
    let _daemon = serve(&tls, &socket).listening();
    let url = format!("https://127.0.0.1:{}", address.port());
    let milter = bulkmark_testing::server::milter(&[authority.entry(&tls, &url, "mx")]);
    let _milter = milter.start();
    bulkmark_testing::wait_until("a milter by TLS", || {
        let link = &status(&milter)["links"][0];
        if link["heard-seconds-ago"].is_u64() { Ok(()) } else { Err(link.to_string()) }
    });
}

/// Each of several sockets goes to the listener with the name of its unit, and the remaining one to the listener without a name.
#[test]
fn several_sockets_go_to_listeners_by_their_names() {
    if let Err(e) = Command::new("systemd-socket-activate").arg("--version").stdout(Stdio::null()).status() {
        assert_eq!(e.kind(), ErrorKind::NotFound, "{e}");
        return skip("systemd-socket-activate is not installed");
    }
    let mut site = Site::new(
        "exempt = [\"authenticated\"]\n[[policy]]\nname = \"inside\"\nmatch = { listener = \"inside\" }\n",
    );
    site.listen = "[\"systemd\", { name = \"inside\", at = \"systemd\" }]".to_owned();
    let paths = [site.path("in.sock"), site.path("m.sock")];
    let start = |names: &str| {
        let mut command = Command::new("systemd-socket-activate");
        command
            .arg("--listen")
            .arg(&paths[0])
            .arg("--listen")
            .arg(&paths[1])
            .arg(format!("--fdname={names}"));
        let daemon = site.spawn_by(command.args([program(), "milter", "--config"]).arg(site.config()));
        daemon.log.wait_for(0, &format!("Listening on {}", paths[1].display()));
        daemon
    };
    let mut daemon = start("inside:bulkmark-milter.socket");
    for (path, policy) in [(&paths[0], "inside"), (&paths[1], "default")] {
        let mut client = Client::open_at(&format!("unix:{}", path.display()));
        client.negotiate(6, ALL_ACTIONS, ALL_OPTIONS);
        client.client("client.example.org", "192.0.2.7");
        let header = client.message(&Mail::text("the first")).verdict();
        assert!(header.ends_with(&format!("policy={policy}")), "{header}");
    }
    end(&mut daemon);
    paths.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let daemon = start("outside:other");
    drop(UnixStream::connect(&paths[0]).unwrap());
    refuses(
        daemon,
        &[
            "systemd passed no socket of its own for the listener \"inside\", only \"outside\", \"other\"",
            "FileDescriptorName=inside",
        ],
    );
}
