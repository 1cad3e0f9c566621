//! Tests whether averaging sees through the TSC's step.
//!
//! A duration is counted in whole steps. If the step's phase at the start is random, the *mean* of
//! many counts is still the duration. Chains of slightly increasing length then lie on a straight
//! line. If something locks the program to the step, they form stairs.

use cyclescope_code::clock::Clock;
use cyclescope_code::program::chains::ADD;
use cyclescope_code::program::{EntryState, Program, ProgramRecipe};
use cyclescope_core::machine::core_study::StepPhases;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::mean;
use cyclescope_exec::{Executor, ProgramCall};
use cyclescope_measure::ruler::UndisturbedBand;
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};

/// Links of the shortest chain, and links added for each next chain. Together they span 136 core
/// cycles, some steps of every TSC measured.
const SHORTEST_LINKS: usize = 64;
const LINKS_STEP: usize = 8;
const CHAINS: usize = 18;
/// Stairs deviate by 0.29 of a step from their line, 512 uniform phases by 0.02.
const UNIFORM_BELOW: f64 = 0.12;
/// A step of fewer core cycles is hidden by the cycle or two by which the ends of chains differ.
const STEP_LEAST_CYCLES: f64 = 12.0;
const WARM_UP: u32 = 4;

/// Tests the phases with this number of rounds. `step` and `cycle` are the step and one core cycle
/// in raw units.
pub(super) fn measure_phases(
    executor: &mut dyn Executor,
    clock: &Clock,
    step: f64,
    cycle: f64,
    rounds: u32,
    random: &mut Random,
) -> Result<StepPhases, String> {
    if step < STEP_LEAST_CYCLES * cycle {
        return Err(format!("the step, {step:.0}, is too small to matter"));
    }
    let lengths: Vec<usize> = (0..CHAINS).map(|chain| SHORTEST_LINKS + LINKS_STEP * chain).collect();
    let samples =
        build_schedule(clock, &lengths, rounds, random).measure(executor).map_err(|error| error.to_string())?;
    let mut points = Vec::new();
    let mut used = 0;
    for (chain, length) in lengths.iter().enumerate() {
        let durations = drop_disturbed(samples[0].column(chain).collect(), step);
        used += durations.len();
        points.push((*length as f64, mean(&durations)));
    }
    let off_line = distance_from_line(&points) / step;
    Ok(StepPhases { step, off_line, uniform: off_line < UNIFORM_BELOW, samples: used })
}

/// One round contains all chains in random order.
fn build_schedule(clock: &Clock, lengths: &[usize], rounds: u32, random: &mut Random) -> Schedule {
    let chain = |copies: &usize| {
        let world = EntryState::default();
        ProgramRecipe { world, snippet: ADD, copies: *copies, ..ProgramRecipe::empty(clock) }.build()
    };
    let programs: Vec<Program> = lengths.iter().map(chain).collect();
    let (code, _) = schedule::place_fixed(&programs);
    let calls = (0..lengths.len()).map(|place| ProgramCall { place, loop_count: 1 }).collect();
    let stage = PlannedLayout::with_shuffled_calls(code, calls, random)
        .with_data(cyclescope_measure::placement::displace_standard_data(random));
    Schedule::with_layouts(programs, BatchPace { warm_up: WARM_UP, rounds, ..BatchPace::default() }, [stage])
}

/// Drops durations that an interrupt hit.
fn drop_disturbed(mut durations: Vec<f64>, step: f64) -> Vec<f64> {
    if let Some(band) = UndisturbedBand::from_values(durations.clone(), step) {
        durations.retain(|duration| band.contains(*duration));
    }
    durations
}

/// Root mean square distance of points from their least-squares line.
fn distance_from_line(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let middle = |coordinate: fn(&(f64, f64)) -> f64| points.iter().map(coordinate).sum::<f64>() / count;
    let (x, y) = (middle(|point| point.0), middle(|point| point.1));
    let product = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>();
    let slope = product / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>();
    let distance = |point: &(f64, f64)| point.1 - y - slope * (point.0 - x);
    (points.iter().map(|point| distance(point).powi(2)).sum::<f64>() / count).sqrt()
}
