//! Fast and slow operands: the extremes of what a form's candidates took.

use super::analysis::Analysis;
use super::row::{Latency, Row, Variant};
use crate::bodies::values::{self, FAST, SLOW};
use crate::experiments::experiment::Meaning;
use crate::experiments::modes::Estimate;
use crate::experiments::program_reading::ProgramReading;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::record::Quantity;

/// What was measured with some values.
trait Measured {
    fn cycles(&self) -> f64;
}

impl Measured for Variant {
    fn cycles(&self) -> f64 {
        self.cost.value.unwrap_or(f64::NAN)
    }
}

impl Measured for Latency {
    fn cycles(&self) -> f64 {
        self.cost.value.unwrap_or(f64::NAN)
    }
}

/// The least and the most of some, named, where they differ.
fn extremes<T: Measured + Clone>(mut found: Vec<T>) -> Option<[(&'static str, T); 2]> {
    found.retain(|one| one.cycles().is_finite());
    found.sort_by(|a, b| a.cycles().total_cmp(&b.cycles()));
    let (least, most) = (found.first()?.clone(), found.last()?.clone());
    values::differ(least.cycles(), most.cycles()).then_some([(FAST, least), (SLOW, most)])
}

impl Analysis<'_> {
    /// Adds the fast and the slow operands of throughput and latency.
    pub(crate) fn operands(&self, passes: &[Vec<ProgramReading>], rate: Option<f64>, row: &mut Row) {
        let (mut rates, mut latencies) = (Vec::new(), Vec::new());
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            let Meaning::Operands { values, of } = &experiment.meaning else { continue };
            if let Meaning::Throughput { recipe, .. } = &**of {
                let Some(Estimate { cost, .. }) = self.estimate(passes, index) else { continue };
                let cost = Quantity::new(cost, Unit::CoreCycles);
                let recipe = format!("{values}: {recipe}");
                rates.push(Variant { variant: String::new(), immediate: None, cost, recipe });
            } else if let Some((mut latency, _, raw)) = self.latency(passes, index, of) {
                latency.chain = format!("{values}: {}", latency.chain);
                latencies.push((latency, raw));
            }
        }
        if let (Some(throughput), Some(found)) = (&mut row.throughput, extremes(rates)) {
            throughput.variants.extend(found.map(|(name, one)| Variant { variant: name.to_string(), ..one }));
        }
        let judged = |(mut latency, raw): (Latency, f64)| {
            self.judge(&mut latency, raw, rate, row);
            latency
        };
        let judged: Vec<Latency> = latencies.into_iter().map(judged).collect();
        if let Some(found) = extremes(judged) {
            row.latency.extend(found.map(|(name, one)| Latency { variant: Some(name.to_string()), ..one }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::statistics::Interval;

    fn costs(values: &[f64]) -> Vec<Variant> {
        let cost = |value: &f64| Quantity::new(Interval::around(*value, 0.01), Unit::CoreCycles);
        let one = |value| Variant {
            variant: String::new(),
            immediate: None,
            cost: cost(value),
            recipe: String::new(),
        };
        values.iter().map(one).collect()
    }

    #[test]
    fn operands_are_fast_and_slow_only_where_it_matters() {
        let found = extremes(costs(&[14.0, 10.0, 18.0])).unwrap();
        assert_eq!((found[0].0, found[0].1.cycles()), (FAST, 10.0));
        assert_eq!((found[1].0, found[1].1.cycles()), (SLOW, 18.0));
        assert!(extremes(costs(&[10.0, 10.4])).is_none());
        assert!(extremes(costs(&[])).is_none());
    }
}
