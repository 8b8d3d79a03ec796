// SPDX-License-Identifier: GPL-3.0-or-later
//! The Pyzor interface: unchanged clients from PyPI, and datagrams that none of them sends.

use crate::guide::guide;
use bulkmark_samples::encode::base64_lines;
use bulkmark_testing::gate::Gate;
use bulkmark_testing::server::{Server, milter};
use bulkmark_testing::{Daemon, PATIENCE, Site, skip, wait_until};
use bulkmark_types::{FederationKey, Foreign, foreign};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) const DIGEST: &str = "db8eb8136eb53e81ba3cb45f2288f800b4e56fc7";
const EMPTY: &str = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
pub(crate) const LETTER: &str = "Subject: offer\n\nBuy our great product now!\nVisit http://spam.example/x now please\nabc\n\
                      mail me at a@b.example today\n";

/// A site with an open interface, which has these further keys.
pub(crate) fn open(site: &mut Site, keys: &str) -> (Daemon, SocketAddr) {
    open_at(site, "127.0.0.1:0", keys)
}

/// The same at another address.
pub(crate) fn open_at(site: &mut Site, listen: &str, keys: &str) -> (Daemon, SocketAddr) {
    site.extra += &format!("\n[interfaces.pyzor]\nlisten = \"{listen}\"\n{keys}");
    site.config();
    let daemon = site.start();
    let at = address(&daemon);
    (daemon, at)
}

/// The address of a daemon's interface.
pub(crate) fn address(daemon: &Daemon) -> SocketAddr {
    let line = daemon.log.wait_for(0, "the interface pyzor is at ");
    let at = line.split("the interface pyzor is at ").nth(1).unwrap();
    let at = at.split(|c: char| c.is_whitespace() || c == ',' || c == ';').next().unwrap();
    at.parse().unwrap_or_else(|e| panic!("{e}: {line}"))
}

/// The key of a directory with an accounts file and an access file.
pub(crate) fn files(site: &Site) -> String {
    fs::write(site.path("pyzord.passwd"), "# who\nanna : 0a0b0c\n").unwrap();
    let access = "check report ping pong info : anonymous : allow\nall : anna : allow\n";
    fs::write(site.path("pyzord.access"), access).unwrap();
    format!("home = {:?}\n", site.directory.path())
}

/// A request as the clients write it.
pub(crate) fn request(op: &str, digest: &str) -> String {
    format!(
        "Op: {op}\nOp-Digest: {digest}\nThread: 46513\nPV: 2.1\nUser: anonymous\nTime: 1795205188\nSig: {}\n\n",
        "0".repeat(40)
    )
}

