//! Claims judged on simulated figures.

use super::claim_entry::ClaimTest;
use super::claim_judgement::{all_hold, is_below, is_near_zero};
use super::*;
use crate::TestedClock;
use crate::contamination::{ContaminationFault, FAULTS, PromiseVerdict, list_rows_not_run};
use crate::ensemble_reader::SamplingSize;
use crate::method_evaluation::MethodEvaluation;
use crate::pair_breakdown::{PairBreakdown, PairStepCost, StepVariation};
use crate::resolution::{ResolutionEffort, measure_resolution};
use crate::sampled_method::{SampledMethod, SamplingRequest};
use crate::sampling::{PairSampler, SamplingSpan};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::{Clock, ClockSide, ClockStep};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::core_series::{CoreClockSample, CoreSeries};
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::machine_parameters::MachineParameters;
use cyclescope_core::machine::synchrony::{CpuNumbers, TscSynchrony};
use cyclescope_core::machine::timing_costs::{LfenceProof, TimingCosts};
use cyclescope_core::machine::tsc::TscParameters;
use cyclescope_core::machine::tsc_calibration::TscCalibration;
use cyclescope_core::machine::tsc_read::TscRead;
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::random::Random;
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::ruler::UnsharedWidth;
use cyclescope_sim::{Scenario, SimulatedExecutor, SimulatedNoise};
use std::time::Duration;

const FEW: ResolutionEffort = ResolutionEffort { time: Duration::from_millis(5), readings: None };

/// Step of the simulated TSC in ticks. A core cycle is three quarters of a tick.
const STEP: u64 = 26;

/// A method whose faults have these costs and this margin. A fault beyond the tolerance is seen.
fn evaluated(name: &str, costs: [f64; 5], margin: f64) -> MethodEvaluation {
    sampled(name, costs, margin, 2000, &Scenario { step: STEP, ..Scenario::default() })
}

/// The same with `samples` readings per ensemble, on a machine with this scenario.
fn sampled(name: &str, costs: [f64; 5], margin: f64, samples: u32, scenario: &Scenario) -> MethodEvaluation {
    let clock = Clock::find_named(name).unwrap();
    let ruler = Clock::find_named("lfence-rdtsc-lfence").unwrap();
    let step = STEP as f64;
    let tested = TestedClock {
        clock,
        executor: "user",
        mode: CodeMode::default(),
        ruler,
        step,
        imul_latency: 3.0,
        width: None,
        emulated: false,
    };
    let mut machine = SimulatedExecutor::new(scenario.clone(), 1);
    let size = SamplingSize { ensembles: 8, samples };
    let shape = PairSampler::new(&tested).sampling_shape(size, 80e-9);
    let span = SamplingSpan { from: Duration::ZERO, until: Duration::from_secs(86_400) };
    let samples = SamplingRequest { asked: size, shape, span, earlier: UnsharedWidth::default() };
    let mut random = Random::new(2);
    let method = SampledMethod::measure(&mut machine, &tested, &samples, &mut random, &mut |_| Ok(()));
    let row = |(fault, cost): (&ContaminationFault, f64)| {
        let cost = Interval::with_margin(cost, margin);
        let seen = cost.low.abs().min(cost.high.abs()) > 1.0 && !cost.contains(0.0);
        let verdict = if seen { PromiseVerdict::Visible } else { PromiseVerdict::Unclear };
        let (promised, neighbour) = (false, "simulated");
        Contamination {
            fault: *fault,
            promised,
            neighbour,
            size: None,
            cost: Fact::Known(cost),
            shared: false,
            second: None,
            verdict,
        }
    };
    let part = |step: ClockStep, side, between, cost| {
        let cost = Interval::with_margin(cost, 2.0);
        PairStepCost { step: step.name(), side, between, how: StepVariation::LeftOut, cost }
    };
    MethodEvaluation {
        candidate: tested.candidate(),
        method: method.unwrap(),
        contamination: FAULTS.iter().zip(costs).map(row).collect(),
        resolution: measure_resolution(&mut machine, &tested, FEW, &mut random, &mut |_| Ok(())).unwrap(),
        parts: Some(PairBreakdown {
            whole: Interval::with_margin(60.0, 1.0),
            parts: vec![
                part(ClockStep::Cpuid, ClockSide::Start, name == "rdtscp-cpuid", 0.5),
                part(ClockStep::Lfence, ClockSide::Start, true, 20.0),
                part(ClockStep::Rdtscp, ClockSide::End, true, 40.0),
            ],
            rest: Interval::with_margin(0.0, 3.0),
            shared: false,
        }),
    }
}

