// SPDX-License-Identifier: GPL-3.0-or-later
//! The lines of docs/sendmail.md, on a real Sendmail.

use bulkmark_testing::mta::{Kind, free_port};
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::smtp::Client;
use bulkmark_testing::text_of;

/// The lines of m4 in the guide.
fn lines() -> Vec<String> {
    let text = text_of("docs/sendmail.md");
    let blocks = text.split("```m4\n").skip(1);
    blocks.map(|block| block.split_once("```").unwrap().0.trim_end().to_owned()).collect()
}

#[test]
fn the_lines_of_the_guide() {
    let lines = lines();
    let line = |part: &str| lines.iter().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}"));
    // A second milter behind the rig's, by the guide's line with another name and port.
    let guide = Rig::tcp_site("exempt = [\"authenticated\"]\nheader = \"X-Guide\"\n");
    let guide_port = guide.listen.rsplit(':').next().unwrap();
    let filter = line("inet:8720").replace("8720", guide_port).replace("`bulkmark'", "`guide'");
    let order = line("confINPUT_MAIL_FILTERS").replace("greylist, bulkmark, disclaimer", "guide, bulkmark");
    let port = free_port();
    let other = line("DAEMON_OPTIONS").replace("2525", &port.to_string()).replace("=bulkmark", "=guide");
    let mut daemon = guide.start();
    let site =
        Rig::tcp_site("exempt = [\"authenticated\"]\n[thresholds]\nbody = 1\n[actions]\nbulk = \"reject\"\n");
    let Some(rig) = Rig::start_with(Kind::Sendmail, site, &[&filter, &order, &other]) else { return };

    // Milters run in the order of the list: the guide's one is first and counts a message that the other one refuses.
    rig.local().send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(550);
    daemon.log.wait_for(0, "verdict=clean body=1 ");
    // The other port has one of them only.
    let send = |recipient: &str| {
        let mut client = Client::connect(port);
        client.send("news@sender.test", &[recipient], &message("", NEWS)).expect(250);
        let mail = rig.mta.wait_for_mail(recipient, 1).remove(0);
        assert!(mail.header("X-Bulkmark").is_empty(), "{}", mail.0);
        mail.header("X-Guide")
    };
    let marks = send("b@box.test");
    assert!(marks.len() == 1 && marks[0].starts_with("clean; body=2; "), "{marks:?}");
    // Without the flag F mail flows while it is away.
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    assert!(send("c@box.test").is_empty());
    daemon = guide.start();
    let marks = send("d@box.test");
    assert!(marks.len() == 1 && marks[0].starts_with("clean; body=3; "), "{marks:?}");
    drop(daemon);
}

/// Sendmail reports a client over IPv6 as `IPv6:...`: its mail is judged, and log, policies and white list use the plain address.
#[test]
fn clients_over_ipv6() {
    let port = free_port();
    let own = format!("DAEMON_OPTIONS(`Family=inet6, Name=MTA6, Addr=::1, Port={port}')dnl");
    let site = Rig::tcp_site("exempt = [\"authenticated\"]\n[thresholds]\nbody = 1\n");
    let Some(rig) = Rig::start_with(Kind::Sendmail, site, &[&own]) else { return };
    for count in 1..=2 {
        let mut client = Client::connect_over_ipv6(port);
        client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
        let mail = rig.mta.wait_for_mail("a@box.test", count).remove(count - 1);
        let marks = mail.header("X-Bulkmark");
        assert!(marks.len() == 1 && marks[0].contains(&format!("body={count};")), "{marks:?}");
    }
    rig.daemon.log.wait_for(0, "[::1]");
}
