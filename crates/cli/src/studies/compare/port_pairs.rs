//! Prints which pairs of instructions share ports in one file and not in the other.

use crate::output::Failure;
use crate::output::page::{TextPage, print_note};
use crate::output::report_words::{format_count, to_one_line};
use crate::studies::ports::describe_mix;
use cyclescope::study::ports::ports_comparison::{SharingAnswer, SharingComparison, SharingSide};

/// Prints the numbers of pairs, and the first `shown` differences.
pub fn print_sharing(comparison: &SharingComparison, shown: usize, page: &mut TextPage) -> Result<(), Failure> {
    let counts = comparison.counts;
    let forms = format!("{} in both, {} only in A, {} only in B", counts.both, counts.only_a, counts.only_b);
    page.print_row("forms", &forms)?;
    page.print_row("with a class", &format!("{} in both", counts.with_class))?;
    let pairs = format!("{} agree, {} differ, {} untold", counts.agree, counts.differ, counts.untold);
    page.print_row("pairs of these", &pairs)?;
    let all = comparison.differences.len();
    if all == 0 {
        return Ok(());
    }
    page.begin_section(&format!("Pairs that share ports in one file only, {shown} of {all}"))?;
    for difference in &comparison.differences[..shown] {
        let [one, other] = &difference.forms;
        let like = match difference.pairs {
            1 => String::new(),
            pairs => format!(", and {} like it", format_count(pairs as u64 - 1, "pair")),
        };
        page.print_row("pair", &to_one_line(&format!("`{one}` and `{other}`{like}")))?;
        for (letter, side) in [("  A", &difference.a), ("  B", &difference.b)] {
            page.print_row(letter, &to_one_line(&describe_side(side)))?;
        }
    }
    print_note(page, "A fast mix proves that no port is shared. A slow one only suggests that some are.")
}

/// What a file says, with the mix that decided it.
fn describe_side(side: &SharingSide) -> String {
    let answer = match side.answer {
        SharingAnswer::Same => "the same ports",
        SharingAnswer::Share => "some ports in common",
        SharingAnswer::Apart => "no port in common",
        SharingAnswer::Untold => "untold",
    };
    let mix = side.mix.map_or(String::new(), |mix| format!(", by {}", describe_mix(mix)));
    format!("{answer}{mix}")
}
