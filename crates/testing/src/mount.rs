// SPDX-License-Identifier: GPL-3.0-or-later
//! File systems that are small, cannot be written, or hang.

use super::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system, until dropped.
pub struct Mount(PathBuf);

impl Mount {
    /// Mounts a tmpfs. None where this is not allowed; a machine that tests every change must allow it.
    pub fn new(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        Self::by(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path), path)
    }

    /// Mounts an ext4 of so many megabytes, in a file beside it, which can be frozen. None where this is not allowed.
    pub fn ext4(path: &Path, megabytes: u64) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let image = path.with_extension("image");
        fs::File::create(&image).unwrap().set_len(megabytes << 20).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status();
        assert!(made.is_ok_and(|status| status.success()), "mkfs.ext4, of the package e2fsprogs, failed");
        Self::by(Command::new("mount").args(["-o", "loop"]).args([&image, path]), path)
    }

    fn by(command: &mut Command, path: &Path) -> Option<Self> {
        let mounted = command.output();
        if mounted.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(path.to_owned()));
        }
        skip("no file system can be mounted here (not root?)");
        None
    }

    /// Blocks all writers until the result is dropped. Meanwhile the test must not wait for any of them: a blocked process cannot
    /// even be killed.
    pub fn freeze(&self) -> Frozen {
        let frozen = Command::new("fsfreeze").arg("-f").arg(&self.0).status();
        let guard = Frozen(self.0.clone());
        assert!(frozen.is_ok_and(|status| status.success()), "fsfreeze, of the package util-linux, failed");
        guard
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A frozen file system, until dropped.
pub struct Frozen(PathBuf);

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = Command::new("fsfreeze").arg("-u").arg(&self.0).status();
    }
}
