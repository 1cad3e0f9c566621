//! Coverage: how often the intervals contain the truth, by chains of whole-number cost.
//!
//! One measurement gives its interval at every level, because the estimate is a pure function of
//! its samples. Blocks alternate between idle and a busy loop on the same CPU. With `--full` they
//! are spread over half an hour, because a machine's disturbances come in spells. Two consecutive
//! measurements of one snippet must also agree as often as their intervals claim (A/A).
//! Measurements without a number are counted separately.

use crate::cost_table::{self, KnownCostKind};
use crate::costs::shorten_code;
use crate::instrument_error::{ChainReading, count_held, fit_instrument_error};
use crate::lab::{Lab, LoadCondition, SectionResult};
use crate::tally::{COVERAGE_LEVELS, CoverageTally, check_calibration};
use cyclescope::measure::Precision;
use cyclescope::measure::estimate::CostEstimate;
use cyclescope::ruler::INSTRUMENT_CYCLES;
use cyclescope::run::{RunOutcome, RunRequest};
use cyclescope::snippet::Snippet;
use cyclescope::statistics::{mean, welch_interval};
use std::time::{Duration, Instant};

/// Measurements of each chain without and with `--full`. With twenty chains these are enough to
/// judge intervals; judging differences needs twice as many (`statistics::trials_needed`).
const CHAIN_RUNS: usize = 72;
const CHAIN_RUNS_FULL: usize = 1000;
/// Measurements of one chain in a block. A block is all idle or all loaded.
const BLOCK_RUNS: usize = 6;
/// The time over which `--full` spreads the blocks.
const FULL_DURATION: Duration = Duration::from_secs(30 * 60);
/// Largest number of measured chains.
const MAX_CHAINS: usize = 20;

/// A chain, its true cost and its counts.
struct KnownChain {
    code: String,
    truth: f64,
    snippet: Snippet,
    held: [CoverageTally; 2],
    same: CoverageTally,
    same_welch: CoverageTally,
    readings: Vec<ChainReading>,
}

/// Runs the section.
pub fn check_coverage(lab: &mut Lab) -> SectionResult {
    let mut chains = choose_chains(lab)?;
    if chains.len() < 12 {
        let figure = format!("{} chains have a known cost here", chains.len());
        lab.record_demand("coverage over at least 12 chains", None, figure);
        return check_long_snippets(lab);
    }
    let default = if lab.options.full { CHAIN_RUNS_FULL } else { CHAIN_RUNS };
    let blocks = lab.options.runs.unwrap_or(default).div_ceil(BLOCK_RUNS).next_multiple_of(2);
    let started = Instant::now();
    for block in 0..blocks {
        let load_guard = lab.start_load(LoadCondition::BOTH[block % 2])?;
        for chain in &mut chains {
            measure_block(lab, chain, block % 2)?;
        }
        drop(load_guard);
        if lab.options.full {
            let due = FULL_DURATION.mul_f64((block + 1) as f64 / blocks as f64);
            std::thread::sleep(due.saturating_sub(started.elapsed()));
        }
    }
    println!("{blocks} blocks of {BLOCK_RUNS} over {:.0} s", started.elapsed().as_secs_f64());
    print_coverage(lab, &chains);
    check_held_out(lab, &chains);
    check_long_snippets(lab)
}

/// The chains whose cost is a whole number here.
fn choose_chains(lab: &Lab) -> SectionResult<Vec<KnownChain>> {
    let core = lab.microarchitecture();
    let mut chains = Vec::new();
    for row in cost_table::known_costs().into_iter().filter(|row| row.kind == KnownCostKind::Chain) {
        let Some(truth) = row.cost(core) else { continue };
        let Some(snippet) = lab.assemble_snippet(&row.code, &row.init)? else { continue };
        let [held, same, same_welch] = [(); 3].map(|()| CoverageTally::default());
        let held = [held, CoverageTally::default()];
        let readings = Vec::new();
        chains.push(KnownChain { code: row.code, truth, snippet, held, same, same_welch, readings });
    }
    // Takes about every n-th chain, so that all kinds of unit remain.
    let step = chains.len().div_ceil(MAX_CHAINS).max(1);
    Ok(chains.into_iter().step_by(step).collect())
}

