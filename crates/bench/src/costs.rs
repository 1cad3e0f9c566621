//! Known costs: each snippet of the table in 20 runs, idle and with a busy loop on the same CPU.
//!
//! A run is one whole measurement with the defaults of `cyclescope run`. The table's figures are
//! published or sums of published ones. A snippet without a figure for this micro-architecture is
//! measured and not counted.

use crate::cost_table::{self, KnownCost};
use crate::lab::{Lab, LoadCondition, SectionResult};
use crate::tally::{SnippetReadings, tolerance};
use cyclescope::run::{RunOutcome, RunRequest};
use std::collections::BTreeMap;

/// Runs of each snippet in each condition.
const RUNS: usize = 20;

/// One snippet's readings, descriptions of its misses, and how often each caveat occurred.
#[derive(Default)]
struct CostFindings {
    readings: [SnippetReadings; 2],
    missed: Vec<String>,
    caveats: BTreeMap<String, usize>,
}

/// Runs the section.
pub fn check_known_costs(lab: &mut Lab) -> SectionResult {
    let core = lab.microarchitecture();
    let rows = cost_table::known_costs();
    println!(
        "{:<8} {:<60} {:>7}  {:<17} {:<17} {:>6} {:>6}",
        "kind", "snippet", "truth", "idle, 20 runs", "loaded, 20 runs", "hits", "hits"
    );
    let mut counts = CostCounts::default();
    for row in &rows {
        let Some(found) = measure_row(lab, row, row.cost(core))? else {
            println!("{:<8} {:<60} this CPU lacks an instruction of it", row.kind, shorten_code(&row.code));
            continue;
        };
        counts.add(row, core, &found);
        print_row(row, row.cost(core), &found);
    }
    println!();
    for [what, run] in &counts.missed {
        println!("missed: {what}: {run}");
    }
    let known = counts.known > 0;
    lab.record_demand(
        "at least 40 snippets with a known cost, 25 of them neither add nor imul",
        known.then_some(counts.known >= 40 && counts.unlike >= 25),
        format!("{} known here, {} neither add nor imul, {} unknown here", counts.known, counts.unlike, counts.unknown),
    );
    for (load, (perfect, hits)) in LoadCondition::BOTH.into_iter().zip(counts.perfect.into_iter().zip(counts.hits)) {
        lab.record_demand(
            &format!("each within ±0.02 or 0.5 % (below 1: ±0.004 or 1.5 %) in 20 runs of 20, {}", load.name()),
            known.then_some(perfect == counts.known),
            format!("{perfect} of {} snippets, {hits} of {} runs", counts.known, counts.known * RUNS),
        );
    }
    Ok(())
}

#[derive(Default)]
struct CostCounts {
    known: usize,
    unlike: usize,
    unknown: usize,
    perfect: [usize; 2],
    hits: [usize; 2],
    missed: Vec<[String; 2]>,
}

impl CostCounts {
    fn add(&mut self, row: &KnownCost, core: &str, found: &CostFindings) {
        let Some(truth) = row.cost(core) else {
            self.unknown += 1;
            return;
        };
        self.known += 1;
        self.unlike += usize::from(row.is_unlike_ruler());
        for (condition, readings) in found.readings.iter().enumerate() {
            let hits = readings.count_hits(truth);
            self.hits[condition] += hits;
            self.perfect[condition] += usize::from(hits == RUNS);
        }
        self.missed.extend(found.missed.iter().map(|run| [shorten_code(&row.code), run.clone()]));
    }
}

/// Measures a snippet in both conditions; `None` if the CPU cannot run it.
fn measure_row(lab: &mut Lab, row: &KnownCost, truth: Option<f64>) -> SectionResult<Option<CostFindings>> {
    let Some(snippet) = lab.assemble_snippet(&row.code, &row.init)? else { return Ok(None) };
    let mut found = CostFindings::default();
    for (load, readings) in LoadCondition::BOTH.into_iter().zip(0..) {
        let load_guard = lab.start_load(load)?;
        for _ in 0..RUNS {
            let run = lab.measure(&snippet, &RunRequest::default())?;
            let value = run.estimate().map(|estimate| estimate.cost.value);
            found.readings[readings].0.push(value);
            let hit = truth.zip(value).is_some_and(|(truth, value)| (value - truth).abs() <= tolerance(truth));
            for caveat in &run.caveats {
                *found.caveats.entry(format!("{:?}", caveat.code)).or_default() += 1;
            }
            if truth.is_some() && !hit {
                found.missed.push(describe_miss(&run, load));
            }
        }
        drop(load_guard);
    }
    Ok(Some(found))
}

