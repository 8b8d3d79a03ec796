// SPDX-License-Identifier: GPL-3.0-or-later
//! `bulkmark config check`: settings that are valid but cannot work are reported before they fail, for milters and servers.

use bulkmark_testing::authority::{Authority, tls_server};
use bulkmark_testing::server::Server;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Exit code, standard output, and of standard error the first lines of warnings, with `DIR` for the directory.
fn check(directory: &Path, args: &[&str]) -> (i32, String, Vec<String>) {
    let mut command = Command::new(bulkmark_testing::program());
    let output = command.args(["config", "check"]).args(args).current_dir(directory).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(directory.to_str().unwrap(), "DIR");
    let error = text(output.stderr);
    let lines = error.lines().filter(|line| !line.starts_with(' ')).map(str::to_owned).collect();
    (output.status.code().unwrap(), text(output.stdout), lines)
}

/// A directory with these files; `DIR` in them is its path.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("state")).unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = text.replace("DIR", directory.path().to_str().unwrap());
        fs::write(path, text).unwrap();
    }
    directory
}

const PLACES: &str = "control = \"DIR/control.sock\"\nstate-dir = \"DIR/state\"\n";

#[test]
fn a_milters_doubts_are_told_with_their_places() {
    let directory = directory(&[
        ("milter.toml", &format!("{PLACES}exempt-networks = [\"198.51.100.0/24\", \"192.0.2.7/24\"]\n")),
        (
            "milter.d/10-counts.toml",
            "[[upstream]]\nurl = \"http://counts.example.org:8721\"\ntoken-file = \"DIR/none\"\nplain-http-anywhere = true\n\
             [[upstream]]\nurl = \"http://127.0.0.1:8721\"\ntoken-file = \"DIR/empty\"\nca-file = \"DIR/empty\"\n\
             [[upstream]]\nurl = \"http://[::1]\"\n[[upstream]]\nurl = \"http://localhost:1/\"\n",
        ),
        ("milter.d/20-lists.toml", "whitelist.files = [\"DIR/list\"]\nsync.private = [\"private\"]\n"),
        ("private", ""),
        ("list", "from news@example.org\nhost *.example.org\ninclude more\n"),
        ("more", "sender \"a@example.org\"\n"),
        ("empty", "\n"),
    ]);
    let (code, told, warnings) = check(directory.path(), &["milter.toml"]);
    assert_eq!((code, &*told), (0, "milter.toml: ok, with 8 warnings\n"), "{warnings:#?}");
    let star =
        "host *.example.org can never match: there is no *; write .example.org for all below example.org";
    let quotes =
        "sender \"a@example.org\" can never match: quotes are taken as a part of it; write it without them";
    assert_eq!(
        warnings,
        [
            "warning: milter.toml:3:39: exempt-networks[1]: 192.0.2.7/24 has bits of a host, and is taken as 192.0.2.0/24",
            "warning: milter.d/10-counts.toml:2:7: upstream[0].url: http:// sends the token and all counts so that anybody \
         on the way to counts.example.org can read them; use https://",
            "warning: milter.d/10-counts.toml:3:14: upstream[0].token-file: cannot read DIR/none: No such file or directory \
         (os error 2)",
            "warning: milter.d/10-counts.toml:7:14: upstream[1].token-file: DIR/empty is empty, expected the one that \
         bulkmark client add printed: bulkmark_ and 64 digits",
            "warning: milter.d/10-counts.toml:8:11: upstream[1].ca-file: DIR/empty: found no certificate in PEM, expected \
         \"-----BEGIN CERTIFICATE-----\"",
            &format!("warning: DIR/list:2: {star}"),
            &format!("warning: DIR/more:1: {quotes}"),
            "warning: milter.d/20-lists.toml:2:17: sync.private[0]: private is looked for below the directory that the daemon \
             is started in; write all of its path",
        ]
    );
    assert_eq!(check(directory.path(), &["--strict", "milter.toml"]).0, 78);
    assert_eq!(
        check(directory.path(), &["milter.d/20-lists.toml"]).0,
        0,
        "a piece is a configuration, too, and has none of the others"
    );
}

