//! An evaluation as JSON.

use super::MethodCandidate;
use super::contamination::{self, Contamination, ContaminationFault, SecondOpinion};
use super::criteria::{shortest_cost, variance_in_steps};
use super::ensemble::{Ensemble, EnsembleTotals, ExactFraction};
use super::ergodic_verdict::ErgodicVerdict;
use super::pair_breakdown::{PairBreakdown, PairStepCost, StepVariation, list_pair_code};
use super::resolution::{Resolution, StaircaseBody};
use super::sampled_method::SampledMethod;
use super::timing_facts::TimingFacts;
use super::verdict::ERROR_SHARES;
use cyclescope_code::clock::ClockSide;
use cyclescope_core::machine::core_series::CoreSeries;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::synchrony::TscSynchrony;
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// One method's evaluation, kind `evaluate`.
///
/// Statistics are bare numbers in raw units of the method (`unit`): TSC ticks for all but `clock-gettime`; squared for
/// variances, to the fourth power for variances of these.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluateRecord {
    /// The timing method.
    pub clock: &'static str,
    /// Its names in the documents that it comes from.
    pub also: &'static [&'static str],
    /// Where it ran.
    pub executor: &'static str,
    /// What its readings count.
    pub unit: Unit,
    /// Ensembles taken, and the paper's figures over them.
    #[serde(flatten)]
    pub totals: EnsembleTotals,
    /// Samples in each.
    pub samples_per_ensemble: u32,
    /// How many of what was asked for were taken in the time that there was; null where all were.
    pub scaled: Option<String>,
    /// The most frequent sample.
    pub mode: u64,
    /// The mean of all samples.
    pub mean: f64,
    /// The sample that half of all do not exceed. This, the mode and `p99` are exact below 32 768 units, and within
    /// 1 in 10 000 above.
    pub p50: u64,
    /// The sample that 99 % of all do not exceed.
    pub p99: u64,
    /// The step of the readings.
    pub tsc_step: f64,
    /// The total variance in steps²; 0.25 is perfect.
    pub total_variance_steps: f64,
    /// The variance of variances in steps⁴.
    pub variance_of_variances_steps: f64,
    /// The variance of minima in steps².
    pub variance_of_minima_steps: f64,
    /// The variance of variances, in raw units⁴, that chance alone makes of ensembles of so many samples; null where no
    /// sample could be read beside the ruler.
    pub variance_of_variances_chance: Option<f64>,
    /// Whether the method is ergodic by the paper's criterion; null where the samples are too few to compare.
    pub ergodic: Option<bool>,
    /// The paper's verdict.
    pub ergodic_verdict: ErgodicVerdict,
    /// Why.
    pub ergodic_why: String,
    /// Whether the samples below the minimum around them and four steps are ergodic, in core cycles; null where that
    /// depends on the share that has to remain, where too little remains, and where the machine is emulated.
    pub ergodic_trimmed: Option<bool>,
    /// The verdict on these samples; null where the machine is emulated, or too little remains.
    pub ergodic_trimmed_verdict: Option<ErgodicVerdict>,
    /// Why.
    pub ergodic_trimmed_why: String,
    /// The share of samples that this leaves out; null where nothing could be said.
    pub dropped_share: Option<f64>,
    /// The share that remains of an ensemble: nine of ten keep more than the first, and nine of ten less than the second.
    pub kept_shares: Option<[f64; 2]>,
    /// The share of ensembles whose overhead differs from the median by a step or more.
    pub outlying_share: Option<f64>,
    /// Ensembles beside a busy sibling; left out of the trimmed verdict unless they are most.
    pub shared_ensembles: usize,
    /// Samples that ended before they began; they are in no figure.
    pub backwards: u64,
    /// What an empty pair takes in core cycles, over layouts.
    pub overhead: Quantity,
    /// By how much it differs between ensembles, as a standard deviation in core cycles.
    pub overhead_spread: Option<f64>,
    /// The standard deviation of one undisturbed reading, in core cycles.
    pub reading_deviation: Option<f64>,
    /// Core cycles of the shortest code of which this is 5 %, and 1 %.
    pub shortest_once: Option<[f64; 2]>,
    /// The same as the paper reckons, from the total variance, in raw units: its 139 and 690.
    pub shortest_paper: [f64; 2],
    /// Raw units a core cycle: lowest and highest of an ensemble.
    pub rates: Option<[f64; 2]>,
    /// Seconds that the samples took.
    pub seconds: f64,
    /// What to know before believing the numbers.
    pub caveats: Vec<Caveat>,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// The processor's name.
    pub cpu_model: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The command that repeats it.
    pub repro: String,
}

