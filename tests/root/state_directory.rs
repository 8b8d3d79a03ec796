// SPDX-License-Identifier: GPL-3.0-or-later
//! State directories belong to the daemon's user, whose account may be compromised. Root's actions there must not reach beyond it; and
//! nobody else can read its files, whatever the umask is.

use bulkmark_testing::letters::{letter, send};
use bulkmark_testing::server::Server;
use bulkmark_testing::{Site, program, skip};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// A user on every Debian system who is not root: here the daemon's.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        skip("only root can give directories to others");
    }
    is_root
}

/// Root's files, which planted links lead to.
struct Outside {
    directory: tempfile::TempDir,
}

impl Outside {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("shadow"), "root's own\n").unwrap();
        fs::write(directory.path().join("empty"), "").unwrap();
        fs::set_permissions(directory.path().join("shadow"), Permissions::from_mode(0o600)).unwrap();
        Self { directory }
    }

    /// Plants links with these names in the daemon's directory, which lead to `to`: an existing file, an empty one, or a missing one.
    fn plant(&self, state: &Path, names: &[&str], to: &str) {
        for name in names {
            let _ = fs::remove_file(state.join(name));
            symlink(self.directory.path().join(to), state.join(name)).unwrap();
        }
    }

    #[track_caller]
    fn is_untouched(&self, what: &str) {
        let mut names: Vec<_> =
            fs::read_dir(self.directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["empty", "shadow"], "{what}");
        for (name, text) in [("shadow", "root's own\n"), ("empty", "")] {
            let path = self.directory.path().join(name);
            let meta = fs::metadata(&path).unwrap();
            assert_eq!((meta.uid(), meta.gid()), (0, 0), "{what}: {name}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "{what}: {name}");
        }
    }
}

fn run(arguments: &[&str], config: &Path) -> Output {
    Command::new(program()).args(arguments).arg("--config").arg(config).output().unwrap()
}

#[test]
fn root_follows_no_link_to_the_clients() {
    if !is_root() {
        return;
    }
    let server = Server::new("");
    let (state, outside) = (server.site.path("state"), Outside::new());
    chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    for to in ["shadow", "empty", "missing"] {
        for name in ["clients.lock", "clients.new", "clients.json.new", "clients.json"] {
            outside.plant(&state, &[name], to);
            for arguments in [
                &["client", "add", "--own", "mx1"][..],
                &["client", "rotate", "mx1"],
                &["client", "remove", "mx1"],
            ] {
                let _ = run(arguments, &server.config());
                outside.is_untouched(&format!("{arguments:?}, {name} -> {to}"));
            }
            fs::remove_file(state.join(name)).unwrap_or_default();
        }
    }
    // A missing file is created, and belongs to the daemon.
    server.client(&["add", "--own", "mx1"]);
    for name in ["clients.json", "clients.lock"] {
        let meta = fs::metadata(state.join(name)).unwrap();
        assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (NOBODY, NOBODY, 0o600), "{name}");
    }
    // Nor does root follow a link to the directory itself.
    let inner = server.site.path("inner");
    fs::create_dir(&inner).unwrap();
    fs::rename(&state, server.site.path("aside")).unwrap();
    symlink(&inner, &state).unwrap();
    std::os::unix::fs::lchown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    let told = run(&["client", "add", "--own", "mx2"], &server.site.path("server.toml"));
    assert!(String::from_utf8_lossy(&told.stderr).contains("symbolic link of user 65534"), "{told:?}");
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 0);
}

#[test]
fn root_follows_no_link_to_the_ledger() {
    if !is_root() {
        return;
    }
    let (site, outside) = (Site::new("exempt = [\"authenticated\"]\n"), Outside::new());
    let (state, ledger) = (site.path("state"), site.path("state/ledger.redb"));
    let sound = ["one.redb", "two.redb"].map(|name| site.path(name));
    for path in &sound {
        let daemon = site.start();
        send(&daemon, &letter(1), 1);
        assert!(daemon.terminate().success());
        fs::rename(&ledger, path).unwrap();
    }
    chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    let config = site.config();
    let file = ledger.display().to_string();
    fs::write(site.path("a.eml"), letter(1)).unwrap();
    let message = site.path("a.eml").display().to_string();
    // A link to another, sound ledger, which could be opened and written.
    symlink(&sound[0], &ledger).unwrap();
    let before = fs::read(&sound[0]).unwrap();
    for arguments in [["check", &message], ["explain", &message]] {
        let told = run(&arguments, &config);
        assert!(String::from_utf8_lossy(&told.stderr).contains("symbolic link"), "{told:?}");
    }
    assert!(fs::read(&sound[0]).unwrap() == before, "it was written to");
    for to in ["shadow", "empty", "missing"] {
        outside.plant(&state, &["ledger.redb", "ledger.new", "ledger.redb.new", "canary"], to);
        for arguments in [&["check", &message][..], &["explain", &message], &["canary"], &["doctor"]] {
            let _ = run(arguments, &config);
            outside.is_untouched(&format!("{arguments:?} -> {to}"));
        }
        for arguments in [&["ledger", "info", &file][..], &["ledger", "verify", &file]] {
            assert!(!Command::new(program()).args(arguments).output().unwrap().status.success());
            outside.is_untouched(&format!("{arguments:?} -> {to}"));
        }
        // Merges into the daemon's directory, beside the links.
        fs::remove_file(&ledger).unwrap();
        let mut merge = Command::new(program());
        let merged =
            merge.args(["ledger", "merge"]).args(&sound).arg("--output").arg(&state).output().unwrap();
        assert!(merged.status.success(), "{merged:?}");
        outside.is_untouched(&format!("merge -> {to}"));
        let meta = fs::symlink_metadata(&ledger).unwrap();
        assert_eq!((meta.is_file(), meta.uid(), meta.mode() & 0o777), (true, NOBODY, 0o600));
    }
}

/// The units have UMask=0077; a daemon started without them is as safe.
#[test]
fn what_is_counted_is_nobody_elses_whatever_the_umask_is() {
    let site = Site::new("exempt = [\"authenticated\"]\n");
    let start = || {
        let mut shell = Command::new("sh");
        shell.args(["-c", "umask 0; exec \"$0\" \"$@\"", program(), "milter", "--config"]).arg(site.config());
        site.spawn_by(&mut shell).listening()
    };
    let modes = |state: &Path| -> Vec<(String, u32)> {
        let entry = |entry: fs::DirEntry| {
            (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().mode() & 0o777)
        };
        let mut all: Vec<_> = fs::read_dir(state).unwrap().map(|found| entry(found.unwrap())).collect();
        all.sort();
        all
    };
    let expected = [("canary", 0o640), ("correspondents.redb", 0o600), ("ledger.redb", 0o600)];
    let expected = expected.map(|(name, mode)| (name.to_owned(), mode));
    assert!(start().terminate().success());
    assert_eq!(modes(&site.path("state")), expected);
    // A file from an older version.
    fs::set_permissions(site.path("state/ledger.redb"), Permissions::from_mode(0o644)).unwrap();
    assert!(start().terminate().success());
    let now = modes(&site.path("state"));
    assert_eq!(now[2].1 & 0o007, 0, "{now:?}");
}
