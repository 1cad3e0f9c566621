//! A simulated machine whose sibling is busy for spells of whole layouts and then holds a part of
//! the measured structure. These layouts must not affect a result.

use crate::conditions::RunConditions;
use crate::cost::MeasureCosts;
use crate::overlap::{MeasureOverlaps, MeasuredCore, OVERLAP_SIBLING_POLICY, OverlapProbe, build_bodies};
use crate::spec::{ProgramFamily, SQRTSD, StepLoop, straight_loop};
use crate::window::reorder_buffer::NOP;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_core::random::Random;
use cyclescope_exec::{Batch, Capabilities, Executor, Sample};
use cyclescope_measure::Plan;
use cyclescope_measure::sibling::Retries;
use cyclescope_sim::{Scenario, SimulatedExecutor, SimulatedLayoutEffects, SimulatedMode};
use std::time::Duration;

/// The longest spells in layouts: of rest and of work.
const SPELLS: [usize; 2] = [24, 12];
/// By how much fewer additions the core executes per cycle while the sibling is busy: two threads
/// take turns.
const NARROWER: f64 = 2.0;
/// Number of measurements.
const TIMES: usize = 60;
/// The first measurements show the width of an unshared core.
const LEARNT: usize = 15;

/// The machine, with an idle and with a busy sibling.
struct BusySpells {
    machines: [SimulatedExecutor; 2],
    busy: bool,
    left: usize,
    random: Random,
}

impl BusySpells {
    /// A machine with these costs of snippets, with an idle and with a busy sibling.
    fn new(costs: [Vec<(Vec<u8>, f64)>; 2], seed: u64) -> BusySpells {
        let [alone, shared] = costs;
        let width = Scenario::default().adds_per_cycle;
        let machine = |costs, adds_per_cycle| {
            SimulatedExecutor::new(Scenario { costs, adds_per_cycle, ..Scenario::default() }, seed)
        };
        let machines = [machine(alone, width), machine(shared, width / NARROWER)];
        BusySpells { machines, busy: true, left: 0, random: Random::new(seed) }
    }
}

impl Executor for BusySpells {
    fn capabilities(&self) -> &Capabilities {
        self.machines[0].capabilities()
    }

    fn machine(&self) -> &Machine {
        self.machines[0].machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        for layout in &batch.layouts {
            if self.left == 0 {
                self.busy = !self.busy;
                self.left = 1 + self.random.below(SPELLS[usize::from(self.busy)]);
            }
            self.left -= 1;
            let single_layout = Batch { layouts: vec![layout.clone()], ..batch.clone() };
            self.machines[usize::from(self.busy)].stream(&single_layout, take)?;
        }
        Ok(())
    }

    /// Time passes on either machine.
    fn now(&self) -> Duration {
        self.machines.iter().map(Executor::now).sum()
    }

    fn pause(&mut self, time: Duration) {
        self.machines[0].pause(time);
    }
}

/// The results of some measurements, except the first ones.
#[derive(Debug, Default)]
struct RetryTally {
    wrong: usize,
    /// Wrong results whose conditions do not show that something else used the core.
    untold: usize,
}

fn tally(costs: [Vec<(Vec<u8>, f64)>; 2], mut is_right: impl FnMut(&mut MeasuredCore) -> bool) -> RetryTally {
    let (plan, mut machine, mut conditions) = (Plan::simulated(), BusySpells::new(costs, 5), RunConditions::default());
    let mut tally = RetryTally::default();
    for time in 0..TIMES {
        let random = Random::new(time as u64);
        let from = conditions.used_layouts();
        let (executor, conditions) = (&mut machine, &mut conditions);
        let mut core = MeasuredCore {
            executor,
            plan: &plan,
            random,
            zmm: false,
            retries: OVERLAP_SIBLING_POLICY.start_retries(),
            conditions,
        };
        let wrong = !is_right(&mut core) && time >= LEARNT;
        tally.wrong += usize::from(wrong);
        tally.untold += usize::from(wrong && !core.conditions.busy_since(from, None).is_significant());
    }
    tally
}

