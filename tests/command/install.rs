// SPDX-License-Identifier: GPL-3.0-or-later
//! `make install` gives files the same modes as the packages, whatever the umask is.

use bulkmark_testing::skip;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// Mode and group of each file, by its path.
fn installed(directory: &Path, group: &str) -> BTreeMap<String, (u32, u32)> {
    let script =
        "umask 077; exec make --no-print-directory install PROGRAM=/bin/true DESTDIR=\"$0\" GROUP=\"$1\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(directory)
        .arg(group)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let (mut found, mut open) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(&path).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                open.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(directory).unwrap().display().to_string();
                found.insert(name, (meta.mode() & 0o7777, meta.gid()));
            }
        }
    }
    found
}

#[test]
fn only_root_and_the_daemons_read_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let without = installed(directory.path(), "no-such-group-as-this");
    for (name, (mode, _)) in &without {
        let expected = match name {
            name if name.starts_with("etc/bulkmark/") => 0o600,
            name if name.ends_with("bin/bulkmark") || name.ends_with("/bulkmark-report") => 0o755,
            _ => 0o644,
        };
        assert_eq!(mode, &expected, "{name}");
    }
    for name in [
        "etc/bulkmark/milter.toml",
        "etc/systemd/system/bulkmark-milter.service",
        "etc/bulkmark/interfaces.toml",
        "etc/systemd/system/bulkmark-interfaces.service",
        "etc/systemd/system/bulkmark-milter-doctor.timer",
        "usr/share/bulkmark/rspamd/bulkmark.lua",
        "usr/share/bulkmark/spamassassin/Bulkmark.pm",
    ] {
        assert!(without.contains_key(name), "{without:?}");
    }
    // A second run changes none of the administrator's files.
    fs::write(directory.path().join("etc/bulkmark/milter.toml"), "# mine\n").unwrap();
    assert_eq!(installed(directory.path(), "nogroup"), without);
    assert_eq!(fs::read_to_string(directory.path().join("etc/bulkmark/milter.toml")).unwrap(), "# mine\n");
    if !rustix::process::geteuid().is_root() {
        skip("only root can give files to a group");
        return;
    }
    let other = tempfile::tempdir().unwrap();
    let with = installed(other.path(), "nogroup");
    assert_eq!(with["etc/bulkmark/server.toml"], (0o640, 65534));
}
