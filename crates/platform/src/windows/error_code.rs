//! Error numbers that code decides on: those of Windows for the same causes, under the names that
//! Linux gives them.

use windows_sys::Win32::Foundation as system;

/// The error number of a cause.
macro_rules! error_codes {
    ($($name:ident: $code:ident;)*) => {
        $(#[doc = concat!("`", stringify!($code), "`")] pub const $name: i32 = system::$code as i32;)*
    };
}

error_codes! {
    EACCES: ERROR_ACCESS_DENIED;
    EAGAIN: ERROR_NO_SYSTEM_RESOURCES;
    EBUSY: ERROR_BUSY;
    EDQUOT: ERROR_NOT_ENOUGH_QUOTA;
    EEXIST: ERROR_ALREADY_EXISTS;
    EFBIG: ERROR_FILE_TOO_LARGE;
    EINVAL: ERROR_INVALID_PARAMETER;
    EIO: ERROR_IO_DEVICE;
    ELOOP: ERROR_STOPPED_ON_SYMLINK;
    EMFILE: ERROR_TOO_MANY_OPEN_FILES;
    ENFILE: ERROR_NO_MORE_USER_HANDLES;
    ENODATA: ERROR_NO_DATA;
    ENODEV: ERROR_DEV_NOT_EXIST;
    ENOENT: ERROR_FILE_NOT_FOUND;
    ENOEXEC: ERROR_BAD_EXE_FORMAT;
    ENOMEM: ERROR_NOT_ENOUGH_MEMORY;
    ENOSPC: ERROR_DISK_FULL;
    ENOSYS: ERROR_CALL_NOT_IMPLEMENTED;
    ENXIO: ERROR_PIPE_NOT_CONNECTED;
    EOPNOTSUPP: ERROR_NOT_SUPPORTED;
    EPERM: ERROR_PRIVILEGE_NOT_HELD;
    EROFS: ERROR_WRITE_PROTECT;
    ESTALE: ERROR_INVALID_HANDLE_STATE;
}