/// A site with an outbound rule needs own-domains, whose mail should not be reported; and newcomers with much weight each but a low common
/// bound cause a warning.
#[test]
fn reports_are_checked() {
    let of = |text: &str| {
        let directory = directory(&[("milter.toml", &format!("{PLACES}{text}"))]);
        check(directory.path(), &["milter.toml"])
    };
    let outbound = "[outbound]\nmatch = { client = \"192.0.2.10\" }\n";
    let (code, _, warnings) = of(outbound);
    let own = "milter.toml: user-reports.own-domains: empty, though [outbound] says what mail is your own";
    assert!(code == 0 && warnings.len() == 1 && warnings[0].contains(own), "{warnings:#?}");
    let (_, told, warnings) = of(&format!("{outbound}[user-reports]\nown-domains = [\"example.org\"]\n"));
    assert!(warnings.is_empty(), "{told}{warnings:#?}");
    let (_, _, warnings) = of("[user-reports]\ntrust = { new-reporter = 1.0 }\n");
    let bound = "user-reports.trust: max-newcomers is 1, so once ten users are trusted all others weigh no more together, though new-reporter gives each of them 1,";
    assert!(warnings.len() == 1 && warnings[0].contains(bound), "{warnings:#?}");
    for well in
        ["trust = { new-reporter = 1.0, max-newcomers = 1000.0 }\n", "trust = { new-reporter = 0.5 }\n"]
    {
        let (_, _, warnings) = of(&format!("[user-reports]\n{well}"));
        assert!(warnings.is_empty(), "{warnings:#?}");
    }
}

/// A daemon does not start without its directories, and not with the ledger of another daemon.
#[test]
fn a_daemon_that_will_not_start_is_told() {
    let of = |name: &str, text: &str| {
        let directory = directory(&[(name, text)]);
        check(directory.path(), &[name])
    };
    let refused = |name: &str, text: &str, expected: &str| {
        let (code, told, errors) = of(name, text);
        assert_eq!((code, &*told), (78, ""), "{errors:#?}");
        assert_eq!(errors, [format!("bulkmark: {name}:{expected}")], "{text}");
    };
    let missing = "the daemon will not start: the directory DIR/none is missing";
    let state = "control = \"DIR/c\"\nstate-dir = \"DIR/none\"\n";
    refused("milter.toml", state, &format!("2:13: state-dir: {missing}"));
    refused("server.toml", state, &format!("2:13: state-dir: {missing}"));
    let control = "control = \"DIR/none/two/c\"\nstate-dir = \"DIR/state\"\n";
    refused("milter.toml", control, &format!("1:11: control: {missing}"));
    let listen = format!("{PLACES}listen = \"unix:DIR/none/m.sock\"\n");
    refused("milter.toml", &listen, &format!("3:10: listen: {missing}"));
    let named = format!("{PLACES}[listen.out]\nat = \"unix:DIR/none/m.sock\"\n");
    refused("milter.toml", &named, &format!("4:6: listen.out.at: {missing}"));
    let plain = "plain HTTP is for loopback addresses and Unix sockets only: set [tls], or plain-http-anywhere = true where \
                 something else encrypts";
    for listen in ["0.0.0.0:8721", "[::]:8721", "192.0.2.1:8721"] {
        let text = format!("listen = \"{listen}\"\n{PLACES}");
        refused("server.toml", &text, &format!("1:10: listen: found \"{listen}\", but {plain}"));
        assert_eq!(of("server.toml", &format!("plain-http-anywhere = true\n{text}")).0, 0);
    }
    // Other listeners are left out, and systemd makes these directories.
    let dccifd = format!("{PLACES}[interfaces.dccifd]\nlisten = \"unix:DIR/none/d.sock\"\n");
    let (code, _, warnings) = of("milter.toml", &dccifd);
    let expected = "warning: milter.toml:4:10: interfaces.dccifd.listen: nothing will listen there: the directory DIR/none is missing";
    assert_eq!((code, warnings), (0, vec![expected.to_owned()]));
    let packaged = "control = \"/run/bulkmark/x/c\"\nstate-dir = \"/var/lib/bulkmark/x\"\nlisten = \"unix:/run/bulkmark/m\"\n";
    assert_eq!(of("milter.toml", packaged).0, 0);
    let (_, _, warnings) = of("milter.toml", "control = \"c\"\nstate-dir = \"state\"\n");
    assert_eq!(warnings.len(), 2);
    assert!(warnings[1].ends_with("write all of its path"), "{warnings:#?}");
    let broken = directory(&[("milter.toml", PLACES), ("state/ledger.redb", "no ledger")]);
    let (code, told, errors) = check(broken.path(), &["milter.toml"]);
    assert_eq!((code, &*told), (78, ""));
    let start =
        "bulkmark: milter.toml: the daemon will not start: the ledger DIR/state/ledger.redb is damaged";
    assert!(errors[0].starts_with(start), "{errors:#?}");
}

