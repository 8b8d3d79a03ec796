// SPDX-License-Identifier: GPL-3.0-or-later
//! docs/postfix.md and docs/filtering.md on a real Postfix: their rules, several milters in a row, and services with
//! settings of their own.

use bulkmark_testing::mta::{Kind, Mta, free_port};
use bulkmark_testing::rig::{NEWS, Rig, message};
use bulkmark_testing::smtp::{Client, Origin};
use bulkmark_testing::{Daemon, Site, text_of};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const AT_ONCE: &str = "[thresholds]\nbody = 1\n";

/// The second copy is bulk, and one user's nomination makes spam.
const TWICE: &str = "[thresholds]\nbody = 2\nspam = 1\n[user-reports]\ntrust = { new-reporter = 1.0 }\n";

const OFFER: &str =
    "You have won the grand prize of our spring lottery, a silver watch and a voyage to seven harbours.\n";

/// The rules of a block of docs/filtering.md, without comments.
fn rules(language: &str) -> Vec<String> {
    let text = text_of("docs/filtering.md");
    let block = text.split_once(&format!("```{language}\n")).unwrap().1.split_once("```").unwrap().0;
    block.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

/// Each rule acts on bulk and on mail that users report as spam, not on held mail, and on nothing else.
#[test]
fn rules_for_headers_of_milters() {
    let all = rules("milter_header_checks");
    let [held, rules @ ..] = &all[..] else { panic!("no rules") };
    assert_eq!(rules.len(), 3, "{all:?}");
    for rule in rules {
        let mut site = Rig::tcp_site(TWICE);
        let table = site.path("checks");
        fs::write(&table, format!("{held}\n{rule}\n")).unwrap();
        let setting = format!("milter_header_checks=regexp:{}", table.display());
        site.extra = TWICE.to_owned();
        let Some(rig) = Rig::start_with(Kind::Postfix, site, &[&setting]) else { return };
        let action = rule.split_whitespace().nth(2).unwrap();
        rig.send("c@box.test", &message("", NEWS)).expect(250);
        rig.mta.wait_for_mail("c@box.test", 1);
        nominate(&rig, OFFER);
        for (n, text) in [(1, NEWS), (2, OFFER)] {
            let reply = rig.send("a@box.test", &message("", text));
            match action {
                "HOLD" => {
                    reply.expect(250);
                    assert_eq!(rig.mta.held().len(), n);
                }
                "REDIRECT" => {
                    reply.expect(250);
                    rig.mta.wait_for_mail("bulk@box.test", n);
                }
                "REJECT" => assert_eq!(reply.expect(550).text, "5.7.1 bulk mail refused"),
                other => panic!("{other}"),
            }
        }
        rig.send("b@box.test", &message("", "thanks\n")).expect(250);
        rig.mta.wait_for_mail("b@box.test", 1);
        assert!(rig.mta.delivered("a@box.test").is_empty());
        // Seen twice, from two networks.
        for (ip, recipient) in [("192.0.2.7", "d@box.test"), ("198.51.100.7", "e@box.test")] {
            let origin = Origin { ip, ..Origin::default() };
            let text = message(
                "",
                "The pilot cutter sails on Sunday with twelve guests, bread, soup and an old brass compass.\n",
            );
            rig.from(origin).send("news@sender.test", &[recipient], &text).expect(250);
        }
        let verdict = rig.mta.wait_for_mail("e@box.test", 1)[0].verdict();
        assert!(verdict.starts_with("bulk; body=2;") && verdict.ends_with("; held=sources"), "{verdict}");
    }
}

/// The first rule covers every reason for holding in the page on the header.
#[test]
fn what_is_held_is_left_alone() {
    let site = Site::new("");
    let table = site.path("checks");
    fs::write(&table, rules("milter_header_checks")[..2].join("\n") + "\n").unwrap();
    let mut found = Vec::new();
    for header in rules("text") {
        let mut postmap = Command::new("postmap");
        postmap.args(["-q", &format!("X-Bulkmark: {header}")]).arg(format!("regexp:{}", table.display()));
        let Ok(output) = postmap.output() else {
            return bulkmark_testing::skip("postmap is missing; run tests/mta/install as root");
        };
        found.push(String::from_utf8(output.stdout).unwrap().trim().to_owned());
    }
    let expected = ["HOLD", "HOLD", "HOLD", "", "", "", "HOLD", "HOLD", "DUNNO", "DUNNO"];
    assert_eq!(found, expected);
}

/// The log line of spam has the fields of docs/monitoring.md, and the commands of docs/first-week.md find it.
#[test]
fn the_log_line_of_spam_is_found() {
    let Some(rig) = Rig::start(Kind::Postfix, TWICE) else { return };
    nominate(&rig, OFFER);
    rig.send("a@box.test", &message("", OFFER)).expect(250);
    let line = rig.daemon.log.wait_for(0, " verdict=spam ");
    assert!(line.contains(" spam=1 threshold=2 "), "{line}");
    let guide = text_of("docs/first-week.md");
    let log = site_log(&rig, &line);
    let mut found = Vec::new();
    for command in guide.lines().map(str::trim).filter(|line| line.starts_with("sed -En")) {
        let command = command.replace("/var/log/mail.log", &log);
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        found.push(
            String::from_utf8(output.stdout)
                .unwrap()
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        );
    }
    let client = line.split("client=").nth(1).unwrap().split(' ').next().unwrap();
    assert_eq!(found, [["1", "spam", "news@sender.test"], ["1", "spam", client]]);
    let fields = text_of("docs/monitoring.md");
    for field in ["spam", "sources", "held", "trap"] {
        assert!(fields.contains(&format!("| `{field}`")), "docs/monitoring.md has no {field}");
    }
}

/// A file with this line of the log.
fn site_log(rig: &Rig, line: &str) -> String {
    rig.write("mail.log", &format!("2026-11-22T10:00:00Z mx bulkmark[1]: {line}\n"))
}

/// Nominates a message with this text as a user; one is enough with [`TWICE`].
fn nominate(rig: &Rig, text: &str) {
    let file = rig.write("nominated.eml", std::str::from_utf8(&message("", text)).unwrap());
    let mut report = Command::new(bulkmark_testing::program());
    report
        .args(["report", "add", "--user", "anna", "--control"])
        .arg(rig.site.path("control.sock"))
        .arg(file);
    let output = report.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A daemon beside a rig's one, on its own port.
fn another(extra: &str) -> (Site, Daemon) {
    let site = Rig::tcp_site(extra);
    let daemon = site.start();
    (site, daemon)
}

/// Each milter sees the results of those before it, and the first one that refuses the message decides.
#[test]
fn milters_in_a_row() {
    let (first_site, first) = another(&format!("header = \"X-First\"\n{AT_ONCE}"));
    let (_second_site, second) = another("header = \"X-First\"\n");
    let milters = [&first, &second].map(|daemon| daemon.address.clone()).join(", ");
    let Some(mta) = Mta::start(Kind::Postfix, &milters, &[]) else { return };
    let send = |recipient: &str, text: &str| {
        let mut client = Client::connect_as(mta.port, Origin::default());
        client.send("news@sender.test", &[recipient], &message("", text))
    };
    send("a@box.test", NEWS).expect(250);
    // The second one takes the header of the first for forged: so it saw it.
    let mail = &mta.wait_for_mail("a@box.test", 1)[0];
    let marks = mail.header("X-First");
    assert!(marks.len() == 1 && marks[0].starts_with("clean; body=1; "), "{marks:?}");
    first.log.wait_for(0, "verdict=bulk body=1 ");

    let mut first_site = first_site;
    let mut reload = |extra: &str| {
        first_site.extra = format!("header = \"X-First\"\n{AT_ONCE}{extra}");
        first_site.config();
        let told = first.reload();
        assert!(told.contains("read again"), "{told}");
    };
    reload("[actions]\nbulk = \"reject\"\n");
    send("b@box.test", NEWS).expect(550);
    // A message refused by the first one is not counted by the second.
    reload("");
    send("c@box.test", NEWS).expect(250);
    let marks = mta.wait_for_mail("c@box.test", 1)[0].header("X-First");
    assert!(marks[0].starts_with("clean; body=2; "), "{marks:?}");
}

/// A service of master.cf with its own milters, and one with none.
#[test]
fn services_with_settings_of_their_own() {
    let Some(rig) = Rig::start(Kind::Postfix, AT_ONCE) else { return };
    let [without, with] = [free_port(), free_port()];
    let master = rig.mta.path("etc/master.cf");
    let mut text = fs::read_to_string(&master).unwrap();
    text.push_str(&format!(
        "127.0.0.1:{without} inet n - n - - smtpd\n  -o smtpd_milters=\n\
         127.0.0.1:{with} inet n - n - - smtpd\n  -o {{ smtpd_milters = {{ {}, default_action=accept }} }}\n",
        rig.site.listen
    ));
    fs::write(&master, text).unwrap();
    let status = Command::new("postfix").arg("-c").arg(rig.mta.path("etc")).arg("reload").status().unwrap();
    assert!(status.success());
    let send = |port: u16, recipient: &str| {
        bulkmark_testing::wait_for_some("the port", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        });
        let mut client = Client::connect_as(port, Origin::default());
        client.send("news@sender.test", &[recipient], &message("", NEWS)).expect(250);
        rig.mta.wait_for_mail(recipient, 1)[0].header("X-Bulkmark")
    };
    assert!(send(without, "a@box.test").is_empty());
    let marks = send(with, "b@box.test");
    assert!(marks.len() == 1 && marks[0].starts_with("bulk; body=1; "), "{marks:?}");
}

/// A socket for the group of Postfix's user, made in a directory that passes on its group.
#[test]
fn a_socket_for_postfix_alone() {
    let mut site = Site::new("");
    let directory = site.path("bulkmark");
    fs::create_dir(&directory).unwrap();
    let chown = Command::new("chown").arg(":postfix").arg(&directory).output();
    if !chown.is_ok_and(|output| output.status.success()) {
        return bulkmark_testing::skip("there is no group postfix to give a directory to");
    }
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o2750)).unwrap();
    site.listen = format!("unix:{}", directory.join("milter.sock").display());
    let config = site.config();
    let text =
        fs::read_to_string(&config).unwrap().replace("listen-mode = \"0666\"", "listen-mode = \"0660\"");
    fs::set_permissions(site.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let Some(mta) = Mta::start(Kind::Postfix, &site.listen, &[]) else { return };
    fs::write(&config, text).unwrap();
    let _daemon = site
        .spawn_by(Command::new(bulkmark_testing::program()).args(["milter", "--config"]).arg(&config))
        .listening();
    let mut client = Client::connect_as(mta.port, Origin::default());
    client.send("news@sender.test", &["a@box.test"], &message("", NEWS)).expect(250);
    assert!(mta.wait_for_mail("a@box.test", 1)[0].verdict().starts_with("clean; body=1; "));
    let mode = fs::metadata(directory.join("milter.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
}
