// SPDX-License-Identifier: GPL-3.0-or-later
//! The daemon's life: reloads, ends, crashes, and the mail in the meantime.

use crate::{AT_ONCE, BULK_AT_ONCE, count};
use bulkmark_testing::mta::{Kind, Mta};
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::smtp::Origin;
use bulkmark_testing::{PATIENCE, Site, crlf};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;

with_both!(
    a_reload_changes_threshold_action_and_white_list,
    a_wrong_configuration_is_named_and_the_old_one_stays,
    a_killed_daemon_has_lost_no_count,
    a_message_under_way_is_judged_before_the_daemon_ends,
    an_idle_connection_does_not_keep_the_daemon,
    a_unix_socket_serves_as_well_as_tcp,
    without_the_daemon_mail_is_refused_for_the_moment,
    without_the_daemon_mail_flows_where_the_server_is_told_so,
    garbage_on_the_milters_port_does_not_disturb_mail
);

fn a_reload_changes_threshold_action_and_white_list(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, "[thresholds]\nbody = 5\n") else { return };
    // It applies to an open connection, too.
    let mut client = rig.outside();
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    assert_eq!(count(&rig.mta.wait_for_mail("a@box.test", 1)[0].verdict()), "clean; body=1; threshold=5");
    rig.reload("[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n");
    client.send("news@sender.test", &["b@box.test"], &message("", NEWS)).expect(550);
    let list = rig.write("list", "sender sender.test\n");
    rig.reload(&format!(
        "[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n[whitelist]\nfiles = [\"{list}\"]\n"
    ));
    client.send("news@sender.test", &["c@box.test"], &message("", NEWS)).expect(250);
    let expected = format!("whitelisted; body=3; threshold=2; host=mx.test; whitelist={list}:1");
    assert_eq!(rig.mta.wait_for_mail("c@box.test", 1)[0].verdict(), expected);
    // A change of a list alone is enough.
    rig.write("list", "sender other.test\n");
    let extra = rig.site.extra.clone();
    rig.reload(&extra);
    client.send("news@sender.test", &["d@box.test"], &message("", NEWS)).expect(550);
}

fn a_wrong_configuration_is_named_and_the_old_one_stays(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, "[thresholds]\nbody = 2\n[actions]\nbulk = \"reject\"\n") else {
        return;
    };
    rig.send("a@box.test", &message("", NEWS)).expect(250);
    rig.site.extra = "[thresholds]\nbody = -1\n[actions]\nbulk = \"mark\"\n".to_owned();
    let path = rig.site.config();
    let line =
        1 + std::fs::read_to_string(&path).unwrap().lines().position(|line| line == "body = -1").unwrap();
    let told = rig.daemon.reload();
    assert!(told.contains(&format!("{}:{line}:8: thresholds.body: found -1", path.display())), "{told}");
    assert!(told.contains("the old configuration stays in force"), "{told}");
    rig.send("b@box.test", &message("", NEWS)).expect(550);
}

fn a_killed_daemon_has_lost_no_count(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, "") else { return };
    for n in 1..=6 {
        let header = rig.verdict_for(&format!("reader{n}@box.test"), &message("", NEWS));
        assert_eq!(count(&header), format!("clean; body={n}; threshold=20"));
        if n % 2 == 0 {
            rig.kill_and_restart();
        }
    }
}

fn a_message_under_way_is_judged_before_the_daemon_ends(kind: Kind) {
    let Some(rig) = Rig::start(kind, AT_ONCE) else { return };
    let mut client = rig.outside();
    client.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    client.command("DATA").expect(354);
    client.write(b"From: news@sender.test\r\nMessage-ID: <slow@sender.test>\r\n\r\n");
    let Rig { mta, daemon, .. } = rig;
    daemon.signal("TERM");
    daemon.log.wait_for(0, "stopping: no more connections are taken");
    client.write(&crlf(NEWS));
    client.end_data().expect(250);
    assert_eq!(mta.wait_for_mail("a@box.test", 1)[0].verdict(), BULK_AT_ONCE);
    let log = daemon.log.clone();
    assert_eq!(daemon.wait().code(), Some(0));
    log.wait_for(0, "bulkmark ended");
}

