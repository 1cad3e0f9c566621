//! The section on executors.

use crate::output::page::Page;
use crate::output::{Failure, Output};
use cyclescope::doctor::Diagnosis;

/// Each executor that `--executor` takes, and why one can't be used here.
pub fn section(page: &mut Page, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.section("Executors")?;
    for offered in &diagnosis.executors {
        match &offered.why_not {
            None => page.row(offered.executor, offered.about)?,
            Some(why) => page.painted_row(offered.executor, &format!("no: {why}"), Output::faint)?,
        }
    }
    Ok(())
}
