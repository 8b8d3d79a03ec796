// SPDX-License-Identifier: GPL-3.0-or-later
//! The files of the packages agree with each other. `make package-test` tests their installation on a machine.

use bulkmark_testing::{skip, text_of};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// The packages have the version of the changelog, which is that of the program.
#[test]
fn the_packages_have_the_version_of_the_program() {
    let changelog = text_of("packaging/debian/changelog");
    let version = changelog.split(['(', ')']).nth(1).unwrap();
    assert_eq!(version.rsplit_once('-').unwrap().0, env!("CARGO_PKG_VERSION"));
}

/// The one address in packages is the variable `MAINTAINER`, which a release requires: no other is in their files, and no
/// impossible one.
#[test]
fn packages_have_the_maintainer_of_the_release_and_no_other() {
    for path in ["control", "changelog"].map(|name| format!("packaging/debian/{name}")) {
        let text = text_of(&path);
        assert!(text.contains("@MAINTAINER@") && !text.replace("@MAINTAINER@", "").contains('@'), "{path}");
    }
    for path in [
        "Cargo.toml",
        "SECURITY.md",
        "README.md",
        "packaging/debian/copyright",
        "packaging/rpm/bulkmark.spec.in",
    ] {
        assert!(!text_of(path).contains(".invalid"), "{path}");
    }
}

/// Each daemon has its own unit, configuration and package, by one list of daemons in each place.
#[test]
fn every_daemon_is_packaged() {
    let (control, spec) = (text_of("packaging/debian/control"), text_of("packaging/rpm/bulkmark.spec.in"));
    let (stage, deb, last) =
        (text_of("packaging/stage"), text_of("packaging/deb"), text_of("packaging/debian/last"));
    let install = text_of("packaging/install");
    for daemon in ["interfaces", "server"] {
        let (unit, name) = (format!("systemd/bulkmark-{daemon}.service"), format!("bulkmark-{daemon}"));
        assert!(text_of(&unit).contains(&format!("ExecStart=/usr/bin/bulkmark {daemon}\n")), "{unit}");
        assert!(text_of(&unit).contains(&format!("StateDirectory=bulkmark/{daemon}\n")), "{unit}");
        assert!(text_of(&format!("conf/{daemon}.toml")).contains(&format!("/etc/bulkmark/{daemon}.toml")));
        assert!(control.contains(&format!("Package: {name}\n")) && last.contains(&name), "{daemon}");
        for section in ["package", "files"] {
            assert!(spec.contains(&format!("\n%{section} {daemon}\n")), "{daemon}");
        }
        for script in ["post", "preun", "postun"] {
            let of = format!("\n%{script} {daemon}\n%include %{{staged}}/scripts/rpm/{daemon}/");
            assert!(spec.contains(&of), "{of}");
        }
        assert!(install.contains(&format!(" {daemon}.toml")), "{daemon}");
    }
    assert!(stage.contains("for daemon in milter interfaces server; do"), "{stage}");
    assert!(deb.contains("for part in milter common interfaces server; do"), "{deb}");
}

/// The installation of a package prints the line of README and manual.
#[test]
fn all_tell_the_same_line_for_postfix() {
    let line = |path: &str| {
        let text = text_of(path);
        let lines: Vec<_> =
            text.lines().map(str::trim).filter(|line| line.starts_with("smtpd_milters = ")).collect();
        assert_eq!(lines.len(), 1, "{path}: {lines:?}");
        lines[0].to_owned()
    };
    let expected = line("README.md");
    for path in [
        "packaging/debian/daemon/postinst",
        "packaging/rpm/daemon/post_install.sh",
        "man/bulkmark-milter.8",
        "src/command/cli.rs",
    ] {
        assert_eq!(line(path), expected, "{path}");
    }
}

/// An upgrade does not restart a daemon if the new program refuses its configuration, and reports it; a stopped daemon is started.
#[test]
fn an_upgrade_keeps_the_old_process_where_the_configuration_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let stub = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    };
    let script = concat!(
        include_str!("../../packaging/debian/usable"),
        "if may_restart bulkmark-milter.service /etc/bulkmark/milter.toml; then echo restarted; fi\nrestart_instances milter\n"
    );
    let run = |check: &str, is_active: &str| {
        stub("bulkmark", check);
        let of_units =
            "if [ \"$1\" = list-units ]; then echo bulkmark-milter@outbound.service loaded active; fi";
        let of_restart = "if [ \"$1\" = try-restart ]; then echo \"$2\" restarted >&2; fi";
        stub("systemctl", &format!("{of_units}\n{of_restart}\n[ \"$2\" != is-active ] || exit {is_active}"));
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        let output = Command::new("sh").args(["-e", "-c", script]).env("PATH", path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let restarted = ["restarted\n", "bulkmark-milter@outbound.service restarted\n"].map(str::to_owned);
    assert_eq!(run("exit 0", "0"), restarted);
    assert_eq!(run("exit 1", "0"), restarted, "what else went wrong is seen at the start");
    let [told, instances] = run("echo \"$3:1:1: nonsense: unknown key\" >&2; exit 78", "0");
    assert_eq!(instances, "");
    let expected = "bulkmark: this version cannot use /etc/bulkmark/milter.toml:\n    /etc/bulkmark/milter.toml:1:1: nonsense: unknown key\n\
                    bulkmark: the old process continues; correct this, or install the old version again, then: systemctl restart bulkmark-milter.service\n";
    assert!(told.starts_with(expected) && told.contains("/etc/bulkmark/outbound.toml:1:1: "), "{told}");
    assert_eq!(run("exit 78", "3"), restarted, "none runs");
}

/// Whether AppArmor accepts the profile; this does not need a kernel with AppArmor.
#[test]
fn the_profile_for_apparmor_is_valid() {
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/apparmor/bulkmark");
    match Command::new("apparmor_parser")
        .args(["--skip-kernel-load", "--skip-cache", "--quiet"])
        .arg(profile)
        .output()
    {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(e) if e.kind() == ErrorKind::NotFound => {
            skip("apparmor_parser is not installed");
        }
        Err(e) => panic!("apparmor_parser: {e}"),
    }
}

/// Workflows run actions by the hash of a commit: a tag can be moved to other code.
#[test]
fn actions_are_pinned() {
    for path in [".github/workflows/ci.yml", ".github/workflows/release.yml"] {
        for (_, action) in text_of(path).lines().filter_map(|line| line.split_once("uses: ")) {
            let hash = action.split(['@', ' ']).nth(1).unwrap_or_default();
            assert!(
                hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{path}: {action}"
            );
        }
    }
}
