//! The C library of this process. A second one can't allocate memory, because this program has
//! prepared the allocator of the first.

use crate::input::function_symbol::{self, NameMatch};
use crate::output::Failure;
use cyclescope::error::Unavailable;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The function of a C library, and of no other, that starts programs (glibc, musl).
const PROGRAM_START: &str = "__libc_start_main";

/// Whether a library is this process's C library.
///
/// # Errors
///
/// If it is another C library.
pub fn is_own_c_library(image: &[u8], library: &Path, source: &Path) -> Result<bool, Failure> {
    if function_symbol::find_function(image, PROGRAM_START, NameMatch::Linker)?.is_none() {
        return Ok(false);
    }
    let own = own_c_library();
    let identity = |path: &Path| path.metadata().map(|data| (data.dev(), data.ino())).ok();
    if own.as_deref().and_then(identity).is_some_and(|known| identity(library) == Some(known)) {
        return Ok(true);
    }
    let remedy = match &own {
        Some(path) => format!("name the C library of this program, {}", path.display()),
        None => "compile a copy of the function's source with --c".to_string(),
    };
    Err(Failure::from(Unavailable {
        what: format!("a function in {}", source.display()),
        why: "it is a second C library for the process that calls it, and only the first one can allocate memory"
            .to_string(),
        remedy,
    }))
}

/// The file of the C library that this program is linked with; `None` if it is part of the program.
fn own_c_library() -> Option<PathBuf> {
    let mut found = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the call fills the structure if it succeeds. The name is a string that lives while the
    // library is loaded.
    let path = unsafe {
        if libc::dladdr(libc::malloc as *const libc::c_void, found.as_mut_ptr()) == 0 {
            return None;
        }
        PathBuf::from(OsStr::from_bytes(CStr::from_ptr(found.assume_init().dli_fname).to_bytes()))
    };
    let is_program = std::env::current_exe().is_ok_and(|program| program == path);
    (path.is_absolute() && !is_program).then_some(path)
}
