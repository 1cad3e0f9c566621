//! The ways in which one chain was measured, and which of them counts.

use super::analysis::{Analysis, PASS_SHARE};
use super::memory::cycles;
use super::row::Latency;
use crate::study::instr::experiments::experiment::{Meaning, Way};
use crate::study::instr::experiments::modes::usual;
use crate::study::instr::experiments::program_reading::ProgramReading;

/// Core cycles within which two chains have the same cost.
pub(super) const SAME_CYCLES: f64 = 0.05;

/// A latency, whether its links are certain, and what the whole chain takes for each instance.
pub(super) type Figure = (Latency, bool, f64);

impl Analysis<'_> {
    /// The way whose figure counts: that of the plan, unless another one is quicker in every pass. What else happens in a
    /// chain makes it slower, never faster. One in which only few layouts came to a figure, because the cost of the others was
    /// not proportional to the number of instances, is none.
    pub(super) fn quickest(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &Meaning,
    ) -> Option<(Option<Way>, Figure)> {
        let mut all = self.ways(passes, index, meaning);
        let by_pass: Vec<_> =
            passes.iter().map(|pass| self.ways(std::slice::from_ref(pass), index, meaning)).collect();
        let has_plan = all.iter().any(|(way, _)| way.is_none());
        all.retain(|(way, _)| {
            let quicker = |ways: &Vec<(Option<Way>, Figure)>| {
                let of = |way: Option<Way>| ways.iter().find(|(other, _)| *other == way);
                of(*way).zip(of(None)).is_none_or(|(one, plain)| is_below(&one.1.0, &plain.1.0))
            };
            let counts = |way| self.is_steady(passes, index, way) && by_pass.iter().all(quicker);
            !has_plan || way.is_none_or(counts)
        });
        let once = |(_, (latency, ..)): &(Option<Way>, Figure)| latency.cost.high.is_none();
        all.into_iter().min_by(|a, b| once(a).cmp(&once(b)).then(cycles(&a.1.0).total_cmp(&cycles(&b.1.0))))
    }

    /// Whether a chain in some way came to a figure in half as many layouts as the one of the plan in the same passes.
    fn is_steady(&self, passes: &[Vec<ProgramReading>], index: usize, way: Way) -> bool {
        let readings = passes.iter().filter_map(|pass| pass.get(index));
        let counts = readings.filter_map(|reading| {
            let (_, cycles) = reading.again.iter().find(|(other, _)| *other == way)?;
            Some([cycles.len(), reading.cycles.len()])
        });
        let [steady, planned] = counts.fold([0, 0], |sum, counts| [0, 1].map(|at| sum[at] + counts[at]));
        2 * steady >= planned
    }

    /// The latency by the experiment's chain as it was planned, and by each other way in which it was measured.
    pub(super) fn ways(
        &self,
        passes: &[Vec<ProgramReading>],
        index: usize,
        meaning: &Meaning,
    ) -> Vec<(Option<Way>, Figure)> {
        let estimate = self.estimate(passes, index);
        let renamed = self.least_through_memory(passes, meaning);
        let plain = estimate.and_then(|estimate| self.chained(meaning, estimate.cost, renamed));
        let mut ways: Vec<Way> = Vec::new();
        for reading in passes.iter().filter_map(|pass| pass.get(index)) {
            let new: Vec<Way> = reading.again.iter().map(|(way, _)| *way).collect();
            ways.extend(new.into_iter().filter(|way| !ways.contains(way)).collect::<Vec<_>>());
        }
        let again = ways.into_iter().filter_map(|way| {
            let cost = usual(&again(passes, index, way), self.confidence)?.cost;
            let (latency, certain, raw) = self.chained(&self.plan.again(index, way)?.meaning, cost, None)?;
            // So long a chain is not bound by the rate of its instances.
            let raw = if matches!(way, Way::Longer(_)) { f64::INFINITY } else { raw };
            Some((Some(way), (latency, certain, raw)))
        });
        plain.map(|plain| (None, plain)).into_iter().chain(again).collect()
    }
}

/// Whether a latency is less than another one, beyond what is the same.
pub(super) fn is_below(one: &Latency, other: &Latency) -> bool {
    cycles(one) < cycles(other) - SAME_CYCLES.max(PASS_SHARE * cycles(other))
}

/// The figures of a chain that was measured in another way.
pub(in crate::study::instr) fn again(passes: &[Vec<ProgramReading>], index: usize, way: Way) -> Vec<f64> {
    let readings = passes.iter().filter_map(|pass| pass.get(index));
    let figures = readings.flat_map(|reading| reading.again.iter().filter(|(other, _)| *other == way));
    figures.flat_map(|(_, values)| values.clone()).collect()
}
