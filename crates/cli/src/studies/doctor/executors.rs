//! The section on executors.

use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use cyclescope::doctor::Diagnosis;

/// Prints each executor, and why it can't be used here.
pub fn print_executors(page: &mut TextPage, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.begin_section("Executors")?;
    for offered in &diagnosis.executors {
        match &offered.why_not {
            None => page.print_row(offered.executor, offered.about)?,
            Some(why) => page.print_painted_row(offered.executor, &format!("no: {why}"), Output::faint)?,
        }
    }
    Ok(())
}
