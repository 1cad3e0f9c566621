//! The report at the end of a program.

use crate::ab;
use crate::report::report;
use std::io::Write;

/// Prints the report to standard error where it is dropped: at the end of `main`, where it was made at its beginning. Under `cyclescope ab`
/// it goes there instead.
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
        // What can't be written is missing there, and told there.
        if let Ok(true) | Err(_) = ab::write_report() {
            return;
        }
        // Whoever closed standard error does not want it.
        let _ = write!(std::io::stderr(), "{}", report());
    }
}
