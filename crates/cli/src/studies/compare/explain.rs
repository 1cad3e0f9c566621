//! Explains how the numbers that differ were measured.

use super::compare_input::{CompareInput, InputContent};
use super::tables::{format_cycles, instruction_text, quantity_text, side_number};
use crate::output::page::TextPage;
use crate::output::report_words::to_one_line;
use crate::output::{Failure, Output, WIDTH, wrap_text};
use cyclescope::study::instr::tables::compare::{ComparedSide, QuantityDifference};
use serde::Serialize;

/// Prints how the numbers of each difference were measured, and the command that shows more.
pub fn explain_differences(
    inputs: &[&CompareInput; 2],
    differences: &[QuantityDifference],
    output: &mut Output,
) -> Result<(), Failure> {
    for difference in differences {
        output.write_line("")?;
        let mut page = TextPage::new(output);
        for line in wrap_text(&difference_title(difference), WIDTH) {
            let line = page.output.bold(&line);
            page.output.write_line(line)?;
        }
        for (letter, (input, side)) in ["A", "B"].iter().zip(inputs.iter().zip([&difference.a, &difference.b])) {
            explain_side(&mut page, letter, input, side)?;
        }
        // Quoted, so that no name can break out of the command.
        let code = shlex::try_quote(&difference.code).map(|code| code.into_owned()).unwrap_or_default();
        page.print_command("more", &to_one_line(&format!("cyclescope instr --explain {code}")))?;
    }
    Ok(())
}

fn difference_title(difference: &QuantityDifference) -> String {
    let (instruction, quantity) = (instruction_text(difference), quantity_text(difference));
    let (code, encoding) = (&difference.code, &difference.encoding);
    to_one_line(&format!("{instruction} ({code}, {encoding}): {quantity}"))
}

fn explain_side(page: &mut TextPage, letter: &str, input: &CompareInput, side: &ComparedSide) -> Result<(), Failure> {
    let bound = side.bound.map_or(String::new(), |bound| format!(", {}", json_word(bound)));
    let interval = match (side.cost.value, side.cost.low, side.cost.high) {
        (Some(_), Some(low), Some(high)) => format!(" ({} to {})", format_cycles(low), format_cycles(high)),
        _ => String::new(),
    };
    let line = side.line.map_or(String::new(), |line| format!(", line {line} of {}", to_one_line(&input.path)));
    page.print_row(letter, &format!("{}{interval} core cycles{bound}{line}", side_number(side)))?;
    if let Some(how) = &side.how {
        let label = if side.bound.is_some() { "  chain" } else { "  recipe" };
        page.print_row(label, &to_one_line(how))?;
    }
    for caveat in &side.caveats {
        page.print_row("  caveat", &to_one_line(&format!("{}: {}", json_word(caveat.code), caveat.text)))?;
    }
    if side.caveats.is_empty() && matches!(input.content, InputContent::Results(_)) {
        page.print_row("  caveat", "none")?;
    }
    Ok(())
}

/// The JSON word for an enum value.
fn json_word(of: impl Serialize) -> String {
    let value = serde_json::to_value(of).expect("a word");
    value.as_str().unwrap_or_default().to_string()
}
