// SPDX-License-Identifier: GPL-3.0-or-later
//! Sends a request to each configured interface as its clients would; nothing is counted.

use super::files;
use super::report::Report;
use crate::interfaces::{PyzorSettings, Settings, pyzor};
use crate::net::Address;
use bulkmark_ledger::directory::User;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket, UnixStream};
use tokio::time::timeout;

const CHECK: &str = "interfaces";

/// Time limit of an answer: the same as SpamAssassin's client has.
const PATIENCE: Duration = Duration::from_secs(5);

/// Size limit of an answer in bytes.
const MOST: u64 = 64 << 10;

const ADVICE: &str =
    "see the daemon's log, which says why an interface is not open; interfaces are opened at its start";

/// A message with too little content to be counted.
const MESSAGE: &str = "Subject: bulkmark doctor\r\n\r\n.\r\n";

/// Asks all of them.
pub(super) async fn examine(settings: &Settings, unit: &str, user: &User, report: &mut Report) {
    if let Some(address) = settings.dccifd.listen.address() {
        let request = format!("header query\n192.0.2.1\rdoctor.invalid\ndoctor.invalid\n<>\n\n{MESSAGE}");
        let is_answer = |answer: &str| answer.starts_with("A\n\nX-DCC-");
        report_answer("dccifd", address, ask(address, &request).await, is_answer, report);
    }
    if let Some(address) = settings.razor.listen.address() {
        let answer = ask(address, "cn=bulkmark-doctor\r\na=g&pm=state\r\na=q\r\n").await;
        let is_answer = |answer: &str| answer.starts_with("sn=CN&") && answer.contains("\r\nac=");
        report_answer("razor", address, answer, is_answer, report);
    }
    if let Some(Address::Tcp(address)) = settings.pyzor.listen.address() {
        examine_accounts(&settings.pyzor, unit, user, report);
        // If anonymous clients may not ping, the refusal is an answer, too.
        let is_answer =
            |answer: &str| ["Code: 200\n", "Code: 403\n"].iter().any(|good| answer.starts_with(good));
        report_answer("pyzor", &Address::Tcp(address.clone()), ping(address).await, is_answer, report);
    }
    if let Some(address) = settings.http.listen.address() {
        let Some(authority) = authority(settings.http.token_file.as_deref(), user, report) else { return };
        let host = match address {
            Address::Tcp(address) => address,
            Address::Unix(_) => "localhost",
        };
        let request = format!(
            "POST /v1/judge?count=no HTTP/1.1\r\nHost: {host}\r\n{authority}Connection: close\r\nContent-Type: message/rfc822\r\n\
             Content-Length: {}\r\n\r\n{MESSAGE}",
            MESSAGE.len()
        );
        // Another name than the machine's is the administrator's choice; a refusal is an answer.
        let is_answer =
            |answer: &str| ["HTTP/1.1 200 ", "HTTP/1.1 421 "].iter().any(|good| answer.starts_with(good));
        report_answer("http", address, ask(address, &request).await, is_answer, report);
    }
}

/// Examines the files of Pyzor's accounts: who can read them, and the errors in them.
fn examine_accounts(settings: &PyzorSettings, unit: &str, user: &User, report: &mut Report) {
    let Some(home) = settings.home.as_deref() else { return };
    let (faults, has_keys) = pyzor::examine(Some(home)).unwrap_or_default();
    for (name, is_secret) in pyzor::FILES.into_iter().zip([has_keys, false]) {
        files::examine_file(CHECK, &home.join(name), is_secret, user, report);
    }
    for fault in faults {
        report.warning(CHECK, fault, format!("correct the line, and then: systemctl reload {unit}"));
    }
}

/// Returns the field with the token, if one is needed; none if it cannot be read, which was reported.
fn authority(token_file: Option<&Path>, user: &User, report: &mut Report) -> Option<String> {
    let Some(path) = token_file else { return Some(String::new()) };
    files::examine_file(CHECK, path, true, user, report);
    match std::fs::read_to_string(path) {
        Ok(token) => Some(format!("Authorization: Bearer {}\r\n", token.trim())),
        Err(e) => {
            if !report.faults(CHECK) {
                report.warning(
                    CHECK,
                    format!("http was not asked: cannot read {}: {e}", path.display()),
                    files::AS_ROOT,
                );
            }
            None
        }
    }
}

fn report_answer(
    interface: &str,
    address: &Address,
    answer: io::Result<String>,
    is_answer: impl Fn(&str) -> bool,
    report: &mut Report,
) {
    match answer {
        Ok(answer) if is_answer(&answer) => report.ok(CHECK, format!("{interface} answers at {address}")),
        Ok(answer) => {
            let first = bulkmark_types::remote_text(answer.lines().next().unwrap_or_default()).to_string();
            report.error(
                CHECK,
                format!("{interface} at {address} gives no such answer: \"{first}\""),
                ADVICE,
            );
        }
        Err(e) => report.error(CHECK, format!("{interface} does not answer at {address}: {e}"), ADVICE),
    }
}

async fn ask(address: &Address, request: &str) -> io::Result<String> {
    let asked = async {
        match address {
            Address::Tcp(address) => talk(TcpStream::connect(&**address).await?, request).await,
            Address::Unix(path) => talk(UnixStream::connect(path).await?, request).await,
        }
    };
    let late =
        |_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, asked).await.map_err(late)?
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &str) -> io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    // HTTP would take the end for that of its client.
    if !request.starts_with("POST ") {
        stream.shutdown().await?;
    }
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Returns the answer to a ping of Pyzor's client.
async fn ping(address: &str) -> io::Result<String> {
    let asked = async {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for to in tokio::net::lookup_host(address).await? {
            // A socket that listens on all addresses is asked on this machine.
            let from = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(from).await?;
            if let Err(e) = socket.connect(to).await {
                last = e;
                continue;
            }
            let signature = "0".repeat(40);
            let text =
                format!("Op: ping\nThread: 1024\nPV: 2.1\nUser: anonymous\nTime: 0\nSig: {signature}\n\n");
            socket.send(text.as_bytes()).await?;
            let mut answer = [0; 512];
            match socket.recv(&mut answer).await {
                Ok(read) => return Ok(String::from_utf8_lossy(&answer[..read]).into_owned()),
                Err(e) => last = e,
            }
        }
        Err(last)
    };
    let late =
        |_| io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", PATIENCE.as_secs()));
    timeout(PATIENCE, asked).await.map_err(late)?
}