/// Facts of a machine without any results.
fn facts() -> TimingFacts {
    let tsc = TscParameters { rate: Hertz(2.3e9), step: STEP as f64 };
    let machine = Machine::from(MachineParameters { tsc, imul_latency: None });
    TimingFacts {
        told: machine.tsc.clone(),
        lfence: machine.features.lfence_order().clone(),
        tsc: Fact::unknown("not examined"),
        phases: Fact::unknown("not examined"),
        series: Fact::unknown("not examined"),
        synchrony: Fact::unknown("not examined"),
        emulated: false,
    }
}

/// TSC results that contain only the cost of a CPUID, in ticks.
fn exiting(cpuid: f64) -> TscStudy {
    let unknown = "not examined";
    let calibration = TscCalibration {
        hertz: Hertz(2.3e9),
        low: Hertz(2.3e9),
        high: Hertz(2.3e9),
        agreed: true,
        span_ns: 1,
        bracket_ticks: 1,
        clock_is_tsc: Fact::unknown(unknown),
        ntp_ppm: Fact::unknown(unknown),
    };
    let lfence = LfenceProof { chain: 300.0, fenced: 300.0, bare: 100.0, waits: true };
    let (cpuid, rdtscp) = (Fact::Known(cpuid), Fact::unknown(unknown));
    let traps = TimingCosts { cpuid, rdtsc: 30.0, rdtscp, lfence_rdtsc: 40.0, lfence };
    TscStudy { calibration, sources: Vec::new(), steps: Vec::new(), traps, unstable: None }
}

fn judged(methods: &[MethodEvaluation]) -> Vec<DocumentClaim> {
    judge_claims(&ClaimEvidence { methods, not_run: &[], stand_in: None, facts: &facts() })
}

fn holds(claims: &[DocumentClaim], id: &str) -> Option<bool> {
    claims.iter().find(|claim| claim.id == id).unwrap_or_else(|| panic!("{id}")).holds
}

#[test]
fn claims_without_an_experiment_name_the_reason() {
    for id in ["notes-rdtscp-waits-for-loads", "notes-readings-are-multiples"] {
        let claims = judged(&[evaluated("rdtscp", [0.0; 5], 1.0)]);
        let claim = claims.iter().find(|claim| claim.id == id).unwrap();
        assert!(claim.holds.is_none() && claim.why.starts_with("it is not tested: "), "{claim:?}");
    }
}

#[test]
fn the_alternative_method_has_a_row_for_each_statement() {
    use crate::claims::fault_claims::CR0_METHOD;
    let claims = judged(&[evaluated("cpuid-rdtsc-rdtscp-cpuid", [0.0; 5], 1.0), evaluated(CR0_METHOD, [0.0; 5], 1.0)]);
    assert_eq!(holds(&claims, "paper-cr0-variance"), Some(true));
    // Both pairs take the same time here, and the staircases have fewer readings than the paper's.
    assert_ne!(holds(&claims, "paper-cr0-is-not-as-good"), Some(true));
    assert_eq!(holds(&claims, "paper-cr0-minimum-grows"), None);
}

#[test]
fn every_entry_is_complete() {
    for (at, entry) in list_entries().enumerate() {
        assert!(list_entries().take(at).all(|other| other.id != entry.id), "{}", entry.id);
        let texts = [entry.section, entry.quote, entry.text, entry.criterion];
        assert!(texts.iter().all(|text| !text.is_empty() && !text.contains("  ")), "{}", entry.id);
        let named = match entry.test {
            ClaimTest::Excludes { method, .. } | ClaimTest::LetsIn { method, .. } | ClaimTest::Noisy { method, .. } => {
                vec![method]
            }
            ClaimTest::Alike { one, other } | ClaimTest::Cheaper { one, other } => vec![one, other],
            _ => vec![],
        };
        assert!(named.into_iter().all(|name| Clock::find_named(name).is_some_and(|clock| clock.name == name)));
    }
}

