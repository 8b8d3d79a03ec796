// SPDX-License-Identifier: GPL-3.0-or-later
//! The files that the daemon needs: whether the daemon can use them, and no unauthorised user can.

use super::report::Report;
use crate::command::show::bytes;
use crate::config;
use crate::net::{Endpoint, TlsFiles};
use bulkmark_ledger::FILE_NAME;
use bulkmark_ledger::directory::{ENTER, Obstacle, READ, User, WRITE, open_regular};
use rustix::fs::StatVfsMountFlags;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

/// Less free space is an error, or a warning.
const SPACE_ERROR: u64 = 16 << 20;
const SPACE_WARNING: u64 = 256 << 20;

/// The advice without permission.
pub(super) const AS_ROOT: &str = "run it as root: sudo bulkmark doctor";

/// Whether this process may not read an existing file.
pub(super) fn is_forbidden(path: &Path) -> bool {
    open_regular(path).is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
}

/// Warns if this process sees less than it should.
pub(super) fn examine_self(user: &User, report: &mut Report) {
    let own = rustix::process::geteuid().as_raw();
    if own != 0 && own != user.uid {
        let (own, user) = (User::of(own).name, &user.name);
        report.warning(
            "doctor",
            format!("runs as {own}, which cannot see all files that {user} sees"),
            AS_ROOT,
        );
    }
}

/// Examines a file that the daemon reads; nobody else may read a secret.
pub(super) fn examine_file(check: &'static str, path: &Path, secret: bool, user: &User, report: &mut Report) {
    let (shown, name) = (path.display(), &user.name);
    let share = format!("chown root:{name} {shown} && chmod 0640 {shown}");
    match user.reach(path, READ) {
        Ok(()) => (),
        Err(Obstacle::Mode(at)) => {
            let at = at.display();
            return report.error(check, format!("{name} cannot read {shown} (mode of {at})"), share);
        }
        Err(Obstacle::Unknown(e)) => {
            let advice = match e.kind() {
                io::ErrorKind::PermissionDenied => AS_ROOT,
                _ => "correct its name in the configuration, or create it",
            };
            return report.error(check, format!("cannot use {shown}: {e}"), advice);
        }
    }
    let Ok(mode) = fs::metadata(path).map(|meta| meta.mode()) else { return };
    if mode & 0o002 != 0 {
        report.error(check, format!("everybody may write to {shown}"), format!("chmod o-w {shown}"));
    } else if secret && mode & 0o007 != 0 {
        report.error(check, format!("everybody may read {shown}, which is a secret"), share);
    } else if secret {
        report.ok(check, format!("{name} can read {shown}, and others only as its mode says"));
    } else {
        report.ok(check, format!("{name} can read {shown}"));
    }
}

/// Examines the state directory and the files in it.
pub(super) fn examine_state(directory: &Path, user: &User, report: &mut Report) {
    const CHECK: &str = "state directory";
    let (shown, name) = (directory.display(), &user.name);
    match user.reach(directory, READ | WRITE | ENTER) {
        Ok(()) => (),
        Err(Obstacle::Mode(at)) => {
            let advice = format!("chown {name} {shown} && chmod 0750 {shown}");
            let at = at.display();
            return report.error(CHECK, format!("{name} cannot write to {shown} (mode of {at})"), advice);
        }
        Err(Obstacle::Unknown(e)) => {
            let advice = match e.kind() {
                io::ErrorKind::NotFound => format!("install -d -o {name} -m 0750 {shown}"),
                _ => AS_ROOT.to_owned(),
            };
            return report.error(CHECK, format!("cannot use {shown}: {e}"), advice);
        }
    }
    let strangers = match strangers(directory, user) {
        Ok(strangers) => strangers,
        Err(e) => return report.error(CHECK, format!("cannot read {shown}: {e}"), AS_ROOT),
    };
    let mode = fs::metadata(directory).map(|meta| meta.mode()).unwrap_or_default();
    if !strangers.is_empty() {
        let files = strangers.join(", ");
        let advice = format!("chown -R {name}: {shown}");
        report.error(CHECK, format!("in {shown}, {name} does not own {files}"), advice);
    } else if mode & 0o002 != 0 {
        report.error(CHECK, format!("everybody may write to {shown}"), format!("chmod 0750 {shown}"));
    } else {
        report.ok(CHECK, format!("{name} can write to {shown}, and owns what is in it"));
    }
}

/// Returns the files of a directory with another owner.
fn strangers(directory: &Path, user: &User) -> io::Result<Vec<String>> {
    let mut strangers = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.metadata().is_ok_and(|meta| meta.uid() != user.uid) {
            strangers.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    strangers.sort();
    Ok(strangers)
}

/// Examines the disk of the state directory.
pub(super) fn examine_disk(directory: &Path, report: &mut Report) {
    const CHECK: &str = "disk";
    let shown = directory.display();
    // A missing directory was reported before.
    let Ok(stat) = rustix::fs::statvfs(directory) else { return };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let ledger = fs::metadata(directory.join(FILE_NAME)).map(|meta| meta.len()).unwrap_or_default();
    let text = format!("{} free below {shown}", bytes(free));
    if stat.f_flag.contains(StatVfsMountFlags::RDONLY) {
        report.error(
            CHECK,
            format!("the file system of {shown} is read-only"),
            "see dmesg; remount it read-write",
        );
    } else if free < SPACE_ERROR || stat.f_files > 0 && stat.f_favail == 0 {
        let inodes = if stat.f_files > 0 && stat.f_favail == 0 { ", and no inode" } else { "" };
        report.error(
            CHECK,
            format!("{text}{inodes}"),
            format!("free some space: df -h {shown}; df -i {shown}"),
        );
    } else if free < SPACE_WARNING.max(ledger) {
        let advice = format!("free some space; the ledger has {} and grows with its windows", bytes(ledger));
        report.warning(CHECK, text, advice);
    } else {
        report.ok(CHECK, text);
    }
}

const CERTIFICATE: &str = "certificate";

/// Examines a server's certificate and key: whether they match, and whether clients will accept them.
pub(super) fn examine_certificates(tls: &TlsFiles, listen: &Endpoint, user: &User, report: &mut Report) {
    examine_file(CERTIFICATE, &tls.cert, false, user, report);
    examine_file(CERTIFICATE, &tls.key, true, user, report);
    let tested = match config::test_certificates(tls, listen, SystemTime::now()) {
        Ok(tested) => tested,
        Err(e) => {
            let advice =
                "put the certificate and its key there, as PEM; the server does not start with these";
            return report.error(CERTIFICATE, e, advice);
        }
    };
    const ADVICE: &str = "get a new one, put it there, and systemctl reload bulkmark-server";
    for doubt in &tested.doubts {
        match doubt.is_fatal {
            true => report.error(CERTIFICATE, &doubt.problem, ADVICE),
            false => report.warning(CERTIFICATE, &doubt.problem, ADVICE),
        }
    }
    if let ([], Some(first)) = (&*tested.doubts, tested.certificates.first()) {
        report.ok(CERTIFICATE, format!("it is for {}, until {}", first.names.join(", "), first.last_day()));
    }
}
