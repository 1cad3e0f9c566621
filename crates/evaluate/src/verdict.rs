//! Which method to use on this machine, and what it resolves.

use super::contamination::{Contamination, ContaminationFault, PromiseVerdict as Seen};
use super::criteria::shortest_cost;
use super::ergodic_verdict::ErgodicVerdict;
use super::method_evaluation::MethodEvaluation;
use super::sampled_method::SampledMethod;
use cyclescope_code::clock::{self, Clock};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// The relative errors that the paper considers.
pub(crate) const ERROR_SHARES: [f64; 2] = [0.05, 0.01];

/// A recommended method and its expected performance.
#[derive(Debug, Clone, Serialize)]
pub struct RecommendedMethod {
    /// The method.
    pub clock: &'static str,
    /// Reason for the recommendation.
    pub why: String,
    /// Faults that it promises to exclude, for which the measurement is undecided.
    pub not_told: Vec<ContaminationFault>,
    /// Cost of its empty pair in core cycles, to be subtracted.
    pub overhead: Quantity,
    /// Standard deviation of one undisturbed reading, in core cycles.
    pub reading_deviation: f64,
    /// Shortest code that one reading measures to 5 % and to 1 %, in core cycles: 20 and 100
    /// deviations.
    pub shortest_once: [f64; 2],
    /// The same for the difference of two codes, from many interleaved readings; `None` if time did
    /// not suffice for many.
    pub shortest_many: Option<ManyReadings>,
}

/// Resolution of many readings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ManyReadings {
    /// Readings of each of the two programs.
    pub readings: usize,
    /// Smallest difference that they resolve at 95 %, in core cycles.
    pub difference: f64,
    /// Shortest code for which this difference is 5 % and 1 %, in core cycles.
    pub shortest: [f64; 2],
}

/// The conclusions of an evaluation for code that one executor runs, kind `evaluate.verdict`.
#[derive(Debug, Clone, Serialize)]
pub struct EvaluationVerdict {
    /// Name of the executor. A recommendation is only for the executor that the method was measured
    /// with.
    pub executor: &'static str,
    /// For short code: fenced on both sides, with the smallest overhead.
    pub short_code: Option<RecommendedMethod>,
    /// For long code: also waits for the code's stores.
    pub long_code: Option<RecommendedMethod>,
    /// Broken promises, or reasons against all methods.
    pub findings: Vec<String>,
    /// Reasons for giving no recommendation.
    pub caveats: Vec<Caveat>,
}

impl EvaluationVerdict {
    /// The verdict on the methods that this executor ran.
    pub(crate) fn from_methods(methods: &[MethodEvaluation], executor: &'static str) -> EvaluationVerdict {
        let methods = || methods.iter().filter(|evaluated| evaluated.candidate.executor == executor);
        let mut findings: Vec<String> = methods().flat_map(describe_breaches).collect();
        let short = MethodChoice::from_methods(methods(), RequiredPromise::Fenced);
        if let MethodChoice::Nothing(why) = &short {
            findings.push(format!("no method is recommended: {why}"));
        }
        let short_code = short.cheapest_usable().map(|method| {
            let seen = method.describe_evidence(RequiredPromise::Fenced);
            let why = format!(
                "it promises to exclude surrounding code on both sides, and {seen}; no other such method here is \
                 cheaper by a step of the clock"
            );
            recommend_method(method, &why)
        });
        let long_code = match MethodChoice::from_methods(methods(), RequiredPromise::Drained) {
            MethodChoice::Of(usable) => find_cheapest(&usable).map(|method| {
                let seen = method.describe_evidence(RequiredPromise::Drained);
                let why = format!(
                    "it also promises to wait until the code's stores are visible, and {seen}; other methods miss \
                     pending stores"
                );
                recommend_method(method, &why)
            }),
            MethodChoice::Nothing(why) => short.cheapest_usable().map(|method| {
                let why = format!("as for short code, and code with stores seems shorter: {why}");
                recommend_method(method, &why)
            }),
        };
        EvaluationVerdict { executor, short_code, long_code, findings, caveats: Vec::new() }
    }

