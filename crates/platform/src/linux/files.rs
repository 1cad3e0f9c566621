//! Files: opened without waiting, examined, and locked.

use crate::file_facts::{FileAccess, FileFacts, FileKind};
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

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

/// Bytes that are free on the disk of a directory, if the system reports them.
pub fn read_free_bytes(directory: &Path) -> Option<u64> {
    rustix::fs::statvfs(directory).ok().map(|disk| disk.f_bavail * disk.f_frsize)
}

/// What distinguishes the file at a path from all others: its disk and its number there.
pub fn read_identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Opens a file for results, or a new one. A file that exists may turn out to be a pipe without a
/// writer; a new one may be a pipe with a slow reader.
///
/// # Errors
///
/// Those of the system.
pub fn open_results(path: &Path, create: bool) -> io::Result<File> {
    let flags = libc::O_NOCTTY | if create { 0 } else { libc::O_NONBLOCK };
    File::options().custom_flags(flags).read(true).append(true).create(create).open(path)
}

/// The path that these bytes name.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Fails if this process may make no file in a folder.
///
/// # Errors
///
/// Those of the system.
pub fn require_writable_folder(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::access(folder, rustix::fs::Access::WRITE_OK)?)
}

/// The permissions of a mode (chmod(2)); `None` if the system has no modes.
pub fn permissions_from_mode(mode: u32) -> Option<Permissions> {
    Some(Permissions::from_mode(mode))
}
