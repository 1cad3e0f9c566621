//! `--list`: prints the forms that would be measured, and those that would be skipped.

use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::format_count;
use crate::output::{Failure, Output, wrap_text};
use comfy_table::CellAlignment;
use cyclescope::executor::PrivilegeRing;
use cyclescope::machine::Machine;
use cyclescope::study::instr::forms::form_anatomy::FormAnatomy;
use cyclescope::study::instr::forms::skip::{SkipReason, find_skip};
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::isa_filter;
use serde::Serialize;

/// Widths of the columns.
const INSTRUCTION_WIDTH: usize = 27;
const CODE_WIDTH: usize = 25;
const ISA_WIDTH: usize = 14;

/// A form, kind `instr.form`.
#[derive(Serialize)]
struct FormRecord {
    code: String,
    mnemonic: String,
    operands: String,
    encoding: &'static str,
    isa: String,
    /// Code of the reason to skip the form; null if it would be measured.
    skip: Option<&'static str>,
    /// The reason in detail.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl FormRecord {
    fn new(wanted: &TargetForm, machine: &Machine, ring: PrivilegeRing) -> FormRecord {
        let parts: Vec<FormAnatomy> = match &wanted.sequence {
            Some(sequence) => sequence.anatomies().collect(),
            None => wanted.anatomy().into_iter().collect(),
        };
        let skipped = parts.iter().find_map(|part| find_skip(part, &machine.features, ring));
        FormRecord {
            code: wanted.code(),
            mnemonic: wanted.mnemonic(),
            operands: wanted.operands(),
            encoding: wanted.encoding(),
            isa: isa_filter::list_features(wanted).join("+"),
            skip: skipped.map(SkipReason::code),
            reason: skipped
                .map(SkipReason::describe)
                .filter(|reason| Some(reason.as_str()) != skipped.map(SkipReason::code)),
        }
    }
}

/// Prints the forms.
pub fn list_forms(
    forms: &[TargetForm],
    machine: &Machine,
    ring: PrivilegeRing,
    output: &mut Output,
) -> Result<(), Failure> {
    let forms: Vec<FormRecord> = forms.iter().map(|wanted| FormRecord::new(wanted, machine, ring)).collect();
    if output.is_json() {
        return forms.iter().try_for_each(|form| output.write_record("instr.form", form));
    }
    let mut rows = new_table(&["instruction", "code", "needs", ""]);
    for column in 1..4 {
        rows.column_mut(column).expect("there are four").set_cell_alignment(CellAlignment::Left);
    }
    let cell = |text: &str, width: usize| wrap_text(text, width).join("\n");
    for form in &forms {
        // A code is one word, which may be split between its parts.
        let name = format!("{} {}", form.mnemonic, form.operands);
        let skip = form.skip.map_or(form.encoding.to_string(), |skip| format!("skip: {}", skip.replace('_', " ")));
        rows.add_row([
            cell(name.trim_end(), INSTRUCTION_WIDTH),
            cell(&form.code, CODE_WIDTH),
            cell(&form.isa.replace('+', " + "), ISA_WIDTH),
            cell(&skip, 11),
        ]);
    }
    let mut page = TextPage::new(output);
    print_table(&mut page, &rows)?;
    let measured = forms.iter().filter(|form| form.skip.is_none()).count();
    let skipped = forms.len() - measured;
    let text = format!("{} would be measured, {skipped} skipped.", format_count(measured as u64, "form"));
    print_note(&mut page, &text)?;
    for (code, meaning) in SkipReason::ALL {
        let count = forms.iter().filter(|form| form.skip == Some(code)).count();
        if count > 0 {
            print_note(&mut page, &format!("{}: {meaning} ({count})", code.replace('_', " ")))?;
        }
    }
    Ok(())
}
