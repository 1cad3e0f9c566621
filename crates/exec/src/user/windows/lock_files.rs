//! The files that are locked.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Directories for lock files, of which the first usable one counts: that of all users, then that of
/// this user, who detects no other user's run there.
fn lock_directories() -> [Option<PathBuf>; 2] {
    let common = std::env::var_os("ProgramData").map(PathBuf::from);
    [common.filter(|directory| directory.is_absolute()), Some(std::env::temp_dir())]
}

/// Opens the lock files of a CPU: the queue's and its own.
pub(super) fn open_lock_files(cpu: usize) -> io::Result<[File; 2]> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for directory in lock_directories().into_iter().flatten() {
        match open_files_in(&directory.join("cyclescope"), cpu) {
            Ok(files) => return Ok(files),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

pub(super) fn open_files_in(directory: &Path, cpu: usize) -> io::Result<[File; 2]> {
    std::fs::create_dir_all(directory)?;
    let open = |end: &str| {
        let path = directory.join(format!("cyclescope-cpu-{cpu}.{end}"));
        // Reading is enough for a lock on another user's file.
        File::open(&path).or_else(|_| File::options().read(true).write(true).create(true).truncate(false).open(&path))
    };
    Ok([open("queue")?, open("lock")?])
}