/// What a record says beside a method's figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvaluateOrigin {
    /// The CPU.
    pub cpu: u32,
    /// The processor's name.
    pub cpu_model: String,
    /// The seed.
    pub seed: u64,
    /// The command that repeats it.
    pub repro: String,
}

impl EvaluateOrigin {
    /// Of a run on a machine.
    pub fn new(machine: &cyclescope_core::machine::Machine, seed: u64, repro: String) -> EvaluateOrigin {
        EvaluateOrigin { cpu: machine.target_cpu(), cpu_model: machine.cpu.name(), seed, repro }
    }
}

/// The core clock counts as moved when its extremes differ by more than this share.
const FREQUENCY_SHARE: f64 = 0.02;

impl EvaluateRecord {
    /// A method's record.
    pub fn new(method: &SampledMethod, around: &EvaluateOrigin) -> EvaluateRecord {
        let (totals, trimmed) = (&method.totals, &method.trimmed);
        let shape = &method.sampled.shape;
        let step = shape.scale.step;
        let squared = |fraction: &ExactFraction| variance_in_steps(fraction.to_f64(), step);
        let deviation = method.deviation_cycles();
        EvaluateRecord {
            clock: method.tested.clock.name,
            also: method.tested.clock.also,
            executor: method.tested.executor,
            unit: method.tested.clock.counts,
            totals: totals.clone(),
            samples_per_ensemble: shape.size.samples,
            scaled: describe_scaling(method),
            mode: method.mode(),
            mean: method.mean(),
            p50: method.quantile(0.5),
            p99: method.quantile(0.99),
            tsc_step: step,
            total_variance_steps: squared(&totals.total_variance_exact),
            variance_of_variances_steps: variance_in_steps(squared(&totals.variance_of_variances_exact), step),
            variance_of_minima_steps: squared(&totals.variance_of_minima_exact),
            variance_of_variances_chance: method.chance_variance(),
            ergodic: method.judge_ergodicity().is_ergodic(),
            ergodic_verdict: method.judge_ergodicity(),
            ergodic_why: method.explain_ergodicity(),
            ergodic_trimmed: method.trimmed_ergodicity().and_then(ErgodicVerdict::is_ergodic),
            ergodic_trimmed_verdict: method.trimmed_ergodicity(),
            ergodic_trimmed_why: explain_trimmed(method),
            dropped_share: trimmed.map(|summary| summary.dropped_share),
            kept_shares: trimmed.map(|summary| summary.kept_shares),
            outlying_share: trimmed.map(|summary| summary.outlying_share),
            shared_ensembles: trimmed.map_or(0, |summary| summary.shared),
            backwards: method.count_backwards(),
            overhead: method
                .overhead
                .map_or(Quantity::refused(Unit::CoreCycles), |overhead| Quantity::new(overhead, Unit::CoreCycles)),
            overhead_spread: trimmed.map(|summary| summary.overhead_spread),
            reading_deviation: deviation,
            shortest_once: deviation.map(|deviation| ERROR_SHARES.map(|share| shortest_cost(deviation, share))),
            shortest_paper: ERROR_SHARES.map(|share| shortest_cost((totals.total_variance as f64).sqrt(), share)),
            rates: trimmed.map(|summary| summary.rates),
            seconds: method.sampled.seconds,
            caveats: list_caveats(method),
            cpu: around.cpu,
            cpu_model: around.cpu_model.clone(),
            seed: around.seed,
            repro: around.repro.clone(),
        }
    }
}

/// Why the trimmed verdict is as it is.
fn explain_trimmed(method: &SampledMethod) -> String {
    match &method.trimmed {
        Some(summary) => summary.explain_verdict(method.sampled.shape.scale.step),
        None if method.tested.emulated => Caveat::emulated_machine().text,
        None => "too few ensembles with a sane ruler to say".to_string(),
    }
}

/// Why there are fewer samples than were asked for.
fn describe_scaling(method: &SampledMethod) -> Option<String> {
    let (asked, taken) = (method.asked, method.sampled.ensembles.len() as u64);
    let samples = u64::from(method.sampled.shape.size.samples);
    if taken * samples >= asked.total_samples() {
        return None;
    }
    let reason = "the time that this method had";
    Some(format!("{taken} x {samples} of {} x {}, in {reason}", asked.ensembles, asked.samples))
}

