//! Explains a row: every timed program, its cost, and the chosen one.

use super::constant_variants;
use super::instr_row::{InstrRow, LatencyBound, OperandLatency};
use super::memory_links::RENAMED;
use super::program_trial::{LinkCost, ProgramTrial, build_trial, disassemble, summarize_curve};
use super::row_analysis::{CYCLE_LEAST, RowAnalysis};
use super::slot_count::collect_slot_readings;
use crate::bodies::links::Link;
use crate::bodies::slot_body::SlotBody;
use crate::experiments::experiment::{ChainVariation, ExperimentMeaning, FormExperiment};
use crate::experiments::filler_curves::{FillerCurves, NO_FILLER_CURVES};
use crate::experiments::form_plan::FormPlan;
use crate::experiments::link_costs::LinkCosts;
use crate::experiments::modes;
use crate::experiments::program_reading::{ProgramReading, figures_by_pass};
use crate::experiments::slot_judgement::estimate_all_slots;
use crate::experiments::slot_reading::SlotReading;
use std::collections::BTreeSet;

/// Confidence level of estimates that an explanation does not show.
const EXPLAINED_CONFIDENCE: f64 = 0.95;

/// Explains a row: a trial for each experiment in the order of the plan, then those of other
/// constants. `passes` are the readings of each pass.
pub fn explain_row(
    row: &InstrRow,
    plan: &FormPlan,
    link_costs: &LinkCosts,
    passes: &[Vec<ProgramReading>],
    confidence: f64,
) -> Vec<ProgramTrial> {
    let mut trials = explain_own_constant(row, plan, link_costs, passes, confidence);
    trials.extend(explain_constants(row, plan, link_costs, passes, confidence));
    trials
}

/// Explains a row's dispatch slots: a trial for each body.
pub fn explain_slots(
    row: &InstrRow,
    plan: &FormPlan,
    filler_curves: &FillerCurves,
    passes: &[Vec<ProgramReading>],
) -> Vec<ProgramTrial> {
    let Some(slots) = &row.slots else { return Vec::new() };
    let readings = collect_slot_readings(passes);
    let estimates = estimate_all_slots(filler_curves, &readings);
    let least = estimates.iter().flatten().copied().min_by(f64::total_cmp);
    let trial = |(reading, cost): (&SlotReading, &Option<f64>)| {
        let body = SlotBody::new(&plan.anatomy, reading.shape)?;
        let experiment = plan.slot_experiment(&body.period, &body.init, reading.shape)?;
        let copies = reading.shape.copies;
        let each: Vec<f64> = reading.cycles.iter().map(|cycles| cycles / copies as f64).collect();
        let (trial, _) = build_trial(&experiment, &[each], EXPLAINED_CONFIDENCE);
        let taken = cost.is_some() && *cost == least;
        let why = match (cost, taken) {
            (None, _) if !reading.disturbed.is_empty() => {
                "fillers alone took another time than before, or had none".to_string()
            }
            (None, _) => "no layout gave a number".to_string(),
            (Some(_), true) => "least: no body is faster than its slots permit".to_string(),
            (Some(_), false) if slots.fillers.contains(&reading.shape.filler) => "it agrees or is slower".to_string(),
            (Some(_), false) => "slower: something other than the slots limits it".to_string(),
        };
        Some(ProgramTrial {
            question: "slots",
            recipe: reading.shape.describe(),
            copies,
            cost: *cost,
            taken,
            why,
            ..trial
        })
    };
    readings.iter().zip(&estimates).filter_map(trial).collect()
}