#[test]
fn intervals_across_a_bound_are_undecided() {
    let interval = |value, margin| Interval::with_margin(value, margin);
    assert_eq!([0.2, 0.6, 1.2].map(|value| is_below(&interval(value, 0.3), 0.7)), [Some(true), None, Some(false)]);
    assert_eq!([0.0, -5.0, 9.0].map(|value| is_near_zero(&interval(value, 3.0), 4.0)), [Some(true), None, Some(false)]);
    assert_eq!(all_hold([Some(true), None, Some(false)]), Some(false));
    assert_eq!((all_hold([Some(true), None]), all_hold([Some(true); 2])), (None, Some(true)));
}

#[test]
fn a_barrier_needs_narrow_intervals_near_zero() {
    let barrier_holds = |early, margin| {
        let claims = judged(&[evaluated("cpuid-rdtsc-rdtscp-cpuid", [0.0, early, 0.0, 0.0, 0.0], margin)]);
        holds(&claims, "paper-first-cpuid-is-a-barrier")
    };
    // Half a step is 17 core cycles. A cost of 28 is not nothing, although less than a step.
    assert_eq!(
        [barrier_holds(0.0, 5.0), barrier_holds(-28.0, 9.0), barrier_holds(-10.0, 20.0)],
        [Some(true), Some(false), None]
    );
}

#[test]
fn methods_with_the_same_side_are_judged_together() {
    let judge = |[own, own_margin]: [f64; 2], [other, margin]: [f64; 2], name: &str| {
        let faults = |early| [0.0, early, 0.0, 0.0, 0.0];
        let methods =
            [evaluated("cpuid-rdtsc-rdtscp-cpuid", faults(own), own_margin), evaluated(name, faults(other), margin)];
        let claims = judged(&methods);
        let claim = claims.iter().find(|claim| claim.id == "paper-first-cpuid-is-a-barrier").unwrap();
        (claim.holds, claim.why.contains(name), claim.why.contains("contradict"))
    };
    let alike = "cpuid-rdtsc";
    assert_eq!(judge([0.0, 30.0], [-28.0, 9.0], alike), (Some(false), true, false), "shown by the other");
    assert_eq!(judge([0.0, 30.0], [0.0, 5.0], alike), (Some(true), true, false), "excluded by the other");
    assert_eq!(judge([0.0, 5.0], [-28.0, 9.0], alike), (None, true, true), "one each");
    assert_eq!(judge([-28.0, 9.0], [0.0, 5.0], alike), (None, true, true), "and the other way round");
    // Its start also waits after RDTSC.
    assert_eq!(judge([0.0, 5.0], [-28.0, 9.0], "cpuid-rdtsc-cpuid"), (Some(true), false, false));
}

#[test]
fn an_exiting_cpuid_proves_no_absence() {
    let judge = |early| {
        let methods = [evaluated("cpuid-rdtsc-rdtscp-cpuid", [0.0, early, 0.0, 0.0, 0.0], 5.0)];
        let facts = TimingFacts { tsc: Fact::Known(exiting(12_970.0)), ..facts() };
        let claims = judge_claims(&ClaimEvidence { methods: &methods, not_run: &[], stand_in: None, facts: &facts });
        ["paper-first-cpuid-is-a-barrier", "paper-last-cpuid-is-a-barrier"].map(|id| holds(&claims, id))
    };
    assert_eq!([judge(0.0), judge(-28.0)], [[None, Some(true)], [Some(false), Some(true)]]);
}

#[test]
fn an_unobserved_possible_fault_refutes_nothing() {
    let seen = evaluated("rdtscp", [0.0, -30.0, 0.0, 0.0, -500.0], 5.0);
    let unseen = evaluated("rdtscp", [0.0, 0.0, 0.0, 0.0, 0.0], 5.0);
    let claim_holds = |method, id| holds(&judged(&[method]), id);
    assert_eq!(claim_holds(seen.clone(), "paper-rdtscp-lets-begin"), Some(true));
    assert_eq!(claim_holds(unseen, "paper-rdtscp-lets-begin"), None);
    assert_eq!(claim_holds(seen.clone(), "paper-rdtscp-waits"), Some(true));
    assert_eq!(claim_holds(seen, "notes-rdtscp-leaves-stores"), Some(true));
}