fn list_caveats(method: &SampledMethod) -> Vec<Caveat> {
    let mut caveats = method.tested.caveats();
    let Some(summary) = &method.trimmed else { return caveats };
    let [low, high] = summary.rates;
    if high > low * (1.0 + FREQUENCY_SHARE) {
        let text = format!(
            "the core clock moved: one core cycle was {low:.3} to {high:.3} units of the method's clock, and minima in \
             these units moved with it"
        );
        caveats.push(Caveat { code: CaveatKind::FrequencyMoved, text });
    }
    if summary.shared > 0 {
        let used = if summary.mostly_shared { "uses them, for they are most" } else { "leaves them out" };
        let text = format!("{} ensembles ran beside a busy sibling; the trimmed verdict {used}", summary.shared);
        caveats.push(Caveat { code: CaveatKind::SiblingBusy, text });
    }
    caveats
}

/// One ensemble, kind `evaluate.ensemble`.
#[derive(Debug, Clone, Serialize)]
pub struct EnsembleRecord {
    /// The timing method.
    pub clock: &'static str,
    /// Where it ran.
    pub executor: &'static str,
    /// Its number, from 0.
    pub ensemble: usize,
    /// Samples.
    pub samples: u64,
    /// The shortest, in raw units.
    pub minimum: Option<u64>,
    /// The longest less the shortest.
    pub max_deviation: u64,
    /// The variance as the paper floors it.
    pub variance: u128,
    /// The exact variance.
    pub variance_exact: ExactFraction,
    /// The mean.
    pub mean: f64,
}

impl EnsembleRecord {
    /// An ensemble's record.
    pub fn new(of: MethodCandidate, number: usize, ensemble: &Ensemble) -> EnsembleRecord {
        EnsembleRecord {
            clock: of.clock.name,
            executor: of.executor,
            ensemble: number,
            samples: ensemble.count,
            minimum: ensemble.minimum,
            max_deviation: ensemble.max_deviation(),
            variance: ensemble.variance(),
            variance_exact: ExactFraction(ensemble.variance_exact()),
            mean: ensemble.mean(),
        }
    }
}

/// One fault of one method, kind `evaluate.contamination`.
#[derive(Debug, Clone, Serialize)]
pub struct ContaminationRecord {
    /// The timing method.
    pub clock: &'static str,
    /// Where it ran.
    pub executor: &'static str,
    /// The fault.
    pub fault: ContaminationFault,
    /// Whether the method promises that it does not happen.
    pub promised: bool,
    /// What it costs in core cycles, at a level of 99.9 %; refused where it was not run or too much disturbed.
    pub cost: Quantity,
    /// Why it was refused.
    pub why: Option<String>,
    /// Whether the core was shared with a busy sibling meanwhile.
    pub shared: bool,
    /// What that says about the promise.
    pub verdict: contamination::PromiseVerdict,
    /// The neighbour that provoked it.
    pub neighbour: &'static str,
    /// What the neighbour itself takes, in core cycles.
    pub size: Option<f64>,
    /// What another kind of neighbour says; null where the first does not speak against the method.
    pub second: Option<SecondOpinionRecord>,
}

/// What another kind of neighbour says of a breach that one neighbour has shown.
#[derive(Debug, Clone, Serialize)]
pub struct SecondOpinionRecord {
    /// The neighbour.
    pub neighbour: &'static str,
    /// What the fault costs beside it, in core cycles, at a level of 99.9 %; refused where it was too much disturbed.
    pub cost: Quantity,
    /// Whether it shows the breach, too.
    pub confirms: bool,
}

impl SecondOpinionRecord {
    fn new(second: &SecondOpinion) -> SecondOpinionRecord {
        let SecondOpinion { neighbour, cost, confirms } = *second;
        let refused = Quantity::refused(Unit::CoreCycles);
        let cost = cost.map_or(refused, |cost| Quantity::new(cost, Unit::CoreCycles));
        SecondOpinionRecord { neighbour, cost, confirms }
    }
}

