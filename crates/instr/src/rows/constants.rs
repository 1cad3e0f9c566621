//! Other constants: which of them make a form cost something else, as variants of its row.
//!
//! A wrong difference is worse than a missing one, for rates have several modes. A constant is a variant where every pass
//! shows the same difference, and at least two of several do; and where the layouts with it and those without lie apart: on
//! the wrong side of the middle between their medians are none where there are six of each, one of eight, two of ten or more.
//! Layouts that only chance tells apart do so less than once in a thousand times. A latency's are those of the chain that
//! it is from. A slower rate also has to be slower in all programs. Limits: differences below a twentieth, through memory, or
//! of fewer layouts are not told.

use super::analysis::Analysis;
use super::row::{Latency, Row, Status, Throughput, Variant};
use super::ways::again;
use crate::experiments::experiment::Meaning;
use crate::experiments::form_plan::FormPlan;
use crate::experiments::program_reading::ProgramReading;
use crate::forms::constants::Constant;
use cyclescope_core::statistics::median;
use cyclescope_measure::result::record::Quantity;

/// A rate differs by more than this share, and by more than these core cycles; a latency likewise.
const SHARE: f64 = 0.05;
const RATE_CYCLES: f64 = 0.015;
const LATENCY_CYCLES: f64 = 0.2;
/// Layouts on the wrong side, at most, by the least number of layouts with either constant; of fewer nothing is told. Two
/// samples of one distribution pass that in 0.03 % of cases, of any number (simulated, 50 000 pairs each).
const ASTRAY: [(usize, usize); 3] = [(10, 2), (8, 1), (6, 0)];
/// Passes that show a difference, at least, where there are as many.
const PASSES: usize = 2;

/// The readings of one constant, by pass.
pub(crate) struct Tried {
    pub(crate) constant: Constant,
    pub(crate) plan: FormPlan,
    pub(crate) passes: Vec<Vec<ProgramReading>>,
    /// What the passes that have these readings read with the general constant.
    general: Vec<Vec<ProgramReading>>,
}

impl Tried {
    /// Whether a chain is quicker only since the constant takes the flags out of it: a shift by zero writes none, and what
    /// reads them then waits for an earlier instruction. Where it is slower, the reader does wait for the shift.
    fn breaks(&self, latency: &Latency, difference: Difference) -> bool {
        let writes = self.plan.anatomy.sample.rflags_modified() != 0;
        latency.to == "flags" && !writes && difference == Difference::Less
    }
}

/// The constants of a plan that were measured in full in enough of the passes.
pub(crate) fn tried(plan: &FormPlan, passes: &[Vec<ProgramReading>]) -> Vec<Tried> {
    let one = |(place, constant): (usize, &Constant)| {
        let of = |pass: &Vec<ProgramReading>| {
            let other = pass.first()?.constants.as_ref()?.iter().find(|other| other.place == place)?;
            Some((other.readings.clone(), pass.clone()))
        };
        let (passes_here, general): (Vec<_>, Vec<_>) = passes.iter().filter_map(of).unzip();
        let enough = passes_here.len() >= PASSES.min(passes.len());
        let plan = if enough { plan.with(*constant)? } else { return None };
        Some(Tried { constant: *constant, plan, passes: passes_here, general })
    };
    plan.anatomy.constants.iter().enumerate().skip(1).filter_map(one).collect()
}

/// What two costs say of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    None,
    Less,
    More,
}

/// Whether a cost is beyond another one by a share and by some core cycles.
fn difference(general: &Quantity, other: &Quantity, cycles: f64) -> Difference {
    let (Some(general), Some(other)) = (general.value, other.value) else { return Difference::None };
    let least = cycles.max(SHARE * general.min(other));
    match () {
        _ if general - other > least => Difference::Less,
        _ if other - general > least => Difference::More,
        _ => Difference::None,
    }
}

/// Whether the layouts of a fast constant and those of a slow one are told apart by all of them but a few.
fn apart(fast: &[f64], slow: &[f64]) -> bool {
    let least = fast.len().min(slow.len());
    let Some((_, most)) = ASTRAY.iter().find(|(layouts, _)| least >= *layouts) else { return false };
    let middle = (median(&mut fast.to_vec()) + median(&mut slow.to_vec())) / 2.0;
    let astray = fast.iter().filter(|cycles| **cycles >= middle).count()
        + slow.iter().filter(|cycles| **cycles <= middle).count();
    astray <= *most
}