#[test]
fn methods_within_a_step_are_alike() {
    let alike_holds = |early: f64, margin| {
        let one = evaluated("lfence-rdtsc", [0.0; 5], margin);
        let other = evaluated("rdtscp", [0.0, early, 0.0, 0.0, 0.0], margin);
        holds(&judged(&[one, other]), "notes-lfence-rdtsc-is-rdtscp")
    };
    // A step is 35 core cycles.
    assert_eq!(
        [alike_holds(-10.0, 5.0), alike_holds(-90.0, 5.0), alike_holds(-35.0, 9.0)],
        [Some(true), Some(false), None]
    );
}

#[test]
fn step_costs_decide_what_the_pair_includes() {
    let claim_holds = |name, id| holds(&judged(&[evaluated(name, [0.0; 5], 1.0)]), id);
    assert_eq!(claim_holds("cpuid-rdtsc-rdtscp-cpuid", "paper-first-cpuid-is-free"), Some(true));
    assert_eq!(claim_holds("rdtscp-cpuid", "notes-first-cpuid-is-counted"), Some(false));
    assert_eq!(claim_holds("rdtscp-lfence", "notes-overhead-parts"), Some(true));
}

#[test]
fn a_steady_simulated_pair_is_constant_and_its_loop_is_finer_than_the_step() {
    let claims = judged(&[evaluated("cpuid-rdtsc-rdtscp-cpuid", [0.0; 5], 1.0)]);
    assert_eq!(holds(&claims, "paper-improved-variance"), Some(true));
    assert_ne!(holds(&claims, "paper-resolution"), Some(true));
    // With fewer readings than the paper's.
    assert_eq!(holds(&claims, "paper-minimum-grows"), None);
}

/// Interrupts belong to the machine and decide neither claim about a variance. If most readings lie
/// far above the shortest, the rest do not decide either.
#[test]
fn a_variance_is_judged_by_undisturbed_readings() {
    let ids = ["paper-improved-variance", "notes-overhead-is-consistent"];
    let judge_both = |noise, samples| {
        let scenario = Scenario { step: STEP, noise, ..Scenario::default() };
        let names = ["cpuid-rdtsc-rdtscp-cpuid", "rdtscp-lfence"];
        let claims = judged(&names.map(|name| sampled(name, [0.0; 5], 1.0, samples, &scenario)));
        let find_claim = |id| claims.iter().find(|claim| claim.id == id).unwrap();
        ids.map(|id| (find_claim(id).holds, find_claim(id).figures[1].quantity.value == Some(0.0)))
    };
    let rare = SimulatedNoise::LogNormal { probability: 0.01, median: 30_000.0, sigma: 1.0 };
    let most = SimulatedNoise::LogNormal { probability: 0.6, median: 30_000.0, sigma: 1.0 };
    for samples in [200, 2000] {
        assert_eq!(judge_both(SimulatedNoise::None, samples), [(Some(true), true); 2], "{samples}");
        assert_eq!(judge_both(rare.clone(), samples), [(Some(true), false); 2], "{samples}");
        assert_eq!(judge_both(most.clone(), samples), [(None, false); 2], "{samples}");
    }
}

/// A core clock series that alternates between these ticks per core cycle. Each measurement is off
/// by this share in both directions.
fn series(levels: [f64; 2], off: f64) -> CoreSeries {
    let sample = |at: usize| {
        let side = [-1.0, 0.4, 1.0, -0.3, 0.7, -0.8][at * 7 / 3 % 6];
        CoreClockSample { at_s: at as f64 / 1e4, raw_per_cycle: levels[at / 200] * (1.0 + off * side) }
    };
    let samples: Vec<CoreClockSample> = (0..400).map(sample).collect();
    CoreSeries::from_samples(&samples, 0, "rdtscp", Unit::TscTicks, None).unwrap()
}

