//! Prints the report at the end of a program.

use crate::ab;
use crate::report::report;
use std::io::Write;

/// Prints the report to standard error when dropped. Created at the beginning of `main`, it prints
/// at the end. Under `cyclescope ab` the report goes there instead.
#[derive(Debug)]
#[must_use = "the report is printed where this is dropped"]
pub struct AtEnd(());

/// Prints the report at the end: `let _report = cyclescope_clock::report_at_end();`
pub fn report_at_end() -> AtEnd {
    ab::move_heap();
    AtEnd(())
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        // If samples can't be written, `cyclescope ab` reports that they are missing.
        if let Ok(true) | Err(_) = ab::write_report() {
            return;
        }
        // A closed standard error needs no report.
        let _ = write!(std::io::stderr(), "{}", report());
    }
}
