//! The parts of each method's cost, and its code.

use crate::output::Failure;
use crate::output::page::{TextPage, print_note};
use cyclescope::asm::CodeMode;
use cyclescope::caveat::Caveat;
use cyclescope::statistics::Interval;
use cyclescope::study::evaluate::MethodCandidate;
use cyclescope::study::evaluate::evaluation::Evaluation;
use cyclescope::study::evaluate::pair_breakdown::{PairBreakdown, list_pair_code};

/// Code is printed only up to this number of methods.
const CODES_MOST: usize = 4;
/// Width of an instruction's bytes.
const BYTES_WIDTH: usize = 34;

/// Prints the parts of all pairs, and the code if there are few methods.
pub fn print_parts(page: &mut TextPage, evaluation: &Evaluation, mode: CodeMode) -> Result<(), Failure> {
    page.begin_section("Cost of an empty pair by step, in core cycles")?;
    for found in &evaluation.methods {
        let name = page.output.bold(&found.candidate.to_string());
        page.output.write_line(format!("  {name}"))?;
        match &found.parts {
            Some(parts) => page.print_row("", &describe_parts(parts))?,
            None if evaluation.facts.emulated => page.print_unknown("", &Caveat::emulated_machine().text)?,
            None => page.print_unknown("", "too many readings were disturbed")?,
        }
        if evaluation.methods.len() <= CODES_MOST {
            print_code(page, found.candidate, mode)?;
        }
    }
    print_note(
        page,
        "A step's cost is the pair minus the pair without the step. For the moves that keep the first reading and for \
         the second reading (+), it is the cost of one more of them. The rest is the cost outside all steps, minus \
         overlaps. Steps outside the two readings are listed if they still take time. --json has all steps and the \
         code.",
    )
}

fn print_code(page: &mut TextPage, candidate: MethodCandidate, mode: CodeMode) -> Result<(), Failure> {
    for [bytes, text] in list_pair_code(candidate.clock, mode) {
        page.output.write_line(format!("      {bytes:<BYTES_WIDTH$} {text}"))?;
    }
    Ok(())
}

fn describe_parts(parts: &PairBreakdown) -> String {
    use cyclescope::study::evaluate::pair_breakdown::StepVariation;
    let figure = |cost: &Interval| format!("{:.1} ± {:.1}", cost.value, cost.half_width());
    let mut between = Vec::new();
    let mut outside = Vec::new();
    for part in &parts.parts {
        let more = if part.how == StepVariation::OnceMore { "+" } else { "" };
        let words = format!("{more}{} {}", part.step, figure(&part.cost));
        if part.between {
            between.push(words);
        } else if !part.cost.contains(0.0) {
            outside.push(words);
        }
    }
    let mut text = format!("{}: {}, rest {}", figure(&parts.whole), between.join(", "), figure(&parts.rest));
    if !outside.is_empty() {
        text += &format!("; outside the readings: {}", outside.join(", "));
    }
    if parts.shared {
        text += "; with a busy sibling";
    }
    text
}