fn an_idle_connection_does_not_keep_the_daemon(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
    let mut client = rig.outside();
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    let Rig { daemon, .. } = rig;
    assert_eq!(daemon.terminate().code(), Some(0));
}

fn a_unix_socket_serves_as_well_as_tcp(kind: Kind) {
    // The test's directory is below /tmp.
    let settings: &[&str] = match kind {
        Kind::Postfix => &[],
        Kind::Sendmail => &["define(`confDONT_BLAME_SENDMAIL', `TrustStickyBit')dnl"],
    };
    let Some(mut rig) = Rig::start_with(kind, Site::unix(""), settings) else { return };
    assert!(rig.daemon.address.starts_with("unix:/"));
    assert_eq!(count(&rig.verdict_for("a@box.test", &message("", NEWS))), "clean; body=1; threshold=20");
    // The socket file of a killed daemon does not keep the next one from starting.
    rig.kill_and_restart();
    assert_eq!(count(&rig.verdict_for("b@box.test", &message("", NEWS))), "clean; body=2; threshold=20");
}

fn without_the_daemon_mail_is_refused_for_the_moment(kind: Kind) {
    let Some(mut rig) = Rig::start(kind, "") else { return };
    let mut before = rig.outside();
    before.envelope("news@sender.test", &["a@box.test"]).0.expect(250);
    rig.daemon.child.kill().unwrap();
    rig.daemon.child.wait().unwrap();
    before.command("DATA").expect(451);
    rig.outside().command("MAIL FROM:<news@sender.test>").expect(451);
    rig.daemon = rig.site.start();
    let header = rig.verdict_for("b@box.test", &message("", NEWS));
    assert_eq!(count(&header), "clean; body=1; threshold=20");
}

fn without_the_daemon_mail_flows_where_the_server_is_told_so(kind: Kind) {
    let site = Rig::tcp_site("");
    // Of two filters at the same address, this one lacks the flag that makes the server refuse mail.
    let port = site.listen.rsplit(':').next().unwrap();
    let lenient = format!("MAIL_FILTER(`lenient', `S=inet:{port}@127.0.0.1')dnl");
    let settings: &[&str] = match kind {
        Kind::Postfix => &["milter_default_action=accept"],
        Kind::Sendmail => &[&lenient, "define(`confINPUT_MAIL_FILTERS', `lenient')dnl"],
    };
    let Some(mta) = Mta::start(kind, &site.listen, settings) else { return };
    let mut client = mta.client(Origin::default());
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    assert!(mta.wait_for_mail("a@box.test", 1)[0].header("X-Bulkmark").is_empty());
}

fn garbage_on_the_milters_port_does_not_disturb_mail(kind: Kind) {
    let Some(rig) = Rig::start(kind, "") else { return };
    let pieces: [&[u8]; 8] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\0\0\0\0",
        b"\0\0\0\x01",
        b"\xFF\xFF\xFF\xFFO",
        b"\x00\x00\x00\x05O\0\0",
        b"\x00\x00\x00\x0DO\0\0\0\x06\0\0\x01\xFF\0\x1F\xFF\xFF\0\0\0\x01E\0\0\0\x01B",
        b"\x00\x00\x00\x0DO\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
    ];
    let address = rig.daemon.tcp();
    thread::scope(|scope| {
        // Some send nonsense and go, some wait for an answer; all while mail arrives.
        for (n, piece) in pieces.iter().cycle().take(64).enumerate() {
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                // The daemon may hang up first.
                let _ = stream.write_all(piece);
                if n % 2 == 0 {
                    let _ = stream.shutdown(Shutdown::Write);
                    stream.set_read_timeout(Some(PATIENCE)).unwrap();
                    let _ = stream.read_to_end(&mut Vec::new());
                }
            });
        }
        let mut client = rig.outside();
        for _ in 0..10 {
            client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
        }
    });
    let header = rig.verdict_for("b@box.test", &message("", NEWS));
    assert_eq!(count(&header), "clean; body=11; threshold=20");
    assert_eq!(rig.mta.wait_for_mail("a@box.test", 10).len(), 10);
    let Rig { daemon, mta, .. } = rig;
    drop(mta);
    assert_eq!(daemon.terminate().code(), Some(0));
}