fn measure_block(lab: &mut Lab, chain: &mut KnownChain, condition: usize) -> SectionResult {
    let mut before = None;
    for _ in 0..BLOCK_RUNS {
        let run = lab.measure(&chain.snippet, &RunRequest::default())?;
        let Some(estimates) = estimate_all_levels(&run) else {
            chain.held[condition].add_refused();
            before = None;
            continue;
        };
        let half_width = estimates[2].cost.half_width();
        let error = estimates[2].cost.value - chain.truth;
        let systematic: Vec<f64> = estimates[2].layouts.iter().map(|layout| layout.systematic).collect();
        chain.readings.push(ChainReading::new(error, half_width, mean(&systematic)));
        let held = estimates.each_ref().map(|one| one.cost.contains(chain.truth));
        chain.held[condition].add_interval(held, half_width, error);
        before = match before {
            None => Some(estimates),
            Some(other) => {
                compare_pair(chain, &other, &estimates);
                // Each measurement is part of only one pair, so that the pairs are independent.
                None
            }
        };
    }
    Ok(())
}

/// The estimate at each level; `None` if `run` would give no number.
fn estimate_all_levels(run: &RunOutcome) -> Option<[CostEstimate; 4]> {
    run.estimate()?;
    let at = |level| run.measurement.estimate_at(level);
    let estimates: Vec<CostEstimate> = COVERAGE_LEVELS.into_iter().filter_map(at).collect();
    estimates.try_into().ok()
}

/// Counts whether the difference of two measurements of one snippet contains zero.
fn compare_pair(chain: &mut KnownChain, one: &[CostEstimate; 4], other: &[CostEstimate; 4]) {
    let difference = one[0].cost.value - other[0].cost.value;
    let margin = |level: usize| one[level].cost.half_width().hypot(other[level].cost.half_width());
    let held = [0, 1, 2, 3].map(|level| difference.abs() <= margin(level));
    chain.same.add_interval(held, margin(2), difference);
    let costs = |of: &CostEstimate| of.layouts.iter().map(|layout| layout.cost).collect::<Vec<_>>();
    let welch = COVERAGE_LEVELS.map(|level| welch_interval(&costs(&one[0]), &costs(&other[0]), level));
    let held = welch.map(|interval| interval.is_some_and(|interval| interval.contains(0.0)));
    let half_width = welch[2].map_or(f64::INFINITY, |interval| interval.half_width());
    chain.same_welch.add_interval(held, half_width, difference);
}

fn print_coverage(lab: &mut Lab, chains: &[KnownChain]) {
    println!(
        "{:<44} {:>7} {:>7} {:>7} {:>7} {:>7}  {:>10} {:>8} {:>7}",
        "", "given", "50 %", "80 %", "95 %", "99 %", "half width", "bias", "refused"
    );
    let row = |name: &str, coverage: &CoverageTally| {
        let [half, most, nearly, certain] = coverage.held_shares().map(|share| 100.0 * share);
        println!(
            "{name:<44} {:>7} {half:>7.1} {most:>7.1} {nearly:>7.1} {certain:>7.1}  {:>10.4} {:>+8.4} {:>7}",
            coverage.count_given(),
            coverage.half_width().unwrap_or(f64::NAN),
            coverage.bias(),
            coverage.count_refused()
        );
    };
    let sum = |of: &dyn Fn(&KnownChain) -> &CoverageTally| {
        let mut sum = CoverageTally::default();
        chains.iter().for_each(|chain| sum.merge(of(chain)));
        sum
    };
    for chain in chains {
        let mut both = chain.held[0].clone();
        both.merge(&chain.held[1]);
        row(&shorten_code(&chain.code), &both);
    }
    let (idle, loaded) = (sum(&|chain| &chain.held[0]), sum(&|chain| &chain.held[1]));
    let mut all = idle.clone();
    all.merge(&loaded);
    let same = sum(&|chain| &chain.same);
    for (name, coverage) in [
        ("all chains, idle", &idle),
        ("all chains, loaded", &loaded),
        ("all chains", &all),
        ("A/A: difference of two, intervals added", &same),
        ("A/A: Welch's interval over layouts", &sum(&|chain| &chain.same_welch)),
    ] {
        row(name, coverage);
    }
    for (what, coverage) in [("intervals contain the truth", &all), ("A/A differences contain zero", &same)] {
        for (level, share) in coverage.held_shares().into_iter().enumerate() {
            let text = format!("{what} at {:.0} %", 100.0 * COVERAGE_LEVELS[level]);
            let figure = format!("{:.1} % of {}", 100.0 * share, coverage.count_given());
            lab.record_demand(&text, coverage.is_calibrated(level), figure);
        }
    }
}

