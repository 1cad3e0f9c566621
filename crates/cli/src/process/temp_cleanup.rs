//! Removes temporary folders of runs that were killed before they could do so.
//!
//! A run locks its folder while it lives, and the kernel releases the lock however the run ends. An
//! unlocked folder is therefore unused, and the next run that needs a folder removes it.

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Prefix of the names of all scratch folders.
pub const SCRATCH_PREFIX: &str = ".cyclescope-scratch-";
/// A folder this young may not be locked yet, because creation precedes the lock.
const UNLOCKED_AGE_MOST: Duration = Duration::from_secs(60);

/// Marks a folder as in use while the file is open.
pub fn lock_folder(folder: &Path) -> io::Result<File> {
    let file = open_folder(folder)?;
    // On a file system without locks, nobody can lock the folder, so it never counts as stale.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok(file)
}

fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(folder, flags, Mode::empty())?.into())
}

/// Removes this user's stale folders from the temporary directory. Errors are ignored.
pub fn remove_stale(temporary: &Path) {
    let Ok(entries) = std::fs::read_dir(temporary) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(SCRATCH_PREFIX)) {
        let _ = remove_if_stale(&entry.path());
    }
}

fn remove_if_stale(folder: &Path) -> io::Result<()> {
    let file = open_folder(folder)?;
    let facts = rustix::fs::fstat(&file)?;
    let age = SystemTime::now().duration_since(file.metadata()?.modified()?).unwrap_or_default();
    if facts.st_uid != rustix::process::geteuid().as_raw() || age < UNLOCKED_AGE_MOST {
        return Ok(());
    }
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // The folder is now locked and is removed by name. In a folder of this user, nobody else can
    // reuse the name. It holds only files.
    for inside in std::fs::read_dir(folder)?.flatten() {
        std::fs::remove_file(inside.path())?;
    }
    std::fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removes_only_old_unlocked_folders() {
        let temporary = tempfile::tempdir().expect("a folder");
        let old = SystemTime::now() - 2 * UNLOCKED_AGE_MOST;
        let made = |name: &str, is_old: bool| {
            let folder = temporary.path().join(format!("{SCRATCH_PREFIX}{name}"));
            std::fs::create_dir(&folder).expect("a new folder");
            std::fs::write(folder.join("function.so"), "").expect("a file");
            if is_old {
                open_folder(&folder).expect("a folder").set_modified(old).expect("the owner may");
            }
            folder
        };
        let (stale, young, used) = (made("stale", true), made("young", false), made("used", true));
        let other = temporary.path().join("cyclescope");
        std::fs::create_dir(&other).expect("a new folder");
        open_folder(&other).expect("a folder").set_modified(old).expect("the owner may");
        let link = temporary.path().join(format!("{SCRATCH_PREFIX}link"));
        std::os::unix::fs::symlink(&other, link).expect("a link");
        let held = lock_folder(&used).expect("a folder");
        remove_stale(temporary.path());
        assert!(!stale.exists() && young.exists() && used.exists() && other.exists());
        drop(held);
        remove_stale(temporary.path());
        assert!(!used.exists() && young.exists());
    }
}