/// Trials with the plan's own constant.
fn explain_own_constant(
    row: &InstrRow,
    plan: &FormPlan,
    link_costs: &LinkCosts,
    passes: &[Vec<ProgramReading>],
    confidence: f64,
) -> Vec<ProgramTrial> {
    let explained = RowExplainer { row, plan, link_costs, confidence };
    let best = find_best_program(row, plan, passes, confidence);
    let mut trials = Vec::new();
    for (index, experiment) in plan.experiments.iter().enumerate() {
        let readings: Vec<&ProgramReading> = passes.iter().filter_map(|pass| pass.get(index)).collect();
        let layouts = figures_by_pass(passes, index);
        let (values, meaning) = match &experiment.meaning {
            ExperimentMeaning::Operands { values, of } => (Some(values.clone()), &**of),
            meaning => (None, meaning),
        };
        let (trial, raw) = build_trial(experiment, &layouts, confidence);
        let rejected = |count: fn(&ProgramReading) -> u32| readings.iter().map(|reading| count(reading)).sum();
        let trial =
            ProgramTrial { bent: rejected(|reading| reading.bent), void: rejected(|reading| reading.void), ..trial };
        match meaning {
            ExperimentMeaning::Throughput { recipe, variant, .. } => {
                let variant = values.or_else(|| variant.clone());
                let first_look = readings.iter().filter_map(|reading| reading.first_look).next();
                let trial = ProgramTrial { recipe: recipe.clone(), cost: raw, variant, ..trial };
                let is_shared = readings.iter().all(|reading| reading.cycles.is_empty());
                trials.push(explain_rate(trial, best == Some(index), is_shared, first_look));
            }
            ExperimentMeaning::Latency { .. } => {
                let trial = ProgramTrial { curve: summarize_curve(&readings, None), ..trial };
                trials.push(explained.explain_chain(trial, meaning, values, raw));
                trials.extend(explained.explain_variations(index, &readings));
                trials.extend(explained.explain_short_variation(index, &readings));
            }
            ExperimentMeaning::SameDestination { to } => trials.push(explain_false_dependency(trial, row, to, raw)),
            ExperimentMeaning::Operands { .. } => trials.push(trial),
        }
    }
    trials
}

/// A row and the sources of its figures.
struct RowExplainer<'a> {
    row: &'a InstrRow,
    plan: &'a FormPlan,
    link_costs: &'a LinkCosts,
    confidence: f64,
}

impl RowExplainer<'_> {
    /// Trials of the variations of an experiment's chain.
    fn explain_variations(&self, index: usize, readings: &[&ProgramReading]) -> Vec<ProgramTrial> {
        let variations: BTreeSet<ChainVariation> =
            readings.iter().flat_map(|reading| reading.again.iter().map(|(variation, _)| *variation)).collect();
        let explain = |variation: ChainVariation| {
            let experiment = self.plan.vary_chain(index, variation)?;
            let figures = |reading: &&ProgramReading| {
                Some(reading.again.iter().find(|(other, _)| *other == variation)?.1.clone())
            };
            let layouts: Vec<Vec<f64>> = readings.iter().filter_map(figures).collect();
            let (trial, raw) = build_trial(&experiment, &layouts, self.confidence);
            let trial = ProgramTrial { curve: summarize_curve(readings, Some(variation)), ..trial };
            Some(self.explain_chain(trial, &experiment.meaning, None, raw))
        };
        variations.into_iter().filter_map(explain).collect()
    }

    /// The trial of short chains with links, if the rate of its instances limits the chain.
    fn explain_short_variation(&self, index: usize, readings: &[&ProgramReading]) -> Option<ProgramTrial> {
        let short = || readings.iter().filter_map(|reading| reading.short_variation.as_ref());
        let experiment = self.plan.vary_chain(index, short().next()?.0)?;
        let layouts: Vec<Vec<f64>> = short().map(|(_, slopes)| slopes.clone()).collect();
        let (trial, raw) = build_trial(&experiment, &layouts, self.confidence);
        let ExperimentMeaning::Latency { links, .. } = &experiment.meaning else { return None };
        let fresh = self.link_costs.sum_fresh(links);
        let mut trial = self.explain_chain(trial, &experiment.meaning, None, raw);
        for (shown, link) in trial.links.iter_mut().zip(links) {
            shown.cycles = self.link_costs.sum_fresh(&[*link]);
            shown.certain = shown.cycles.is_some();
        }
        Some(ProgramTrial {
            recipe: "short chains of this form and links behind a fence, each further turn".to_string(),
            cost: raw.zip(fresh).map(|(raw, fresh)| raw - fresh),
            taken: false,
            why: "a turn takes longer than the rate of instances allows, so it shows a latency that the rate hides"
                .to_string(),
            ..trial
        })
    }

    /// A trial of a latency. `values` describes special operand values.
    fn explain_chain(
        &self,
        trial: ProgramTrial,
        meaning: &ExperimentMeaning,
        values: Option<String>,
        raw: Option<f64>,
    ) -> ProgramTrial {
        let (row, link_costs) = (self.row, self.link_costs);
        let mode = self.plan.anatomy.mode();
        let ExperimentMeaning::Latency { from, to, variant, links, turn, .. } = meaning else { return trial };
        let (from, to, variant) = (Some(from.clone()), Some(to.clone()), values.or_else(|| variant.clone()));
        let mut trial =
            ProgramTrial { question: "latency", from, to, variant, assembly: disassemble(turn, mode), ..trial };
        let one = |link: &Link| {
            let cost = link_costs.sum(&[*link]);
            LinkCost {
                name: link.name(mode).to_string(),
                cycles: cost.map(|cost| cost.cycles),
                certain: cost.is_some_and(|cost| cost.certain),
                margin: cost.map(|cost| cost.margin),
            }
        };
        trial.links = links.iter().map(one).collect();
        trial.recipe = match links.is_empty() {
            true => "a closed chain of this form alone".to_string(),
            false => "a chain of this form and links".to_string(),
        };
        let sum = link_costs.sum(links);
        trial.cost = raw.zip(sum).map(|(raw, sum)| raw - sum.cycles);
        let assembly = trial.assembly.replace('\n', "; ");
        let is_ours = |latency: &&OperandLatency| {
            let chain = latency.chain.strip_prefix(&assembly);
            Some(&latency.from) == trial.from.as_ref()
                && Some(&latency.to) == trial.to.as_ref()
                && (latency.variant == trial.variant || latency.variant.as_deref() == Some(RENAMED))
                && chain.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ["))
        };
        let ours = row.latency.iter().find(is_ours);
        let known = row
            .latency
            .iter()
            .any(|latency| (Some(&latency.from), Some(&latency.to)) == (trial.from.as_ref(), trial.to.as_ref()));
        if let Some(latency) = ours {
            (trial.cost, trial.variant) = (latency.cost.value, latency.variant.clone());
        }
        trial.taken = ours.is_some();
        trial.why = match (ours, raw, sum) {
            (Some(latency), ..) => explain_bound(latency, &trial, row),
            (None, None, _) => "no layout gave a number".to_string(),
            (None, _, None) => "the cost of a link is unknown".to_string(),
            (None, ..) if !known => {
                "faster than its links: no instance waits for this operand, so there is no latency".to_string()
            }
            (None, ..) => {
                "another chain between the same operands is better: its links are certain, or it is faster".to_string()
            }
        };
        trial
    }
}

