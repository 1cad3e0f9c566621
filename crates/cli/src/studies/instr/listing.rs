//! `--list`: the forms that would be measured, and those that would be skipped.

use crate::output::page::{Page, note, print, table};
use crate::output::words::plural;
use crate::output::{Failure, Output, wrapped};
use comfy_table::CellAlignment;
use cyclescope::executor::Ring;
use cyclescope::machine::Machine;
use cyclescope::study::instr::forms::operands::Anatomy;
use cyclescope::study::instr::forms::skip::{Skip, skip};
use cyclescope::study::instr::forms::wanted::WantedForm;
use cyclescope::study::instr::isa;
use serde::Serialize;

/// Characters of the columns.
const INSTRUCTION: usize = 27;
const CODE: usize = 25;
const ISA: usize = 14;

/// One form, kind `instr.form`.
#[derive(Serialize)]
struct FormRecord {
    code: String,
    mnemonic: String,
    operands: String,
    encoding: &'static str,
    isa: String,
    /// The code of the reason why it would be skipped; null where it would be measured.
    skip: Option<&'static str>,
    /// The same with details.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl FormRecord {
    fn new(wanted: &WantedForm, machine: &Machine, ring: Ring) -> FormRecord {
        let parts: Vec<Anatomy> = match &wanted.sequence {
            Some(sequence) => sequence.parts().collect(),
            None => wanted.anatomy().into_iter().collect(),
        };
        let skipped = parts.iter().find_map(|part| skip(part, &machine.features, ring));
        FormRecord {
            code: wanted.code(),
            mnemonic: wanted.mnemonic(),
            operands: wanted.operands(),
            encoding: wanted.encoding(),
            isa: isa::of(wanted).join("+"),
            skip: skipped.map(Skip::code),
            reason: skipped
                .map(Skip::reason)
                .filter(|reason| Some(reason.as_str()) != skipped.map(Skip::code)),
        }
    }
}

/// Prints the forms.
pub fn list(forms: &[WantedForm], machine: &Machine, ring: Ring, output: &mut Output) -> Result<(), Failure> {
    let forms: Vec<FormRecord> = forms.iter().map(|wanted| FormRecord::new(wanted, machine, ring)).collect();
    if output.is_json() {
        return forms.iter().try_for_each(|form| output.record("instr.form", form));
    }
    let mut rows = table(&["instruction", "code", "needs", ""]);
    for column in 1..4 {
        rows.column_mut(column).expect("there are four").set_cell_alignment(CellAlignment::Left);
    }
    let cell = |text: &str, width: usize| wrapped(text, width).join("\n");
    for form in &forms {
        // A code is one word, which may break where its parts meet.
        let name = format!("{} {}", form.mnemonic, form.operands);
        let skip =
            form.skip.map_or(form.encoding.to_string(), |skip| format!("skip: {}", skip.replace('_', " ")));
        rows.add_row([
            cell(name.trim_end(), INSTRUCTION),
            cell(&form.code, CODE),
            cell(&form.isa.replace('+', " + "), ISA),
            cell(&skip, 11),
        ]);
    }
    let mut page = Page::new(output);
    print(&mut page, &rows)?;
    let measured = forms.iter().filter(|form| form.skip.is_none()).count();
    let skipped = forms.len() - measured;
    let text = format!("{} would be measured, {skipped} skipped.", plural(measured as u64, "form"));
    note(&mut page, &text)?;
    for (code, meaning) in Skip::ALL {
        let count = forms.iter().filter(|form| form.skip == Some(code)).count();
        if count > 0 {
            note(&mut page, &format!("{}: {meaning} ({count})", code.replace('_', " ")))?;
        }
    }
    Ok(())
}
