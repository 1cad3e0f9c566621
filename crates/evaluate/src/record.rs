//! The records of an evaluation.

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
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::ClockSide;
use cyclescope_core::machine::core_series::CoreSeries;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::synchrony::TscSynchrony;
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::counter_record::{CountedEvents, CounterRecord};
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// One method's evaluation, kind `evaluate`.
///
/// Statistics are bare numbers in raw units of the method (`unit`): TSC ticks for all but
/// `clock-gettime`; squared for variances, to the fourth power for variances of these.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluateRecord {
    /// Name of the timing method.
    pub clock: &'static str,
    /// Its names in the source documents.
    pub also: &'static [&'static str],
    /// Name of the executor.
    pub executor: &'static str,
    /// Unit of its readings.
    pub unit: Unit,
    /// Number of ensembles, and the paper's figures over them.
    #[serde(flatten)]
    pub totals: EnsembleTotals,
    /// Samples in each ensemble.
    pub samples_per_ensemble: u32,
    /// Taken part of the requested samples, if time ran out; null if all were taken.
    pub scaled: Option<String>,
    /// The most frequent sample.
    pub mode: u64,
    /// The mean of all samples.
    pub mean: f64,
    /// Median sample. `p50`, `mode` and `p99` are exact below 32 768 units, and within 1 in 10 000
    /// above.
    pub p50: u64,
    /// 99th percentile of the samples.
    pub p99: u64,
    /// Step of the readings.
    pub tsc_step: f64,
    /// The total variance in steps²; 0.25 at best.
    pub total_variance_steps: f64,
    /// The variance of variances in steps⁴.
    pub variance_of_variances_steps: f64,
    /// The variance of minima in steps².
    pub variance_of_minima_steps: f64,
    /// Variance of variances expected by chance alone for ensembles of this size, in raw units⁴;
    /// null if no sample could be read with the ruler.
    pub variance_of_variances_chance: Option<f64>,
    /// Whether the method is ergodic by the paper's criterion; null if there are too few samples to
    /// compare.
    pub ergodic: Option<bool>,
    /// Verdict by the paper's criterion.
    pub ergodic_verdict: ErgodicVerdict,
    /// Reason for `ergodic_verdict`.
    pub ergodic_why: String,
    /// Whether the trimmed samples, in core cycles, are ergodic. Trimming keeps samples less than
    /// four steps above the minimum of their block. Null if the answer depends on the required
    /// share, if too little remains, or if the machine is emulated.
    pub ergodic_trimmed: Option<bool>,
    /// Verdict on the trimmed samples; null if the machine is emulated or too little remains.
    pub ergodic_trimmed_verdict: Option<ErgodicVerdict>,
    /// Reason for `ergodic_trimmed_verdict`.
    pub ergodic_trimmed_why: String,
    /// Share of samples that trimming removes; null without a result.
    pub dropped_share: Option<f64>,
    /// Shares of an ensemble's samples that trimming keeps: nine of ten ensembles keep more than
    /// the first, and nine of ten less than the second.
    pub kept_shares: Option<[f64; 2]>,
    /// Share of ensembles whose overhead differs from the median by a step or more.
    pub outlying_share: Option<f64>,
    /// Ensembles with a busy sibling. The trimmed verdict excludes them unless they are the
    /// majority.
    pub shared_ensembles: usize,
    /// Samples that ended before they began. No figure includes them.
    pub backwards: u64,
    /// The first thousand samples in the order of their measurement, in raw units.
    pub first_samples: Vec<u64>,
    /// Cost of an empty pair in core cycles, over layouts.
    pub overhead: Quantity,
    /// Standard deviation of the overhead between ensembles, in core cycles.
    pub overhead_spread: Option<f64>,
    /// Standard deviation of one undisturbed reading, in core cycles.
    pub reading_deviation: Option<f64>,
    /// Shortest code for which this deviation is 5 % and 1 %, in core cycles.
    pub shortest_once: Option<[f64; 2]>,
    /// The same by the paper's formula, from the total variance, in raw units: its 139 and 690.
    pub shortest_paper: [f64; 2],
    /// Lowest and highest rate of an ensemble, in raw units per core cycle.
    pub rates: Option<[f64; 2]>,
    /// Duration of the sampling, in seconds.
    pub seconds: f64,
    /// Events of a sample, as requested, over the counted ensembles.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRecord>,
    /// Number of passes that counted them; missing without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter_passes: Option<usize>,
    /// The mean of each counted ensemble, in the order of `counters`; null where a counter was lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counter_ensembles: Vec<Vec<Option<f64>>>,
    /// Reasons to distrust the numbers.
    pub caveats: Vec<Caveat>,
    /// Target CPU.
    pub cpu: u32,
    /// The processor's name.
    pub cpu_model: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// The command that repeats the evaluation.
    pub repro: String,
}

/// The machine and run that a record comes from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvaluateOrigin {
    /// Target CPU.
    pub cpu: u32,
    /// The processor's name.
    pub cpu_model: String,
    /// The seed.
    pub seed: u64,
    /// The command that repeats the evaluation.
    pub repro: String,
}