/// Trials of the constants that may matter. `taken` says whether the row has them as a variant.
fn explain_constants(
    row: &InstrRow,
    plan: &FormPlan,
    link_costs: &LinkCosts,
    passes: &[Vec<ProgramReading>],
    confidence: f64,
) -> Vec<ProgramTrial> {
    let mut trials = Vec::new();
    for tried in constant_variants::collect_tried(plan, passes) {
        let analysis = RowAnalysis {
            plan: &tried.plan,
            link_costs,
            filler_curves: &NO_FILLER_CURVES,
            confidence,
            nop_cycles: link_costs.nop_cycles(),
        };
        let alone = analysis.analyze_headlines(row, &tried.passes);
        let name = tried.constant.to_string();
        let rate = row.throughput.iter().flat_map(|throughput| &throughput.variants);
        let rated = rate.into_iter().any(|variant| variant.variant == name);
        for trial in explain_own_constant(&alone, &tried.plan, link_costs, &tried.passes, confidence) {
            let ends = (trial.from.as_ref(), trial.to.as_ref());
            let is_it = |latency: &&OperandLatency| {
                latency.variant.as_ref() == Some(&name) && (Some(&latency.from), Some(&latency.to)) == ends
            };
            let shown = match trial.question {
                "latency" => row.latency.iter().any(|latency| is_it(&latency)),
                _ => trial.question == "throughput" && rated,
            };
            let why = match (trial.taken, shown) {
                (true, false) => "no certain difference from the general constant".to_string(),
                _ => trial.why,
            };
            let variant = std::iter::once(name.clone()).chain(trial.variant).collect::<Vec<_>>().join(", ");
            trials.push(ProgramTrial { variant: Some(variant), taken: trial.taken && shown, why, ..trial });
        }
    }
    trials
}

