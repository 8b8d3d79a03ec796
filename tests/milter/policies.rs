// SPDX-License-Identifier: GPL-3.0-or-later
//! Policies in a running milter, by recipient, listener, network and account.

use bulkmark_testing::milter::{ALL_ACTIONS, ALL_OPTIONS, Answer, Client, Mail, session};
use bulkmark_testing::{Daemon, Site, crlf, program, text_of};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A letter to these recipients, which is bulk at once if the threshold is 1.
fn letter(recipients: &[&str], text: &str) -> Mail {
    let recipients = recipients.iter().map(|&recipient| recipient.to_owned()).collect();
    Mail { recipients, ..Mail::text(text) }
}

fn send(daemon: &Daemon, recipients: &[&str], text: &str) -> Answer {
    session(daemon).message(&letter(recipients, text))
}

fn refused(answer: &Answer) -> bool {
    answer.reply.starts_with("550 ")
}

/// A site where strict.test refuses bulk at once, lists.test accepts a hundred copies, and some recipients have opted out.
const POLICIES: &str = r#"
[thresholds]
body = 20

[[policy]]
name = "must-accept"
match = { recipient = ["postmaster@", "abuse@"], recipient-files = ["DIR/opt-out"] }
judge = false

[[policy]]
name = "lists"
match = { recipient = "lists.test" }
thresholds = { body = 100 }

[[policy]]
name = "strict"
match = { recipient = ["strict.test", ".strict.test"] }
thresholds = { body = 1, min-sources = 1 }
actions = { bulk = "reject", reject-reply = "550 5.7.1 no bulk for {host}" }
whitelist = { files = ["DIR/wanted"] }
"#;

fn site() -> Site {
    let mut site = Site::new("");
    let directory = site.directory.path().display().to_string();
    site.extra = POLICIES.replace("DIR", &directory);
    fs::write(site.path("opt-out"), "# who wants no verdicts\nanna@strict.test\n").unwrap();
    fs::write(site.path("wanted"), "sender wanted.test\n").unwrap();
    site
}

#[test]
fn each_recipient_has_his_policy() {
    let site = site();
    let daemon = site.start();
    let answer = send(&daemon, &["x@strict.test"], "one");
    assert_eq!(answer.reply, "550 5.7.1 no bulk for mx.test");
    assert!(refused(&send(&daemon, &["x@sub.strict.test"], "one")));
    let marked = |recipients: &[&str], text| {
        let answer = send(&daemon, recipients, text);
        assert_eq!(answer.reply, "c", "{recipients:?}");
        answer.verdict()
    };
    assert_eq!(marked(&["x@else.test"], "two"), "clean; body=1; threshold=20; host=mx.test; policy=default");
    assert_eq!(
        marked(&["all@lists.test"], "two"),
        "clean; body=2; threshold=100; host=mx.test; policy=lists"
    );
    let out = "exempt; reason=policy; host=mx.test; policy=must-accept";
    for opted_out in
        ["postmaster@strict.test", "Abuse@else.test", "anna+news@strict.test", "anna@STRICT.test"]
    {
        assert_eq!(marked(&[opted_out], "one"), out);
    }
    let wanted = Mail { sender: "news@wanted.test".to_owned(), ..letter(&["x@strict.test"], "one") };
    let header = session(&daemon).message(&wanted).verdict();
    let entry = site.path("wanted").display().to_string();
    // Copies to recipients who opted out were not counted: this is the third copy.
    let expected =
        format!("whitelisted; body=3; threshold=1; host=mx.test; policy=strict; whitelist={entry}:1");
    assert_eq!(header, expected);
}

/// The mildest action of all recipients is applied, and only judged copies count.
#[test]
fn a_message_to_several_has_the_mildest_action() {
    let site = site();
    let daemon = site.start();
    let marked = |recipients: &[&str], text| {
        let answer = send(&daemon, recipients, text);
        assert_eq!(answer.reply, "c", "{recipients:?}");
        answer.verdict()
    };
    let bulk = |count: u32, milder| {
        format!("bulk; body={count}; threshold=1; host=mx.test; policy=strict; milder={milder}")
    };
    assert_eq!(marked(&["x@strict.test", "postmaster@strict.test"], "a"), bulk(1, "must-accept"));
    assert_eq!(marked(&["x@strict.test", "y@strict.test", "x@else.test"], "b"), bulk(3, "default"));
    assert_eq!(marked(&["all@lists.test", "x@strict.test"], "c"), bulk(2, "lists"));
    assert!(refused(&send(&daemon, &["x@strict.test", "y@strict.test"], "d")));
    let line = daemon.log.wait_for(0, "milder=must-accept");
    assert!(
        line.contains(" threshold=1 policy=strict milder=must-accept ") && line.contains(" action=mark "),
        "{line}"
    );
    daemon.log.wait_for(0, "verdict=bulk body=2 ");
}