impl EvaluateOrigin {
    /// The origin of a run on a machine.
    pub fn new(machine: &cyclescope_core::machine::Machine, seed: u64, repro: String) -> EvaluateOrigin {
        EvaluateOrigin { cpu: machine.target_cpu(), cpu_model: machine.cpu.name(), seed, repro }
    }
}

/// The core clock has moved if its extremes differ by more than this share.
const FREQUENCY_SHARE: f64 = 0.02;

impl EvaluateRecord {
    /// The record of a method.
    pub fn new(method: &SampledMethod, around: &EvaluateOrigin) -> EvaluateRecord {
        let (totals, trimmed) = (&method.totals, &method.trimmed);
        let shape = &method.sampled.shape;
        let step = shape.scale.step;
        let squared = |fraction: &ExactFraction| variance_in_steps(fraction.to_f64(), step);
        let deviation = method.deviation_cycles();
        let counted = method.counted.as_ref();
        let values = |events: &CountedEvents| events.counters.iter().map(|counter| counter.quantity.value).collect();
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
            first_samples: method.sampled.first_durations.clone(),
            overhead: method
                .overhead
                .map_or(Quantity::refused(Unit::CoreCycles), |overhead| Quantity::new(overhead, Unit::CoreCycles)),
            overhead_spread: trimmed.map(|summary| summary.overhead_spread),
            reading_deviation: deviation,
            shortest_once: deviation.map(|deviation| ERROR_SHARES.map(|share| shortest_cost(deviation, share))),
            shortest_paper: ERROR_SHARES.map(|share| shortest_cost((totals.total_variance as f64).sqrt(), share)),
            rates: trimmed.map(|summary| summary.rates),
            seconds: method.sampled.seconds,
            counters: counted.map_or(Vec::new(), |counted| counted.all.counters.clone()),
            counter_passes: counted.map(|counted| counted.all.passes),
            counter_ensembles: counted.map_or(Vec::new(), |counted| counted.ensembles.iter().map(values).collect()),
            caveats: list_caveats(method),
            cpu: around.cpu,
            cpu_model: around.cpu_model.clone(),
            seed: around.seed,
            repro: around.repro.clone(),
        }
    }
}

/// Explains the trimmed verdict.
fn explain_trimmed(method: &SampledMethod) -> String {
    match &method.trimmed {
        Some(summary) => summary.explain_verdict(method.sampled.shape.scale.step),
        None if method.tested.emulated => Caveat::emulated_machine().text,
        None => "too few ensembles with a valid ruler".to_string(),
    }
}

/// Explains why there are fewer samples than requested.
fn describe_scaling(method: &SampledMethod) -> Option<String> {
    let (asked, taken) = (method.asked, method.sampled.ensembles.len() as u64);
    let samples = u64::from(method.sampled.shape.size.samples);
    if taken * samples >= asked.total_samples() {
        return None;
    }
    let reason = "the time allotted to this method";
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
        let used = if summary.mostly_shared { "includes them, because they are the majority" } else { "excludes them" };
        let text = format!("{} ensembles ran with a busy sibling; the trimmed verdict {used}", summary.shared);
        caveats.push(Caveat { code: CaveatKind::SiblingBusy, text });
    }
    caveats
}

/// One ensemble, kind `evaluate.ensemble`.
#[derive(Debug, Clone, Serialize)]
pub struct EnsembleRecord {
    /// Name of the timing method.
    pub clock: &'static str,
    /// Name of the executor.
    pub executor: &'static str,
    /// Number of the ensemble, from 0.
    pub ensemble: usize,
    /// Number of samples.
    pub samples: u64,
    /// Shortest sample, in raw units.
    pub minimum: Option<u64>,
    /// Longest minus shortest sample.
    pub max_deviation: u64,
    /// The variance, floored as in the paper.
    pub variance: u128,
    /// The exact variance.
    pub variance_exact: ExactFraction,
    /// Mean sample.
    pub mean: f64,
}

