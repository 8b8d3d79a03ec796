// SPDX-License-Identifier: GPL-3.0-or-later
//! Files in a state directory, opened by its descriptor and their plain names.

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The flags for opening a file: do not follow a symbolic link, do not hang on a pipe.
const SAFELY: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// An open state directory. Changes of its path do not matter.
#[derive(Debug)]
pub struct StateDirectory {
    directory: OwnedFd,
    owner: (Uid, Gid),
}

impl StateDirectory {
    /// Opens a state directory. If its path is a symbolic link, this must belong to root or to the owner of its target: the
    /// daemon's user could have put any other there.
    ///
    /// # Errors
    /// If it is no directory, cannot be opened, or is behind somebody else's link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let directory =
            rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let stat = rustix::fs::fstat(&directory)?;
        // Without a final slash, which would follow a link.
        let plain: PathBuf = path.components().collect();
        let own = rustix::fs::statat(CWD, &plain, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_link = FileType::from_raw_mode(own.st_mode) == FileType::Symlink;
        if is_link && own.st_uid != 0 && own.st_uid != stat.st_uid {
            let what =
                format!("it is a symbolic link of user {} to a directory of {}", own.st_uid, stat.st_uid);
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
        }
        Ok(Self { directory, owner: (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)) })
    }

    /// Opens an existing file.
    ///
    /// # Errors
    /// If there is none, or it is no regular file (a symbolic link, a pipe).
    pub fn file(&self, name: &str, writable: bool) -> io::Result<File> {
        let access = if writable { OFlags::RDWR } else { OFlags::RDONLY };
        let file =
            rustix::fs::openat(&self.directory, name, SAFELY | access, Mode::empty()).map_err(link_error)?;
        regular(&rustix::fs::fstat(&file)?)?;
        Ok(file.into())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.file(name, false)?.read_to_end(&mut content)?;
        Ok(content)
    }

    /// Creates a file, with exactly this mode whatever the umask is, and gives it to the owner of the directory, which is the daemon's
    /// user: otherwise the daemon could not read root's file.
    ///
    /// # Errors
    /// If the name exists, or the file cannot be created.
    pub fn create(&self, name: &str, mode: u32) -> io::Result<File> {
        let flags = SAFELY | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::from_raw_mode(0o600))?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        let stat = rustix::fs::fstat(&file)?;
        let (uid, gid) = self.owner;
        if (uid.as_raw(), gid.as_raw()) != (stat.st_uid, stat.st_gid) {
            match rustix::fs::fchown(&file, Some(uid), Some(gid)) {
                // Only root can give files away; the owner of the directory need not.
                Err(Errno::PERM) if uid.as_raw() == stat.st_uid => (),
                result => result?,
            }
        }
        Ok(file.into())
    }

    /// Replaces a file by one with this content and mode, atomically; on return it is on disk. Only one process at a time may do so.
    ///
    /// # Errors
    /// If it cannot be written; the old file stays then.
    pub fn replace(&self, name: &str, content: &[u8], mode: u32) -> io::Result<()> {
        let unfinished = format!("{name}.new");
        self.remove(&unfinished)?;
        let mut file = self.create(&unfinished, mode)?;
        file.write_all(content).and_then(|()| file.sync_all())?;
        self.rename(&unfinished, name)
    }

    /// Renames a file and replaces any other of the new name; on return that is on disk.
    ///
    /// # Errors
    /// If there is no such file, or the directory cannot be written.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        rustix::fs::renameat(&self.directory, from, &self.directory, to)?;
        Ok(rustix::fs::fsync(&self.directory)?)
    }

    /// Renames a file unless the new name exists; on return that is on disk.
    ///
    /// # Errors
    /// If the new name exists, there is no such file, or the directory cannot be written.
    pub fn rename_new(&self, from: &str, to: &str) -> io::Result<()> {
        match rustix::fs::renameat_with(&self.directory, from, &self.directory, to, RenameFlags::NOREPLACE) {
            // Some file systems cannot do both at once.
            Err(Errno::INVAL | Errno::NOSYS) => {
                match rustix::fs::statat(&self.directory, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => rustix::fs::renameat(&self.directory, from, &self.directory, to)?,
                    Err(e) => return Err(e.into()),
                    Ok(_) => return Err(Errno::EXIST.into()),
                }
            }
            result => result?,
        }
        Ok(rustix::fs::fsync(&self.directory)?)
    }

    /// Removes a file, if there is one of this name.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Waits for a lock, which is held until the file is closed. The file is created if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created or opened, or is no regular file.
    pub fn lock(&self, name: &str) -> io::Result<File> {
        let file = match self.create(name, 0o600) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => self.file(name, false)?,
            made => made?,
        };
        file.lock()?;
        Ok(file)
    }
}

/// Opens a regular file anywhere, which another user may replace meanwhile. Other files, such as pipes, would block: they are opened without
/// blocking, and refused.
///
/// # Errors
/// If it cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    regular(&rustix::fs::fstat(&file)?)?;
    Ok(file.into())
}

/// Replaces the system's error for a symbolic link, which does not help users.
fn link_error(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("it is a symbolic link, which is not followed"),
        error => error.into(),
    }
}

fn regular(stat: &Stat) -> io::Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Errno::ISDIR.into()),
        other => Err(io::Error::other(format!("it is no regular file ({other:?})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let (state, outside) = (place.path().join("state"), place.path().join("outside"));
        fs::create_dir(&state).unwrap();
        fs::write(&outside, "a file of somebody").unwrap();
        let before = fs::metadata(&outside).unwrap();
        for name in ["list", "list.new", "lock"] {
            symlink(&outside, state.join(name)).unwrap();
        }
        let directory = StateDirectory::open(&state).unwrap();
        assert!(directory.file("list", true).unwrap_err().to_string().contains("symbolic link"));
        assert!(directory.create("list", 0o600).is_err());
        assert!(directory.lock("lock").is_err());
        directory.replace("list", b"new", 0o640).unwrap();
        assert_eq!(directory.read("list").unwrap(), b"new");
        assert_eq!(mode(&state.join("list")), 0o640);
        assert_eq!(fs::read_to_string(&outside).unwrap(), "a file of somebody");
        let after = fs::metadata(&outside).unwrap();
        assert_eq!((after.uid(), after.mtime_nsec()), (before.uid(), before.mtime_nsec()));
    }

    #[test]
    fn pipes_hang_nobody() {
        let place = tempfile::tempdir().unwrap();
        let directory = StateDirectory::open(place.path()).unwrap();
        rustix::fs::mkfifoat(CWD, place.path().join("lock"), Mode::from_raw_mode(0o600)).unwrap();
        for writable in [false, true] {
            assert!(directory.file("lock", writable).unwrap_err().to_string().contains("no regular file"));
        }
        assert!(directory.lock("lock").is_err());
        assert!(
            open_regular(&place.path().join("lock")).unwrap_err().to_string().contains("no regular file")
        );
        assert!(open_regular(place.path()).is_err(), "a directory");
    }
}
