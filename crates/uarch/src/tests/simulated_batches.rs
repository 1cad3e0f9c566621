//! A simulated core with a simulated number of events in flight.

use crate::batches::run_batches;
use crate::cost::{CostPoint, MeasureCosts};
use crate::spec::{BatchesSpec, Experiment, ProgramFamily, TestSpec};
use crate::test_list::TESTS;
use crate::verdict::VerdictKind;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::random::Random;
use std::collections::BTreeMap;

/// The core.
pub(super) struct SimulatedBatches {
    batches: &'static BatchesSpec,
    /// Events that fit at once, in the first program and in the second.
    pub room: [usize; 2],
    /// Core cycles of one event.
    event_cost: f64,
    /// Extra core cycles of each event, and of each event behind the first one without room.
    each: [f64; 2],
    /// Whether events follow each other so slowly that the room is not visible.
    pub paced: bool,
    noise: f64,
    random: Random,
}

impl SimulatedBatches {
    pub(super) fn from_seed(batches: &'static BatchesSpec, seed: u64) -> SimulatedBatches {
        let mut random = Random::new(seed);
        let mut draw = |from: f64, to: f64| from + (to - from) * random.uniform();
        let most = batches.counts[batches.counts.len() - 1] as f64;
        // Leaves some counts on both sides, and a number that the witness can move.
        let least = (2 * batches.witness.occupied) as f64;
        let room = (least * (0.7 * most / least).powf(draw(0.0, 1.0))).round() + batches.uncounted_events as f64;
        let paced = draw(0.0, 1.0) < 0.15;
        let other = if draw(0.0, 1.0) < 0.1 { draw(0.4, 0.7) } else { 1.0 };
        let event_cost = draw(30.0, 700.0);
        let pace = if paced { draw(0.2, 0.6) * event_cost } else { draw(0.0, 0.3) * event_cost / room };
        let each = [pace, draw(0.0, 1.0) * event_cost / room];
        let noise = draw(0.002, 0.02) * event_cost;
        let room = [room, (other * room).floor()].map(|room| room as usize);
        SimulatedBatches { batches, room, event_cost, each, paced, noise, random }
    }

    /// The cost of a batch.
    pub(super) fn cost(&mut self, family: &ProgramFamily, n: usize) -> CostPoint {
        let SimulatedBatches { batches, event_cost, each: [each, behind], .. } = *self;
        let before = if family.name == batches.witness.family.name { batches.witness.occupied } else { 0 };
        let room = self.room[usize::from(family.name == batches.programs[1].name)] - batches.uncounted_events;
        let over = (n + before).saturating_sub(room) as f64;
        let waits = if over > 0.0 && !self.paced { 0.8 * event_cost + behind * over } else { 0.0 };
        let clean = if family.name == batches.single_event.name {
            event_cost
        } else {
            0.3 * event_cost + each * n as f64 + waits
        };
        let burst = if self.random.happens(0.02) { 1.0 + self.random.uniform() } else { 1.0 };
        let cost = clean * burst + self.noise * self.random.normal();
        CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }
    }
}

/// A core that disturbs the first measurements of a program, or lacks its memory.
struct DisturbedBatches {
    /// Events that fit.
    room: usize,
    /// Number of disturbed measurements per size.
    disturbed: usize,
    /// Number of measurements so far, by program and size.
    times: BTreeMap<(&'static str, usize), usize>,
    without: bool,
}

impl MeasureCosts for DisturbedBatches {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        if self.without {
            let [what, why, remedy] = ["so much memory", "none is free", "end something"].map(str::to_string);
            return Err(RunError::Unavailable(Unavailable { what, why, remedy }));
        }
        let times = self.times.entry((family.name, n)).or_default();
        *times += 1;
        let before = if family.name == asked().1.witness.family.name { asked().1.witness.occupied } else { 0 };
        let full = n + before > self.room;
        // In the first program, batches near the end take as long as those on its other side.
        let near = family.name == asked().1.programs[0].name && n.abs_diff(self.room) < 6;
        let disturbed = *times <= self.disturbed && near;
        let cost = if full == disturbed { 100.0 } else { 200.0 };
        Ok(Some(CostPoint { n, cost, low: cost, high: cost }))
    }
}

fn asked() -> (&'static TestSpec, &'static BatchesSpec) {
    let find = |test: &&'static TestSpec| match &test.experiment {
        Experiment::Batches(batches) if batches.uncounted_events > 0 => Some((*test, batches)),
        _ => None,
    };
    TESTS.iter().find_map(find).expect("a test's programs have some events of their own")
}

/// The verdict on such a core, its number and its reason.
fn record(disturbed: usize, without: bool) -> (VerdictKind, Option<f64>, String) {
    let (test, asked) = asked();
    let mut core = DisturbedBatches { room: 20, disturbed, times: BTreeMap::new(), without };
    let mut records = run_batches(&mut core, test, asked).expect("it is said");
    let record = records.remove(0);
    assert!(records.is_empty());
    let of_batches = core.times.iter().filter(|((name, _), _)| *name != asked.single_event.name);
    let most = of_batches.map(|(_, times)| *times).max().unwrap_or_default();
    assert!(disturbed > 0 || most <= 1, "what is clear is measured {most} times");
    (record.verdict, record.value.value, record.why)
}

#[test]
fn unclear_batches_are_measured_again_and_the_median_counts() {
    assert_eq!(record(0, false).1, Some(21.0), "those of the programs' own are counted");
    assert_eq!(record(1, false).1, Some(21.0));
    let (kind, number, why) = record(2, false);
    assert_eq!((kind, number), (VerdictKind::Unclear, None), "{why}");
    let (kind, number, why) = record(0, true);
    assert_eq!((kind, number, why.as_str()), (VerdictKind::None, None, "so much memory: none is free"));
}