impl EnsembleRecord {
    /// The record of an ensemble.
    pub fn new(candidate: MethodCandidate, number: usize, ensemble: &Ensemble) -> EnsembleRecord {
        EnsembleRecord {
            clock: candidate.clock.name,
            executor: candidate.executor,
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
    /// Name of the timing method.
    pub clock: &'static str,
    /// Name of the executor.
    pub executor: &'static str,
    /// The fault.
    pub fault: ContaminationFault,
    /// Whether the method promises to exclude it.
    pub promised: bool,
    /// Cost of the fault in core cycles, at a level of 99.9 %; refused if it was not run or too
    /// much disturbed.
    pub cost: Quantity,
    /// Reason for a refused cost.
    pub why: Option<String>,
    /// Whether a busy sibling shared the core during the measurement.
    pub shared: bool,
    /// Verdict on the promise.
    pub verdict: contamination::PromiseVerdict,
    /// The neighbouring code that provoked it.
    pub neighbour: &'static str,
    /// Cost of the neighbouring code itself, in core cycles.
    pub size: Option<f64>,
    /// The test with a second kind of neighbouring code; null unless the first indicates a breach.
    pub second: Option<SecondOpinionRecord>,
}

/// The test of a suspected breach with a second kind of neighbouring code.
#[derive(Debug, Clone, Serialize)]
pub struct SecondOpinionRecord {
    /// The neighbouring code.
    pub neighbour: &'static str,
    /// Cost of the fault next to this code, in core cycles, at a level of 99.9 %; refused if too
    /// much was disturbed.
    pub cost: Quantity,
    /// Whether it shows the breach as well.
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
    /// The record of a fault.
    pub fn new(candidate: MethodCandidate, row: &Contamination) -> ContaminationRecord {
        let (clock, executor) = (candidate.clock.name, candidate.executor);
        let (cost, why) = match &row.cost {
            Fact::Known(cost) => (Quantity::new(*cost, Unit::CoreCycles), None),
            Fact::Unknown(why) => (Quantity::refused(Unit::CoreCycles), Some(why.clone())),
        };
        let Contamination { fault, promised, neighbour, size, shared, verdict, .. } = *row;
        let second = row.second.as_ref().map(SecondOpinionRecord::new);
        ContaminationRecord { clock, executor, fault, promised, cost, why, shared, verdict, neighbour, size, second }
    }
}

/// The differences that a method resolves, kind `evaluate.resolution`.
#[derive(Debug, Clone, Serialize)]
pub struct ResolutionRecord<'a> {
    /// Name of the executor.
    pub executor: &'static str,
    /// Measured cost of one more dependent `add`, in core cycles. The true value is one.
    pub cost: Quantity,
    /// The method and the differences that it resolves. Intervals are in core cycles.
    #[serde(flatten)]
    pub resolution: &'a Resolution,
}

impl<'a> ResolutionRecord<'a> {
    /// The record of a method's resolution.
    pub fn new(executor: &'static str, resolution: &'a Resolution) -> ResolutionRecord<'a> {
        let slope = resolution.staircase(StaircaseBody::Adds).and_then(|stairs| stairs.slope);
        let cost = slope.map_or(Quantity::refused(Unit::CoreCycles), |slope| Quantity::new(slope, Unit::CoreCycles));
        ResolutionRecord { executor, cost, resolution }
    }
}

/// The cost of each step of a method's empty pair, kind `evaluate.parts`.
#[derive(Debug, Clone, Serialize)]
pub struct PairBreakdownRecord {
    /// Name of the timing method.
    pub clock: &'static str,
    /// Name of the executor.
    pub executor: &'static str,
    /// The pair's code: bytes of each instruction in hexadecimal, and its text.
    pub code: Vec<[String; 2]>,
    /// Cost of the empty pair, in core cycles; refused if too much was disturbed.
    pub whole: Quantity,
    /// Costs of its steps.
    pub parts: Vec<PairStepRecord>,
    /// The whole minus the steps between the readings: work outside the steps, minus overlap.
    pub rest: Quantity,
    /// Whether a busy sibling shared the core during the measurement.
    pub shared: bool,
}

/// The cost of one step of a pair.
#[derive(Debug, Clone, Serialize)]
pub struct PairStepRecord {
    /// Name of the step.
    pub step: &'static str,
    /// The side of the pair.
    pub side: ClockSide,
    /// Whether it executes between the two samplings of the counter.
    pub between: bool,
    /// How the cost was measured.
    pub how: StepVariation,
    /// Cost in core cycles.
    pub cost: Quantity,
}

impl PairBreakdownRecord {
    /// The record of a method's pair.
    pub fn new(candidate: MethodCandidate, mode: CodeMode, parts: Option<&PairBreakdown>) -> PairBreakdownRecord {
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
            clock: candidate.clock.name,
            executor: candidate.executor,
            code: list_pair_code(candidate.clock, mode),
            whole: parts.map_or(refused, |parts| cycles(parts.whole)),
            parts: parts.iter().flat_map(|parts| &parts.parts).map(part).collect(),
            rest: parts.map_or(refused, |parts| cycles(parts.rest)),
            shared: parts.is_some_and(|parts| parts.shared),
        }
    }
}

/// Results about the TSC, kind `evaluate.tsc`.
#[derive(Debug, Serialize)]
pub struct TimingFactsRecord<'a> {
    /// Its rate from every source, its steps, and the costs of reads.
    pub tsc: &'a Fact<TscStudy>,
    /// The core clock relative to the TSC over time.
    pub core_clock: &'a Fact<CoreSeries>,
    /// The TSCs of other CPUs relative to the target's.
    pub synchrony: &'a Fact<TscSynchrony>,
}

impl TimingFactsRecord<'_> {
    /// The record of the results.
    pub fn new(facts: &TimingFacts) -> TimingFactsRecord<'_> {
        TimingFactsRecord { tsc: &facts.tsc, core_clock: &facts.series, synchrony: &facts.synchrony }
    }
}