#[test]
fn scatter_of_measurements_is_not_another_clock() {
    let judge = |levels, off| {
        let facts = TimingFacts { series: Fact::Known(series(levels, off)), ..facts() };
        let claims = judge_claims(&ClaimEvidence { methods: &[], not_run: &[], stand_in: None, facts: &facts });
        holds(&claims, "notes-asynchronous")
    };
    assert_eq!([judge([1.0; 2], 0.001), judge([1.0; 2], 0.03)], [Some(false), None]);
    assert_eq!([judge([0.7; 2], 0.03), judge([0.99, 1.01], 0.001)], [Some(true); 2]);
}

#[test]
fn a_claim_says_which_method_it_needs() {
    for claim in judged(&[]) {
        assert!(claim.holds.is_none() && !claim.why.is_empty(), "{claim:?}");
    }
    let claims = judged(&[]);
    let why = |id: &str| &claims.iter().find(|claim| claim.id == id).unwrap().why;
    assert!(why("notes-rdtsc-early").contains("--clock rdtsc"));
    assert!(why("paper-cr0-minimum").contains("--executor kernel"));
    assert!(undecided_claims("why").iter().all(|claim| claim.holds.is_none() && claim.why == "why"));
    assert_eq!(undecided_claims(&Caveat::emulated_machine().text).len(), list_entries().count());
}

#[test]
fn serialize_replaces_the_write_to_cr0() {
    let method = evaluated("rdtscp-lfence", [0.0; 5], 1.0);
    let row = |cost: f64| evaluated("serialize-rdtsc", [0.0, 0.0, 0.0, cost, 0.0], 2.0).contamination;
    let judge = |rows: &[Contamination]| {
        let methods = std::slice::from_ref(&method);
        let seen = ClaimEvidence { methods, not_run: &[], stand_in: Some(rows), facts: &facts() };
        let claims = judge_claims(&seen);
        let claim = claims.iter().find(|claim| claim.id == "paper-cr0-needs-nothing-behind").unwrap();
        (claim.holds, claim.stand_in.is_some())
    };
    assert_eq!([judge(&row(0.0)), judge(&row(40.0))], [(Some(true), true), (Some(false), true)]);
    let refused = list_rows_not_run(&method.candidate.clock.promises, "only ring 0 may");
    assert_eq!(judge(&refused).0, None);
}

#[test]
fn only_rows_that_a_claim_depends_on_are_remeasured() {
    let wide = evaluated("rdtscp", [0.0; 5], 30.0).contamination;
    let narrow = evaluated("rdtscp", [0.0; 5], 3.0).contamination;
    let open = |rows: &[Contamination], name: &str| {
        rows.iter().filter(|row| leaves_claim_open(name, row, 17.0)).map(|row| row.fault).collect::<Vec<_>>()
    };
    assert_eq!(open(&wide, "rdtscp"), FAULTS);
    assert_eq!(
        open(&wide, "cpuid-rdtsc-rdtscp-cpuid"),
        FAULTS[..2].iter().chain(&FAULTS[3..4]).copied().collect::<Vec<_>>()
    );
    assert_eq!(open(&narrow, "rdtscp"), [ContaminationFault::StoresNotDrained]);
    assert!(open(&wide, "rdpru").is_empty());
}

#[test]
fn rdtscp_tells_the_cpu_if_each_has_its_own_number() {
    let judge = |numbers| {
        let synchrony = TscSynchrony {
            cpu: 1,
            reading: TscRead::Rdtscp,
            step_ticks: STEP as f64,
            step_known: true,
            pairs: Vec::new(),
            untested: Vec::new(),
            numbers,
            seconds: 1.0,
        };
        let facts = TimingFacts { synchrony: Fact::Known(synchrony), ..facts() };
        let claims = judge_claims(&ClaimEvidence { methods: &[], not_run: &[], stand_in: None, facts: &facts });
        holds(&claims, "paper-rdtscp-tells-cpu")
    };
    assert_eq!(judge(Some(CpuNumbers { cpus: 4, right: 4 })), Some(true));
    assert_eq!(judge(Some(CpuNumbers { cpus: 4, right: 3 })), Some(false));
    assert_eq!(judge(None), None);
}
