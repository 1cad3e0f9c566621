//! The kernel: its version, its log, and its files about itself.

/// Name of the system.
pub const SYSTEM_NAME: &str = "Linux";

/// Folder under which `/proc` and `/sys` lie.
pub const FACTS_ROOT: &str = "/";

/// Why facts are missing that other systems have in files; `None` if their files say so.
pub const MISSING_FACTS: Option<&str> = None;

// syslog(2)
const SYSLOG_ACTION_READ_ALL: libc::c_int = 3;
const SYSLOG_ACTION_SIZE_BUFFER: libc::c_int = 10;

/// The kernel's version.
pub fn read_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// The kernel's log.
///
/// # Errors
///
/// Says why it can't be read.
pub fn read_log() -> Result<String, String> {
    let denied = || match std::io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::EPERM) => {
            "the kernel's log is for root only (kernel.dmesg_restrict)".to_string()
        }
        error => format!("the kernel's log can't be read: {error}"),
    };
    // SAFETY: this action takes no buffer.
    let size = unsafe { libc::klogctl(SYSLOG_ACTION_SIZE_BUFFER, std::ptr::null_mut(), 0) };
    if size <= 0 {
        return Err(denied());
    }
    let mut buffer = vec![0u8; size as usize];
    // SAFETY: the kernel writes at most `size` bytes into the buffer of that size.
    let length = unsafe { libc::klogctl(SYSLOG_ACTION_READ_ALL, buffer.as_mut_ptr().cast(), size) };
    if length < 0 {
        return Err(denied());
    }
    Ok(String::from_utf8_lossy(&buffer[..length as usize]).into_owned())
}
