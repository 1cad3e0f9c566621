//! The paper's staircases.

use super::method_table::{MethodTable, executor_place};
use super::tables::{format_integer, format_short, format_tight};
use crate::output::Failure;
use crate::output::page::{TextPage, new_table, print_note, print_table};
use cyclescope::clock::Clock;
use cyclescope::executor::DEFAULT_OFFER;
use cyclescope::study::evaluate::evaluation::Evaluation;
use cyclescope::study::evaluate::published_comparison::{self, MeasuredStairs, VariancesInSteps};
use cyclescope::study::evaluate::resolution::StaircaseBody;

/// Prints how much each body grows until its minimum changes, and the published staircases next to
/// ours.
pub fn print_staircases(page: &mut TextPage, evaluation: &Evaluation) -> Result<(), Failure> {
    page.begin_section("Resolution as the paper defines it, in TSC ticks")?;
    let mut rows = MethodTable::new(&["method", "loop: by", "every", "adds: by", "every", "readings"]);
    for found in &evaluation.methods {
        let mut cells = Vec::new();
        for body in StaircaseBody::ALL {
            let totals = found.resolution.staircase(body).map(|stairs| &stairs.totals);
            let by = totals.and_then(|totals| totals.smallest_change);
            let every = totals.and_then(|totals| totals.length_per_change);
            cells.push(by.map_or("-".to_string(), |by| by.to_string()));
            cells.push(every.map_or("-".to_string(), format_short));
        }
        let readings = found.resolution.staircase(StaircaseBody::Iterations).map_or(0, |stairs| stairs.readings);
        cells.push(readings.to_string());
        rows.add_row(found.candidate, found.candidate.clock.name.to_string(), cells);
    }
    rows.print(page)?;
    print_note(
        page,
        "by: the smallest change of the minimum. every: the mean number of iterations or instructions until the \
         minimum changes, which is the paper's resolution. A falling minimum counts as a change, so few readings of a \
         length seem to resolve more; --resolution-samples 100000 takes the paper's number.",
    )?;
    print_published(page, evaluation)
}

const PUBLISHED_HEADING: [&str; 10] =
    ["method", "where", "var.", "steps²", "dev.", "of var.", "of min.", "0", "999", "every"];

fn print_published(page: &mut TextPage, evaluation: &Evaluation) -> Result<(), Failure> {
    page.begin_section("The paper's loop of 0 to 999 iterations and ours, in TSC ticks")?;
    let mut rows = new_table(&PUBLISHED_HEADING);
    for row in published_comparison::compare_stairs(&evaluation.methods) {
        let published = &row.published;
        let every = published.length_per_change;
        let figures = [
            published.total_variance,
            published.maximum_deviation,
            published.variance_of_variances,
            published.variance_of_minima,
        ];
        let name = Clock::find_named(published.method).and_then(|clock| clock.also.first()).copied();
        let label = name.unwrap_or(published.method).to_string();
        rows.add_row(staircase_cells(label, "paper", figures, &row.in_steps, Some(published.minima), every));
        for ours in &row.ours {
            rows.add_row(our_cells(ours));
        }
        if row.ours.is_empty() {
            rows.add_row(["", "here", "not run"]);
        }
    }
    print_table(page, &rows)?;
    print_note(
        page,
        "var.: total variance; dev.: the largest deviation from the minimum; 0, 999: the smallest reading of these \
         lengths. The paper's step is 4 ticks and one of its iterations takes 2, hence its \"two assembly \
         instructions\"; here, a step lasts as many iterations as take its time.",
    )
}

fn our_cells(ours: &MeasuredStairs) -> Vec<String> {
    let totals = &ours.totals;
    let figures =
        [totals.total_variance, totals.maximum_deviation, totals.variance_of_variances, totals.variance_of_minima];
    let here = if ours.executor == DEFAULT_OFFER.name { "here" } else { executor_place(ours.executor) };
    staircase_cells(String::new(), here, figures, &ours.in_steps, ours.minima, totals.length_per_change)
}

/// Formats a row. `figures` are total variance, largest deviation, variance of variances and of
/// minima.
fn staircase_cells(
    label: String,
    place: &str,
    figures: [u64; 4],
    in_steps: &VariancesInSteps,
    minima: Option<[u64; 2]>,
    every: Option<f64>,
) -> Vec<String> {
    let [variance, deviation, of_variances, of_minima] = figures;
    let (variance, deviation) = (format_tight(variance as f64), format_tight(deviation as f64));
    let (of_variances, of_minima) = (format_integer(of_variances.into()), format_integer(of_minima.into()));
    let minimum = |at: usize| minima.map_or("-".to_string(), |minima| format_tight(minima[at] as f64));
    let every = every.map_or("-".to_string(), format_tight);
    let steps = format_short(in_steps.total_variance);
    let place = place.to_string();
    vec![label, place, variance, steps, deviation, of_variances, of_minima, minimum(0), minimum(1), every]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_fit_80_columns_with_any_figures() {
        let most =
            VariancesInSteps { total_variance: 999_999.0, variance_of_variances: None, variance_of_minima: None };
        for figure in [99_999, 999_999, 9_949_999_999, 9_999_999_999, u64::MAX] {
            let mut rows = new_table(&PUBLISHED_HEADING);
            let label = "paper-alternative".to_string();
            rows.add_row(staircase_cells(label, "ring 0", [figure; 4], &most, Some([figure; 2]), Some(499.5)));
            for line in rows.lines() {
                assert!(line.trim_end().chars().count() < 80, "{line}");
            }
        }
    }
}
