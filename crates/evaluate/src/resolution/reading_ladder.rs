//! The difference that a number of readings resolves.
//!
//! Two chains of `add` that differ by one core cycle are read in the same rounds, together with the
//! ruler. The undisturbed rounds are split into consecutive groups of N. The spread of the group
//! means gives the difference that N readings resolve at 95 %: z times the standard deviation of
//! such a difference.
//!
//! For independent readings it would fall with √N forever. It does not, because the core's
//! frequency and other conditions change over time. Each layout uses a new call order, because the
//! time of a call depends slightly on the preceding program.

use super::confidence::CONFIDENCE;
use super::round_ruler::{self, RoundRuler, TESTED};
use crate::TestedClock;
use cyclescope_code::program::ProgramRecipe;
use cyclescope_code::program::chains::ADD;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{Interval, mean, normal_quantile, sample_variance, t_interval};
use cyclescope_exec::{Executor, ProgramCall};
use cyclescope_measure::ruler::LayoutSamples;
use cyclescope_measure::schedule::{self, Schedule};
use serde::Serialize;
use std::time::Duration;

/// Lengths of each pair of chains. The first is so short that only the reading matters. The second
/// is as long as the staircase's end, where the core's frequency matters too.
const CHAIN_LENGTHS: [[u32; 2]; 2] = [[100, 101], [900, 901]];

/// Iterations of the ruler: about as long as the four chains and the time between calls together.
const RULER_LOOPS: u64 = 100;

/// Rounds of each layout.
const ROUNDS: u32 = 32;

/// Layouts of the first batch.
const FIRST_LAYOUTS: usize = 4;
/// Most layouts in a batch. More make a large command; a few thousand still fit.
const BATCH_MOST: usize = 2048;
/// Largest share of the remaining time for a batch, so that a wrong estimate does no harm.
const BATCH_SHARE: f64 = 0.25;
/// Most layouts in total: half a million rounds, 24 MB.
const LAYOUTS_MOST: usize = 1 << 14;

/// Fewest groups of each size. Ten determine a standard deviation to a quarter.
const GROUPS_LEAST: usize = 10;

/// Factor above the square-root rule that is not due to chance. With ten groups, one in 10 000
/// exceeds it.
const FLOOR_FACTOR: f64 = 2.0;

/// The difference that a number of readings resolves.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LadderRung {
    /// Readings of each of the two programs.
    pub readings: usize,
    /// Number of groups behind the figures.
    pub groups: usize,
    /// Smallest difference resolved at a confidence of 0.95, in core cycles, with interleaved
    /// readings of the two programs and the ruler.
    pub interleaved: f64,
    /// The same for two programs measured at different times, each with the ruler.
    pub apart: f64,
    /// The same without a ruler: in raw units, divided by the mean rate of all rounds.
    pub unruled: f64,
    /// Share of groups in which the longer program took longer. A tie counts half.
    pub right: f64,
}

/// The differences that readings resolve, by number of readings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReadingLadder {
    /// Additions in the two programs. Each takes one core cycle.
    pub adds: [u32; 2],
    /// Undisturbed readings of each program.
    pub readings: usize,
    /// Share of rounds dropped because of an interrupt, a change of frequency or a busy sibling.
    pub dropped: f64,
    /// Whether a sibling was busy nearly all the time, so that such rounds are used.
    pub shared: bool,
    /// Difference of the two programs in core cycles, over all readings: one, plus the effect of
    /// where a body ends.
    pub difference: Option<Interval>,
    /// One entry each for 1, 3, 10, 30 … readings.
    pub rungs: Vec<LadderRung>,
    /// Number of interleaved readings that resolve one core cycle.
    pub one_cycle_from: Option<usize>,
    /// Number of readings at which the resolution is twice the value of the square-root rule,
    /// extrapolated from the first rung. `floor_apart` and `floor_unruled` are the same for the
    /// other two figures.
    pub floor_interleaved: Option<usize>,
    /// See `floor_interleaved`.
    pub floor_apart: Option<usize>,
    /// See `floor_interleaved`.
    pub floor_unruled: Option<usize>,
}