/// A missed run: its figures and its caveats.
fn describe_miss(run: &RunOutcome, load: LoadCondition) -> String {
    let value = match run.estimate() {
        Some(estimate) => format!("{:.4} ± {:.4}", estimate.cost.value, estimate.cost.half_width()),
        None => "no number".to_string(),
    };
    let details = run.measurement.estimate.as_ref().map_or(String::new(), |estimate| {
        let [low, _, high] = estimate.rate;
        format!(
            ", {} layouts, {} of {} rounds kept, add link {:.3} ± {:.3}, clock {:.1} % apart, width {:.1?}",
            estimate.layouts.len(),
            estimate.kept,
            estimate.kept + estimate.dropped,
            estimate.add_link.value,
            estimate.add_link.half_width(),
            100.0 * (high / low - 1.0),
            estimate.width
        )
    });
    let caveats: Vec<String> = run.caveats.iter().map(|caveat| format!("{:?}", caveat.code)).collect();
    let caveats = if caveats.is_empty() { "no caveat".to_string() } else { caveats.join(", ") };
    format!("{}: {value}{details}; {caveats}", load.name())
}

fn print_row(row: &KnownCost, truth: Option<f64>, found: &CostFindings) {
    let range = |readings: &SnippetReadings| match readings.range() {
        Some([low, high]) => format!("{low:.4}..{high:.4}"),
        None => "no number".to_string(),
    };
    let [idle, loaded] = &found.readings;
    let hits = |readings: &SnippetReadings| match truth {
        Some(truth) => format!("{}", readings.count_hits(truth)),
        None => "-".to_string(),
    };
    let verdict = match truth {
        None => format!("unknown here; {}", list_caveats(&found.caveats)),
        Some(truth) if idle.count_hits(truth) == RUNS && loaded.count_hits(truth) == RUNS => "pass".to_string(),
        Some(_) => format!("MISS; {} without a number", idle.count_refused() + loaded.count_refused()),
    };
    println!(
        "{:<8} {:<60} {:>7}  {:<17} {:<17} {:>6} {:>6}  {verdict}",
        row.kind,
        shorten_code(&row.code),
        truth.map_or("?".to_string(), |truth| format!("{truth}")),
        range(idle),
        range(loaded),
        hits(idle),
        hits(loaded),
    );
}

fn list_caveats(counts: &BTreeMap<String, usize>) -> String {
    let parts: Vec<String> = counts.iter().map(|(code, count)| format!("{code} {count}×")).collect();
    parts.join(", ")
}

/// Shortens a snippet to fit a table's column.
pub fn shorten_code(code: &str) -> String {
    if code.chars().count() <= 60 {
        code.to_string()
    } else {
        format!("{}…", code.chars().take(59).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_snippets_fit_a_column() {
        assert_eq!(shorten_code("nop"), "nop");
        assert_eq!(shorten_code(&"nop; ".repeat(40)).chars().count(), 60);
    }

    #[test]
    fn only_a_perfect_score_counts() {
        let rows = cost_table::parse_cost_table("chain | imul rax, rax | | 3 | 3 | 3 | 3 | 3 | 3 | U").unwrap();
        let full = SnippetReadings(vec![Some(3.0); RUNS]);
        let mut short = full.clone();
        short.0[7] = None;
        let mut counts = CostCounts::default();
        counts.add(&rows[0], "Zen 4", &CostFindings { readings: [full, short], ..CostFindings::default() });
        assert_eq!((counts.perfect, counts.hits), ([1, 0], [RUNS, RUNS - 1]));
        assert_eq!((counts.known, counts.unlike), (1, 0));
    }
}