/// The rows of the general constant and of another one, from the same passes.
struct Pair {
    general: Row,
    other: Row,
}

impl Analysis<'_> {
    /// Adds the constants with which throughput or latency differ.
    pub(crate) fn constants(&self, passes: &[Vec<ProgramReading>], row: &mut Row) {
        let is_tried =
            |pass: &Vec<ProgramReading>| pass.first().is_some_and(|first| first.constants.is_some());
        if !passes.is_empty() && passes.iter().all(is_tried) {
            row.tried = self.plan.anatomy.constants.iter().skip(1).map(Constant::to_string).collect();
        }
        for tried in tried(self.plan, passes) {
            self.constant(&tried, row);
        }
    }

    fn constant(&self, tried: &Tried, row: &mut Row) {
        let with = Analysis { plan: &tried.plan, ..*self };
        let pair = |general: &[Vec<ProgramReading>], other: &[Vec<ProgramReading>]| Pair {
            general: self.plainly(row, general),
            other: with.plainly(row, other),
        };
        let one = std::slice::from_ref::<Vec<ProgramReading>>;
        let mut pairs = vec![pair(&tried.general, &tried.passes)];
        pairs.extend(
            tried.general.iter().zip(&tried.passes).map(|(general, other)| pair(one(general), one(other))),
        );
        let (variant, immediate) = (tried.constant.to_string(), tried.constant.immediate());
        let rate = |pair: &Pair| match (&pair.general.throughput, &pair.other.throughput) {
            (Some(general), Some(other)) => difference(&general.cost, &other.cost, RATE_CYCLES),
            _ => Difference::None,
        };
        let rates = agreed(pairs.iter().map(rate)).filter(|difference| self.rates_apart(tried, *difference));
        let mut latencies = Vec::new();
        for latency in &pairs[0].other.latency {
            let of =
                |row: &Row| row.latency.iter().find(|other| other.is_same_pair(latency)).map(|one| one.cost);
            let differ = |pair: &Pair| match (of(&pair.general), of(&pair.other)) {
                (Some(general), Some(other)) => difference(&general, &other, LATENCY_CYCLES),
                _ => Difference::None,
            };
            let found = agreed(pairs.iter().map(differ)).filter(|found| !tried.breaks(latency, *found));
            if found.is_some_and(|difference| with.chain_apart(tried, latency, &pairs[0].other, difference)) {
                let (variant, immediate) = (Some(variant.clone()), immediate.clone());
                latencies.push(Latency { variant, immediate, ..latency.clone() });
            }
        }
        let shown = pairs.swap_remove(0).other;
        row.latency.extend(latencies);
        if let (Some(_), Some(Throughput { cost, recipe, .. }), Some(throughput)) =
            (rates, shown.throughput, &mut row.throughput)
        {
            throughput.variants.push(Variant { variant, immediate, cost, recipe });
        }
    }

    /// Throughput and latencies from some passes, without tags, caveats and variants.
    pub(super) fn plainly(&self, key: &Row, passes: &[Vec<ProgramReading>]) -> Row {
        let (tags, caveats, latency) = (Vec::new(), Vec::new(), Vec::new());
        let mut row =
            Row { status: Status::Measured, throughput: None, tags, caveats, latency, ..key.clone() };
        let throughput = self.throughput(passes, &mut row);
        let rate = throughput.as_ref().and_then(|throughput| throughput.cost.value);
        row.throughput = throughput;
        self.latencies(passes, rate, &mut row);
        row.latency.retain(|latency| latency.variant.is_none());
        row.latency.retain(|latency| latency.from != "mem_data" && latency.to != "mem_data");
        row
    }

    /// Whether the rates of the faster constant's best program lie apart from those of all programs of the slower one.
    fn rates_apart(&self, tried: &Tried, difference: Difference) -> bool {
        let general = figures(self.plan, &tried.general);
        let other = figures(&tried.plan, &tried.passes);
        let (fast, slow) = match difference {
            Difference::Less => (other, general),
            _ => (general, other),
        };
        let fast = fast
            .into_iter()
            .min_by(|one, other| median(&mut one.clone()).total_cmp(&median(&mut other.clone())));
        fast.is_some_and(|fast| apart(&fast, &slow.concat()))
    }

    /// Whether the chain that a latency of this constant is from lies apart from the same one with the general constant.
    fn chain_apart(&self, tried: &Tried, latency: &Latency, row: &Row, difference: Difference) -> bool {
        let Some((index, way)) = self.chain_of(&tried.passes, latency, row) else { return false };
        // Where only one of the constants was measured in another way, both were as the chain was planned.
        let in_way = |passes| way.map(|way| again(passes, index, way)).filter(|cycles| !cycles.is_empty());
        let (general, other) = match (in_way(&tried.general), in_way(&tried.passes)) {
            (Some(general), Some(other)) => (general, other),
            _ => (layouts(&tried.general, index), layouts(&tried.passes, index)),
        };
        match difference {
            Difference::Less => apart(&other, &general),
            _ => apart(&general, &other),
        }
    }
}