#[test]
fn a_site_may_judge_only_those_who_opted_in() {
    let opt_in = "[[policy]]\nname = \"in\"\nmatch = { recipient = \"in.test\" }\n[[policy]]\nname = \"others\"\njudge = false\n";
    let site = Site::new(opt_in);
    let daemon = site.start();
    let header = |recipients: &[&str]| send(&daemon, recipients, "a").verdict();
    assert_eq!(header(&["x@else.test"]), "exempt; reason=policy; host=mx.test; policy=others");
    assert_eq!(header(&["x@in.test", "x@else.test"]), "clean; body=1; threshold=20; host=mx.test; policy=in");
}

/// Connects to the listener at this address.
fn connect(address: &str) -> Client {
    let mut client = Client::open_at(address);
    client.negotiate(6, ALL_ACTIONS, ALL_OPTIONS);
    client.client("client.example.org", "192.0.2.7");
    client
}

#[test]
fn listeners_have_policies_of_their_own() {
    let mut site = Site::new(
        "exempt = [\"loopback\"]\n[thresholds]\nbody = 1\nmin-sources = 1\n\
         [[policy]]\nname = \"inside\"\nmatch = { listener = \"inside\" }\nactions = { bulk = \"reject\" }\n\
         [[policy]]\nname = \"robots\"\nmatch = { login = [\"Robot\"] }\njudge = false\n\
         [[policy]]\nname = \"nearby\"\nmatch = { client = \"198.51.100.0/24\" }\nthresholds = { body = 9 }\n",
    );
    let socket = site.path("inside.sock");
    site.listen =
        format!("[\"inet:127.0.0.1:0\", {{ name = \"inside\", at = \"unix:{}\" }}]", socket.display());
    let daemon = site.start();
    assert!(daemon.address.starts_with("inet:127.0.0.1:"));
    assert_eq!(daemon.listener("inside"), format!("unix:{}", socket.display()));
    let mail = letter(&["x@box.test"], "a");
    assert_eq!(
        connect(&daemon.address).message(&mail).verdict(),
        "bulk; body=1; threshold=1; host=mx.test; policy=default"
    );
    let mut inside = connect(&daemon.listener("inside"));
    assert!(refused(&inside.message(&mail)));
    assert!(refused(&inside.message(&mail)), "a second one on the same connection");
    let mut robot = connect(&daemon.address);
    robot.login = Some("robot".to_owned());
    assert_eq!(robot.message(&mail).verdict(), "exempt; reason=policy; host=mx.test; policy=robots");
    let mut nearby = Client::open_at(&daemon.address);
    nearby.negotiate(6, ALL_ACTIONS, ALL_OPTIONS);
    nearby.client("client.example.org", "198.51.100.7");
    assert_eq!(nearby.message(&mail).verdict(), "clean; body=4; threshold=9; host=mx.test; policy=nearby");
    let listens = bulkmark_testing::status(&site)["listens"].clone();
    assert_eq!(listens, format!("{}, unix:{} (inside)", daemon.address, socket.display()));
    drop((inside, robot, nearby));
    assert!(daemon.terminate().success());
    assert!(!socket.exists(), "both listeners end");
}

/// A reload applies other policies, and an invalid one changes nothing.
#[test]
fn a_reload_takes_policies_or_names_the_place() {
    let mut site = site();
    let daemon = site.start();
    assert!(refused(&send(&daemon, &["x@strict.test"], "a")));
    let good = site.extra.clone();
    let file = site.path("milter.toml").display().to_string();
    for (wrong, told) in [
        (good.replace("judge = false", "judge = 0"), "policy[0].judge: found 0, expected true or false"),
        (good.replace("name = \"lists\"", "name = \"strict\""), "policy[2].name: found \"strict\" twice"),
        (
            good.replace("recipient = \"lists.test\"", "listener = \"x\""),
            "policy[1].match.listener: found \"x\"",
        ),
    ] {
        site.extra = wrong;
        site.config();
        let line = daemon.reload();
        assert!(line.contains(&format!("{file}:")) && line.contains(told), "{told}: {line}");
        assert!(refused(&send(&daemon, &["x@strict.test"], "a")));
    }
    site.extra = good.clone();
    site.config();
    fs::write(site.path("opt-out"), "anna@\nno address\n").unwrap();
    let line = daemon.reload();
    assert!(line.contains(&format!("{}:2: found \"no address\"", site.path("opt-out").display())), "{line}");
    fs::write(site.path("opt-out"), "x@\n").unwrap();
    assert!(daemon.reload().contains("read again"));
    assert_eq!(send(&daemon, &["x@strict.test"], "a").reply, "c");
    assert!(refused(&send(&daemon, &["y@strict.test"], "a")));
}

