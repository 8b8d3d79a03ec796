// SPDX-License-Identifier: GPL-3.0-or-later
//! File systems that are small or cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tmpfs, until dropped.
pub struct Mount(PathBuf);

impl Mount {
    /// None where this is not allowed, which a machine that tests every change must allow.
    pub fn new(path: &Path, options: &str) -> Option<Self> {
        fs::create_dir_all(path).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).output();
        if mounted.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(path.to_owned()));
        }
        assert!(std::env::var_os("CI").is_none(), "cannot mount: {mounted:?}");
        println!("SKIPPED: no tmpfs can be mounted here (not root?)");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
