// SPDX-License-Identifier: GPL-3.0-or-later
//! Accounts that were taken over: docs/outbound.md behind a real Postfix, and the limits on accounts.

use bulkmark_testing::milter::{ALL_ACTIONS, ALL_OPTIONS, Answer, Client as Milter, Mail, session};
use bulkmark_testing::mta::{Kind, Mta, free_port};
use bulkmark_testing::page::{STATUS, metrics};
use bulkmark_testing::rig::{NEWS, message};
use bulkmark_testing::smtp::{Client, Origin};
use bulkmark_testing::{Daemon, Site, crlf, program, status, text_of, wait_for_some};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// A block of the guide in this language.
fn block(language: &str) -> String {
    let text = text_of("docs/outbound.md");
    text.split_once(&format!("```{language}\n")).unwrap().1.split_once("```").unwrap().0.to_owned()
}

/// A Postfix with the guide's service and the daemon with the guide's configuration, on their own ports. The port is that of the
/// submission service.
struct Guide {
    mta: Mta,
    daemon: Daemon,
    site: Site,
    submission: u16,
}

impl Guide {
    /// Starts it with this action in place of the guide's; none if Postfix is missing.
    fn start(action: &str) -> Option<Self> {
        let [inbound, outbound, submission] = [free_port(), free_port(), free_port()];
        let on_ports = |text: &str| {
            text.replace(":8720", &format!(":{inbound}")).replace(":8724", &format!(":{outbound}"))
        };
        let config = on_ports(&block("toml")).replace("action = \"mark\"", action);
        // In a piece, which adds its listener to the file's one.
        let mut site = Site::new("[thresholds]\nbody = 10\n");
        site.listen = format!("inet:127.0.0.1:{inbound}");
        fs::create_dir(site.path("milter.d")).unwrap();
        // A test's mail arrives fast enough; a lower limit is as good.
        fs::write(site.path("milter.d/outbound.toml"), config.replace("bulk = 100", "bulk = 5")).unwrap();
        fs::set_permissions(site.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mta = Mta::start(Kind::Postfix, &format!("inet:127.0.0.1:{inbound}"), &[])?;
        let master = mta.path("etc/master.cf");
        let mut text = fs::read_to_string(&master).unwrap();
        // Services run without a chroot jail here, and no password is needed.
        let service = on_ports(&block("master.cf"))
            .replace("submission inet n       -       y", &format!("127.0.0.1:{submission} inet n - n"))
            .replace("smtpd_sasl_auth_enable=yes", "smtpd_sasl_auth_enable=no");
        assert!(
            service.contains(&format!("127.0.0.1:{submission} inet"))
                && service.contains("-o smtpd_milters=")
        );
        text.push_str(&service);
        fs::write(&master, text).unwrap();
        let reload = Command::new("postfix").arg("-c").arg(mta.path("etc")).arg("reload").status().unwrap();
        assert!(reload.success());
        wait_for_some("the submission port", || std::net::TcpStream::connect(("127.0.0.1", submission)).ok());
        let daemon = site.start();
        Some(Self { mta, daemon, site, submission })
    }

    /// A user who logged in.
    fn user(&self, login: &str) -> Client {
        Client::connect_as(self.submission, Origin { login: Some(login), ..Origin::default() })
    }
}

/// The guide's way: own newsletters do not change the counts of incoming mail, no message is refused for bulk, and the account that sends
/// too much is logged, listed, and held once that is configured.
#[test]
fn the_guide_finds_the_account_that_was_taken_over() {
    let Some(guide) = Guide::start("action = \"quarantine\"") else { return };
    let mut anna = guide.user("anna@example.org");
    let mut ben = guide.user("ben");
    let mut sent = 0;
    let mut send = |client: &mut Client, body: &str| {
        sent += 1;
        let recipient = format!("reader{sent}@box.test");
        client.send("someone@sender.test", &[&recipient], &message("", body)).expect(250);
        recipient
    };
    // The tenth is bulk, and so are four more, which is below the limit.
    for _ in 0..13 {
        let recipient = send(&mut anna, NEWS);
        let mail = &guide.mta.wait_for_mail(&recipient, 1)[0];
        assert!(mail.header("X-Bulkmark").is_empty(), "outbound mail gets no header");
    }
    guide
        .daemon
        .log
        .wait_for(0, "account=<anna@example.org> account-bulk=4 account-recipients=13 action=mark");
    assert!(guide.mta.held().is_empty());
    // The fourteenth is over the limit; so is a letter of that account that is not bulk.
    for body in
        [NEWS, "A letter to a friend that was never seen before, from an account that is over its limit.\n"]
    {
        let before = guide.mta.held().len();
        let recipient = send(&mut anna, body);
        let held = guide.mta.held();
        assert_eq!(held.len(), before + 1, "{:?}", guide.daemon.log.lines());
        assert!(
            held.iter().any(|mail| mail.header("X-Bulkmark").len() == 1),
            "who looks into the queue sees why"
        );
        assert!(guide.mta.delivered(&recipient).is_empty());
    }
    let line = guide.daemon.log.wait_for(0, "outbound account over its limit:");
    let expected = "account=<anna@example.org> account-bulk=5 account-recipients=14 over=limit client=[192.0.2.25] window=1h \
                    action=quarantine";
    assert!(line.contains(expected), "{line}");
    // Other accounts are not: one letter with the same text is bulk, and below the limit.
    let recipient = send(&mut ben, NEWS);
    guide.mta.wait_for_mail(&recipient, 1);
    // Incoming mail has not been counted.
    let mut outside = Client::connect_as(guide.mta.port, Origin::default());
    outside.send("news@sender.test", &["in@box.test"], &message("", NEWS)).expect(250);
    let mail = &guide.mta.wait_for_mail("in@box.test", 1)[0];
    assert_eq!(mail.verdict(), "clean; body=1; threshold=10; host=mx.test");

    let accounts = status(&guide.site)["accounts"].clone();
    let first = serde_json::json!({"account": "anna@example.org", "bulk": 5, "recipients": 15, "over": true});
    assert_eq!(accounts[0], first, "{accounts}");
    assert_eq!((accounts[1]["account"].as_str(), accounts[1]["over"].as_bool()), (Some("ben"), Some(false)));
    let output =
        Command::new(program()).args(["status", "--config"]).arg(guide.site.config()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("anna@example.org: 5 copies of bulk, 15 recipients in all, OVER ITS LIMIT"),
        "{text}"
    );
}

/// As in the guide, the account is refused if configured, with the configured text.
#[test]
fn an_account_over_its_limit_is_refused_where_that_is_configured() {
    let Some(guide) = Guide::start(
        "action = \"tempfail\"\n[actions]\ntempfail-reply = \"451 4.7.1 {reason} ({count}), call us about {id}\"",
    ) else {
        return;
    };
    let recipients: Vec<String> = (0..12).map(|n| format!("reader{n}@box.test")).collect();
    let recipients: Vec<&str> = recipients.iter().map(|recipient| &**recipient).collect();
    // One message to twelve recipients is bulk by itself, and twelve copies.
    let reply = guide.user("anna").send("a@sender.test", &recipients, &message("", NEWS)).expect(451);
    assert!(
        reply.text.starts_with("4.7.1 mail of an account over its limit (12), call us about "),
        "{reply:?}"
    );
    guide.user("ben").send("a@sender.test", &["x@box.test"], &message("", NEWS)).expect(250);
    // A user's forged header does not leave.
    let mail = &guide.mta.wait_for_mail("x@box.test", 1)[0];
    assert!(mail.header("X-Bulkmark").is_empty());
    let forged = message(
        "X-Bulkmark: clean; body=0\n",
        "A letter that was never seen before, with a header of ours.\n",
    );
    guide.user("ben").send("a@sender.test", &["y@box.test"], &forged).expect(250);
    assert!(guide.mta.wait_for_mail("y@box.test", 1)[0].header("X-Bulkmark").is_empty());
}

const OUTBOUND: &str = "[thresholds]\nbody = 1\n[actions]\nbulk = \"reject\"\n\
                        [outbound]\nbulk = 3\naction = \"reject\"\n[outbound.match]\nlogin = \"*\"\n";

fn submit(daemon: &Daemon, login: Option<&str>, mail: &Mail) -> Answer {
    let mut client = Milter::open_at(&daemon.address);
    client.negotiate(6, ALL_ACTIONS, ALL_OPTIONS);
    // As webmail does it: it would be exempt if it were not outbound.
    client.client("localhost", "127.0.0.1");
    client.login = login.map(str::to_owned);
    client.message(mail)
}

fn refused(answer: &Answer) -> bool {
    answer.reply.starts_with("550 5.7.1 mail of an account over its limit refused")
}

/// Limits survive a restart and a reload, and do not affect allowed senders.
#[test]
fn what_accounts_sent_outlives_a_restart_and_newsletters_may_be_sent() {
    let mut site = Site::new("");
    site.extra = format!(
        "{OUTBOUND}{STATUS}[whitelist]\nfiles = [\"{}\"]\n[[policy]]\nname = \"newsletter\"\nmatch = {{ login = \"shop\" }}\njudge = false\n",
        site.path("wanted").display()
    );
    fs::write(site.path("wanted"), "sender wanted.test\n").unwrap();
    let daemon = site.start();
    let mail = Mail::text("the same to all");
    let wanted = Mail { sender: "news@wanted.test".to_owned(), ..mail.clone() };
    for _ in 0..2 {
        // Bulk by the first copy: but actions apply to the account only.
        assert_eq!(
            submit(&daemon, Some("anna"), &mail),
            Answer { reply: "c".to_owned(), ..Answer::default() }
        );
    }
    for _ in 0..5 {
        assert_eq!(submit(&daemon, Some("shop"), &mail).reply, "c");
        assert_eq!(submit(&daemon, Some("ben"), &wanted).reply, "c");
    }
    assert!(daemon.terminate().success());
    let file = site.path("state/accounts.json");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let daemon = site.start();
    let outbound = || {
        ["accounts", "accounts_over", "alerts_total"]
            .map(|name| metrics(&daemon)[&format!("bulkmark_outbound_{name}")])
    };
    assert_eq!(outbound(), [1.0, 0.0, 0.0]);
    assert!(refused(&submit(&daemon, Some("Anna"), &mail)));
    assert_eq!(outbound(), [1.0, 1.0, 1.0]);
    assert!(refused(&submit(&daemon, Some("anna"), &Mail::text("and something else"))));
    assert_eq!(submit(&daemon, Some("anna"), &wanted).reply, "c", "what is wanted is not held");
    assert_eq!(submit(&daemon, None, &mail).verdict(), "exempt; reason=loopback; host=mx.test");
    site.extra = site.extra.replace("bulk = 3", "bulk = 0");
    site.config();
    assert!(daemon.reload().contains("read again"));
    assert_eq!(submit(&daemon, Some("anna"), &mail).reply, "c");
    // An invalid file loses the counts of accounts, and nothing else.
    assert!(daemon.terminate().success());
    fs::write(&file, "no json").unwrap();
    let daemon = site.start();
    daemon.log.wait_for(0, "what accounts sent before is not known");
    assert_eq!(submit(&daemon, Some("anna"), &mail).reply, "c");
}

/// `check` answers as the milter would: from the counts of outbound mail.
#[test]
fn check_asks_among_outbound_mail() {
    let site = Site::new(OUTBOUND);
    let daemon = site.start();
    let text = "Subject: s\n\nThis is a message of many words, and it says: the same to all\n";
    submit(&daemon, Some("anna"), &Mail::raw(&crlf(text)));
    fs::write(site.path("m.eml"), crlf(text)).unwrap();
    let count = |args: &[&str]| {
        let output = Command::new(program())
            .args(["check", "--json", "--config"])
            .arg(site.path("milter.toml"))
            .args(args)
            .arg(site.path("m.eml"))
            .output()
            .unwrap();
        let answer = bulkmark_testing::first_message(&output.stdout);
        (answer["body"]["count"].clone(), answer["action"].clone())
    };
    assert_eq!(count(&["--login", "ben"]), (1.into(), "mark".into()));
    assert_eq!(count(&[]), (0.into(), "mark".into()));
}

/// A text that users reported as spam is refused from strangers, but not from an own user, as in an answer that quotes it.
#[test]
fn reported_spam_is_not_held_against_accounts() {
    let site = Site::new(
        "[thresholds]\nspam = 1\n[actions]\nspam = \"reject\"\n[user-reports]\ntrust = { new-reporter = 1.0 }\n\
         [outbound]\nbulk = 1\naction = \"reject\"\n[outbound.match]\nlogin = \"*\"\n",
    );
    let daemon = site.start();
    let text = "Subject: s\n\nThis is a message of many words, and it says: an offer to all\n";
    fs::write(site.path("m.eml"), crlf(text)).unwrap();
    let output = Command::new(program())
        .args(["report", "add", "--user", "ben", "--control"])
        .arg(site.path("control.sock"))
        .arg(site.path("m.eml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let mail = Mail::raw(&crlf(text));
    assert!(session(&daemon).message(&mail).reply.starts_with("550 "));
    for _ in 0..3 {
        assert_eq!(submit(&daemon, Some("anna"), &mail).reply, "c");
    }
    let line = daemon.log.wait_for(0, "account=<anna> account-bulk=0 account-recipients=3 ");
    assert!(line.contains("verdict=clean"), "{line}");
}