impl ContaminationRecord {
    /// A row's record.
    pub fn new(of: MethodCandidate, row: &Contamination) -> ContaminationRecord {
        let (clock, executor) = (of.clock.name, of.executor);
        let (cost, why) = match &row.cost {
            Fact::Known(cost) => (Quantity::new(*cost, Unit::CoreCycles), None),
            Fact::Unknown(why) => (Quantity::refused(Unit::CoreCycles), Some(why.clone())),
        };
        let Contamination { fault, promised, neighbour, size, shared, verdict, .. } = *row;
        let second = row.second.as_ref().map(SecondOpinionRecord::new);
        ContaminationRecord { clock, executor, fault, promised, cost, why, shared, verdict, neighbour, size, second }
    }
}

/// What a method tells apart, kind `evaluate.resolution`.
#[derive(Debug, Clone, Serialize)]
pub struct ResolutionRecord<'a> {
    /// Where it ran.
    pub executor: &'static str,
    /// What one more dependent `add` costs by it, in core cycles: one, if it is to be believed.
    pub cost: Quantity,
    /// The method and what it tells apart. Its intervals are in core cycles.
    #[serde(flatten)]
    pub resolution: &'a Resolution,
}

impl<'a> ResolutionRecord<'a> {
    /// A method's record.
    pub fn new(executor: &'static str, resolution: &'a Resolution) -> ResolutionRecord<'a> {
        let slope = resolution.staircase(StaircaseBody::Adds).and_then(|stairs| stairs.slope);
        let cost = slope.map_or(Quantity::refused(Unit::CoreCycles), |slope| Quantity::new(slope, Unit::CoreCycles));
        ResolutionRecord { executor, cost, resolution }
    }
}

/// What a method's empty pair takes its time for, kind `evaluate.parts`.
#[derive(Debug, Clone, Serialize)]
pub struct PairBreakdownRecord {
    /// The timing method.
    pub clock: &'static str,
    /// Where it ran.
    pub executor: &'static str,
    /// The pair's code: the instructions' bytes in hexadecimal, and their text.
    pub code: Vec<[String; 2]>,
    /// The empty pair, in core cycles; refused where too much was disturbed.
    pub whole: Quantity,
    /// What its steps take of that.
    pub parts: Vec<PairStepRecord>,
    /// The whole less the parts between the readings: what is no step, and less what overlaps.
    pub rest: Quantity,
    /// Whether the core was shared with a busy sibling meanwhile.
    pub shared: bool,
}

/// What one step of a pair takes.
#[derive(Debug, Clone, Serialize)]
pub struct PairStepRecord {
    /// The step.
    pub step: &'static str,
    /// The side that it is on.
    pub side: ClockSide,
    /// Whether it lies between the two looks at the counter.
    pub between: bool,
    /// How it was measured.
    pub how: StepVariation,
    /// Core cycles.
    pub cost: Quantity,
}

impl PairBreakdownRecord {
    /// A method's record.
    pub fn new(of: MethodCandidate, parts: Option<&PairBreakdown>) -> PairBreakdownRecord {
        let cycles = |interval| Quantity::new(interval, Unit::CoreCycles);
        let refused = Quantity::refused(Unit::CoreCycles);
        let part = |&PairStepCost { step, side, between, how, cost }: &PairStepCost| PairStepRecord {
            step,
            side,
            between,
            how,
            cost: cycles(cost),
        };
        PairBreakdownRecord {
            clock: of.clock.name,
            executor: of.executor,
            code: list_pair_code(of.clock),
            whole: parts.map_or(refused, |parts| cycles(parts.whole)),
            parts: parts.iter().flat_map(|parts| &parts.parts).map(part).collect(),
            rest: parts.map_or(refused, |parts| cycles(parts.rest)),
            shared: parts.is_some_and(|parts| parts.shared),
        }
    }
}

/// What was found about the TSC, kind `evaluate.tsc`.
#[derive(Debug, Serialize)]
pub struct TimingFactsRecord<'a> {
    /// Its rate by every source, its steps, what reads cost.
    pub tsc: &'a Fact<TscStudy>,
    /// The core clock against it over time.
    pub core_clock: &'a Fact<CoreSeries>,
    /// The TSCs of other CPUs against the target's.
    pub synchrony: &'a Fact<TscSynchrony>,
}

impl TimingFactsRecord<'_> {
    /// The record of what was found.
    pub fn new(facts: &TimingFacts) -> TimingFactsRecord<'_> {
        TimingFactsRecord { tsc: &facts.tsc, core_clock: &facts.series, synchrony: &facts.synchrony }
    }
}
