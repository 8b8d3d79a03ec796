// SPDX-License-Identifier: GPL-3.0-or-later
//! Row 5, and file modes of row 13: access of the daemon's user and other users to root's files and to the ledger.

use super::{Outcome, Scale};
use bulkmark_testing::server::Server;
use bulkmark_testing::{Site, program};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

/// The user that the daemon runs as.
const NOBODY: u32 = 65_534;

/// The content of root's file.
const SECRET: &[u8] = b"a file of root's\n";

/// Files that root writes in the daemon's directory, where it might follow a link.
const NAMES: [&str; 5] = ["clients.new", "clients.lock", "clients.json", "clients.json.new", "ledger.new"];

pub(crate) fn links(_: Scale) -> Outcome {
    let owner = fs::metadata("/proc/self").unwrap().uid();
    if owner != 0 {
        return Outcome::skipped("only root gives files to others");
    }
    let mut harmed = Vec::new();
    for name in NAMES {
        let server = Server::new("");
        let (state, target) = (server.site.path("state"), server.site.path("of-root"));
        fs::write(&target, SECRET).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
        symlink(&target, state.join(name)).unwrap();
        lchown(state.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
        // Whether the command works or is refused, root's file must not change.
        for arguments in [&["add", "mx", "--own"][..], &["add", "mx"], &["rotate", "mx"], &["remove", "mx"]] {
            let mut command = Command::new(program());
            let _ =
                command.arg("client").args(arguments).arg("--config").arg(server.config()).output().unwrap();
        }
        let (meta, content) = (fs::metadata(&target).unwrap(), fs::read(&target).unwrap());
        if meta.uid() != 0 || meta.permissions().mode() & 0o777 != 0o600 || content != SECRET {
            harmed.push(format!("{name}: it belongs to {} and has {} bytes", meta.uid(), content.len()));
        }
    }
    let came = if harmed.is_empty() { "root's file is as it was".to_owned() } else { harmed.join("; ") };
    Outcome::new(
        format!(
            "the daemon's user links names in its directory to a file of root's, who runs bulkmark client ({} names)",
            NAMES.len()
        ),
        came,
        harmed.is_empty(),
    )
}

/// Finds the files below a directory that users other than owner and group can read.
fn readable(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let meta = entry.metadata().unwrap();
        if meta.is_dir() {
            readable(&entry.path(), found);
        } else if meta.is_file() && meta.permissions().mode() & 0o007 != 0 {
            found.push(format!("{} {:o}", entry.file_name().display(), meta.permissions().mode() & 0o777));
        }
    }
}

/// The modes of the files of daemons and of `make install`, without the unit's umask.
pub(crate) fn modes(_: Scale) -> Outcome {
    let mut found = Vec::new();
    let (site, server) = (Site::new(""), Server::new(""));
    let started = |command: &mut Command| {
        let daemon = site.spawn_by(command).listening();
        assert!(daemon.terminate().success());
    };
    let umask = |what: &str, config: &Path| {
        let mut command = Command::new("sh");
        command
            .args(["-c", "umask 022; exec \"$0\" \"$@\""])
            .arg(program())
            .args([what, "--config"])
            .arg(config);
        command
    };
    started(&mut umask("milter", &site.config()));
    started(&mut umask("server", &server.config()));
    server.client(&["list"]);
    readable(&site.path("state"), &mut found);
    readable(&server.site.path("state"), &mut found);
    let staged = site.path("staged");
    let variables = [format!("DESTDIR={}", staged.display()), format!("PROGRAM={}", program())];
    let made = Command::new("make")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["--no-print-directory", "install"])
        .args(variables)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    readable(&staged.join("etc/bulkmark"), &mut found);
    let came = if found.is_empty() { "only owner and group read them".to_owned() } else { found.join(", ") };
    Outcome::new(
        "others read the ledger, and what make install installed, under umask 022",
        came,
        found.is_empty(),
    )
}
