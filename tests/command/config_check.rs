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
            "warning: milter.d/10-counts.toml:7:14: upstream[1].token-file: DIR/empty is empty, expected the token that \
         bulkmark client add printed",
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
    assert!(told[0].starts_with("bulkmark: inbound.toml:3:1: on-failure: unknown key"), "{told:?}");
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
