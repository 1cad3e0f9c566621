//! The figures of the document on Linux kernel markers beside ours, and its conclusions, tested here.

use super::tables::spread;
use crate::output::page::{Page, note, print, table};
use crate::output::{Failure, Output, wrapped};
use cyclescope::study::marker::comparison::{Conclusion, Relation};
use cyclescope::study::marker::found::PublishedRecord;
use cyclescope::study::marker::published::Beside;

/// Characters of the first column.
const WHAT: usize = 48;

/// The document's table with ours beside it, in its order and words; nothing where no figure of it was measured.
pub fn figures(page: &mut Page, published: &PublishedRecord, executor: &str) -> Result<(), Failure> {
    if published.figures.is_empty() {
        return Ok(());
    }
    page.section("The document's figures and ours, in core cycles and bytes")?;
    let mut rows = table(&["", "document", "here"]);
    let (mut part, mut of) = ("", "");
    for figure in &published.figures {
        if figure.part != part {
            (part, of) = (figure.part, "");
            rows.add_row([part]);
        }
        if figure.of != of {
            of = figure.of;
            let ours = if ["optimized", "generic"].contains(&of) {
                format!(" ({})", figure.design)
            } else {
                String::new()
            };
            rows.add_row([format!(" {of}{ours}")]);
        }
        let what = wrapped(figure.what, WHAT - 2).join("\n  ");
        let value = figure.published.map_or("-".to_string(), |value| told(figure, value));
        let mark = if figure.remark.is_some() { " *" } else { "" };
        rows.add_row([format!("  {what}{mark}"), value, ours(figure)]);
    }
    print(page, &rows)?;
    page.output.line("")?;
    note(page, &format!("Document: {}; {}.", published.source, published.machine))?;
    if let Some(remark) = published.figures.iter().find_map(|figure| figure.remark) {
        note(page, &format!("*: {remark}."))?;
    }
    if published.figures.iter().any(|figure| figure.total.is_some()) {
        note(
            page,
            "NR_LOOPS and the time are sums over the visits that costs are means of; cycles per loop are medians over \
             placements.",
        )?;
    }
    if published.figures.iter().any(|figure| figure.state.starts_with("guarded")) {
        let ours = match executor {
            "kernel" => "ours, too, and beside it interrupts.",
            _ => {
                "ours takes a read-side lock there, for user mode can turn off neither preemption nor interrupts: \
                 --executor kernel has both, on beside off."
            }
        };
        note(page, &format!("Its marker disables preemption around the call of its probe; {ours}"))?;
    }
    if published.figures.iter().any(|figure| figure.bytes.is_some()) {
        note(
            page,
            "The document counts 32 bytes in the unlikely path, where its own listing has 51 from 0x13 through the jump \
             back at 0x44, and leaves out what the marker does to the function's prologue. Ours has both counts: the \
             marker's own bytes, and the difference of the whole function.",
        )?;
    }
    Ok(())
}

/// A figure as the document has it: bytes are whole, cycles have as many digits as there.
fn told(figure: &Beside, value: f64) -> String {
    match figure.bytes {
        Some(_) => format!("{value:.0}"),
        None if figure.total.is_some() => format!("{value:.0}"),
        None if value.fract() != 0.0 && (value * 100.0 - (value * 100.0).round()).abs() > 1e-6 => {
            format!("{value:.3}")
        }
        None => format!("{value:.2}"),
    }
}

fn ours(figure: &Beside) -> String {
    match (&figure.cycles, figure.bytes, figure.total) {
        (Some(cycles), ..) => spread(cycles),
        (None, Some(bytes), _) => bytes.to_string(),
        (None, None, Some(total)) => total.to_string(),
        (None, None, None) => "-".to_string(),
    }
}

/// What the document concludes, and whether it is so here.
pub fn conclusions(page: &mut Page, conclusions: &[Conclusion]) -> Result<(), Failure> {
    if !conclusions.iter().any(|conclusion| conclusion.measured) {
        return Ok(());
    }
    page.section("The document's conclusions, tested here")?;
    for conclusion in conclusions.iter().filter(|conclusion| conclusion.measured) {
        let verdict = match conclusion.holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "can't be decided",
        };
        let paint = |output: &Output, text: &str| output.bold(text);
        page.painted_row(verdict, conclusion.text, paint)?;
        page.row("", &reasons(conclusion))?;
    }
    note(
        page,
        "Differences are taken placement by placement. The margin is the error that a cost at one placement may have; \
         for \"almost as much\" a third of the first figure, for \"almost no difference\" a tenth of the marker's whole \
         cost.",
    )
}

fn reasons(conclusion: &Conclusion) -> String {
    let mut parts: Vec<String> = conclusion
        .figures
        .iter()
        .map(|figure| {
            let Some(value) = figure.ours.value else { return format!("{}: not known", figure.what) };
            format!("{} {value:.3} (document {})", figure.what, figure.published)
        })
        .collect();
    if !conclusion.other_speeds.is_empty() {
        let names = conclusion.other_speeds.join(", ");
        parts.push(format!("the loop runs at another of its speeds with {names}"));
    }
    if let Some(margin) = conclusion.margin {
        let relation = match conclusion.relation {
            Relation::MoreThan => format!("to be above {margin:.3}"),
            Relation::Within => format!("to be within ±{margin:.3}"),
        };
        parts.push(format!("difference {}, {relation}", spread(&conclusion.difference)));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::made_up::record;
    use super::*;
    use cyclescope::study::marker::{comparison, published};

    #[test]
    fn figures_have_the_documents_digits() {
        let records =
            [record("immediate", "dormant", 1.0, None), record("immediate", "guarded-empty", 5.0, None)];
        let rows = published::beside(&records);
        let shown: Vec<[String; 2]> = rows
            .iter()
            .map(|row| [row.published.map_or_else(String::new, |v| told(row, v)), ours(row)])
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
    fn a_verdict_names_its_figures() {
        let records = [record("immediate", "dormant", 1.0, None), record("flag", "dormant", 1.2, None)];
        let found = comparison::conclusions(&records);
        assert_eq!(found[0].holds, Some(false));
        let text = reasons(&found[0]);
        assert!(
            text.starts_with(
                "optimized 1.000 (document 2.5); generic 1.200 (document 1.17); difference -0.200"
            ),
            "{text}"
        );
        assert!(text.ends_with("to be above 0.050"), "{text}");
    }
}
