//! How the numbers that differ were measured.

use super::input::{Content, Input};
use super::tables::{cycles, instruction, number, quantity};
use crate::output::page::Page;
use crate::output::words::one_line;
use crate::output::{Failure, Output, WIDTH, wrapped};
use cyclescope::study::instr::tables::compare::{Difference, Side};
use serde::Serialize;

/// Prints of each difference how its numbers were found, and the command that shows more.
pub fn explain(inputs: &[&Input; 2], differences: &[Difference], output: &mut Output) -> Result<(), Failure> {
    for difference in differences {
        output.line("")?;
        let mut page = Page::new(output);
        for line in wrapped(&title(difference), WIDTH) {
            let line = page.output.bold(&line);
            page.output.line(line)?;
        }
        for (letter, (input, side)) in
            ["A", "B"].iter().zip(inputs.iter().zip([&difference.a, &difference.b]))
        {
            side_of(&mut page, letter, input, side)?;
        }
        // Even an unlikely name must not break out of the command.
        let code = shlex::try_quote(&difference.code).map(|code| code.into_owned()).unwrap_or_default();
        page.command("more", &one_line(&format!("cyclescope instr --explain {code}")))?;
    }
    Ok(())
}

fn title(difference: &Difference) -> String {
    let (instruction, quantity) = (instruction(difference), quantity(difference));
    let (code, encoding) = (&difference.code, &difference.encoding);
    one_line(&format!("{instruction} ({code}, {encoding}): {quantity}"))
}

fn side_of(page: &mut Page, letter: &str, input: &Input, side: &Side) -> Result<(), Failure> {
    let bound = side.bound.map_or(String::new(), |bound| format!(", {}", word(bound)));
    let interval = match (side.cost.value, side.cost.low, side.cost.high) {
        (Some(_), Some(low), Some(high)) => format!(" ({} to {})", cycles(low), cycles(high)),
        _ => String::new(),
    };
    let line = side.line.map_or(String::new(), |line| format!(", line {line} of {}", one_line(&input.path)));
    page.row(letter, &format!("{}{interval} core cycles{bound}{line}", number(side)))?;
    if let Some(how) = &side.how {
        let label = if side.bound.is_some() { "  chain" } else { "  recipe" };
        page.row(label, &one_line(how))?;
    }
    for caveat in &side.caveats {
        page.row("  caveat", &one_line(&format!("{}: {}", word(caveat.code), caveat.text)))?;
    }
    if side.caveats.is_empty() && matches!(input.content, Content::Results(_)) {
        page.row("  caveat", "none")?;
    }
    Ok(())
}

/// The word that JSON has for one of a closed list.
fn word(of: impl Serialize) -> String {
    let value = serde_json::to_value(of).expect("a word");
    value.as_str().unwrap_or_default().to_string()
}
