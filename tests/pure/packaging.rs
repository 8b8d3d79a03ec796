// SPDX-License-Identifier: GPL-3.0-or-later
//! What the packages say, in several places. What becomes of them on a machine, `make package-test` shows.

use bulkmark_testing::skip;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All packages are of one build and say so, each to its own package manager.
#[test]
fn the_packages_have_the_version_of_the_changelog() {
    let changelog = read("packaging/debian/changelog");
    let version = changelog.split(['(', ')']).nth(1).unwrap();
    let (program, revision) = version.rsplit_once('-').unwrap();
    assert_eq!(program, env!("CARGO_PKG_VERSION"));
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let metadata = &manifest["package"]["metadata"];
    assert_eq!(metadata["deb"]["revision"].as_str(), Some(revision));
    assert_eq!(metadata["generate-rpm"]["release"].as_str(), Some(revision));
    let depends = metadata["deb"]["depends"].as_str().unwrap();
    assert!(depends.contains(&format!("bulkmark-common (= {version})")), "{depends}");
    let requires = metadata["generate-rpm"]["requires"]["bulkmark-common"].as_str();
    assert_eq!(requires, Some(&*format!("= {version}")));
}

/// Each daemon has a unit, a configuration and a package of its own, by one list of daemons in each place.
#[test]
fn every_daemon_is_packaged() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let metadata = &manifest["package"]["metadata"];
    let (stage, makefile, last) = (read("packaging/stage"), read("Makefile"), read("packaging/debian/last"));
    for daemon in ["doors", "server"] {
        let (unit, name) = (format!("systemd/bulkmark-{daemon}.service"), format!("bulkmark-{daemon}"));
        assert!(read(&unit).contains(&format!("ExecStart=/usr/bin/bulkmark {daemon}\n")), "{unit}");
        assert!(read(&unit).contains(&format!("StateDirectory=bulkmark/{daemon}\n")), "{unit}");
        assert!(read(&format!("conf/{daemon}.toml")).contains(&format!("/etc/bulkmark/{daemon}.toml")));
        for (kind, scripts) in [("deb", "maintainer-scripts"), ("generate-rpm", "post_install_script")] {
            let variant = &metadata[kind]["variants"][daemon];
            assert!(variant[scripts].as_str().unwrap().contains(&format!("/{daemon}")), "{variant}");
        }
        assert_eq!(metadata["generate-rpm"]["variants"][daemon]["name"].as_str(), Some(&*name));
        assert!(makefile.contains(&format!("--variant={daemon}")) && last.contains(&name), "{daemon}");
        assert!(makefile.contains(&format!(" {daemon}.toml")), "{daemon}");
    }
    assert!(stage.contains("for daemon in milter doors server; do"), "{stage}");
}

/// Whoever installs a package is told the line that README and the manual tell.
#[test]
fn all_tell_the_same_line_for_postfix() {
    let line = |path: &str| {
        let text = read(path);
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

/// Whether AppArmor takes the profile; no kernel has to have AppArmor for that.
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