/// Policies after one that fits all mail, rehearsals of nothing, and relays that are anybody.
#[test]
fn settings_without_effect_are_told() {
    let of = |text: &str| {
        let directory = directory(&[("milter.toml", &format!("{PLACES}{text}"))]);
        check(directory.path(), &["milter.toml"]).2
    };
    let reject = "[actions]\nbulk = \"reject\"\n";
    let policies = "[[policy]]\nname = \"a\"\nmatch = { recipient = \"a.test\" }\n\
                    [[policy]]\nname = \"b\"\nmatch = { recipient = \"a.test\" }\n\
                    [[policy]]\nname = \"all\"\n[[policy]]\nname = \"c\"\nmatch = { client = \"192.0.2.1\" }\n";
    assert_eq!(
        of(policies),
        [
            "warning: milter.toml:7:8: policy[1].name: the policy b is never reached: a before it, milter.toml:4, has the same match",
            "warning: milter.toml:12:8: policy[3].name: the policy c is never reached: all before it, milter.toml:10, fits all mail",
        ]
    );
    let idle = "without effect: bulk, near and spam are all \"mark\"";
    assert_eq!(
        of("[actions]\nrehearse = true\n"),
        [format!("warning: milter.toml:4:12: actions.rehearse: {idle}")]
    );
    let policy = "[[policy]]\nname = \"a\"\nmatch = { recipient = \"a.test\" }\n";
    let own = format!("{policy}actions = {{ rehearse = true }}\n");
    assert_eq!(of(&own), [format!("warning: milter.toml:6:24: policy[0].actions.rehearse: {idle}")]);
    for well in [
        format!("{reject}{own}"),
        format!("{reject}rehearse = {{ recipients = 0.5 }}\n"),
        format!("{reject}rehearse = {{ until = \"2999-01-01\" }}\n"),
        format!("[actions]\nrehearse = true\n{policy}actions = {{ bulk = \"reject\" }}\n"),
    ] {
        assert_eq!(of(&well), [""; 0], "{well}");
    }
    assert_eq!(
        of(&format!("{reject}rehearse = {{ until = \"2020-01-01\" }}\n")),
        [
            "warning: milter.toml:5:12: actions.rehearse: this time has passed, so the actions are taken; remove rehearse"
        ]
    );
    let anybody = "has all clients, so anybody can write which client sent a message; name your own relays";
    assert_eq!(
        of("relays = [\"192.0.2.1\", \"0.0.0.0/0\"]\n"),
        [format!("warning: milter.toml:3:24: relays[1]: 0.0.0.0/0 {anybody}")]
    );
}

/// A file with anything else than a token; that of the interfaces is the administrator's choice.
#[test]
fn a_token_has_its_form() {
    let text = format!(
        "{PLACES}[[upstream]]\nurl = \"http://127.0.0.1:8721\"\ntoken-file = \"DIR/token\"\n\
         [interfaces.http]\nlisten = \"127.0.0.1:0\"\ntoken-file = \"DIR/own\"\n"
    );
    let of = |token: &str| {
        let directory = directory(&[("milter.toml", &text), ("token", token), ("own", "0123456789abcdef\n")]);
        check(directory.path(), &["milter.toml"]).2
    };
    assert_eq!(of(&format!("bulkmark_{}\n", "0f".repeat(32))), [""; 0]);
    let digits = "0".repeat(64);
    for bad in ["two words\n", "bulkmark_xyz", &digits] {
        let told = of(bad);
        assert!(told.len() == 1 && told[0].contains("DIR/token has no token, expected the one"), "{told:?}");
    }
}

