// SPDX-License-Identifier: GPL-3.0-or-later
//! What the packages say, in several places. What becomes of them on a machine, `make package-test` shows.

use std::fs;
use std::path::Path;

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn the_changelog_of_debian_has_this_version() {
    let changelog = read("packaging/debian/changelog");
    let version = changelog.split(['(', ')']).nth(1).unwrap();
    assert_eq!(version.rsplit_once('-').unwrap().0, env!("CARGO_PKG_VERSION"));
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
        "packaging/debian/postinst",
        "packaging/rpm/post_install.sh",
        "man/bulkmark-milter.8",
        "src/command/cli.rs",
    ] {
        assert_eq!(line(path), expected, "{path}");
    }
}