    /// On an emulated machine, methods are indistinguishable.
    pub(crate) fn for_emulated(executor: &'static str) -> EvaluationVerdict {
        let (findings, caveats) = (Vec::new(), vec![Caveat::emulated_machine()]);
        EvaluationVerdict { executor, short_code: None, long_code: None, findings, caveats }
    }
}

/// Promises required of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequiredPromise {
    /// It keeps surrounding code out of its readings on both sides.
    Fenced,
    /// It also waits for stores.
    Drained,
}

impl RequiredPromise {
    /// Whether the requirement excludes this fault.
    fn covers_fault(self, fault: ContaminationFault) -> bool {
        self == RequiredPromise::Drained || fault != ContaminationFault::StoresNotDrained
    }

    /// Describes a method that meets the requirement.
    fn describe(self) -> &'static str {
        match self {
            RequiredPromise::Fenced => "is fenced on both sides",
            RequiredPromise::Drained => "is fenced on both sides and waits for stores",
        }
    }
}

/// A method that makes the required promises, broke none, and is constant.
#[derive(Clone, Copy)]
struct UsableMethod<'a> {
    evaluated: &'a MethodEvaluation,
    method: &'a SampledMethod<'static>,
}

impl<'a> UsableMethod<'a> {
    /// The method, or the reason against it; `None` if it does not make the required promises.
    fn from_evaluation(
        evaluated: &'a MethodEvaluation,
        asked: RequiredPromise,
    ) -> Option<Result<UsableMethod<'a>, String>> {
        let rows = || evaluated.contamination.iter().filter(|row| asked.covers_fault(row.fault));
        if !rows().all(|row| row.promised) {
            return None;
        }
        let name = evaluated.candidate.clock.name;
        if let Some(row) = rows().find(|row| row.verdict == Seen::Broken) {
            return Some(Err(format!("{name} does not exclude \"{}\"", row.fault.describe())));
        }
        let Some(method) = &evaluated.method else {
            return Some(Err(format!("{name} gave no valid reading")));
        };
        let why = match method.trimmed_ergodicity() {
            Some(ErgodicVerdict::Yes) if method.overhead.is_some() => {
                return Some(Ok(UsableMethod { evaluated, method }));
            }
            Some(ErgodicVerdict::No) => "is not constant between ensembles",
            _ => "is not certain to be constant between ensembles",
        };
        Some(Err(format!("{name} {why}")))
    }

    /// Describes the evidence for the required promises: nothing contradicts them, or a second kind
    /// of neighbouring code does not confirm a breach.
    fn describe_evidence(&self, asked: RequiredPromise) -> String {
        let by_one = |row: &Contamination| {
            let second = row.second.filter(|second| !second.confirms)?;
            Some(format!("{}: {}, not {}", row.fault.describe(), row.neighbour, second.neighbour))
        };
        let rows = self.evaluated.contamination.iter().filter(|row| asked.covers_fault(row.fault));
        let by_one: Vec<String> = rows.filter_map(by_one).collect();
        if by_one.is_empty() {
            return "no neighbouring code broke that promise".to_string();
        }
        format!("one kind of neighbouring code broke that promise, another did not ({})", by_one.join("; "))
    }
}

/// The methods that meet the requirement, or the reason that none does.
enum MethodChoice<'a> {
    Of(Vec<UsableMethod<'a>>),
    Nothing(String),
}

impl<'a> MethodChoice<'a> {
    fn from_methods(methods: impl Iterator<Item = &'a MethodEvaluation>, asked: RequiredPromise) -> MethodChoice<'a> {
        let (mut usable, mut unfit) = (Vec::new(), Vec::new());
        for judged in methods.filter_map(|evaluated| UsableMethod::from_evaluation(evaluated, asked)) {
            match judged {
                Ok(method) => usable.push(method),
                Err(why) => unfit.push(why),
            }
        }
        match (usable.is_empty(), unfit.is_empty()) {
            (false, _) => MethodChoice::Of(usable),
            (true, false) => MethodChoice::Nothing(unfit.join("; ")),
            (true, true) => MethodChoice::Nothing(format!("no measured method promises that it {}", asked.describe())),
        }
    }

    fn cheapest_usable(&self) -> Option<UsableMethod<'a>> {
        match self {
            MethodChoice::Of(usable) => find_cheapest(usable),
            MethodChoice::Nothing(_) => None,
        }
    }
}

