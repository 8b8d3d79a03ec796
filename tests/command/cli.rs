// SPDX-License-Identifier: GPL-3.0-or-later
//! The commands' output and exit codes.

use bulkmark_ledger::FILE_NAME;
use bulkmark_testing::Site;
use bulkmark_testing::milter::{Client, Mail};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn bulkmark(args: &[&str]) -> Output {
    Command::new(bulkmark_testing::program()).args(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn mail(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mail").join(name)
}

fn with_input(args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(bulkmark_testing::program())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn signatures_are_tab_separated() {
    let (plain, thanks) = (mail("plain.eml"), mail("thanks.eml"));
    let output = bulkmark(&["signature", plain.to_str().unwrap(), thanks.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<Vec<_>> = text(&output.stdout).lines().map(|line| line.split('\t').collect()).collect();
    let kinds: Vec<_> = lines.iter().map(|line| line[1]).collect();
    assert_eq!(kinds, [&["body"][..], &["near"; 8], &["context", "none"]].concat());
    for line in &lines[..10] {
        assert_eq!((line.len(), line[0], line[2].len()), (3, plain.to_str().unwrap(), 32));
        assert!(line[2].bytes().all(|b| b.is_ascii_hexdigit()));
    }
    let reason = "low information: 1 distinct words and no attachment; 8 words are needed";
    assert_eq!(lines[10], [thanks.to_str().unwrap(), "none", reason]);

    let output = with_input(&["signature", "-"], &fs::read(&plain).unwrap());
    assert!(text(&output.stdout).starts_with(&format!("-\tbody\t{}\n", lines[0][2])));
}

/// An unreadable file affects its own line and the exit code, and not the lines of the others.
#[test]
fn signature_goes_on_after_an_error() {
    let output = bulkmark(&["signature", "/nowhere/a.eml", mail("plain.eml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "bulkmark: cannot read /nowhere/a.eml: No such file or directory (os error 2)\n"
    );
    assert_eq!(text(&output.stdout).lines().count(), 10);
    assert_eq!(bulkmark(&["signature"]).status.code(), Some(2), "a file must be named");
}

/// Another key gives other signatures, and so does `min-words` where it makes a message long enough.
#[test]
fn signature_obeys_the_configuration() {
    let site = Site::new("[signature]\nmin-words = 1\n[ledger]\nfederation-key-file = \"KEY\"\n");
    let key = site.path("key");
    fs::write(&key, "0123456789abcdef0123456789abcdef\n").unwrap();
    let site = Site { extra: site.extra.replace("KEY", key.to_str().unwrap()), ..site };
    let (config, plain, thanks) = (site.config(), mail("plain.eml"), mail("thanks.eml"));
    let args = [
        "signature",
        "--config",
        config.to_str().unwrap(),
        plain.to_str().unwrap(),
        thanks.to_str().unwrap(),
    ];
    let under_key = bulkmark(&args);
    assert_eq!(under_key.status.code(), Some(0));
    assert!(text(&under_key.stdout).lines().all(|line| !line.contains("\tnone\t")));
    let public = bulkmark(&["signature", plain.to_str().unwrap()]);
    assert_ne!(text(&under_key.stdout).lines().next(), text(&public.stdout).lines().next());
}

/// The answers are the same whether the milter runs or not, in both ways.
#[test]
fn check_tells_the_count() {
    let site = Site::new("[thresholds]\nbody = 3\n[whitelist]\nfiles = [\"LIST\"]\n");
    let list = site.path("list");
    fs::write(&list, "list-id offers.example.org\n").unwrap();
    let site = Site { extra: site.extra.replace("LIST", list.to_str().unwrap()), ..site };
    let read = |name: &str| fs::read(mail(name)).unwrap();
    let config = site.config();
    let human = |name: &str| {
        let output = bulkmark(&["check", "--config", config.to_str().unwrap(), mail(name).to_str().unwrap()]);
        (output.status.code().unwrap(), text(&[output.stdout, output.stderr].concat()).to_owned())
    };
    let daemon = site.start();
    let mut client = Client::connect(&daemon);
    client.client("client.example.org", "192.0.2.7");
    for _ in 0..3 {
        client.message(&Mail::raw(&read("plain.eml")));
        client.message(&Mail::raw(&read("newsletter-short.eml")));
    }
    client.message(&Mail::raw(&read("html.eml")));
    drop(client);
    let signature = "67f73a0c6d725050e580620057eb5897";
    let mut daemon = Some(daemon);
    for running in [true, false] {
        if !running {
            assert!(daemon.take().unwrap().terminate().success());
        }
        let (code, told) = site.check(&read("plain.eml"));
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            (code, &told["verdict"], &told["near"]["count"]),
            (1, &"bulk".into(), &3.into()),
            "{told}"
        );
        assert_eq!(told["near"]["signatures"].as_array().unwrap().len(), 8, "{told}");
        assert_eq!(told["body"], serde_json::json!({ "signature": signature, "count": 3, "threshold": 3 }));
        let (code, told) = human("plain.eml");
        let counts = format!("bulk\n  body signature {signature}: seen 3 times, threshold 3\n");
        assert!(code == 1 && told.contains(&counts), "{told}");
        let networks = "its own is not known (--ip): too few to do more than mark it (min-sources 3)\n";
        assert!(told.ends_with(&format!("  it came from 1 other network; {networks}")), "{told}");

        let (code, told) = site.check(&read("html.eml"));
        assert!(
            code == 0 && told.starts_with("{\"verdict\":\"clean\",") && told.contains("\"count\":1,"),
            "{told}"
        );
        let (code, told) = site.check(&read("newsletter-short.eml"));
        assert!(code == 0 && told.contains("\"verdict\":\"whitelisted\""), "{told}");
        assert!(told.contains(&format!("\"whitelist\":\"{}:1\"", list.display())), "{told}");
        let (code, told) = human("newsletter-short.eml");
        assert!(
            code == 0 && told.contains(&format!("  wanted by the white list entry {}:1\n", list.display())),
            "{told}"
        );
        let (code, told) = human("thanks.eml");
        assert!(code == 0 && told.contains(": exempt\n  low information: 1 distinct words"), "{told}");
        // A check is not a report.
        let (_, again) = site.check(&read("plain.eml"));
        assert!(again.contains("\"count\":3"), "{again}");
    }
    let output = with_input(&["check", "--config", config.to_str().unwrap()], &read("plain.eml"));
    assert!(output.status.code() == Some(1) && text(&output.stdout).starts_with("-: bulk\n"));
}

#[test]
fn check_fails_with_two() {
    let site = Site::new("");
    let (code, told) = site.check(&fs::read(mail("plain.eml")).unwrap());
    let ledger = site.path("state").join(FILE_NAME);
    let control = site.path("control.sock");
    let expected = format!(
        "bulkmark: no milter answers at {} (No such file or directory (os error 2)): cannot open the ledger {}: No such \
         file or directory (os error 2)\n",
        control.display(),
        ledger.display()
    );
    assert_eq!((code, told), (2, expected));
    assert!(!ledger.exists(), "asking makes no ledger");

    let config = site.config();
    let output = bulkmark(&["check", "--config", config.to_str().unwrap(), "/nowhere/a.eml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "bulkmark: cannot read /nowhere/a.eml: No such file or directory (os error 2)\n"
    );
    assert_eq!(bulkmark(&["check", "--config", "/nowhere/milter.toml"]).status.code(), Some(78));
}

#[test]
fn config_check_says_ok_or_ends_with_78() {
    let site = Site::new("");
    let config = site.config();
    let output = bulkmark(&["config", "check", config.to_str().unwrap()]);
    assert_eq!(
        (output.status.code(), text(&output.stdout)),
        (Some(0), &*format!("{}: ok\n", config.display()))
    );
    fs::write(&config, "nonsense").unwrap();
    let output = bulkmark(&["config", "check", config.to_str().unwrap()]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(78), ""));
    assert!(!output.stderr.is_empty());
}

/// The option of all other commands.
#[test]
fn config_commands_take_the_file_as_an_option_too() {
    let site = Site::new("");
    let config = site.config();
    let config = config.to_str().unwrap();
    for command in ["check", "show"] {
        let [plain, option] = [&[config][..], &["--config", config]].map(|file| {
            let output = bulkmark(&[&["config", command], file].concat());
            (output.status.code(), output.stdout)
        });
        assert!(plain.0 == Some(0) && plain == option, "{command}");
        assert_eq!(bulkmark(&["config", command, config, "--config", config]).status.code(), Some(2));
    }
}

/// Files of one call are answered together; the worst answer is the exit code, and an unreadable file affects only its own answer.
#[test]
fn check_takes_several_files() {
    let site = Site::new("[thresholds]\nbody = 1\nnear = 1\n");
    let daemon = site.start();
    let mut client = Client::connect(&daemon);
    client.client("client.example.org", "192.0.2.7");
    client.message(&Mail::raw(&fs::read(mail("plain.eml")).unwrap()));
    let (plain, thanks) = (mail("plain.eml"), mail("thanks.eml"));
    let (plain, thanks) = (plain.to_str().unwrap(), thanks.to_str().unwrap());
    let config = site.config();
    let run = |more: &[&str]| {
        let output = bulkmark(&[&["check", "--config", config.to_str().unwrap()], more].concat());
        (output.status.code().unwrap(), text(&output.stdout).to_owned())
    };
    let (code, told) = run(&[thanks, plain]);
    assert!(code == 1 && told.contains(&format!("{thanks}: exempt\n")), "{told}");
    assert!(told.contains(&format!("{plain}: bulk\n")), "{told}");
    assert_eq!(run(&[thanks]).0, 0);
    let (code, told) = run(&["--json", thanks, "/nowhere/a.eml", plain]);
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let all: Vec<_> =
        told["messages"].as_array().unwrap().iter().map(|of| [&of["file"], &of["verdict"]]).collect();
    assert_eq!((code, all), (2, vec![[&thanks.into(), &"exempt".into()], [&plain.into(), &"bulk".into()]]));
}

/// The output for people and for programs has the same values.
#[test]
fn json_has_the_values_that_people_get() {
    let server = bulkmark_testing::server::Server::new("");
    let of_server = server.config();
    let site = Site::new("[thresholds]\nbody = 3\n");
    let config = site.config();
    let (of_server, config) = (of_server.to_str().unwrap(), config.to_str().unwrap());
    let (plain, log) = (mail("plain.eml"), site.path("log"));
    fs::write(&log, "2026-11-22T10:00:00Z mx bulkmark[1]: warning: the disk is full\n").unwrap();
    let json = |words: &[&str]| -> serde_json::Value {
        let output = bulkmark(&[words, &["--json"]].concat());
        let value = serde_json::from_slice(&output.stdout);
        let value: serde_json::Value = value.unwrap_or_else(|e| panic!("{words:?}: {e}: {output:?}"));
        assert!(value.is_object(), "{words:?}: {value}");
        value
    };
    let added = json(&["client", "--config", of_server, "add", "--partner", "mx1"]);
    assert!(added["name"] == "mx1" && added["token"].as_str().unwrap().len() > 20, "{added}");
    let listed = json(&["client", "--config", of_server, "list"]);
    let expected = serde_json::json!({ "name": "mx1", "role": "report", "kind": "partner", "max-influence": 5, "quota": "6.25%", "rate": 1000, "expires": null, "registered": null });
    assert_eq!(listed["clients"][0], expected);
    assert_eq!(json(&["client", "--config", of_server, "set", "mx1", "--rate", "5"])["name"], "mx1");
    assert_eq!(json(&["client", "--config", of_server, "remove", "mx1"])["name"], "mx1");
    let signed = json(&["signature", plain.to_str().unwrap()]);
    assert_eq!(signed["messages"][0]["signatures"][0]["kind"], "body");
    let checked = json(&["config", "check", config]);
    assert_eq!((&checked["usable"], &checked["kind"]), (&true.into(), &"milter".into()), "{checked}");
    let day = json(&["digest", log.to_str().unwrap()]);
    assert_eq!(day["messages"], 0, "{day}");
    assert!(json(&["doctor", "--config", config])["checks"].as_array().unwrap().len() > 3);
    assert_eq!(json(&["doctor", "--config", "/nowhere/x.toml"])["worst"], "error");
}

/// The content shows which program a file belongs to; its name counts only if the content does not decide.
#[test]
fn a_file_is_known_by_its_content() {
    let site = Site::new("");
    for (name, content, kind) in [
        ("milter.toml", "listen = \"none\"\n[interfaces.dccifd]\nlisten = \"127.0.0.1:1\"\n", "interfaces"),
        ("interfaces.toml", "[interfaces.dccifd]\nlisten = \"127.0.0.1:1\"\n", "milter"),
        ("milter.toml", "anonymous-reading = true\n", "server"),
        ("server.toml", "[thresholds]\nbody = 3\n", "milter"),
        ("my-server.toml", "state-dir = \"/tmp\"\n", "server"),
        ("x.toml", "peer = []\n", "server"),
    ] {
        let file = site.path(name);
        fs::write(&file, content).unwrap();
        let output = bulkmark(&["config", "check", "--json", "--config", file.to_str().unwrap()]);
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        assert_eq!(told["kind"], kind, "{name}: {output:?}");
        let error = text(&bulkmark(&["status", "--config", file.to_str().unwrap()]).stderr).to_owned();
        assert!(error.starts_with(&format!("bulkmark: no {kind} ")), "{name}: {error}");
    }
    let file = site.path("milter.toml");
    fs::write(&file, "[thresholds]\nbody = \"many\"\n").unwrap();
    let output = bulkmark(&["config", "check", "--json", "--config", file.to_str().unwrap()]);
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert_eq!((&told["usable"], output.status.code()), (&false.into(), Some(78)), "{output:?}");
    assert!(told["error"].as_str().unwrap().contains("milter.toml:2:"), "{told}");
}

/// Monitoring reads one line and the code of its plugins; `--quiet` omits everything without a problem.
#[test]
fn doctor_speaks_to_monitoring() {
    let site = Site::new("");
    let config = site.config();
    let config = config.to_str().unwrap();
    let output = bulkmark(&["doctor", "--nagios", "--config", config]);
    let line = text(&output.stdout);
    assert!(output.status.code() == Some(2) && line.starts_with("BULKMARK CRITICAL - "), "{output:?}");
    assert!(line.lines().count() == 1 && line.contains("daemon: ") && line.contains(" | errors="), "{line}");
    let output = bulkmark(&["doctor", "--nagios", "--config", "/nowhere/milter.toml"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stdout).starts_with("BULKMARK UNKNOWN - configuration: "), "{output:?}");
    let quiet = bulkmark(&["doctor", "--quiet", "--config", config]);
    let quiet = text(&quiet.stdout);
    assert!(quiet.contains("error") && !quiet.lines().any(|line| line.starts_with("ok ")), "{quiet}");
}

/// A command accepts only the options that it uses.
#[test]
fn a_ledger_command_refuses_an_option_of_another() {
    for (command, option) in [
        (&["begin"][..], &["--token-file", "token"][..]),
        (&["backup", "copy.redb"], &["--threshold", "20"]),
        (&["verify", "a"], &["--threshold", "20"]),
        (&["merge", "a", "b", "--output", "c"], &["--control", "socket"]),
    ] {
        let output = bulkmark(&[&["ledger"], command, option].concat());
        assert!(text(&output.stderr).contains(&format!("unexpected argument '{}'", option[0])), "{output:?}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn help_tells_what_is_needed() {
    for (args, wanted) in [
        (
            &["--help"][..],
            &[
                "Daemons: milter",
                "Refused mail: refusals",
                "check",
                "signature",
                "config",
                "main.cf",
                "smtpd_milters",
                "bulkmark.toml(5)",
            ][..],
        ),
        (&["milter", "--help"], &["--config", "/etc/bulkmark/milter.toml", "SIGHUP", "SIGTERM", "78"]),
        (
            &["interfaces", "--help"],
            &["--config", "/etc/bulkmark/interfaces.toml", "SIGHUP", "SIGTERM", "78"],
        ),
        (&["check", "--help"], &["--config", "--json", "Exit code 0: not bulk", "standard input"]),
        (&["signature", "--help"], &["--config", "tabs", "none", "standard input"]),
        (&["config", "check", "--help"], &["/etc/bulkmark/milter.toml", "78"]),
    ] {
        let output = bulkmark(args);
        assert_eq!(output.status.code(), Some(0));
        // Lines are wrapped anywhere.
        let told = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        for word in wanted {
            assert!(told.contains(word), "{args:?} does not mention {word}: {told}");
        }
    }
    let output = bulkmark(&["--version"]);
    assert_eq!(text(&output.stdout), format!("bulkmark {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!(bulkmark(&["explode"]).status.code(), Some(2));
}
