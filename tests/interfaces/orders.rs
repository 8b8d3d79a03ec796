// SPDX-License-Identifier: GPL-3.0-or-later
//! Orders of the administrator hold for mail that comes through the interfaces, too.

use crate::asking::{dccifd, judge, site, start};
use bulkmark_testing::letters::{letter, offer};
use bulkmark_testing::{Site, program};
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;

/// Runs a command about this site.
fn run(site: &Site, args: &[&str]) {
    let output = Command::new(program()).args(args).arg("--config").arg(site.path("milter.toml")).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn allow_and_pause_hold_by_each_interface() {
    let refusing = "[thresholds]\nbody = 1\nnear = 1\nmin-sources = 1\n[actions]\nbulk = \"reject\"\nnear = \"reject\"\n";
    let site = site(refusing, "", "");
    let daemon = start(&site);
    let by_http = |message: &[u8]| {
        let answer = judge(&site, "?ip=192.0.2.7", message);
        ["action", "held", "would"].map(|name| answer[name].as_str().unwrap_or_default().to_owned())
    };
    let by_dccifd = |message: &[u8]| {
        let envelope = "header\n192.0.2.7\rh\nh\nsender@example.org\nrecipient@example.net\n\n";
        dccifd(&site, envelope, message).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        (by_http(&offer("Anna")), by_dccifd(&offer("Berta"))),
        (["reject", "", ""].map(Into::into), "R".into())
    );
    let file = site.path("letter.eml");
    fs::write(&file, offer("Anna")).unwrap();
    run(&site, &["allow", file.to_str().unwrap()]);
    assert_eq!(
        (by_http(&offer("Carla")), by_dccifd(&offer("Dora"))),
        (["mark", "allowed", ""].map(Into::into), "A".into())
    );
    daemon.log.wait_for(0, " held=allowed ");
    assert_eq!((&*by_http(&letter(1))[0], &*by_dccifd(&letter(1))), ("reject", "R"), "another mailing");
    run(&site, &["pause", "--for", "1h"]);
    assert_eq!(
        (by_http(&letter(1)), by_dccifd(&letter(1))),
        (["mark", "", "reject"].map(Into::into), "A".into())
    );
    run(&site, &["resume"]);
    assert_eq!((&*by_http(&letter(1))[0], &*by_dccifd(&letter(1))), ("reject", "R"));
}

/// Users who send the messages of their reports slowly do not delay the administrator.
#[test]
fn slow_reports_do_not_delay_an_order() {
    const REPORT: &[u8] =
        b"{\"report\":{\"user\":[97],\"spam\":true,\"force\":false,\"forget\":false,\"length\":1000}}\n";
    let site = site("", "", "");
    let _daemon = start(&site);
    let report = || {
        let mut stream = UnixStream::connect(site.path("control.sock")).unwrap();
        stream.write_all(REPORT).unwrap();
        stream
    };
    let reports: Vec<UnixStream> = (0..8).map(|_| report()).collect();
    run(&site, &["pause", "--for", "1h"]);
    for mut report in &reports {
        report.set_nonblocking(true).unwrap();
        assert_eq!(report.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock, "it still waits");
    }
}