/// The method with the smallest overhead. Methods within one clock step are equal; then the default
/// method of more machines wins.
fn find_cheapest<'a>(methods: &[UsableMethod<'a>]) -> Option<UsableMethod<'a>> {
    // From the ensembles, which were spread over seconds.
    let overhead = |method: &SampledMethod| method.trimmed.map_or(f64::INFINITY, |summary| summary.overhead);
    let step = |method: &SampledMethod| method.trimmed.map_or(0.0, |summary| summary.step_cycles);
    let least = methods.iter().map(|usable| overhead(usable.method)).fold(f64::INFINITY, f64::min);
    let equals = methods.iter().filter(|UsableMethod { method, .. }| overhead(method) <= least + step(method));
    let rank = |clock: &'static Clock| (clock::preference_rank(clock), clock.name);
    equals.min_by_key(|usable| rank(usable.evaluated.candidate.clock)).copied()
}

fn recommend_method(usable: UsableMethod, why: &str) -> RecommendedMethod {
    let UsableMethod { evaluated, method } = usable;
    let not_told = |row: &&Contamination| row.promised && row.verdict.fault_happens().is_none();
    let not_told = evaluated.contamination.iter().filter(not_told).map(|row| row.fault).collect();
    let deviation = method.deviation_cycles().unwrap_or(f64::NAN);
    let many = evaluated.resolution.by_samples.first().and_then(|by| by.rungs.last());
    RecommendedMethod {
        clock: evaluated.candidate.clock.name,
        why: why.to_string(),
        not_told,
        overhead: method
            .overhead
            .map_or(Quantity::refused(Unit::CoreCycles), |overhead| Quantity::new(overhead, Unit::CoreCycles)),
        reading_deviation: deviation,
        shortest_once: ERROR_SHARES.map(|share| shortest_cost(deviation, share)),
        shortest_many: many.map(|rung| ManyReadings {
            readings: rung.readings,
            difference: rung.interleaved,
            shortest: ERROR_SHARES.map(|share| shortest_cost(rung.interleaved, share)),
        }),
    }
}