/// The program of the row's rate: the fastest with its recipe.
fn find_best_program(
    row: &InstrRow,
    plan: &FormPlan,
    passes: &[Vec<ProgramReading>],
    confidence: f64,
) -> Option<usize> {
    let taken = &row.throughput.as_ref()?.recipe;
    let rate = |index: usize| {
        modes::estimate_lowest_mode(&figures_by_pass(passes, index).concat(), confidence)
            .map(|estimate| estimate.cost.value)
    };
    let same = |experiment: &FormExperiment| match &experiment.meaning {
        ExperimentMeaning::Throughput { recipe, variant: None, .. } => recipe == taken,
        _ => false,
    };
    let candidates = plan.experiments.iter().enumerate().filter(|(_, experiment)| same(experiment));
    let rates = candidates.filter_map(|(index, _)| Some((index, rate(index)?)));
    rates.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

/// `is_shared` says whether all figures are beside a busy sibling.
fn explain_rate(mut trial: ProgramTrial, taken: bool, is_shared: bool, first_look: Option<f64>) -> ProgramTrial {
    trial.taken = taken;
    trial.why = match (taken, trial.cost, first_look) {
        (true, ..) if is_shared => "the best rate that any program sustained, beside a busy sibling".to_string(),
        (true, ..) => "the best rate that any program sustained".to_string(),
        (false, Some(_), _) => "another program was at least as fast".to_string(),
        (false, None, Some(cost)) => format!("{cost:.3} in the first look: others were faster"),
        (false, None, None) if trial.bent + trial.void == 0 => "not run: other programs settle the rate".to_string(),
        (false, None, None) => "no layout gave a number".to_string(),
    };
    trial
}

/// Explains in a sentence why a latency is exact, a sum or an upper bound.
fn explain_bound(latency: &OperandLatency, trial: &ProgramTrial, row: &InstrRow) -> String {
    let cost = latency.cost.value.unwrap_or(f64::NAN);
    match latency.bound {
        LatencyBound::Exact if trial.links.is_empty() => {
            "exact: each instance waits only for the previous one".to_string()
        }
        LatencyBound::Exact => "exact: the cost of each link is certain".to_string(),
        LatencyBound::Sum if latency.variant.as_deref() == Some(RENAMED) => {
            "sum: memory is renamed, because a load alone takes longer than this chain allows; only store and load \
             together have a known cost"
                .to_string()
        }
        LatencyBound::Sum => {
            let links: f64 = trial.links.iter().filter_map(|link| link.cycles).sum();
            format!(
                "sum: the chain passes through several classes of registers; only its whole cost of {:.2} core cycles \
                 is certain, and {links:.2} of it count as links by convention",
                cost + links
            )
        }
        LatencyBound::Upper if cost.is_nan() || cost < CYCLE_LEAST => {
            "upper: less than a core cycle, so instances do not wait for this operand".to_string()
        }
        LatencyBound::Upper => match row.throughput.as_ref().and_then(|throughput| throughput.cost.value) {
            Some(rate) => format!(
                "upper: independent instances take as long ({rate:.2} core cycles each), so their rate may limit the \
                 chain"
            ),
            None => "upper: something other than the latency may limit the chain".to_string(),
        },
    }
}

fn explain_false_dependency(mut trial: ProgramTrial, row: &InstrRow, to: &str, raw: Option<f64>) -> ProgramTrial {
    trial.cost = raw;
    trial.question = "false_dependency";
    trial.recipe = format!("all instances write one {to}, which none reads");
    trial.to = Some(to.to_string());
    trial.taken = row.tags.iter().any(|tag| tag == "false_dependency" || tag == "partial_write");
    trial.why = match (trial.taken, raw) {
        (true, _) => "slower than with several destinations: instances wait for each other",
        (false, Some(_)) => "as fast as with several destinations: instances do not wait for each other",
        (false, None) => "no layout gave a number",
    }
    .to_string();
    trial
}

#[cfg(test)]
mod tests {
    use super::super::instr_table::tests::row;
    use super::*;
    use crate::forms::form_anatomy::FormAnatomy;
    use crate::selection::{FormCriteria, list_forms};
    use crate::tables::compare::headline_latencies;
    use cyclescope_code::asm::CodeMode;
    use cyclescope_core::machine::Machine;

    fn plan_addition() -> FormPlan {
        let criteria = FormCriteria { filters: vec!["Add_r64_rm64 r64, r64".to_string()], ..FormCriteria::default() };
        let target = criteria.select(list_forms(CodeMode::default())).unwrap().remove(0);
        FormPlan::new(FormAnatomy::from_form(target.form).unwrap(), &Machine::detect().features, &target)
    }

    #[test]
    fn programs_that_did_not_run_are_told_from_those_without_a_figure() {
        let plan = plan_addition();
        let mut readings = vec![ProgramReading::default(); plan.experiments.len()];
        (readings[0].cycles, readings[1].bent) = (vec![0.25; 3], 2);
        let row = row("add", "r64, r64", Vec::new(), 0.25);
        let trials = explain_row(&row, &plan, &LinkCosts::default(), &[readings], 0.95);
        let why: Vec<&str> = trials[1..3].iter().map(|trial| trial.why.as_str()).collect();
        assert_eq!(why, ["no layout gave a number", "not run: other programs settle the rate"]);
    }

    #[test]
    fn every_figure_of_a_row_has_a_taken_program() {
        let plan = plan_addition();
        let cycles = |experiment: &FormExperiment| match &experiment.meaning {
            ExperimentMeaning::Throughput { recipe, .. } => 0.25 + 0.001 * recipe.len() as f64,
            _ => 1.0,
        };
        let reading = |experiment| {
            let cycles = cycles(experiment);
            ProgramReading { cycles: vec![cycles, cycles, cycles + 0.001], ..ProgramReading::default() }
        };
        let passes = vec![plan.experiments.iter().map(reading).collect::<Vec<ProgramReading>>(); 2];
        let link_costs = LinkCosts::default();
        let mut row = row("add", "r64, r64", Vec::new(), 0.0);
        RowAnalysis::without_slots(&plan, &link_costs, 0.2).fill_row(&mut row, &passes);
        let trials = explain_row(&row, &plan, &link_costs, &passes, 0.95);
        assert_eq!(trials.len(), plan.experiments.len());
        assert!(trials.iter().all(|trial| trial.passes.len() == 2 && !trial.why.is_empty()));
        let rates: Vec<&ProgramTrial> = trials.iter().filter(|trial| trial.question == "throughput").collect();
        let taken: Vec<f64> = rates.iter().filter(|trial| trial.taken).filter_map(|trial| trial.cost).collect();
        assert_eq!((taken, rates.len() > 1), (vec![row.throughput.as_ref().unwrap().cost.value.unwrap()], true));
        assert!(headline_latencies(&row).count() > 0);
        for latency in headline_latencies(&row) {
            let taken = |trial: &&ProgramTrial| {
                let ends = (trial.from.as_ref(), trial.to.as_ref()) == (Some(&latency.from), Some(&latency.to));
                trial.taken && trial.question == "latency" && trial.variant.is_none() && ends
            };
            let why: Vec<&str> = trials.iter().filter(taken).map(|trial| trial.why.as_str()).collect();
            assert!(why.iter().any(|why| why.starts_with("exact")), "{latency:?} {why:?}");
        }
    }

    #[test]
    fn a_rate_beside_a_busy_sibling_has_a_taken_program() {
        let plan = plan_addition();
        let shared = |_| ProgramReading { shared: vec![0.4, 0.4, 0.401], ..ProgramReading::default() };
        let passes = vec![plan.experiments.iter().map(shared).collect::<Vec<ProgramReading>>()];
        let link_costs = LinkCosts::default();
        let mut row = row("add", "r64, r64", Vec::new(), 0.0);
        RowAnalysis::without_slots(&plan, &link_costs, 0.2).fill_row(&mut row, &passes);
        assert!(row.throughput.as_ref().unwrap().cost.value.is_some());
        let trials = explain_row(&row, &plan, &link_costs, &passes, 0.95);
        let taken: Vec<&ProgramTrial> =
            trials.iter().filter(|trial| trial.taken && trial.question == "throughput").collect();
        assert!(taken.len() == 1 && taken[0].why.ends_with("beside a busy sibling"), "{taken:?}");
    }
}