/// Fits the instrument's error on each half of the chains and tests it on the other.
fn check_held_out(lab: &mut Lab, chains: &[KnownChain]) {
    let half = |first: usize| chains.iter().skip(first).step_by(2).map(|chain| &chain.readings);
    println!("\n{:<44} {:>8} {:>8}", "the instrument's error, in core cycles", "fitted", "held out");
    let (mut inside, mut all) = (0, 0);
    for fit in [0, 1] {
        let (Some(here), Some(there)) = (fit_instrument_error(half(fit)), fit_instrument_error(half(1 - fit))) else {
            continue;
        };
        println!("{:<44} {here:>8.2} {there:>8.2}", ["odd chains, proved on even", "the other way round"][fit]);
        let (hold, count) = count_held(half(1 - fit), here);
        inside += hold;
        all += count;
    }
    let share = inside as f64 / f64::max(all as f64, 1.0);
    let text = "chains hold the truth at 95 % with the instrument's error of other chains";
    let figure = format!("{:.1} % of {all}; this program allows for {INSTRUMENT_CYCLES}", 100.0 * share);
    lab.record_demand(text, check_calibration(COVERAGE_LEVELS[2], inside, all), figure);
}

/// Snippets of thousands of cycles, with their required precision.
fn check_long_snippets(lab: &mut Lab) -> SectionResult {
    println!("\n{:<32} {:>7} {:>11} {:>15} {:>15}", "long snippet", "truth", "read", "relative half", "default budget");
    let (mut worst, mut right) = (0.0_f64, true);
    for (name, one, copies, cycles) in [
        ("1000 imul in a chain", "imul rax, rax; ", 1000, 3.0),
        ("3000 add in a chain", "add rax, rbx; ", 3000, 1.0),
        ("1500 lea in a chain", "lea rax, [rax+rbx]; ", 1500, 1.0),
    ] {
        let Some(snippet) = lab.assemble_snippet(&one.repeat(copies), "")? else { continue };
        let truth = copies as f64 * cycles;
        let relative = |run: &RunOutcome| {
            let cost = run.estimate()?.cost;
            Some((cost.value, cost.half_width() / cost.value))
        };
        let default = lab.measure(&snippet, &RunRequest::default())?;
        let required = Some(Precision { cycles: 0.0, share: 1e-4, cap: None });
        let precise = RunRequest { required, budget: Some(Duration::from_secs(2)), ..RunRequest::default() };
        let run = lab.measure(&snippet, &precise)?;
        let (value, share) = relative(&run).unwrap_or((f64::NAN, f64::INFINITY));
        worst = worst.max(share);
        right &= (value - truth).abs() <= 3.0 * share * truth;
        let default = relative(&default).map_or(f64::INFINITY, |(_, share)| share);
        println!("{name:<32} {truth:>7} {value:>11.3} {share:>15.2e} {default:>15.2e}");
    }
    let figure = format!("{worst:.2e} at worst with `--interval 0.01% --budget 2`");
    lab.record_demand("long snippets: relative half width at most 0.0001", Some(worst <= 1e-4 && right), figure);
    Ok(())
}