/// Describes each broken promise of a method.
fn describe_breaches(evaluated: &MethodEvaluation) -> Vec<String> {
    let name = evaluated.candidate.clock.name;
    let describe_breach = |row: &Contamination| {
        let cost = row.cost.known()?;
        let second = row.second.filter(|second| second.confirms && row.verdict == Seen::Broken)?;
        let figure = |cost: &Interval| format!("{:.1} ({:.1} to {:.1})", cost.value, cost.low, cost.high);
        Some(format!(
            "{name} promises to exclude \"{}\" and does not: {} core cycles with {}, {} with {}",
            row.fault.describe(),
            figure(cost),
            row.neighbour,
            figure(&second.cost?),
            second.neighbour
        ))
    };
    evaluated.contamination.iter().filter_map(describe_breach).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contamination::{FAULTS, SecondOpinion};
    use crate::ensemble_reader::SamplingSize;
    use crate::resolution::{ResolutionEffort, measure_resolution};
    use crate::sampled_method::SamplingRequest;
    use crate::sampling::{PairSampler, SamplingSpan};
    use crate::{TestedClock, sampled_method::SampledMethod};
    use cyclescope_code::asm::CodeMode;
    use cyclescope_core::machine::fact::Fact;
    use cyclescope_core::random::Random;
    use cyclescope_measure::ruler::UnsharedWidth;
    use cyclescope_sim::{Scenario, SimulatedExecutor};
    use std::time::Duration;

    const FEW: ResolutionEffort = ResolutionEffort { time: Duration::from_millis(5), readings: None };

    /// A method whose pair takes `overhead` core cycles, with these observed faults.
    fn evaluated(name: &str, overhead: f64, seen: [Seen; 5]) -> MethodEvaluation {
        let clock = Clock::find_named(name).unwrap();
        let ruler = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        let tested = TestedClock {
            clock,
            executor: "user",
            mode: CodeMode::default(),
            ruler,
            step: 2.0,
            imul_latency: 3.0,
            width: None,
            emulated: false,
        };
        let mut machine = SimulatedExecutor::new(Scenario { step: 2, overhead, ..Scenario::default() }, 1);
        let size = SamplingSize { ensembles: 8, samples: 2000 };
        let shape = PairSampler::new(&tested).sampling_shape(size, 80e-9);
        let span = SamplingSpan { from: Duration::ZERO, until: Duration::from_secs(86_400) };
        let samples = SamplingRequest { asked: size, shape, span, earlier: UnsharedWidth::default() };
        let mut random = Random::new(2);
        let method = SampledMethod::measure(&mut machine, &tested, &samples, &mut random, &mut |_| Ok(()));
        let row = |(fault, verdict): (&ContaminationFault, Seen)| Contamination {
            fault: *fault,
            promised: fault.is_excluded_by(&clock.promises),
            neighbour: "simulated",
            size: None,
            cost: Fact::Known(Interval::with_margin(9.0, 1.0)),
            shared: false,
            second: (verdict == Seen::Broken).then_some(SecondOpinion {
                neighbour: "simulated, too",
                cost: Some(Interval::with_margin(7.0, 1.0)),
                confirms: true,
            }),
            verdict,
        };
        MethodEvaluation {
            candidate: tested.candidate(),
            method: method.unwrap(),
            contamination: FAULTS.iter().zip(seen).map(row).collect(),
            resolution: measure_resolution(&mut machine, &tested, FEW, &mut random, &mut |_| Ok(())).unwrap(),
            parts: None,
        }
    }

    fn judged(methods: &[MethodEvaluation]) -> EvaluationVerdict {
        EvaluationVerdict::from_methods(methods, "user")
    }

    const FENCED: [Seen; 5] = [Seen::Kept, Seen::Kept, Seen::Kept, Seen::Kept, Seen::Visible];
    const DRAINING: [Seen; 5] = [Seen::Kept; 5];

    #[test]
    fn short_code_gets_the_cheapest_fenced_method_and_long_code_a_draining_one() {
        let verdict = judged(&[
            evaluated("rdtsc", 20.0, [Seen::Visible; 5]),
            evaluated("mfence-lfence-rdtsc", 100.0, DRAINING),
            evaluated("serialize-rdtsc", 150.0, DRAINING),
            evaluated("rdtscp-lfence", 60.0, FENCED),
        ]);
        assert_eq!(verdict.short_code.as_ref().unwrap().clock, "rdtscp-lfence");
        assert_eq!(verdict.long_code.as_ref().unwrap().clock, "mfence-lfence-rdtsc");
        assert!(verdict.findings.is_empty(), "{:?}", verdict.findings);
        let [five, one] = verdict.short_code.unwrap().shortest_once;
        assert!((one / five - 5.0).abs() < 1e-9 && five >= 20.0, "{five} {one}");
    }

    #[test]
    fn among_equal_methods_the_common_default_wins() {
        for order in [["rdtscp-lfence", "lfence-rdtsc-lfence"], ["lfence-rdtsc-lfence", "rdtscp-lfence"]] {
            let verdict =
                judged(&order.map(|name| evaluated(name, if name == "rdtscp-lfence" { 60.0 } else { 60.7 }, FENCED)));
            assert_eq!(verdict.short_code.unwrap().clock, "lfence-rdtsc-lfence");
            // Without a draining method, long code gets the same recommendation.
            let long_code = verdict.long_code.unwrap();
            assert_eq!(long_code.clock, "lfence-rdtsc-lfence");
            assert!(long_code.why.contains("no measured method promises"), "{}", long_code.why);
        }
    }

    #[test]
    fn a_missing_draining_method_is_explained() {
        let fenced = || evaluated("lfence-rdtsc-lfence", 50.0, FENCED);
        let long_code = |draining| judged(&[fenced(), draining]).long_code.unwrap();
        let broken = [Seen::Kept, Seen::Kept, Seen::Kept, Seen::Kept, Seen::Broken];
        let found = long_code(evaluated("mfence-lfence-rdtsc", 100.0, broken));
        assert_eq!(found.clock, "lfence-rdtsc-lfence");
        assert!(found.why.contains("mfence-lfence-rdtsc does not exclude \"stores not drained\""), "{}", found.why);
        // An unknown constancy does not rule out the method.
        let mut varying = evaluated("mfence-lfence-rdtsc", 100.0, DRAINING);
        let summary = varying.method.as_mut().unwrap().trimmed.as_mut().unwrap();
        summary.ergodic = ErgodicVerdict::DependsOnShare;
        let found = long_code(varying);
        assert!(found.why.contains("is not certain to be constant"), "{}", found.why);
        let mut silent = evaluated("mfence-lfence-rdtsc", 100.0, DRAINING);
        silent.method = None;
        assert!(long_code(silent).why.contains("gave no valid reading"));
        // An undecided promise does not rule out a method.
        let open = [Seen::Kept, Seen::Kept, Seen::Unclear, Seen::Kept, Seen::Unclear];
        let found = long_code(evaluated("mfence-lfence-rdtsc", 100.0, open));
        assert_eq!(found.clock, "mfence-lfence-rdtsc");
        assert_eq!(found.not_told, [ContaminationFault::BodyUnfinished, ContaminationFault::StoresNotDrained]);
    }

    #[test]
    fn an_unconfirmed_breach_is_mentioned() {
        let why = |confirms: Option<bool>| {
            let open = [Seen::Kept, Seen::Unclear, Seen::Kept, Seen::Kept, Seen::Kept];
            let mut method = evaluated("mfence-lfence-rdtsc", 100.0, open);
            method.contamination[1].second =
                confirms.map(|confirms| SecondOpinion { neighbour: "simulated, too", cost: None, confirms });
            let EvaluationVerdict { short_code, long_code, .. } = judged(&[method]);
            [short_code, long_code].map(|code| code.unwrap().why)
        };
        assert!(why(None).iter().all(|why| why.contains("and no neighbouring code broke that promise;")));
        let expected = "and one kind of neighbouring code broke that promise, another did not (body started early: \
             simulated, not simulated, too);";
        for why in why(Some(false)) {
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_broken_promise_is_a_finding_and_an_undecided_one_is_listed() {
        let broken = [Seen::Kept, Seen::Broken, Seen::Kept, Seen::Kept, Seen::Visible];
        let open = [Seen::Kept, Seen::Unclear, Seen::Kept, Seen::Kept, Seen::Visible];
        let verdict = judged(&[evaluated("lfence-rdtsc-lfence", 50.0, broken), evaluated("rdtscp-lfence", 60.0, open)]);
        assert!(verdict.findings[0].starts_with("lfence-rdtsc-lfence promises to exclude \"body started early\""));
        let recommended = verdict.short_code.unwrap();
        assert_eq!(recommended.clock, "rdtscp-lfence");
        assert_eq!(recommended.not_told, [ContaminationFault::BodyStartedEarly]);
        assert!(
            verdict.findings[0].contains("9.0 (8.0 to 10.0) core cycles with simulated, 7.0"),
            "{:?}",
            verdict.findings
        );
        let verdict = judged(&[evaluated("rdtsc", 20.0, [Seen::Visible; 5])]);
        assert!(verdict.short_code.is_none() && verdict.findings.len() == 1);
    }

    #[test]
    fn each_executor_has_its_own_verdict() {
        let mut in_ring_0 = evaluated("rdtscp-lfence", 60.0, DRAINING);
        in_ring_0.candidate.executor = "kernel";
        let broken = [Seen::Kept, Seen::Broken, Seen::Kept, Seen::Kept, Seen::Visible];
        let methods = [evaluated("lfence-rdtsc-lfence", 50.0, broken), in_ring_0];
        let [user, kernel] = ["user", "kernel"].map(|executor| EvaluationVerdict::from_methods(&methods, executor));
        assert!(user.short_code.is_none() && user.findings.len() == 2, "{:?}", user.findings);
        assert_eq!(kernel.short_code.unwrap().clock, "rdtscp-lfence");
        assert!(kernel.executor == "kernel" && kernel.findings.is_empty());
    }
}