/// Room for no-operations between the chains: alone, and with a sibling that holds half of it.
const ROOM: [usize; 2] = [40, 20];
const COUNTS: [usize; 3] = [10, 30, 60];

#[test]
fn layouts_with_a_busy_sibling_make_no_structure_smaller() {
    let probe = OverlapProbe { first_chain: SQRTSD, filler: &NOP, lead_nops: 0, occupied: None };
    let of_room = |room: usize| {
        let of_count = |n: usize| {
            let times = [if n <= room { 300.0 } else { 600.0 }, 300.0, 600.0];
            build_bodies(&probe, n).into_iter().zip(times)
        };
        COUNTS.into_iter().flat_map(of_count).collect()
    };
    let tally = tally(ROOM.map(of_room), |core| {
        let points = core.measure_overlaps(&probe, &COUNTS).expect("all is simulated");
        points.iter().zip([1.0, 1.0, 0.0]).all(|(point, overlap)| (point.overlap - overlap).abs() < 0.1)
    });
    assert_eq!((tally.wrong, tally.untold), (0, 0));
}

#[test]
fn a_sibling_that_never_rests_is_not_waited_for() {
    let probe = OverlapProbe { first_chain: SQRTSD, filler: &NOP, lead_nops: 0, occupied: None };
    let width = Scenario::default().adds_per_cycle / NARROWER;
    let scenario = Scenario { adds_per_cycle: width, ..Scenario::default() };
    let (mut machine, mut conditions) = (SimulatedExecutor::new(scenario, 5), RunConditions::default());
    let plan = Plan { adders: Some(IntegerAdders::with_usual_share(5)), ..Plan::simulated() };
    let (executor, random) = (&mut machine, Random::new(5));
    let mut core = MeasuredCore {
        executor,
        plan: &plan,
        random,
        zmm: false,
        retries: OVERLAP_SIBLING_POLICY.start_retries(),
        conditions: &mut conditions,
    };
    core.measure_overlaps(&probe, &COUNTS).expect("all is simulated");
    assert_eq!((core.retries, core.conditions.used_layouts()), (OVERLAP_SIBLING_POLICY.start_retries(), plan.layouts));
}

#[test]
fn a_few_slow_layouts_do_not_change_an_overlap() {
    let probe = OverlapProbe { first_chain: SQRTSD, filler: &NOP, lead_nops: 0, occupied: None };
    let times = [300.0, 300.0, 600.0];
    let costs = build_bodies(&probe, 10).into_iter().zip(times).collect();
    let mode = Some(SimulatedMode { probability: 0.05, factor: 2.0, by_program: true });
    let layout = SimulatedLayoutEffects { mode, ..SimulatedLayoutEffects::default() };
    let mut machine = SimulatedExecutor::new(Scenario { costs, layout, ..Scenario::default() }, 5);
    let (plan, mut conditions) = (Plan::simulated(), RunConditions::default());
    let overlap = |seed| {
        let (executor, random) = (&mut machine, Random::new(seed));
        let mut core = MeasuredCore {
            executor,
            plan: &plan,
            random,
            zmm: false,
            retries: Retries::NONE,
            conditions: &mut conditions,
        };
        core.measure_overlaps(&probe, &[10]).expect("all is simulated")[0].overlap
    };
    let overlaps: Vec<f64> = (0..40).map(overlap).collect();
    assert!(overlaps.iter().all(|overlap| (overlap - 1.0).abs() < 0.1), "{overlaps:?}");
}

const STEP: &[u8] = &[0x48, 0x63, 0xc0];

fn step(_: usize) -> StepLoop {
    straight_loop(STEP.to_vec(), 10)
}

#[test]
fn layouts_with_a_busy_sibling_make_no_step_dearer() {
    let family = ProgramFamily::new("simulated", step);
    let tally = tally([160.0, 240.0].map(|cost| vec![(STEP.to_vec(), cost)]), |core| {
        let point = core.measure_cost(&family, 1).expect("all is simulated").expect("layouts are undisturbed");
        (point.high - 16.0).abs() < 0.1
    });
    // A step is measured three times at most, and a spell may last longer.
    assert!(tally.wrong <= 4 && tally.untold == 0, "{tally:?}");
}