/// The effort to spend.
#[derive(Debug, Clone, Copy)]
pub(super) enum LadderEffort {
    /// As many layouts as fit into this time.
    Time(Duration),
    /// This number of layouts.
    #[cfg(test)]
    Layouts(usize),
}

/// Measures both pairs of chains.
pub(super) fn measure_ladders(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    effort: LadderEffort,
    random: &mut Random,
) -> Result<Vec<ReadingLadder>, RunError> {
    let chain = RoundRuler::new(tested, RULER_LOOPS);
    let layouts = match effort {
        LadderEffort::Time(time) => run_for_time(executor, tested, &chain, time, random)?,
        #[cfg(test)]
        LadderEffort::Layouts(count) => {
            run_layouts(executor, &mut build_schedule(tested, &chain), &chain, count, random)?
        }
    };
    Ok(build_ladders(&layouts, &chain))
}

fn build_schedule(tested: &TestedClock, chain: &RoundRuler) -> Schedule {
    let empty = tested.empty_recipe();
    let program = |length: &u32| ProgramRecipe { snippet: ADD, copies: *length as usize, ..empty }.build();
    let programs = chain.ruler_programs().into_iter().chain(CHAIN_LENGTHS.as_flattened().iter().map(program)).collect();
    Schedule::new(programs, round_ruler::layout_pace(ROUNDS))
}

fn run_for_time(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    chain: &RoundRuler,
    time: Duration,
    random: &mut Random,
) -> Result<Vec<LayoutSamples>, RunError> {
    let start = executor.now();
    let mut schedule = build_schedule(tested, chain);
    let mut layouts = run_layouts(executor, &mut schedule, chain, FIRST_LAYOUTS, random)?;
    loop {
        let elapsed = executor.now().saturating_sub(start);
        if elapsed >= time || layouts.len() >= LAYOUTS_MOST {
            return Ok(layouts);
        }
        let fitting = (time - elapsed).as_secs_f64() * BATCH_SHARE / (elapsed.as_secs_f64() / layouts.len() as f64);
        let count = (fitting as usize).clamp(FIRST_LAYOUTS, BATCH_MOST);
        layouts.append(&mut run_layouts(executor, &mut schedule, chain, count, random)?);
    }
}

/// Runs `count` layouts with different call orders.
fn run_layouts(
    executor: &mut dyn Executor,
    schedule: &mut Schedule,
    chain: &RoundRuler,
    count: usize,
    random: &mut Random,
) -> Result<Vec<LayoutSamples>, RunError> {
    let (code, _) = schedule::place_fixed(schedule.programs());
    let tested: Vec<ProgramCall> = (TESTED..code.len()).map(|place| ProgramCall { place, loop_count: 1 }).collect();
    schedule.replace_layouts((0..count).map(|_| chain.build_stage(code.clone(), &tested, random)));
    schedule.measure(executor)
}

/// One undisturbed round of one pair: raw units per core cycle, and the time of each program in raw
/// units.
#[derive(Debug, Clone, Copy)]
struct PairTurn {
    rate: f64,
    raw: [f64; 2],
}

fn build_ladders(layouts: &[LayoutSamples], chain: &RoundRuler) -> Vec<ReadingLadder> {
    let sound = chain.find_sound_rulers(round_ruler::flatten_rounds(layouts.iter()));
    let shared = sound.as_ref().is_some_and(|sound| sound.shared);
    let pair = |(index, adds): (usize, &[u32; 2])| {
        let columns = [TESTED + 2 * index, TESTED + 2 * index + 1];
        let turns = |sound| undisturbed_turns(layouts, columns, chain, sound);
        let turns = sound.as_ref().map(turns).unwrap_or_default();
        let dropped = 1.0 - turns.len() as f64 / (layouts.len() * ROUNDS as usize) as f64;
        ReadingLadder { dropped, shared, ..build_ladder(*adds, &turns) }
    };
    CHAIN_LENGTHS.iter().enumerate().map(pair).collect()
}

