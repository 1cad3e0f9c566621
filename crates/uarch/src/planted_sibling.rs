//! A simulated machine whose sibling is busy for spells of whole layouts, and then holds a part of what is measured: layouts that ran
//! beside it must not show in a result.

use super::conditions::Conditions;
use super::cost::Costs;
use super::overlap::{BESIDE_SIBLING, Core, Overlaps, Probe, bodies};
use super::test::chain::SQRTSD;
use super::test::walk::{Steps, Walk, straight};
use super::window::reorder_buffer::NOP;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_core::random::Random;
use cyclescope_exec::{Batch, Capabilities, Executor, Sample};
use cyclescope_measure::Plan;
use cyclescope_measure::sibling::Retries;
use cyclescope_sim::{LayoutEffects, Mode, Scenario, Simulated};
use std::time::Duration;

/// Layouts of a spell at most, while the sibling rests and while it is busy.
const SPELLS: [usize; 2] = [24, 12];
/// By how much less the core adds beside it: two threads have their turns.
const NARROWER: f64 = 2.0;
/// Measurements, of which the first show what a core is like that is not shared.
const TIMES: usize = 60;
const LEARNT: usize = 15;

/// The machine, alone and beside a busy sibling.
struct Spells {
    machines: [Simulated; 2],
    busy: bool,
    left: usize,
    random: Random,
}

impl Spells {
    /// With these costs of snippets alone and beside it.
    fn new(costs: [Vec<(Vec<u8>, f64)>; 2], seed: u64) -> Spells {
        let [alone, beside] = costs;
        let width = Scenario::default().adds_per_cycle;
        let machine = |costs, adds_per_cycle| {
            Simulated::new(Scenario { costs, adds_per_cycle, ..Scenario::default() }, seed)
        };
        let machines = [machine(alone, width), machine(beside, width / NARROWER)];
        Spells { machines, busy: true, left: 0, random: Random::new(seed) }
    }
}

impl Executor for Spells {
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
            let one = Batch { layouts: vec![layout.clone()], ..batch.clone() };
            self.machines[usize::from(self.busy)].stream(&one, take)?;
        }
        Ok(())
    }

    /// Time passes on one of both at once.
    fn now(&self) -> Duration {
        self.machines.iter().map(Executor::now).sum()
    }

    fn pause(&mut self, time: Duration) {
        self.machines[0].pause(time);
    }
}

/// What became of some measurements, but of the first ones.
#[derive(Debug, Default)]
struct Tally {
    wrong: usize,
    /// Wrong ones of which the conditions do not tell that something else used the core.
    untold: usize,
}

fn tally(costs: [Vec<(Vec<u8>, f64)>; 2], mut is_right: impl FnMut(&mut Core) -> bool) -> Tally {
    let (plan, mut machine, mut conditions) =
        (Plan::simulated(), Spells::new(costs, 5), Conditions::default());
    let mut tally = Tally::default();
    for time in 0..TIMES {
        let random = Random::new(time as u64);
        let from = conditions.layouts();
        let (executor, conditions) = (&mut machine, &mut conditions);
        let mut core =
            Core { executor, plan: &plan, random, zmm: false, again: BESIDE_SIBLING.start(), conditions };
        let wrong = !is_right(&mut core) && time >= LEARNT;
        tally.wrong += usize::from(wrong);
        tally.untold += usize::from(wrong && !core.conditions.busy(from, None).counts());
    }
    tally
}

/// Room for no-operations between the chains, alone and beside a sibling that holds half of it.
const ROOM: [usize; 2] = [40, 20];
const COUNTS: [usize; 3] = [10, 30, 60];

#[test]
fn layouts_beside_a_busy_sibling_make_no_structure_smaller() {
    let probe = Probe { head: SQRTSD, filler: &NOP, lead: 0, occupied: None };
    let of_room = |room: usize| {
        let of_count = |n: usize| {
            let times = [if n <= room { 300.0 } else { 600.0 }, 300.0, 600.0];
            bodies(&probe, n).into_iter().zip(times)
        };
        COUNTS.into_iter().flat_map(of_count).collect()
    };
    let tally = tally(ROOM.map(of_room), |core| {
        let points = core.at(&probe, &COUNTS).expect("all is simulated");
        points.iter().zip([1.0, 1.0, 0.0]).all(|(point, overlap)| (point.overlap - overlap).abs() < 0.1)
    });
    assert_eq!((tally.wrong, tally.untold), (0, 0));
}

#[test]
fn a_sibling_that_never_rests_is_not_waited_for() {
    let probe = Probe { head: SQRTSD, filler: &NOP, lead: 0, occupied: None };
    let width = Scenario::default().adds_per_cycle / NARROWER;
    let scenario = Scenario { adds_per_cycle: width, ..Scenario::default() };
    let (mut machine, mut conditions) = (Simulated::new(scenario, 5), Conditions::default());
    let plan = Plan { adders: Some(5), ..Plan::simulated() };
    let (executor, random) = (&mut machine, Random::new(5));
    let mut core = Core {
        executor,
        plan: &plan,
        random,
        zmm: false,
        again: BESIDE_SIBLING.start(),
        conditions: &mut conditions,
    };
    core.at(&probe, &COUNTS).expect("all is simulated");
    assert_eq!((core.again, core.conditions.layouts()), (BESIDE_SIBLING.start(), plan.layouts));
}

/// Programs that take twice as long in some layouts, as by the place of their code.
#[test]
fn an_overlap_is_that_of_most_layouts() {
    let probe = Probe { head: SQRTSD, filler: &NOP, lead: 0, occupied: None };
    let times = [300.0, 300.0, 600.0];
    let costs = bodies(&probe, 10).into_iter().zip(times).collect();
    let mode = Some(Mode { probability: 0.05, factor: 2.0, by_program: true });
    let layout = LayoutEffects { mode, ..LayoutEffects::default() };
    let mut machine = Simulated::new(Scenario { costs, layout, ..Scenario::default() }, 5);
    let (plan, mut conditions) = (Plan::simulated(), Conditions::default());
    let overlap = |seed| {
        let (executor, random) = (&mut machine, Random::new(seed));
        let mut core = Core {
            executor,
            plan: &plan,
            random,
            zmm: false,
            again: Retries::NONE,
            conditions: &mut conditions,
        };
        core.at(&probe, &[10]).expect("all is simulated")[0].overlap
    };
    let overlaps: Vec<f64> = (0..40).map(overlap).collect();
    assert!(overlaps.iter().all(|overlap| (overlap - 1.0).abs() < 0.1), "{overlaps:?}");
}

const STEP: &[u8] = &[0x48, 0x63, 0xc0];

fn step(_: usize) -> Steps {
    straight(STEP.to_vec(), 10)
}

#[test]
fn layouts_beside_a_busy_sibling_make_no_step_dearer() {
    let walk = Walk { name: "planted", program: step, without: None };
    let tally = tally([160.0, 240.0].map(|cost| vec![(STEP.to_vec(), cost)]), |core| {
        let point = core.cost(&walk, 1).expect("all is simulated").expect("layouts are undisturbed");
        (point.high - 16.0).abs() < 0.1
    });
    // A step is measured three times at most, and a spell may last longer.
    assert!(tally.wrong <= 4 && tally.untold == 0, "{tally:?}");
}
