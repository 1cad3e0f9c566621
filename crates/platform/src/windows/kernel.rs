//! The kernel: its version.

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;

/// Name of the system.
pub const SYSTEM_NAME: &str = "Windows";

/// A folder that does not exist: Windows has neither `/proc` nor `/sys`. Under Wine the drive may
/// show those of the system below.
pub const FACTS_ROOT: &str = r"\\?\C:\no folder of facts\";

/// Why facts are missing that other systems have in files; `None` if their files say so.
pub const MISSING_FACTS: Option<&str> = Some("Windows does not report it");

/// The kernel's version.
pub fn read_release() -> String {
    let mut version = OSVERSIONINFOW { dwOSVersionInfoSize: size_of::<OSVERSIONINFOW>() as u32, ..Default::default() };
    // SAFETY: the structure says its size, and the call fills it.
    unsafe { RtlGetVersion(&mut version) };
    format!("{}.{}.{}", version.dwMajorVersion, version.dwMinorVersion, version.dwBuildNumber)
}

/// The kernel's log.
///
/// # Errors
///
/// Windows has none with the TSC's rate.
pub fn read_log() -> Result<String, String> {
    Err("Windows writes no log about the TSC".to_string())
}
