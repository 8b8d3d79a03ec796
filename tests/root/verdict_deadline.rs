// SPDX-License-Identifier: GPL-3.0-or-later
//! A disk that hangs: it neither completes writes nor fails them.

use bulkmark_testing::milter::{Mail, session};
use bulkmark_testing::mount::Mount;
use bulkmark_testing::{PATIENCE, Site};
use std::net::UdpSocket;

const DEADLINE: &str = "verdict-deadline = \"5s\"\n";

/// A site whose state is on a file system that can be frozen. `None` if none can be mounted.
fn site(extra: &str) -> Option<(Site, Mount)> {
    let site = Site::new(&format!("{DEADLINE}{extra}"));
    let mount = Mount::ext4(&site.path("state"), 64)?;
    Some((site, mount))
}

/// Every message gets an answer at the deadline, and is judged again when the disk continues. Reports made meanwhile are counted then.
#[test]
fn a_disk_that_hangs_holds_up_no_verdict() {
    let Some((site, mount)) = site("") else { return };
    let daemon = site.start();
    let (mut one, mut two) = (session(&daemon), session(&daemon));
    let mail = Mail::text("hangs");
    assert_eq!(one.message(&mail).count(), Some(1));
    let frozen = mount.freeze();
    for n in 0..3 {
        let answer = if n == 1 { &mut two } else { &mut one }.message(&mail);
        assert_eq!((answer.header(), &*answer.reply), ("unknown; reason=timeout; host=mx.test", "c"));
    }
    let line = daemon.log.wait_for(0, "reason=timeout");
    assert!(line.contains("detail=\"the ledger's answer took longer than 5 s\""), "{line}");
    drop(frozen);
    // Reports that hung are counted before it, and so are those that are still too late.
    let mut sent = 4;
    bulkmark_testing::wait_until("the message is judged again", || {
        sent += 1;
        let count = two.message(&mail).count();
        if count == Some(sent) { Ok(()) } else { Err(format!("counted {count:?} of {sent}")) }
    });
}

/// A question waits for no disk: a check at the Pyzor interface is answered while the report of a message hangs.
#[test]
fn who_only_asks_is_answered_while_the_disk_hangs() {
    let Some((site, mount)) = site("[interfaces.pyzor]\nlisten = \"127.0.0.1:0\"\n") else { return };
    let daemon = site.start();
    let line = daemon.log.wait_for(0, "the interface pyzor is at ");
    let interface = line.split("the interface pyzor is at ").nth(1).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(interface.split([' ', ',', ';']).next().unwrap()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let answer_to = |op: &str| {
        let digest = "0123456789".repeat(4);
        let request = format!(
            "Op: {op}\nOp-Digest: {digest}\nThread: 4711\nPV: 2.1\nUser: anonymous\nTime: 1\nSig: 0\n\n"
        );
        socket.send(request.as_bytes()).unwrap();
        let mut answer = [0; 1024];
        let read = socket.recv(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    };
    assert!(answer_to("report").starts_with("Code: 200\n"));
    let frozen = mount.freeze();
    let mut client = session(&daemon);
    assert!(client.message(&Mail::text("hangs")).header().starts_with("unknown; reason=timeout"));
    let answer = answer_to("check");
    assert!(answer.starts_with("Code: 200\n") && answer.contains("\nCount: 1\n"), "{answer}");
    drop(frozen);
}

/// A message that is refused temporarily since the disk hangs comes again, and counts once.
#[test]
fn what_is_refused_while_the_disk_hangs_counts_once() {
    let Some((site, mount)) = site("on-failure = \"tempfail\"\n") else { return };
    let daemon = site.start();
    let mut client = session(&daemon);
    let first = Mail::raw(
        b"Message-ID: <1@x>\r\n\r\nThis is a message of many words that comes again and again.\r\n",
    );
    let other = Mail::raw(
        b"Message-ID: <2@x>\r\n\r\nThis is a message of many words that comes again and again.\r\n",
    );
    assert_eq!(client.message(&other).count(), Some(1));
    let frozen = mount.freeze();
    assert_eq!(client.message(&first).reply, "t");
    drop(frozen);
    // The sender repeats it until it is accepted: it hung as the second, and is the second.
    bulkmark_testing::wait_until("the message is taken", || match client.message(&first).count() {
        Some(2) => Ok(()),
        count => Err(format!("counted {count:?}")),
    });
    assert_eq!(client.message(&Mail { sender: "else@example.org".to_owned(), ..first }).count(), Some(3));
}