/// `check` and `explain` predict the milter's action.
#[test]
fn commands_answer_as_the_milter_would() {
    let mut site = site();
    site.extra = format!("exempt = [\"loopback\", \"authenticated\"]\n{}", site.extra);
    site.listen = "[\"inet:127.0.0.1:0\", { name = \"inside\", at = \"inet:127.0.0.1:0\" }]".to_owned();
    let daemon = site.start();
    let text = "From: a@sender.test\n\nThis is a message of many words, and it says: asked\n";
    fs::write(site.path("m.eml"), crlf(text)).unwrap();
    let ask = |command: &str, args: &[&str]| {
        let output = Command::new(program())
            .args([command, "--json", "--config"])
            .arg(site.path("milter.toml"))
            .args(args)
            .arg(site.path("m.eml"))
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let all = serde_json::from_slice::<Value>(&output.stdout).unwrap_or_default();
        (if command == "check" { all["messages"][0].clone() } else { all }, error)
    };
    // Seen once, so that it is bulk under the strict policy.
    let mail = Mail { recipients: vec!["x@else.test".to_owned()], ..Mail::raw(&crlf(text)) };
    assert_eq!(session(&daemon).message(&mail).reply, "c");
    for (recipients, verdict, action, policy) in [
        (&["x@strict.test"][..], "bulk", Some("reject"), "strict"),
        (&["x@else.test"], "clean", Some("mark"), "default"),
        (&["postmaster@strict.test"], "exempt", None, "must-accept"),
        (&["x@strict.test", "x@lists.test"], "bulk", Some("mark"), "strict"),
    ] {
        let args: Vec<&str> = recipients.iter().flat_map(|&recipient| ["--recipient", recipient]).collect();
        let (answer, error) = ask("check", &args);
        assert_eq!(answer["verdict"], verdict, "{recipients:?}: {answer} {error}");
        assert_eq!((answer["action"].as_str(), answer["policy"].as_str()), (action, Some(policy)));
        assert_eq!(ask("explain", &args).0["policy"], policy);
        let of_milter = session(&daemon).message(&Mail {
            recipients: recipients.iter().map(|&r| r.to_owned()).collect(),
            ..mail.clone()
        });
        assert_eq!(refused(&of_milter), action == Some("reject"), "{recipients:?}: {of_milter:?}");
    }
    let (answer, _) = ask("check", &["--recipient", "x@strict.test", "--recipient", "x@lists.test"]);
    assert_eq!(answer["milder"], "lists");
    let (answer, _) = ask("check", &["--recipient", "x@strict.test", "--sender", "a@wanted.test"]);
    assert_eq!(answer["verdict"], "whitelisted");
    let (answer, _) = ask("check", &["--recipient", "x@strict.test", "--login", "anna"]);
    assert_eq!(
        (answer["verdict"].as_str(), answer["reason"].as_str()),
        (Some("exempt"), Some("authenticated"))
    );
    let (_, error) = ask("check", &["--listener", "outside"]);
    assert!(error.contains("--listener: found \"outside\"") && error.contains("has: inside"), "{error}");
    assert_eq!(ask("check", &["--listener", "inside"]).0["policy"], "default");
}

/// The first block of docs/policies.md, unchanged but for the paths of its files.
#[test]
fn the_page_of_policies_does_what_it_says() {
    let page = text_of("docs/policies.md");
    let block = page.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0;
    let mut site = Site::new("");
    site.extra = block.replace("/etc/bulkmark", &site.directory.path().display().to_string());
    fs::write(site.path("opt-out"), "anna@strict.example.org\n").unwrap();
    fs::write(site.path("whitelist.strict"), "sender wanted.test\n").unwrap();
    let daemon = site.start();
    let all: Vec<String> = (0..20).map(|n| format!("user{n}@strict.example.org")).collect();
    let all: Vec<&str> = all.iter().map(|recipient| &**recipient).collect();
    let answers: Vec<Answer> = all.chunks(7).map(|some| send(&daemon, some, "a")).collect();
    let answer = answers.last().unwrap();
    assert!(answer.reply.starts_with("550 5.7.1 bulk mail refused, ask +1 555 0100 (id "), "{answer:?}");
    for (recipient, verdict) in [
        ("postmaster@strict.example.org", "exempt; reason=policy; host=mx.test; policy=must-accept"),
        ("Abuse@lists.example.org", "exempt; reason=policy; host=mx.test; policy=must-accept"),
        ("anna@strict.example.org", "exempt; reason=policy; host=mx.test; policy=opted-out"),
        ("all@lists.example.org", "clean; body=21; threshold=100; host=mx.test; policy=lists"),
        ("all@sub.lists.example.org", "clean; body=22; threshold=100; host=mx.test; policy=lists"),
        ("x@else.example.org", "bulk; body=23; threshold=20; host=mx.test; policy=default"),
    ] {
        let answer = send(&daemon, &[recipient], "a");
        assert_eq!((&*answer.reply, &*answer.verdict()), ("c", verdict), "{recipient}");
    }
    let wanted = Mail { sender: "news@wanted.test".to_owned(), ..letter(&["x@strict.example.org"], "a") };
    assert!(session(&daemon).message(&wanted).verdict().starts_with("whitelisted; body=24; "));
}