/// Selects the undisturbed rounds.
fn undisturbed_turns(
    layouts: &[LayoutSamples],
    columns: [usize; 2],
    chain: &RoundRuler,
    sound: &round_ruler::SoundRulers,
) -> Vec<PairTurn> {
    let usable = layouts.iter().flat_map(|layout| chain.usable_rounds(layout, sound));
    let turn = |(rate, round): (f64, &[f64])| PairTurn { rate, raw: columns.map(|column| round[column]) };
    let mut turns: Vec<PairTurn> = usable.map(turn).collect();
    let band = |which: usize| sound.reading_band(turns.iter().map(|turn| turn.raw[which] / turn.rate).collect(), false);
    if let (Some(one), Some(other)) = (band(0), band(1)) {
        turns.retain(|turn| one.contains(turn.raw[0] / turn.rate) && other.contains(turn.raw[1] / turn.rate));
    }
    turns
}

fn build_ladder(adds: [u32; 2], turns: &[PairTurn]) -> ReadingLadder {
    let rungs: Vec<LadderRung> = ladder_sizes(turns.len()).map(|readings| build_rung(turns, readings)).collect();
    let floor = |figure: fn(&LadderRung) -> f64| {
        let first = rungs.first().map_or(0.0, figure);
        let above = |rung: &&LadderRung| figure(rung) > FLOOR_FACTOR * first / (rung.readings as f64).sqrt();
        rungs.iter().find(above).map(|rung| rung.readings)
    };
    // The largest groups are the most independent.
    let groups = turns.chunks_exact((turns.len() / GROUPS_LEAST).max(1)).map(|group| {
        let [one, other] = group_cycles(group);
        other - one
    });
    ReadingLadder {
        adds,
        readings: turns.len(),
        dropped: 0.0,
        shared: false,
        difference: t_interval(&groups.collect::<Vec<_>>(), CONFIDENCE),
        one_cycle_from: rungs.iter().find(|rung| rung.interleaved <= 1.0).map(|rung| rung.readings),
        floor_interleaved: floor(|rung| rung.interleaved),
        floor_apart: floor(|rung| rung.apart),
        floor_unruled: floor(|rung| rung.unruled),
        rungs,
    }
}

/// 1, 3, 10, 30 … as long as there are enough groups.
fn ladder_sizes(readings: usize) -> impl Iterator<Item = usize> {
    let decades = (0..).map(|power| 10usize.pow(power)).flat_map(|decade| [decade, 3 * decade]);
    decades.take_while(move |size| size * GROUPS_LEAST <= readings)
}

/// Core cycles of each program over a group of rounds: ratios of sums.
fn group_cycles(group: &[PairTurn]) -> [f64; 2] {
    let rates: f64 = group.iter().map(|turn| turn.rate).sum();
    [0, 1].map(|which| group.iter().map(|turn| turn.raw[which]).sum::<f64>() / rates)
}

fn build_rung(turns: &[PairTurn], readings: usize) -> LadderRung {
    let groups: Vec<&[PairTurn]> = turns.chunks_exact(readings).collect();
    let z = normal_quantile(0.5 + CONFIDENCE / 2.0);
    let variance = |figure: &dyn Fn(&[PairTurn]) -> f64| {
        sample_variance(&groups.iter().map(|group| figure(group)).collect::<Vec<_>>())
    };
    let rate = mean(&turns.iter().map(|turn| turn.rate).collect::<Vec<_>>());
    let raw = |group: &[PairTurn], which: usize| {
        group.iter().map(|turn| turn.raw[which]).sum::<f64>() / group.len() as f64 / rate
    };
    let difference = |group: &[PairTurn]| {
        let [one, other] = group_cycles(group);
        other - one
    };
    let sum = |figure: &dyn Fn(&[PairTurn], usize) -> f64| {
        variance(&|group| figure(group, 0)) + variance(&|group| figure(group, 1))
    };
    let right = |group: &&[PairTurn]| match difference(group).total_cmp(&0.0) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    LadderRung {
        readings,
        groups: groups.len(),
        interleaved: z * variance(&difference).sqrt(),
        apart: z * sum(&|group, which| group_cycles(group)[which]).sqrt(),
        unruled: z * sum(&raw).sqrt(),
        right: groups.iter().map(right).sum::<f64>() / groups.len() as f64,
    }
}
