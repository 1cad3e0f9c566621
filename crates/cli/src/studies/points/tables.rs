//! Prints points as text.

use super::point_cells::{counter_cells, footnote_marks, format_cost, point_name};
use super::ranking_table::tabulate_variants;
use crate::output::footnotes::Footnotes;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use crate::output::report_words::{format_count, format_quantity};
use crate::output::{Failure, Output, WIDTH, wrap_text};
use crate::studies::run::ranking::{RANK_MEANING, verdict_word};
use comfy_table::{CellAlignment, Table};
use cyclescope::study::points::{PointLabel, PointRow, PointsStudy, counter_names};

/// Width of the notes.
const NOTES_WIDTH: usize = 16;
/// Maximum number of footnotes shown.
const NOTES_MOST: usize = 20;

/// Prints a row for each point, and how they were measured.
pub fn print_points(study: &PointsStudy, output: &mut Output) -> Result<(), Failure> {
    let rows: Vec<&PointRow> = study.rows().collect();
    let mut page = TextPage::new(output);
    let Some(first) = rows.first() else { return Ok(()) };
    let naming = first.point.label.variable().unwrap_or("snippet");
    let ranked = rows.iter().any(|row| !row.variants.is_empty());
    let mut notes = Footnotes::default();
    let lines = match ranked {
        true => tabulate_variants(naming, &rows, &mut notes),
        false => tabulate_costs(naming, &rows, &mut notes),
    };
    let count = format!("{} of {}", rows.len(), format_count(study.session().points as u64, "point"));
    let title = common_subject(&rows).map_or(count.clone(), |subject| format!("{subject}, {count}"));
    wrap_text(&title, WIDTH).iter().try_for_each(|line| page.begin_section(line))?;
    print_table(&mut page, &lines)?;
    notes.print_first(&mut page, NOTES_MOST, "--json and --csv show all")?;
    if ranked {
        print_note(&mut page, RANK_MEANING)?;
    }
    print_note(&mut page, &describe_plan(study))
}

/// Tabulates points that have one variant or two.
fn tabulate_costs(naming: &str, rows: &[&PointRow], notes: &mut Footnotes) -> Table {
    let compared = rows.iter().any(|row| row.versus.is_some());
    let swept = rows.iter().any(|row| matches!(row.point.label, PointLabel::Value { .. }));
    let each = format!("/ {naming}");
    // Calls of short functions have two costs.
    let short = !compared && rows.iter().any(|row| row.throughput.is_some() && row.latency.is_some());
    let mut heading = vec![naming];
    heading.extend(if short { vec!["throughput", "latency"] } else { vec!["core cycles"] });
    heading.extend(match (compared, swept) {
        (true, _) => vec!["other", "ratio", "verdict"],
        (false, true) => vec![each.as_str(), "ns"],
        (false, false) => vec!["ns"],
    });
    let counters = counter_names(rows.iter().copied());
    heading.extend(&counters);
    heading.push("notes");
    let mut lines = new_table(&heading);
    let last = lines.column_mut(heading.len() - 1).expect("it has a heading");
    last.set_cell_alignment(CellAlignment::Left);
    for row in rows {
        let mut cells = vec![point_name(row)];
        match short {
            true => cells.extend(format_both_costs(row)),
            false => cells.push(format_cost(row)),
        }
        match compared {
            true => cells.extend(versus_cells(row)),
            false => {
                cells.extend(swept.then(|| format_unit_cost(row)));
                cells.push(row.time.and_then(|time| time.value).map_or("-".to_string(), format_digits));
            }
        }
        cells.extend(counter_cells(&row.counters, &counters));
        cells.push(wrap_text(&footnote_marks(row, notes), NOTES_WIDTH).join("\n"));
        lines.add_row(cells);
    }
    lines
}

/// The subject that all points have in common, such as a function.
pub fn common_subject<'a>(rows: &[&'a PointRow]) -> Option<&'a str> {
    let mut texts = rows.iter().filter_map(|row| row.snippet.as_deref());
    let first = texts.next()?;
    texts.all(|text| text == first).then_some(first)
}

/// Throughput and latency of a call. A function that isn't short has only the requested one.
fn format_both_costs(row: &PointRow) -> [String; 2] {
    if row.text.is_some() {
        return [format_cost(row), String::new()];
    }
    [&row.throughput, &row.latency].map(|cost| match cost {
        Some(cost) if cost.value.is_some() => format_quantity(cost),
        Some(_) => "no number".to_string(),
        None => "-".to_string(),
    })
}

/// The cost divided by the value of the variable.
fn format_unit_cost(row: &PointRow) -> String {
    let PointLabel::Value { value, .. } = row.point.label else { return String::new() };
    let cost = row.measured_cost().and_then(|cost| cost.value).filter(|_| value > 0);
    cost.map_or("-".to_string(), |cost| format_digits(cost / value as f64))
}

fn versus_cells(row: &PointRow) -> [String; 3] {
    let Some(versus) = &row.versus else { return ["-"; 3].map(str::to_string) };
    let ratio = versus.ratio.value.map_or("-".to_string(), |ratio| format!("{ratio:.3}"));
    [format_quantity(&versus.cost), ratio, verdict_word(Some(versus.verdict)).to_string()]
}

/// Formats a number with four significant digits, but at most six decimals.
fn format_digits(number: f64) -> String {
    let first = if number == 0.0 { 0.0 } else { number.abs().log10().floor() };
    let decimals = (3.0 - first).clamp(0.0, 6.0) as usize;
    format!("{number:.decimals$}")
}

/// Describes how all points were measured.
fn describe_plan(study: &PointsStudy) -> String {
    let Some(run) = study.runs().next() else { return String::new() };
    let plan = run.measurement_plan();
    let percent = (1e6 * plan.confidence).round() / 1e4;
    format!(
        "{percent} % intervals; clock {}, CPU {}, seed {}; each point measured twice, in two passes of random order, \
         so that drift can't look like a slope",
        plan.clock.name,
        run.cpu(),
        plan.seed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_significant_digits() {
        let numbers = [0.0, 0.03125, 0.25, 9.9999, 254.13, 25836.7, -0.0000012];
        assert_eq!(numbers.map(format_digits), ["0.000", "0.03125", "0.2500", "10.000", "254.1", "25837", "-0.000001"]);
    }
}
