//! Files: opened without waiting, examined, and locked.

use crate::file_facts::{FileAccess, FileFacts, FileKind};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::path::Path;

/// File systems whose files look regular and are interfaces of the kernel. Reading one may wait
/// without end or have effects: proc, sysfs, debugfs, tracefs, securityfs, configfs, cgroup of both
/// versions, bpf and pstore (Linux, `magic.h`).
const INTERFACE_SYSTEMS: [u32; 10] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0x6265_6570,
    0x0027_e0eb,
    0x6367_7270,
    0xcafe_4a11,
    0x6165_676c,
];

fn file_kind(mode: u32) -> FileKind {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo => FileKind::Pipe,
        FileType::Socket => FileKind::Socket,
        _ => FileKind::Device,
    }
}

/// Opens whatever lies at a path. A pipe does not block until a writer comes, and a terminal does
/// not become this process's own.
///
/// # Errors
///
/// Those of the system.
pub fn open_file(path: &Path, access: FileAccess) -> io::Result<File> {
    let flags = match access {
        FileAccess::Read => OFlags::RDONLY,
        FileAccess::Append => OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE,
        FileAccess::ReadAppend => OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW,
    };
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::from(0o666))?))
}

/// Reads the facts about an open file.
///
/// # Errors
///
/// Those of the system.
pub fn read_facts(file: &File) -> io::Result<FileFacts> {
    let facts = rustix::fs::fstat(file)?;
    let system = rustix::fs::fstatfs(file);
    Ok(FileFacts {
        kind: file_kind(facts.st_mode),
        bytes: u64::try_from(facts.st_size).ok(),
        names: facts.st_nlink,
        is_interface: system.is_ok_and(|system| INTERFACE_SYSTEMS.contains(&(system.f_type as u32))),
    })
}

/// What lies at a path; a link is not followed.
///
/// # Errors
///
/// Those of the system.
pub fn read_kind(path: &Path) -> io::Result<FileKind> {
    Ok(file_kind(rustix::fs::lstat(path)?.st_mode))
}

/// Locks a file for this open handle alone. False if another one has the lock.
///
/// # Errors
///
/// If the system refuses such locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Releases the lock of a file.
pub fn unlock(file: &File) {
    // Only an unlocked file has no lock to release.
    let _ = rustix::fs::flock(file, FlockOperation::Unlock);
}
