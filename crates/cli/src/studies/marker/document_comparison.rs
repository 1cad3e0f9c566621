//! Compares the document on Linux kernel markers with this machine: its figures and its
//! conclusions.

use super::tables::format_spread;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::{Failure, Output, wrap_text};
use cyclescope::study::marker::document_figures::FigureComparison;
use cyclescope::study::marker::marker_findings::PublishedRecord;
use cyclescope::study::marker::tested_conclusions::{MarginRelation, TestedConclusion};

/// Width of the first column.
const WHAT_WIDTH: usize = 48;

/// Prints the document's table with our figures, in its order and words. Prints nothing if none of
/// its figures was measured.
pub fn print_figures(page: &mut TextPage, published: &PublishedRecord, executor: &str) -> Result<(), Failure> {
    if published.figures.is_empty() {
        return Ok(());
    }
    page.begin_section("The document's figures and ours, in core cycles and bytes")?;
    let mut rows = new_table(&["", "document", "here"]);
    let (mut part, mut of) = ("", "");
    for figure in &published.figures {
        if figure.part != part {
            (part, of) = (figure.part, "");
            rows.add_row([part]);
        }
        if figure.of != of {
            of = figure.of;
            let ours =
                if ["optimized", "generic"].contains(&of) { format!(" ({})", figure.design) } else { String::new() };
            rows.add_row([format!(" {of}{ours}")]);
        }
        let what = wrap_text(figure.what, WHAT_WIDTH - 2).join("\n  ");
        let value = figure.published.map_or("-".to_string(), |value| published_value(figure, value));
        let mark = if figure.remark.is_some() { " *" } else { "" };
        rows.add_row([format!("  {what}{mark}"), value, our_value(figure)]);
    }
    print_table(page, &rows)?;
    page.output.write_line("")?;
    print_note(page, &format!("Document: {}; {}.", published.source, published.machine))?;
    if let Some(remark) = published.figures.iter().find_map(|figure| figure.remark) {
        print_note(page, &format!("*: {remark}."))?;
    }
    if published.figures.iter().any(|figure| figure.total.is_some()) {
        print_note(
            page,
            "NR_LOOPS and the time are sums over the visits behind the mean costs; cycles per loop are medians over \
             placements.",
        )?;
    }
    if published.figures.iter().any(|figure| figure.state.starts_with("guarded")) {
        let ours = match executor {
            "kernel" => "ours does too, and also disables interrupts.",
            _ => {
                "ours takes a read-side lock instead, because user mode can disable neither preemption nor interrupts. \
                 --executor kernel measures with both enabled and disabled."
            }
        };
        print_note(page, &format!("Its marker disables preemption around the call of its probe; {ours}"))?;
    }
    if published.figures.iter().any(|figure| figure.bytes.is_some()) {
        print_note(
            page,
            "The document counts 32 bytes in the unlikely path, but its own listing has 51, from 0x13 through the jump \
             back at 0x44. It also leaves out the marker's effect on the function's prologue. We show both counts: the \
             marker's own bytes, and the difference of the whole function.",
        )?;
    }
    Ok(())
}

/// Formats a figure as in the document: whole bytes, and as many digits of cycles.
fn published_value(figure: &FigureComparison, value: f64) -> String {
    match figure.bytes {
        Some(_) => format!("{value:.0}"),
        None if figure.total.is_some() => format!("{value:.0}"),
        None if value.fract() != 0.0 && (value * 100.0 - (value * 100.0).round()).abs() > 1e-6 => {
            format!("{value:.3}")
        }
        None => format!("{value:.2}"),
    }
}

fn our_value(figure: &FigureComparison) -> String {
    match (&figure.cycles, figure.bytes, figure.total) {
        (Some(cycles), ..) => format_spread(cycles),
        (None, Some(bytes), _) => bytes.to_string(),
        (None, None, Some(total)) => total.to_string(),
        (None, None, None) => "-".to_string(),
    }
}

/// Prints the document's conclusions, and whether they hold here.
pub fn print_conclusions(page: &mut TextPage, conclusions: &[TestedConclusion]) -> Result<(), Failure> {
    if !conclusions.iter().any(|conclusion| conclusion.measured) {
        return Ok(());
    }
    page.begin_section("The document's conclusions, tested here")?;
    for conclusion in conclusions.iter().filter(|conclusion| conclusion.measured) {
        let verdict = match conclusion.holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "can't be decided",
        };
        let paint = |output: &Output, text: &str| output.bold(text);
        page.print_painted_row(verdict, conclusion.text, paint)?;
        page.print_row("", &explain_conclusion(conclusion))?;
    }
    print_note(
        page,
        "Differences are computed per placement. The margin is the possible error of a cost at one placement; for \
         \"almost as much\" it is a third of the first figure, for \"almost no difference\" a tenth of the marker's \
         whole cost.",
    )
}

fn explain_conclusion(conclusion: &TestedConclusion) -> String {
    let mut parts: Vec<String> = conclusion
        .figures
        .iter()
        .map(|figure| {
            let ours = figure.ours.value.map_or(": unknown".to_string(), |value| format!(" {value:.3}"));
            let published = figure.published.map_or(String::new(), |published| format!(" (document {published})"));
            format!("{}{ours}{published}", figure.what)
        })
        .collect();
    if !conclusion.other_speeds.is_empty() {
        let names = conclusion.other_speeds.join(", ");
        parts.push(format!("the loop has another speed with {names}"));
    }
    if let Some(margin) = conclusion.margin {
        let relation = match conclusion.relation {
            MarginRelation::MoreThan => format!("to be above {margin:.3}"),
            MarginRelation::Within => format!("to be within ±{margin:.3}"),
        };
        parts.push(format!("difference {}, {relation}", format_spread(&conclusion.difference)));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::simulated_records::simulated_record;
    use super::*;
    use cyclescope::study::marker::{document_figures, tested_conclusions};

    #[test]
    fn figures_have_as_many_digits_as_the_document() {
        let records = [
            simulated_record("immediate", "dormant", 1.0, None),
            simulated_record("immediate", "guarded-empty", 5.0, None),
        ];
        let rows = document_figures::compare_figures(&records);
        let shown: Vec<[String; 2]> = rows
            .iter()
            .map(|row| [row.published.map_or_else(String::new, |v| published_value(row, v)), our_value(row)])
            .collect();
        let texts = shown.iter().map(|row| row.each_ref().map(String::as_str)).collect::<Vec<_>>();
        assert_eq!(texts[..2], [["10000000", "100000"], ["15026497", "100000"]]);
        assert_eq!(shown[2][0], "1.50");
        assert_eq!(
            shown[6],
            ["2.50".to_string(), "1.000 ± 0.000".to_string()].map(|text| text.replace("0.000", "0.010"))
        );
        assert!(shown.contains(&["32".to_string(), "51".to_string()]), "{shown:?}");
    }

    #[test]
    fn verdict_names_its_figures() {
        let records =
            [simulated_record("immediate", "dormant", 1.0, None), simulated_record("flag", "dormant", 1.2, None)];
        let found = tested_conclusions::test_conclusions(&records);
        assert_eq!(found[0].holds, Some(false));
        let text = explain_conclusion(&found[0]);
        assert!(
            text.starts_with("optimized 1.000 (document 2.5); generic 1.200 (document 1.17); difference -0.200"),
            "{text}"
        );
        assert!(text.ends_with("to be above 0.050"), "{text}");
    }
}