/// Owner, groups and mode of a file and of the directories above it.
#[test]
fn what_the_daemons_user_cannot_read_is_told() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    const NOBODY: u32 = 65_534;
    let directory = directory(&[
        ("milter.toml", &format!("{PLACES}ledger.federation-key-file = \"DIR/secret/key\"\n")),
        ("milter.d/list.toml", "whitelist.files = [\"DIR/list\"]\n"),
        ("list", "include more\n"),
        ("more", "from a@example.org\n"),
        ("secret/key", "0123456789abcdef"),
    ]);
    let path = |name: &str| directory.path().join(name);
    if chown(path("state"), Some(NOBODY), None).is_err() {
        bulkmark_testing::skip("only root can give files to others");
        return;
    }
    let modes = |modes: &[(&str, u32)]| {
        for &(name, mode) in modes {
            fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    modes(&[("", 0o755), ("milter.d", 0o755), ("milter.toml", 0o644), ("list", 0o644)]);
    modes(&[("milter.d/list.toml", 0o640), ("more", 0o600), ("secret", 0o700), ("secret/key", 0o644)]);
    let config = path("milter.toml");
    let (code, told, warnings) = check(directory.path(), &[config.to_str().unwrap()]);
    assert_eq!((code, &*told), (0, "DIR/milter.toml: ok, with 3 warnings\n"), "{warnings:#?}");
    let who = "the daemon's user nobody cannot read";
    assert_eq!(
        warnings,
        [
            format!("warning: DIR/milter.d/list.toml: {who} DIR/milter.d/list.toml"),
            format!(
                "warning: DIR/milter.toml:3:30: ledger.federation-key-file: {who} DIR/secret/key, because of the mode of \
             DIR/secret"
            ),
            format!("warning: DIR/more: {who} DIR/more"),
        ]
    );
    modes(&[("milter.d", 0o711), ("milter.d/list.toml", 0o644), ("more", 0o644), ("secret", 0o755)]);
    let (_, _, warnings) = check(directory.path(), &[config.to_str().unwrap()]);
    assert_eq!(warnings, [format!("warning: DIR/milter.d: {who} DIR/milter.d")]);
    modes(&[("milter.d", 0o755)]);
    let (code, told, _) = check(directory.path(), &[config.to_str().unwrap()]);
    assert_eq!((code, &*told), (0, "DIR/milter.toml: ok\n"));
}

/// The program of a file: by the option, by its name, by its content.
#[test]
fn a_servers_file_is_known() {
    let of_server = format!("{PLACES}anonymous-reading = true\n");
    let directory = directory(&[
        ("server.toml", &of_server),
        ("counts.toml", &of_server),
        ("inbound.toml", &format!("{PLACES}on-failure = \"tempfail\"\n")),
        ("both.toml", PLACES),
        ("mailserver.toml", &format!("{PLACES}on-failure = \"tempfail\"\n")),
        ("server.d/x.toml", "thresholds.body = 5\n"),
    ]);
    let (code, _, told) = check(directory.path(), &["server.toml"]);
    assert_eq!(code, 78, "{told:?}");
    assert!(
        told[0]
            .starts_with("bulkmark: server.d/x.toml:1:1: thresholds: unknown key, expected one of listen, ")
    );
    fs::remove_dir_all(directory.path().join("server.d")).unwrap();
    for args in [
        &["server.toml"][..],
        &["counts.toml"],
        &["inbound.toml"],
        &["both.toml"],
        &["mailserver.toml"],
        &["--server", "both.toml"],
        &["--server", "counts.toml"],
    ] {
        let (code, told, warnings) = check(directory.path(), args);
        assert_eq!(
            (code, told, warnings),
            (0, format!("{}: ok\n", args.last().unwrap()), vec![]),
            "{args:?}"
        );
    }
    let (code, _, told) = check(directory.path(), &["--server", "inbound.toml"]);
    assert_eq!(code, 78);
    let other = "bulkmark: inbound.toml: found the configuration of bulkmark milter, expected that of bulkmark server";
    assert_eq!(told, [other]);
    // Without a key that only one of them has, the form of `listen` decides, unless the name does.
    for (name, listen, code) in [
        ("es.toml", "127.0.0.1:8721", 0),
        ("es.toml", "inet:127.0.0.1:8720", 0),
        ("milter.toml", "127.0.0.1:8720", 78),
        ("server.toml", "inet:127.0.0.1:8721", 78),
    ] {
        fs::write(directory.path().join(name), format!("listen = \"{listen}\"\n")).unwrap();
        assert_eq!(check(directory.path(), &[name]).0, code, "{name} {listen}");
    }
    let run = |args: &[&str]| {
        let mut command = Command::new(bulkmark_testing::program());
        let output = command.args(args).current_dir(directory.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let expected = "found the configuration of bulkmark server, expected that of bulkmark milter";
    let (code, told) = run(&["refusals", "--config", "counts.toml"]);
    assert_eq!((code, told), (Some(78), format!("bulkmark: counts.toml: {expected}\n")));
}

/// The messages about a server's certificate, from its check and from `doctor --server`.
fn of_certificate(server: &Server) -> (i32, Vec<String>, Vec<String>) {
    let config = server.config();
    let (code, _, told) = check(server.site.directory.path(), &[config.to_str().unwrap()]);
    let mut doctor = Command::new(bulkmark_testing::program());
    let output = doctor.args(["doctor", "--server", "--json", "--config"]).arg(&config).output().unwrap();
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found =
        findings["checks"].as_array().unwrap().iter().filter(|finding| finding["check"] == "certificate");
    let found = found.map(|finding| {
        let text = finding["text"].as_str().unwrap();
        format!("{}: {text}", finding["level"].as_str().unwrap())
    });
    let found = found.filter(|line| !line.contains(" can read ") && !line.contains(" may read ")).collect();
    (code, told, found)
}

#[test]
fn certificates_are_looked_at() {
    let (mut server, authority) = (tls_server(), Authority::new("test"));
    let told_of = |server: &Server, code: i32, expected: &str, level: &str| {
        let (found, told, doctor) = of_certificate(server);
        assert_eq!(found, code, "{told:?}");
        assert!(told.len() == 1 && told[0].contains(expected), "{told:?}");
        let of_doctor = doctor.iter().any(|line| line.starts_with(level) && line.contains(expected));
        assert!(of_doctor, "{doctor:?}");
    };
    authority.certify(&server, "127.0.0.1", false);
    let (code, told, doctor) = of_certificate(&server);
    assert_eq!((code, told), (0, vec![]));
    assert!(doctor[0].starts_with("ok: it is for 127.0.0.1, until 4096-01-01"), "{doctor:?}");

    authority.certify(&server, "127.0.0.1", true);
    told_of(&server, 0, "the certificate expired on 2020-02-01", "error");
    let listen = std::mem::replace(&mut server.listen, "counts.example.org:8721".to_owned());
    authority.certify(&server, "mail.example.org", false);
    told_of(&server, 0, "the certificate is for mail.example.org, and not for counts.example.org", "warning");
    server.listen = listen;

    // As `openssl req -x509` makes it.
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let (cert, of_key) = (server.site.path("cert.pem"), server.site.path("key.pem"));
    fs::write(&cert, params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&of_key, key.serialize_pem()).unwrap();
    told_of(&server, 0, "the certificate is that of an authority", "error");

    // With these it does not start.
    fs::write(&of_key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
    told_of(&server, 78, "cannot be used: ", "error");
    fs::write(&cert, "broken").unwrap();
    told_of(&server, 78, "found no certificate in PEM", "error");
    fs::remove_file(&cert).unwrap();
    told_of(&server, 78, "No such file or directory", "error");
}
