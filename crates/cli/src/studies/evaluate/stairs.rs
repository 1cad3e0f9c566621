//! The staircases as the paper has them.

use super::rows::{Rows, place};
use super::tables::{short, tight, whole};
use crate::output::Failure;
use crate::output::page::{Page, note, print, table};
use cyclescope::clock::Clock;
use cyclescope::executor::DEFAULT;
use cyclescope::study::evaluate::beside::{self, InSteps, OurStairs};
use cyclescope::study::evaluate::evaluation::Evaluation;
use cyclescope::study::evaluate::resolution::Body;

/// By how much each body grows until its minimum moves, and the published staircases beside ours.
pub fn stairs(page: &mut Page, evaluation: &Evaluation) -> Result<(), Failure> {
    page.section("Resolution as the paper has it: when the minimum moves, in TSC ticks")?;
    let mut rows = Rows::new(&["method", "loop: by", "every", "adds: by", "every", "readings"]);
    for found in &evaluation.methods {
        let mut cells = Vec::new();
        for body in Body::ALL {
            let totals = found.resolution.staircase(body).map(|stairs| &stairs.totals);
            let by = totals.and_then(|totals| totals.smallest_change);
            let every = totals.and_then(|totals| totals.length_per_change);
            cells.push(by.map_or("-".to_string(), |by| by.to_string()));
            cells.push(every.map_or("-".to_string(), short));
        }
        let readings = found.resolution.staircase(Body::Iterations).map_or(0, |stairs| stairs.readings);
        cells.push(readings.to_string());
        rows.add(found.candidate, found.candidate.clock.name.to_string(), cells);
    }
    rows.print(page)?;
    note(
        page,
        "by: the smallest change of the minimum. every: iterations or instructions by which the body grows, on the mean, \
         until its minimum moves: the paper's resolution. Minima that fall count as moves, so that few readings of a \
         length seem to resolve more; --resolution-samples 100000 takes the paper's number.",
    )?;
    published(page, evaluation)
}

const HEADING: [&str; 10] =
    ["method", "where", "var.", "steps²", "dev.", "of var.", "of min.", "0", "999", "every"];

fn published(page: &mut Page, evaluation: &Evaluation) -> Result<(), Failure> {
    page.section("The paper's loop of 0 to 999 iterations and ours, in TSC ticks")?;
    let mut rows = table(&HEADING);
    for row in beside::stairs(&evaluation.methods) {
        let published = &row.published;
        let every = published.length_per_change;
        let figures = [
            published.total_variance,
            published.maximum_deviation,
            published.variance_of_variances,
            published.variance_of_minima,
        ];
        let name = Clock::named(published.method).and_then(|clock| clock.also.first()).copied();
        let label = name.unwrap_or(published.method).to_string();
        rows.add_row(cells(label, "paper", figures, &row.in_steps, Some(published.minima), every));
        for ours in &row.ours {
            rows.add_row(own(ours));
        }
        if row.ours.is_empty() {
            rows.add_row(["", "here", "not run"]);
        }
    }
    print(page, &rows)?;
    note(
        page,
        "var.: total variance; dev.: the largest deviation from the minimum; 0, 999: the least reading of these lengths. The paper's step is 4 ticks and one of its \
         iterations takes 2, which makes \"two assembly instructions\"; each step of ours lasts as many iterations as \
         take its time.",
    )
}

fn own(ours: &OurStairs) -> Vec<String> {
    let totals = &ours.totals;
    let figures = [
        totals.total_variance,
        totals.maximum_deviation,
        totals.variance_of_variances,
        totals.variance_of_minima,
    ];
    let here = if ours.executor == DEFAULT.name { "here" } else { place(ours.executor) };
    cells(String::new(), here, figures, &ours.in_steps, ours.minima, totals.length_per_change)
}

/// A row. `figures` are total variance, largest deviation, variance of variances and of minima.
fn cells(
    label: String,
    place: &str,
    figures: [u64; 4],
    in_steps: &InSteps,
    minima: Option<[u64; 2]>,
    every: Option<f64>,
) -> Vec<String> {
    let [variance, deviation, of_variances, of_minima] = figures;
    let (variance, deviation) = (tight(variance as f64), tight(deviation as f64));
    let (of_variances, of_minima) = (whole(of_variances.into()), whole(of_minima.into()));
    let minimum = |at: usize| minima.map_or("-".to_string(), |minima| tight(minima[at] as f64));
    let every = every.map_or("-".to_string(), tight);
    let steps = short(in_steps.total_variance);
    let place = place.to_string();
    vec![label, place, variance, steps, deviation, of_variances, of_minima, minimum(0), minimum(1), every]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_figures_are_80_columns_wide() {
        let most =
            InSteps { total_variance: 999_999.0, variance_of_variances: None, variance_of_minima: None };
        for figure in [99_999, 999_999, 9_949_999_999, 9_999_999_999, u64::MAX] {
            let mut rows = table(&HEADING);
            let label = "paper-alternative".to_string();
            rows.add_row(cells(label, "ring 0", [figure; 4], &most, Some([figure; 2]), Some(499.5)));
            for line in rows.lines() {
                assert!(line.trim_end().chars().count() < 80, "{line}");
            }
        }
    }
}