pub(crate) fn socket(from: &str, at: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind((from, 0)).unwrap();
    socket.connect(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// The answer to a datagram.
pub(crate) fn answered(socket: &UdpSocket, datagram: &[u8]) -> String {
    socket.send(datagram).unwrap();
    let mut answer = [0; 9000];
    let read = socket.recv(&mut answer).unwrap_or_else(|e| panic!("no answer: {e}"));
    String::from_utf8(answer[..read].to_vec()).unwrap()
}

pub(crate) fn ask(from: &str, at: SocketAddr, op: &str, digest: &str) -> String {
    answered(&socket(from, at), request(op, digest).as_bytes())
}

pub(crate) fn counts(at: SocketAddr, digest: &str) -> String {
    let answer = ask("127.0.0.1", at, "check", digest);
    answer
        .strip_prefix("Code: 200\nDiag: OK\nPV: 2.1\nThread: 46513\n")
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

/// Pyzor of this version, in its own environment; none if PyPI cannot be reached.
pub(crate) fn pyzor(version: &str) -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("pyzor-{version}"));
    let run = |program: &Path, arguments: &[&str]| {
        let output =
            Command::new(program).args(arguments).stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(()).ok_or(text)
    };
    let (pip, client) = (directory.join("bin/pip"), directory.join("bin/pyzor"));
    let install = || {
        run(Path::new("python3"), &["-m", "venv", &directory.display().to_string()])?;
        // The old one is written for Python 2, and is translated by a setuptools that still can.
        run(&pip, &["install", "-q", "setuptools<58", "wheel"])?;
        run(&pip, &["install", "-q", "--no-build-isolation", "--no-deps", &format!("pyzor=={version}")])
    };
    // One test at a time installs it, and the others find it.
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _turn = INSTALLING.lock();
    if !client.exists()
        && let Err(why) = install()
    {
        skip(&format!("Pyzor {version} cannot be installed: {why}"));
        return None;
    }
    Some(client)
}

/// Runs a client on a message, with its own home.
pub(crate) fn run(client: &Path, home: &Path, command: &str, message: &[u8]) -> String {
    let mut child = Command::new(client)
        .args(["--homedir", &home.display().to_string(), command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), message).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// All commands of a client, anonymous and with an account.
fn a_client_works(version: &str) {
    let Some(client) = pyzor(version) else { return };
    let mut site = Site::new("");
    let keys = files(&site);
    let (_daemon, at) = open(&mut site, &keys);
    let home = |name: &str, accounts: &str| {
        let home = site.path(name);
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("servers"), format!("{at}\n")).unwrap();
        fs::write(home.join("accounts"), accounts).unwrap();
        home
    };
    let ip = at.ip();
    let (nobody, anna) =
        (home("nobody", ""), home("anna", &format!("{ip} : {} : anna : ,0a0b0c\n", at.port())));
    let wrong = home("wrong", &format!("{ip} : {} : anna : ,0d0e\n", at.port()));
    let says = |home: &Path, command: &str, expected: &str| {
        let said = run(&client, home, command, LETTER.as_bytes());
        assert!(said.contains(expected), "{command}: expected {expected:?}, found {said}");
    };
    says(&nobody, "ping", "(200, 'OK')");
    says(&nobody, "check", "(200, 'OK')\t0\t0");
    says(&nobody, "report", "(200, 'OK')");
    says(&nobody, "check", "(200, 'OK')\t1\t0");
    says(&nobody, "whitelist", "403");
    says(&wrong, "check", "401");
    says(&anna, "report", "(200, 'OK')");
    says(&anna, "check", "(200, 'OK')\t2\t0");
    says(&anna, "whitelist", "(200, 'OK')");
    says(&nobody, "check", "(200, 'OK')\t2\t1");
    says(&nobody, "info", "Count: 2");
    says(&nobody, "info", "WL-Count: 1");
    says(&nobody, "pong", "(200, 'OK')");
    assert_eq!(counts(at, DIGEST), "Count: 2\nWL-Count: 1\n\n", "the digest is that of the letter");
}

#[test]
fn the_client_1_0_works() {
    a_client_works("1.0.0");
}

#[test]
fn the_client_1_1_works() {
    a_client_works("1.1.2");
}

/// Reports from all addresses of the machine count as one, over a restart: a process there may use any of them.
#[test]
fn a_reporter_counts_once() {
    let mut site = Site::new("");
    let (daemon, at) = open(&mut site, "");
    for from in ["127.0.0.1", "127.0.0.1", "127.0.0.2", "127.200.7.1"] {
        assert!(ask(from, at, "report", DIGEST).starts_with("Code: 200\nDiag: OK\n"));
    }
    assert_eq!(counts(at, DIGEST), "Count: 1\nWL-Count: 0\n\n");
    drop(daemon);
    let daemon = site.start();
    let at = address(&daemon);
    ask("127.0.0.2", at, "report", DIGEST);
    assert_eq!(counts(at, DIGEST), "Count: 1\nWL-Count: 0\n\n");
}

/// With `count = "reports"`, as the reference server counts.
#[test]
fn each_report_counts_where_that_is_wanted() {
    let mut site = Site::new("");
    let (_daemon, at) = open(&mut site, "count = \"reports\"\n");
    (0..3).for_each(|_| _ = ask("127.0.0.1", at, "report", &DIGEST.to_uppercase()));
    assert_eq!(counts(at, DIGEST), "Count: 3\nWL-Count: 0\n\n");
    // As often as one datagram has it.
    let line = format!("Op-Digest: {DIGEST}\n");
    let many = request("report", DIGEST).replacen(&line, &line.repeat(20), 1);
    assert!(answered(&socket("127.0.0.1", at), many.as_bytes()).starts_with("Code: 200\n"));
    assert_eq!(counts(at, DIGEST), "Count: 23\nWL-Count: 0\n\n");
}

/// The digest of the empty text, and those that the administrator lists.
#[test]
fn what_says_nothing_is_never_counted() {
    let mut site = Site::new("");
    let (_daemon, at) = open(&mut site, &format!("uncounted = [\"{DIGEST}\"]\n"));
    for digest in [EMPTY, DIGEST] {
        assert!(ask("127.0.0.1", at, "report", digest).starts_with("Code: 200\n"));
        assert_eq!(counts(at, digest), "Count: 0\nWL-Count: 10000\n\n", "{digest}");
        let info = ask("127.0.0.1", at, "info", digest);
        assert!(
            info.ends_with(
                "Entered: 0\nUpdated: 0\nWL-Entered: 0\nWL-Updated: 0\nCount: 0\nWL-Count: 10000\n\n"
            ),
            "{info}"
        );
    }
}

/// A message with an attached file and no text.
fn with_file(kind: &str, file: &[u8]) -> String {
    let lines = base64_lines(file, 76).replace('\r', "");
    let lines = lines.trim_end();
    format!(
        "Subject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\n\n\
         --b\nContent-Type: {kind}\nContent-Transfer-Encoding: base64\n\n{lines}\n--b--\n"
    )
}

/// For messages without text, the client's digest is never counted: it makes one digest for all, and others for files whose last line it
/// takes for text. The commands of docs/interfaces.md show the digest of another one, for `uncounted`.
#[test]
fn what_clients_make_of_messages_that_say_nothing() {
    let Some(client) = pyzor("1.0.0") else { return };
    let home = tempfile::tempdir().unwrap();
    let digest = |message: &str| run(&client, home.path(), "digest", message.as_bytes()).trim().to_owned();
    let guide = guide("interfaces.md");
    let shown = guide.lines().find(|line| line.trim_end().ends_with("| pyzor digest")).unwrap();
    let shown =
        shown.replace("| pyzor", &format!("| {} --homedir {}", client.display(), home.path().display()));
    let answered = Command::new("sh").args(["-c", &shown]).output().unwrap();
    let named = String::from_utf8(answered.stdout).unwrap().trim().to_owned();
    let mut site = Site::new("");
    let (_daemon, at) = open(&mut site, &format!("uncounted = [\"{named}\"]\n"));
    let html = "Subject: x\nContent-Type: text/html\n\n";
    let empty = [
        "Subject: x\n\n".to_owned(),
        "Subject: x\n\nok\nthanks\nAnna\n".to_owned(),
        "Subject: x\n\nhttp://parcels.example.com/a\nanna@box.test\n".to_owned(),
        format!("{html}<p><img src=\"http://parcels.example.com/a.png\"></p>\n"),
        format!("{html}<style>p {{ color: red; margin: none }}</style><p>&nbsp;</p>\n"),
        with_file("image/png", &[7; 1000]),
    ];
    for message in empty {
        assert_eq!(digest(&message), EMPTY, "{message}");
    }
    let ends: [(&str, &[u8]); 3] = [
        ("image/png", b"\0\0\0\0IEND\xaeB`\x82"),
        ("application/pdf", b"startxref\n4711\n%%EOF\n"),
        ("application/pdf", b"startxref\r\n4711\r\n%%EOF"),
    ];
    let mut others = vec![named];
    for (kind, end) in ends {
        // 57 bytes are a line of base64; of the last one there are four to six.
        let of_length =
            |rest: usize| digest(&with_file(kind, &[&vec![0xb7; 4 * 57 + rest - end.len()], end].concat()));
        let found = [4, 5, 6].map(of_length);
        assert!(!found.iter().any(|found| found == EMPTY), "{kind}: {found:?}");
        assert_eq!([3, 7].map(of_length), [EMPTY, EMPTY]);
        others.extend(found);
    }
    for digest in others {
        assert!(ask("127.0.0.1", at, "report", &digest).starts_with("Code: 200\n"));
        assert_eq!(counts(at, &digest), "Count: 0\nWL-Count: 10000\n\n", "{digest}");
    }
}

/// Errors have the codes of the reference server, and are never longer than the request.
#[test]
fn what_no_client_sends() {
    let mut site = Site::new("");
    let keys = files(&site);
    let (_daemon, at) = open(&mut site, &keys);
    let socket = socket("127.0.0.1", at);
    let check = request("check", DIGEST);
    for (from, to, expected) in [
        ("PV: 2.1", "PV: 3.0", "Code: 505\nDiag: Version Not Supported: \n"),
        ("PV: 2.1", "PV: two", "Code: 400\nDiag: Bad request: Invalid Protocol Version\n"),
        ("PV: 2.1", "XX: 2.1", "Code: 400\nDiag: Bad request: Protocol Version not specified in request\n"),
        (
            "check",
            "whitelist",
            "Code: 403\nDiag: Forbidden: User is not authorized to request the operation.\n",
        ),
        (
            "check",
            "frobnicate",
            "Code: 403\nDiag: Forbidden: User is not authorized to request the operation.\n",
        ),
        ("anonymous", "nobody", "Code: 401\nDiag: Unauthorized: Signature Error: Unknown user.\n"),
        (
            "anonymous",
            "anna",
            "Code: 401\nDiag: Unauthorized: Signature Error: Timestamp not within allowed range.\n",
        ),
        (DIGEST, "4711", "Code: 400\nDiag: Bad request: Invalid digest\n"),
    ] {
        let answer = answered(&socket, check.replace(from, to).as_bytes());
        assert!(answer.starts_with(expected), "{to}: {answer}");
    }
    // A request longer or shorter than any valid one gets no answer: the next answer is for the request after it.
    for garbage in [&b""[..], b"x", &[0xff; 60], b"GET / HTTP/1.0\r\n\r\n", &[b'a'; 9000], &[b'\n'; 60]] {
        socket.send(garbage).unwrap();
    }
    assert!(answered(&socket, request("ping", DIGEST).as_bytes()).starts_with("Code: 200\nDiag: OK\n"));
    let long = format!("{}{}\n\n", check.trim_end(), "9".repeat(7000));
    assert!(answered(&socket, long.as_bytes()).starts_with("Code: 200\n"));
}

/// A report at one mail server is known at the other.
#[test]
fn a_federation_has_one_count() {
    let server = Server::new("");
    let entries = ["one", "two"].map(|name| server.entry(name, "report"));
    let _server = server.start();
    let [mut one, mut two] = entries.map(|entry| milter(&[entry]));
    let ((_first, at), (_second, other)) = (open(&mut one, ""), open(&mut two, ""));
    ask("127.0.0.1", at, "report", DIGEST);
    wait_until("the count of the other", || match counts(other, DIGEST) {
        found if found == "Count: 1\nWL-Count: 0\n\n" => Ok(()),
        found => Err(found),
    });
}

/// The count of this digest that a milter holds itself, whatever its server knows.
fn held(control: &Path, digest: &[u8]) -> u32 {
    let asked = foreign(&FederationKey::public(), Foreign::Pyzor, digest);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(bulkmark::control::counts(control, &[asked], false)).unwrap()[0].total()
}

/// A milter with a partial copy asks its server for the counts that it does not hold. While the server does not answer, it has the counts
/// from half of the threshold on.
#[test]
fn where_only_bulk_is_held_the_server_is_asked() {
    let server = Server::new("");
    let entries = ["full", "partial"].map(|name| server.entry(name, "report"));
    let daemon = server.start();
    let [mut full, mut partial] = entries.map(|entry| milter(&[entry]));
    partial.extra += "copy = \"partial\"\n";
    let each = "count = \"reports\"\n";
    let control = partial.path("control.sock");
    let ((_full, at), (_partial, partial)) = (open(&mut full, each), open(&mut partial, each));
    let report = |at, digest: &str, times| {
        (0..times).for_each(|_| drop(ask("127.0.0.1", at, "report", digest)));
    };
    let answered = |count: u32| format!("Count: {count}\nWL-Count: 0\n\n");
    let wait_for = |at, digest: &str, count| {
        let found = || Some(counts(at, digest)).filter(|found| *found != answered(count)).map_or(Ok(()), Err);
        wait_until(&format!("{digest} has {count}"), found);
    };
    let [few, half, own] = ["1", "2", "3"].map(|digit| digit.repeat(40));
    report(at, &few, 9);
    report(partial, &own, 3);
    // A report that is pushed during the question is missing from the answer.
    wait_for(partial, &own, 3);
    report(at, &half, 10);
    wait_for(partial, &few, 9);
    wait_for(at, &own, 3);
    // The server has it now.
    wait_for(partial, &own, 3);
    wait_for(partial, &half, 10);
    // The server may have answered that itself.
    wait_until("half of the threshold is held", || {
        let held = held(&control, &[0x22; 20]);
        if held == 10 { Ok(()) } else { Err(format!("{held}")) }
    });
    drop(daemon);
    assert_eq!((counts(at, &few), counts(partial, &few)), (answered(9), answered(0)));
    wait_for(partial, &half, 10);
}

/// A server that does not answer delays nobody else: a ping that arrives while the server is asked is answered before the check. If a busy
/// machine takes longer for a ping than the check waits, another check proves it.
#[test]
fn others_do_not_wait_for_what_a_server_is_asked() {
    let server = Server::new("");
    let gate = Gate::new(server.port);
    let mut partial =
        milter(&[server.entry_by(&format!("http://127.0.0.1:{}", gate.port), "partial", "report")]);
    let _daemon = server.start();
    partial.extra += "copy = \"partial\"\n";
    let (_partial, at) = open(&mut partial, "");
    let is_check = |answer: &str| answer.contains("Count: ");
    let mut digests = 1..;
    wait_until("a ping before a check", || {
        if gate.keeps_answers() {
            gate.let_answers_pass();
        }
        gate.keep_answers_to(b"POST /v1/counts ");
        let (socket, mut answer) = (socket("127.0.0.1", at), [0; 9000]);
        let digest = format!("{:040x}", digests.next().unwrap());
        socket.send(request("check", &digest).as_bytes()).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let sent = Instant::now();
        while !gate.keeps_answers() {
            if socket.recv(&mut answer).is_ok() {
                return Err("the server was not asked".to_owned());
            }
            // The system may have dropped the packet.
            if sent.elapsed() > Duration::from_secs(20) {
                return Err("neither an answer nor a question came".to_owned());
            }
        }
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        if is_check(&answered(&socket, request("ping", "").as_bytes())) {
            return Err("the check was answered first".to_owned());
        }
        let read = socket.recv(&mut answer).unwrap();
        assert!(is_check(str::from_utf8(&answer[..read]).unwrap()), "it was asked, and given up");
        Ok(())
    });
}
