// SPDX-License-Identifier: GPL-3.0-or-later
//! A disk that hangs: whatever writes to it waits, and no call fails.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(e) => Err(format!("{command:?}: {e}")),
    }
}

/// A file system of its own, until dropped; the file that it is in lies beside the directory.
pub struct Disk(PathBuf);

impl Disk {
    /// None where this is not allowed, which a machine that tests every change must allow.
    pub fn new(path: &Path) -> Option<Self> {
        std::fs::create_dir_all(path).unwrap();
        let image = path.with_extension("image");
        File::create(&image).unwrap().set_len(64 << 20).unwrap();
        let made = run(Command::new("mkfs.ext4").arg("-q").arg(&image))
            .and_then(|()| run(Command::new("mount").args(["-o", "loop,noatime"]).arg(&image).arg(path)));
        match made {
            Ok(()) => Some(Self(path.to_owned())),
            Err(why) => {
                assert!(std::env::var_os("CI").is_none(), "{why}");
                println!("SKIPPED: no file system can be mounted here (not root?): {why}");
                None
            }
        }
    }

    /// From now on it hangs. Nothing may be written to it but by the daemon under test.
    pub fn freeze(&self) -> Frozen<'_> {
        run(Command::new("fsfreeze").arg("-f").arg(&self.0)).unwrap();
        Frozen(self)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run(Command::new("umount").arg("-l").arg(&self.0));
    }
}

/// It hangs until this is dropped.
pub struct Frozen<'a>(&'a Disk);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let _ = run(Command::new("fsfreeze").arg("-u").arg(&self.0.0));
    }
}
