//! Prints the report at the end of a program.
//!
//! A program may end by `std::process::exit`, which drops nothing. On Unix the report is then
//! printed by the C library's `exit`.

use crate::ab;
use crate::report::report;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Reports that are due at the end.
static DUE: AtomicUsize = AtomicUsize::new(0);

/// Prints the report to standard error when dropped, or when the program calls
/// `std::process::exit` (on Unix). Created at the beginning of `main`, it prints at the end. Under
/// `cyclescope ab` the report goes there instead.
#[derive(Debug)]
#[must_use = "the report is printed where this is dropped"]
pub struct AtEnd(());

/// Prints the report at the end: `let _report = cyclescope_clock::report_at_end();`
pub fn report_at_end() -> AtEnd {
    // Moves the heap, and announces samples to `cyclescope ab`.
    drop(ab::Samples::from_environment());
    DUE.fetch_add(1, Ordering::Relaxed);
    #[cfg(unix)]
    exit::register();
    AtEnd(())
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        DUE.fetch_sub(1, Ordering::Relaxed);
        print_report();
    }
}

fn print_report() {
    // If samples can't be written, `cyclescope ab` reports that they are missing.
    if let Ok(true) | Err(_) = ab::write_report() {
        return;
    }
    // A closed standard error needs no report.
    let _ = write!(std::io::stderr(), "{}", report());
}

#[cfg(unix)]
mod exit {
    use super::{DUE, print_report};
    use std::ffi::c_int;
    use std::sync::Once;
    use std::sync::atomic::Ordering;

    unsafe extern "C" {
        fn atexit(function: extern "C" fn()) -> c_int;
    }

    /// Prints the report at the program's exit if it is still due.
    pub(super) fn register() {
        static REGISTERED: Once = Once::new();
        // SAFETY: the function exists as long as the program. If there is no room for it, only
        // `drop` prints.
        REGISTERED.call_once(|| _ = unsafe { atexit(at_exit) });
    }

    extern "C" fn at_exit() {
        if DUE.swap(0, Ordering::Relaxed) > 0 {
            print_report();
        }
    }
}
