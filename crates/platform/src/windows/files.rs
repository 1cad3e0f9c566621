//! Files: opened, examined, and locked.

use crate::file_facts::{FileAccess, FileFacts, FileKind};
use std::fs::{File, Permissions};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::AsRawHandle;
use std::path::{Path, PathBuf};
use windows_sys::Win32::Foundation::{ERROR_IO_PENDING, ERROR_LOCK_VIOLATION};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_TYPE_DISK, FILE_TYPE_PIPE, GetDiskFreeSpaceExW, GetFileInformationByHandle, GetFileType,
    LOCKFILE_EXCLUSIVE_LOCK, LOCKFILE_FAIL_IMMEDIATELY, LockFileEx, UnlockFileEx,
};
use windows_sys::Win32::System::IO::OVERLAPPED;

/// Opens whatever lies at a path.
///
/// # Errors
///
/// Those of the system.
pub fn open_file(path: &Path, access: FileAccess) -> io::Result<File> {
    let mut options = File::options();
    match access {
        FileAccess::Read => options.read(true),
        FileAccess::Append => options.append(true).create(true),
        // Only a file that may be written anywhere can be cut.
        FileAccess::ReadAppend => options.read(true).write(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT),
    };
    options.open(path)
}

/// Reads the facts about an open file.
///
/// # Errors
///
/// Those of the system.
pub fn read_facts(file: &File) -> io::Result<FileFacts> {
    let handle = file.as_raw_handle();
    // SAFETY: the handle is open.
    let kind = match unsafe { GetFileType(handle) } {
        FILE_TYPE_DISK => FileKind::Regular,
        FILE_TYPE_PIPE => FileKind::Pipe,
        _ => FileKind::Device,
    };
    if kind != FileKind::Regular {
        return Ok(FileFacts { kind, bytes: None, names: 1, is_interface: false });
    }
    let mut facts = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the structure lives through the call, which fills it.
    if unsafe { GetFileInformationByHandle(handle, &mut facts) } == 0 {
        return Err(io::Error::last_os_error());
    }
    let has = |attribute: u32| facts.dwFileAttributes & attribute != 0;
    let kind = match has(FILE_ATTRIBUTE_DIRECTORY) {
        true => FileKind::Directory,
        false if has(FILE_ATTRIBUTE_REPARSE_POINT) => FileKind::Link,
        false => FileKind::Regular,
    };
    let bytes = u64::from(facts.nFileSizeHigh) << 32 | u64::from(facts.nFileSizeLow);
    Ok(FileFacts { kind, bytes: Some(bytes), names: facts.nNumberOfLinks.into(), is_interface: false })
}

/// What lies at a path; a link is not followed.
///
/// # Errors
///
/// Those of the system.
pub fn read_kind(path: &Path) -> io::Result<FileKind> {
    let kind = std::fs::symlink_metadata(path)?.file_type();
    Ok(match kind {
        kind if kind.is_symlink() => FileKind::Link,
        kind if kind.is_dir() => FileKind::Directory,
        _ => FileKind::Regular,
    })
}

/// Bytes of a lock: the whole file, of any length.
const WHOLE: u32 = u32::MAX;

/// Locks a file for this open handle alone. False if another one has the lock.
///
/// # Errors
///
/// If the system refuses such locks.
pub fn try_lock(file: &File) -> io::Result<bool> {
    let flags = LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY;
    let mut from_start = OVERLAPPED::default();
    // SAFETY: the handle is open, and the call does not continue after its return.
    match unsafe { LockFileEx(file.as_raw_handle(), flags, 0, WHOLE, WHOLE, &mut from_start) } {
        0 => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(ERROR_LOCK_VIOLATION as i32) => Ok(false),
            error if error.raw_os_error() == Some(ERROR_IO_PENDING as i32) => Ok(false),
            error => Err(error),
        },
        _ => Ok(true),
    }
}

/// Releases the lock of a file.
pub fn unlock(file: &File) {
    let mut from_start = OVERLAPPED::default();
    // SAFETY: as above. Only an unlocked file has no lock to release.
    unsafe { UnlockFileEx(file.as_raw_handle(), 0, WHOLE, WHOLE, &mut from_start) };
}

/// Bytes that are free on the disk of a directory, if the system reports them.
pub fn read_free_bytes(directory: &Path) -> Option<u64> {
    let name: Vec<u16> = directory.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0;
    // SAFETY: the name and the number live through the call.
    let read = unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &mut free, std::ptr::null_mut(), std::ptr::null_mut()) };
    (read != 0).then_some(free)
}

/// What distinguishes the file at a path from all others: its disk and its number there.
pub fn read_identity(path: &Path) -> Option<(u64, u64)> {
    let file = File::open(path).ok()?;
    let mut facts = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the structure lives through the call, which fills it.
    let read = unsafe { GetFileInformationByHandle(file.as_raw_handle(), &mut facts) };
    let number = u64::from(facts.nFileIndexHigh) << 32 | u64::from(facts.nFileIndexLow);
    (read != 0).then_some((facts.dwVolumeSerialNumber.into(), number))
}

/// Opens a file for results, or a new one, at its start. It is opened for writing, not only for
/// appending: Windows cuts an incomplete line off only then.
///
/// # Errors
///
/// Those of the system.
pub fn open_results(path: &Path, create: bool) -> io::Result<File> {
    File::options().read(true).write(true).create(create).truncate(false).open(path)
}

/// The path that these bytes name, as UTF-8.
pub fn path_from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// Fails if a folder does not exist. Whether this process may make a file in it shows only when it
/// does.
///
/// # Errors
///
/// Those of the system.
pub fn require_writable_folder(folder: &Path) -> io::Result<()> {
    match std::fs::metadata(folder)?.is_dir() {
        true => Ok(()),
        false => Err(io::ErrorKind::NotADirectory.into()),
    }
}

/// The permissions of a mode; `None` if the system has no modes.
pub fn permissions_from_mode(_mode: u32) -> Option<Permissions> {
    None
}
