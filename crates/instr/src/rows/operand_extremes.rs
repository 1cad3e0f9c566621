//! Fast and slow operands: the extremes among a form's candidates.

use super::instr_row::{InstrRow, OperandLatency, ThroughputVariant};
use super::row_analysis::RowAnalysis;
use crate::bodies::operand_values::{self, FAST_OPERANDS, SLOW_OPERANDS};
use crate::experiments::experiment::ExperimentMeaning;
use crate::experiments::modes::ModeEstimate;
use crate::experiments::program_reading::ProgramReading;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// A cost measured with particular operand values.
trait MeasuredCycles {
    fn cycles(&self) -> f64;
}

impl MeasuredCycles for ThroughputVariant {
    fn cycles(&self) -> f64 {
        self.cost.value.unwrap_or(f64::NAN)
    }
}

impl MeasuredCycles for OperandLatency {
    fn cycles(&self) -> f64 {
        self.cost.value.unwrap_or(f64::NAN)
    }
}

/// The least and the greatest cost, with variant names, if they differ.
fn find_extremes<T: MeasuredCycles + Clone>(mut found: Vec<T>) -> Option<[(&'static str, T); 2]> {
    found.retain(|one| one.cycles().is_finite());
    found.sort_by(|a, b| a.cycles().total_cmp(&b.cycles()));
    let (least, most) = (found.first()?.clone(), found.last()?.clone());
    operand_values::costs_differ(least.cycles(), most.cycles())
        .then_some([(FAST_OPERANDS, least), (SLOW_OPERANDS, most)])
}

impl RowAnalysis<'_> {
    /// Adds variants with fast and slow operands to throughput and latencies.
    pub(crate) fn add_operands(&self, passes: &[Vec<ProgramReading>], rthroughput: Option<f64>, row: &mut InstrRow) {
        let (mut rates, mut latencies) = (Vec::new(), Vec::new());
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let ExperimentMeaning::Operands { values, of } = &experiment.meaning else { continue };
            if let ExperimentMeaning::Throughput { recipe, .. } = &**of {
                let Some(ModeEstimate { cost, .. }) = self.estimate_experiment(passes, index) else {
                    continue;
                };
                let cost = Quantity::new(cost, Unit::CoreCycles);
                let recipe = format!("{values}: {recipe}");
                rates.push(ThroughputVariant { variant: String::new(), immediate: None, cost, recipe });
            } else if let Some((mut latency, _, raw)) = self.estimate_latency(passes, index, of) {
                latency.chain = format!("{values}: {}", latency.chain);
                latencies.push((latency, raw));
            }
        }
        if let (Some(throughput), Some(found)) = (&mut row.throughput, find_extremes(rates)) {
            throughput.variants.extend(found.map(|(name, one)| ThroughputVariant { variant: name.to_string(), ..one }));
        }
        let judged = |(mut latency, raw): (OperandLatency, f64)| {
            self.judge_latency(&mut latency, raw, rthroughput, row);
            latency
        };
        let judged: Vec<OperandLatency> = latencies.into_iter().map(judged).collect();
        if let Some(found) = find_extremes(judged) {
            row.latency.extend(found.map(|(name, one)| OperandLatency { variant: Some(name.to_string()), ..one }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::statistics::Interval;

    fn costs(values: &[f64]) -> Vec<ThroughputVariant> {
        let cost = |value: &f64| Quantity::new(Interval::with_margin(*value, 0.01), Unit::CoreCycles);
        let one = |value| ThroughputVariant {
            variant: String::new(),
            immediate: None,
            cost: cost(value),
            recipe: String::new(),
        };
        values.iter().map(one).collect()
    }

    #[test]
    fn fast_and_slow_operands_are_reported_only_if_costs_differ() {
        let found = find_extremes(costs(&[14.0, 10.0, 18.0])).unwrap();
        assert_eq!((found[0].0, found[0].1.cycles()), (FAST_OPERANDS, 10.0));
        assert_eq!((found[1].0, found[1].1.cycles()), (SLOW_OPERANDS, 18.0));
        assert!(find_extremes(costs(&[10.0, 10.4])).is_none());
        assert!(find_extremes(costs(&[])).is_none());
    }
}
