//! The section on the sandbox of measured code.

use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use cyclescope::doctor::Diagnosis;

/// Prints each barrier around measured code, and why it does not hold here.
pub fn print_sandbox(page: &mut TextPage, diagnosis: &Diagnosis) -> Result<(), Failure> {
    page.begin_section("Sandbox of measured code")?;
    if diagnosis.protections.is_empty() {
        return page.print_unknown("barriers", "no code runs here");
    }
    for barrier in &diagnosis.protections {
        let label = barrier.what.replace('_', " ");
        match &barrier.why_not {
            None => page.print_row(&label, barrier.about)?,
            Some(why) => page.print_painted_row(&label, &format!("no: {why}"), Output::faint)?,
        }
    }
    Ok(())
}
