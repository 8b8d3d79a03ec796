// SPDX-License-Identifier: GPL-3.0-or-later
//! Access to files by owner, group and mode.

use rustix::fs::Access;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Kinds of access, as bits of a file's mode: to read it,
pub const READ: u32 = 4;
/// to write to it,
pub const WRITE: u32 = 2;
/// to enter a directory.
pub const ENTER: u32 = 1;

/// The user of daemons that were installed from a package.
const PACKAGED: &str = "bulkmark";

/// A user of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The number.
    pub uid: u32,
    /// The name, or the number if there is none.
    pub name: String,
    groups: Vec<u32>,
}

/// The reason why a user has no access.
#[derive(Debug)]
pub enum Obstacle {
    /// The mode of this file or directory.
    Mode(PathBuf),
    /// The file or directory cannot be examined.
    Unknown(io::Error),
}

impl User {
    /// Returns the user with this number. Users that are not in this machine's files have no groups.
    #[must_use]
    pub fn of(uid: u32) -> Self {
        Self::find(|_, number| number == uid).unwrap_or_else(|| Self {
            uid,
            name: uid.to_string(),
            groups: Vec::new(),
        })
    }

    /// Returns the user with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::find(|other, _| other == name)
    }

    /// Returns the user of a daemon: the owner of its control socket; if it does not run, the packages' user for a packaged
    /// configuration, and otherwise the owner of the state directory.
    #[must_use]
    pub fn of_daemon(control: &Path, state_dir: &Path, packaged: bool) -> Self {
        let owner = |path: &Path| fs::metadata(path).ok().map(|meta| meta.uid());
        if let Some(uid) = owner(control) {
            return Self::of(uid);
        }
        let packaged = if packaged { Self::named(PACKAGED) } else { None };
        packaged.unwrap_or_else(|| Self::of(owner(state_dir).unwrap_or_default()))
    }

    fn find(wanted: impl Fn(&str, u32) -> bool) -> Option<Self> {
        let passwd = fs::read_to_string("/etc/passwd").ok()?;
        let entry = |line: &str| {
            let mut fields = line.split(':');
            let (name, number) = (fields.next()?, fields.nth(1)?);
            Some((name.to_owned(), number.parse().ok()?, fields.next()?.parse().ok()?))
        };
        let (name, uid, group): (String, u32, u32) =
            passwd.lines().filter_map(entry).find(|(name, uid, _)| wanted(name, *uid))?;
        let member = |line: &str| {
            let mut fields = line.split(':');
            let number = fields.nth(2)?.parse().ok()?;
            fields.next()?.split(',').any(|member| member == name).then_some(number)
        };
        let others = fs::read_to_string("/etc/group").unwrap_or_default();
        let groups = others.lines().filter_map(member).chain([group]).collect();
        Some(Self { uid, name, groups })
    }

    /// Checks whether the user can reach a file and has the access `wanted`.
    ///
    /// # Errors
    /// The obstacle.
    pub fn reach(&self, path: &Path, wanted: u32) -> Result<(), Obstacle> {
        // For its own user a process asks the kernel, which also knows access lists, and groups that are not seen in a container.
        let is_self = rustix::process::geteuid().as_raw() == self.uid;
        if is_self && rustix::fs::access(path, Access::from_bits_truncate(wanted)).is_ok() {
            return Ok(());
        }
        let path = fs::canonicalize(path).map_err(Obstacle::Unknown)?;
        let above: Vec<_> = path.ancestors().skip(1).collect();
        for (path, wanted) in above.into_iter().rev().map(|path| (path, ENTER)).chain([(&*path, wanted)]) {
            let meta = fs::metadata(path).map_err(Obstacle::Unknown)?;
            let shift = if meta.uid() == self.uid {
                6
            } else if self.groups.contains(&meta.gid()) {
                3
            } else {
                0
            };
            if self.uid != 0 && meta.mode() >> shift & wanted != wanted {
                return Err(Obstacle::Mode(path.to_owned()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn modes_are_read_from_the_top() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let stranger = User { uid: 4_000_000, name: String::new(), groups: Vec::new() };
        let friend = User { groups: vec![fs::metadata(&file).unwrap().gid()], ..stranger.clone() };
        set(directory.path(), 0o755);
        set(&file, 0o640);
        assert!(friend.reach(&file, READ).is_ok());
        assert!(matches!(friend.reach(&file, READ | WRITE), Err(Obstacle::Mode(at)) if at == file));
        assert!(stranger.reach(&file, READ).is_err());
        set(&file, 0o604);
        assert!(stranger.reach(&file, READ).is_ok() && friend.reach(&file, READ).is_err());
        set(directory.path(), 0o750);
        let at = directory.path().canonicalize().unwrap();
        assert!(matches!(stranger.reach(&file, READ), Err(Obstacle::Mode(found)) if found == at));
        assert!(matches!(stranger.reach(&directory.path().join("none"), READ), Err(Obstacle::Unknown(_))));
        assert!(User::of(0).reach(&file, READ | WRITE).is_ok());
        assert_eq!(User::named("root").unwrap().uid, 0);
    }
}