/// The figures of each throughput program's layouts.
fn figures(plan: &FormPlan, passes: &[Vec<ProgramReading>]) -> Vec<Vec<f64>> {
    let is_rate =
        |index: &usize| matches!(plan.experiments[*index].meaning, Meaning::Throughput { variant: None, .. });
    let figures = (0..plan.experiments.len()).filter(is_rate).map(|index| layouts(passes, index));
    figures.filter(|cycles| !cycles.is_empty()).collect()
}

/// The figures of an experiment's layouts.
fn layouts(passes: &[Vec<ProgramReading>], index: usize) -> Vec<f64> {
    passes.iter().filter_map(|pass| pass.get(index)).flat_map(|reading| reading.cycles.clone()).collect()
}

/// The difference that all of some show.
fn agreed(mut differences: impl Iterator<Item = Difference>) -> Option<Difference> {
    let first = differences.next().filter(|first| *first != Difference::None)?;
    differences.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::row;
    use super::*;
    use crate::experiments::gauge::Gauge;
    use crate::experiments::program_reading::OtherConstant;
    use crate::forms::wanted::WantedForm;
    use crate::selection::{Criteria, all};
    use cyclescope_core::machine::Machine;

    fn wanted(name: &str) -> WantedForm {
        let criteria = Criteria { filters: vec![name.to_string()], ..Criteria::default() };
        criteria.select(all()).unwrap().remove(0)
    }

    /// Readings in which rates and latencies take this long; `stray` layouts of the first rate took half as long.
    fn readings(plan: &FormPlan, rate: f64, latency: f64, stray: usize) -> Vec<ProgramReading> {
        let mut first = true;
        let of = |meaning: &Meaning| {
            let usual = if meaning.is_rate() { rate } else { latency };
            let stray = if std::mem::take(&mut first) { stray } else { 0 };
            let layout = |at: usize| if at < stray { usual / 2.0 } else { usual * (1.0 + 1e-4 * at as f64) };
            ProgramReading { cycles: (0..6).map(layout).collect(), ..ProgramReading::default() }
        };
        plan.experiments.iter().map(|experiment| &experiment.meaning).map(of).collect()
    }

    /// The variants of a row whose passes have this rate and latency with the constant at place 1, and 0.5 and 3 else.
    fn variants(passes: &[(f64, f64)], stray: usize) -> (Vec<String>, Vec<String>) {
        variants_with(passes, stray, |_, _| {})
    }

    /// The same, with the readings of the constant at place 1 changed.
    fn variants_with(
        passes: &[(f64, f64)],
        stray: usize,
        change: impl Fn(&FormPlan, &mut [ProgramReading]),
    ) -> (Vec<String>, Vec<String>) {
        let wanted = wanted("Shl_rm64_imm8 r64, imm8");
        let plan = FormPlan::new(wanted.anatomy().unwrap(), &Machine::detect().features, &wanted);
        let other = plan.with(plan.anatomy.constants[1]).unwrap();
        let pass = |(rate, latency): &(f64, f64)| {
            let mut pass = readings(&plan, 0.5, 3.0, stray);
            let mut readings = readings(&other, *rate, *latency, 0);
            change(&other, &mut readings);
            pass[0].constants = Some(vec![OtherConstant { place: 1, readings }]);
            pass
        };
        let passes: Vec<_> = passes.iter().map(pass).collect();
        let gauge = Gauge::default();
        let mut row = row("shl", "r64, imm8", Vec::new(), 0.0);
        Analysis { plan: &plan, gauge: &gauge, confidence: 0.95, slot: 0.1 }.fill(&mut row, &passes);
        assert_eq!(row.tried[0], "immediate 0x0");
        let rates = row.throughput.unwrap().variants;
        assert!(rates.iter().all(|variant| variant.immediate.as_deref() == Some("0x0")));
        let latencies = row.latency.into_iter().filter_map(|latency| latency.variant);
        (rates.into_iter().map(|variant| variant.variant).collect(), latencies.collect())
    }

    #[test]
    fn a_constant_is_a_variant_where_every_pass_shows_the_same_difference() {
        let (rates, latencies) = variants(&[(0.25, 2.0), (0.25, 2.0)], 0);
        assert_eq!(
            (rates, latencies),
            (vec!["immediate 0x0".to_string()], vec!["immediate 0x0".to_string()])
        );
        for same in [[(0.5, 3.0); 2], [(0.508, 3.1); 2], [(0.25, 2.0), (0.5, 3.0)], [(0.25, 2.0), (1.0, 4.0)]]
        {
            assert_eq!(variants(&same, 0), (Vec::new(), Vec::new()), "{same:?}");
        }
    }

    #[test]
    fn a_rate_that_the_general_constant_reached_too_is_no_difference() {
        // Three layouts of eighteen are no mode of a program, but a hint that the rate was there to be had.
        assert_eq!(variants(&[(0.25, 3.0); 3], 1).0, Vec::<String>::new());
        assert_eq!(variants(&[(0.25, 3.0); 3], 0).0.len(), 1);
        assert_eq!(variants(&[(0.35, 3.0); 2], 0).0.len(), 1);
    }

    #[test]
    fn the_chain_that_a_latency_is_from_shows_the_difference() {
        // Without a gauge, chains with links have no figure.
        let figure = |meaning: &Meaning, wanted: bool| matches!(meaning, Meaning::Latency { links, .. } if links.is_empty() == wanted);
        for (wanted, count) in [(false, 1), (true, 0)] {
            let few = |plan: &FormPlan, readings: &mut [ProgramReading]| {
                let all = plan.experiments.iter().zip(readings);
                all.filter(|(experiment, _)| figure(&experiment.meaning, wanted))
                    .for_each(|(_, reading)| reading.cycles.truncate(2));
            };
            assert_eq!(variants_with(&[(0.25, 2.0); 2], 0, few).1.len(), count, "{wanted}");
        }
    }

    #[test]
    fn few_layouts_are_not_told_apart() {
        let some = |count: usize, cycles: f64| vec![cycles; count];
        let with = |count: usize, stray: usize| [some(count - stray, 2.0), some(stray, 4.0)].concat();
        for (count, most) in
            [(1, None), (2, None), (5, None), (6, Some(0)), (8, Some(1)), (10, Some(2)), (40, Some(2))]
        {
            for stray in 0..count / 2 {
                let told = most.is_some_and(|most| stray <= most);
                assert_eq!(apart(&with(count, stray), &some(count, 3.0)), told, "{stray} of {count}");
            }
        }
        assert!(!apart(&some(5, 2.0), &some(12, 3.0)) && !apart(&some(12, 2.0), &some(5, 3.0)));
    }

    #[test]
    fn every_constant_has_a_plan_like_that_of_the_general_one() {
        let features = Machine::detect().features;
        let several = all()
            .into_iter()
            .filter(|wanted| wanted.anatomy().is_some_and(|anatomy| anatomy.constants.len() > 1));
        for wanted in several.step_by(7) {
            let plan = FormPlan::new(wanted.anatomy().unwrap(), &features, &wanted);
            for constant in &plan.anatomy.constants {
                assert!(plan.with(*constant).is_some(), "{:?} {constant}", wanted.form);
            }
        }
    }
}
