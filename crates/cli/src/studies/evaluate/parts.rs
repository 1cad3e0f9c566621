//! What each method's pair takes its time for, and its code.

use crate::output::Failure;
use crate::output::page::{Page, note};
use cyclescope::caveat::Caveat;
use cyclescope::statistics::Interval;
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::evaluation::Evaluation;
use cyclescope::study::evaluate::parts::{Parts, code};

/// Methods whose code is printed, at most.
const CODES_MOST: usize = 4;
/// Characters of an instruction's bytes.
const BYTES: usize = 34;

/// The parts of all pairs. Of a few methods there is room for their code.
pub fn parts(page: &mut Page, evaluation: &Evaluation) -> Result<(), Failure> {
    page.section("What an empty pair takes its time for, in core cycles")?;
    for found in &evaluation.methods {
        let name = page.output.bold(&found.candidate.to_string());
        page.output.line(format!("  {name}"))?;
        match &found.parts {
            Some(parts) => page.row("", &text(parts))?,
            None if evaluation.facts.emulated => page.unknown("", &Caveat::emulated().text)?,
            None => page.unknown("", "too much was disturbed")?,
        }
        if evaluation.methods.len() <= CODES_MOST {
            listing(page, found.candidate)?;
        }
    }
    note(
        page,
        "Each step's part: the pair less the pair without it; of the moves that keep the first reading and of the \
         second reading (+), what one more of them takes. The rest is what is no step, less what overlaps. Steps \
         outside the two readings are named where they take time all the same. --json has all, and the code.",
    )
}

fn listing(page: &mut Page, candidate: Candidate) -> Result<(), Failure> {
    for [bytes, text] in code(candidate.clock) {
        page.output.line(format!("      {bytes:<BYTES$} {text}"))?;
    }
    Ok(())
}

fn text(parts: &Parts) -> String {
    use cyclescope::study::evaluate::parts::How;
    let figure = |cost: &Interval| format!("{:.1} ± {:.1}", cost.value, cost.half_width());
    let mut between = Vec::new();
    let mut outside = Vec::new();
    for part in &parts.parts {
        let more = if part.how == How::OnceMore { "+" } else { "" };
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
        text += "; beside a busy sibling";
    }
    text
}
