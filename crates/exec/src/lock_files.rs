//! The files that are locked, in directories that nobody can tamper with.

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Directories for lock files, of which the first usable one counts.
///
/// Root's directory comes first: no user can remove its files, or deny them to others. Users use
/// the system's directory for temporary files on CPUs where root has not measured since the boot.
/// The last directory is private, so that its user detects no other user's run.
fn lock_directories() -> [Option<PathBuf>; 3] {
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // An empty path would mean the root directory.
    [Some(ROOT_DIRECTORY.into()), Some("/tmp".into()), own.filter(|directory| directory.is_absolute())]
}

/// Root's directory, created by its first run.
const ROOT_DIRECTORY: &str = "/run/cyclescope";

/// Opens the lock files of a CPU: the queue's and its own.
pub(super) fn open_lock_files(cpu: usize) -> io::Result<[File; 2]> {
    if rustix::process::geteuid().is_root() {
        // If it exists, or can't be made, opening it shows whether it is usable.
        let _ = rustix::fs::mkdir(ROOT_DIRECTORY, Mode::from(0o755));
    }
    let mut failed = io::Error::from(Errno::NOENT);
    for directory in lock_directories().into_iter().flatten() {
        match open_files_in(&directory, cpu) {
            Ok(files) => return Ok(files),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

pub(super) fn open_files_in(directory: &Path, cpu: usize) -> io::Result<[File; 2]> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(directory, flags, Mode::empty())?;
    if !is_safe_directory(&rustix::fs::fstat(&directory)?, rustix::process::geteuid().as_raw()) {
        return Err(Errno::PERM.into());
    }
    let file = |end: &str| open_lock_file(&directory, &format!("cyclescope-cpu-{cpu}.{end}"));
    Ok([file("queue")?.into(), file("lock")?.into()])
}

/// Whether only root and this user can remove or replace files that others created in a directory.
fn is_safe_directory(directory: &Stat, user: u32) -> bool {
    const STICKY: u32 = 0o1000;
    const OTHERS_WRITE: u32 = 0o022;
    let mode = directory.st_mode;
    [0, user].contains(&directory.st_uid) && (mode & OTHERS_WRITE == 0 || mode & STICKY != 0)
}

/// Opens a lock file in a directory where anyone may have created anything with that name. It opens
/// no links or pipes, and only for reading, which is enough for a lock on another user's file.
fn open_lock_file(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = |flags| rustix::fs::openat(directory, name, flags, Mode::from(0o644));
    // First without CREATE: the kernel may refuse that on another user's file
    // (fs.protected_regular).
    let file = match open(flags) {
        Err(Errno::NOENT) => match open(flags | OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => open(flags)?,
            created => {
                let created = created?;
                // Others need to read it, whatever this user's mask. If this fails they have no
                // lock, and report that.
                let _ = rustix::fs::fchmod(&created, Mode::from(0o644));
                created
            }
        },
        other => other?,
    };
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A temporary directory of one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("cyclescope-lock-files-{name}-{}", std::process::id()));
            std::fs::create_dir(&folder).expect("a new folder");
            Folder(folder)
        }

        fn set_mode(&self, mode: u32) {
            std::fs::set_permissions(&self.0, PermissionsExt::from_mode(mode)).expect("the owner may");
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// The error number with which the files of a folder are refused.
    fn refusal(folder: &Folder) -> Option<i32> {
        open_files_in(&folder.0, 3).err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn only_regular_files_are_accepted() {
        let folder = Folder::new("kinds");
        let name = folder.0.join("cyclescope-cpu-3.queue");
        std::os::unix::fs::symlink("/etc/hostname", &name).expect("a link");
        assert_eq!(refusal(&folder), Some(libc::ELOOP));
        std::fs::remove_file(&name).expect("the link is removed");
        rustix::fs::mkfifoat(rustix::fs::CWD, &name, Mode::from(0o666)).expect("a pipe");
        assert_eq!(refusal(&folder), Some(libc::EINVAL));
    }

    #[test]
    fn a_directory_where_others_may_remove_files_is_skipped() {
        let folder = Folder::new("safe");
        for (mode, good) in [(0o755, true), (0o700, true), (0o777, false), (0o775, false), (0o1777, true)] {
            folder.set_mode(mode);
            assert_eq!(open_files_in(&folder.0, 3).map(|_| ()).is_ok(), good, "{mode:o}");
        }
        let facts = rustix::fs::stat(&folder.0).expect("a folder");
        assert!(
            is_safe_directory(&facts, facts.st_uid)
                && (facts.st_uid == 0 || !is_safe_directory(&facts, facts.st_uid + 1))
        );
    }

    #[test]
    fn others_may_read_the_files_whatever_the_mask() {
        let folder = Folder::new("mask");
        let before = rustix::process::umask(Mode::from(0o077));
        let opened = open_files_in(&folder.0, 3);
        rustix::process::umask(before);
        opened.expect("the files are made");
        let mode = rustix::fs::stat(folder.0.join("cyclescope-cpu-3.lock")).expect("a file").st_mode;
        assert_eq!(mode & 0o777, 0o644);
    }
}
