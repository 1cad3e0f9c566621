//! What an empty pair of readings takes its time for.
//!
//! The notes list what the overhead of `rdtscp; lfence` consists of: the first LFENCE, two moves, the second RDTSCP.
//! Here each step's part is measured: the pair as it is, less the pair without the step. What a pair can't do without,
//! the moves that keep the first reading and the second reading itself, is done once more instead. Parts that overlap
//! do not add up to the whole: what remains is negative then. What remains also contains what is no step, such as the
//! registers that are restored after the first reading, and the part of the first reading that lies behind its look at
//! the counter.
//!
//! Limits: a step that is left out may let others begin earlier, and a second one of a kind may be cheaper than the
//! first. Both belong to the part as it is measured.

use super::TestedClock;
use cyclescope_code::clock::{Clock, ClockSide, ClockStep, StepEdit};
use cyclescope_code::program::ProgramRecipe;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::rounds::{RulerRounds, estimate_contrast};
use iced_x86::Instruction;
use serde::Serialize;

/// The level of the intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Layouts, and rounds of each: some ten milliseconds.
const LAYOUTS: usize = 24;
const ROUNDS: u32 = 16;
/// The same of a method with CPUID, which leaves the guest in a virtual machine.
const CPUID_LAYOUTS: usize = 12;
const CPUID_ROUNDS: u32 = 8;

/// How a part was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepVariation {
    /// The pair, less the pair without the step.
    LeftOut,
    /// The pair in which the step is done twice, less the pair.
    OnceMore,
}

/// What one step of a pair takes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairStepCost {
    /// The step.
    pub step: &'static str,
    /// The side that it is on.
    pub side: ClockSide,
    /// Whether it lies between the two looks at the counter. The others should take nothing.
    pub between: bool,
    /// How its cost was measured.
    pub how: StepVariation,
    /// Core cycles.
    pub cost: Interval,
}

/// A pair taken apart. All of it is in core cycles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairBreakdown {
    /// The empty pair, in the same rounds.
    pub whole: Interval,
    /// Its steps, in the order in which they are executed.
    pub parts: Vec<PairStepCost>,
    /// The whole less the parts between the readings.
    pub rest: Interval,
    /// Whether the core was shared with a busy sibling meanwhile.
    pub shared: bool,
}

impl PairBreakdown {
    /// The part of a step of this name on a side.
    pub(crate) fn find_step(&self, side: ClockSide, step: ClockStep) -> Option<&PairStepCost> {
        self.parts.iter().find(|part| part.side == side && part.step == step.name())
    }
}

/// The step that is changed, and how its part follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StepChange {
    side: ClockSide,
    number: usize,
    between: bool,
    how: StepVariation,
}

impl StepChange {
    fn to_edit(self) -> StepEdit {
        let times = match self.how {
            StepVariation::LeftOut => 0,
            StepVariation::OnceMore => 2,
        };
        StepEdit { side: self.side, step: self.number, times }
    }

    /// What it costs, where the pair is column 0 and the changed one this column.
    fn to_contrast(self, column: usize) -> Contrast {
        match self.how {
            StepVariation::LeftOut => Contrast::slope_between([column, 0], 1.0),
            StepVariation::OnceMore => Contrast::slope_between([0, column], 1.0),
        }
    }
}

/// The steps that are changed in turn.
fn list_changes(clock: &Clock) -> Vec<StepChange> {
    let mut changes = Vec::new();
    for side in ClockSide::BOTH {
        let steps = clock.side_steps(side);
        let Some(read) = steps.iter().position(|step| step.takes_reading()) else { continue };
        for (number, step) in steps.iter().enumerate() {
            let how = match (side, step) {
                // A pair needs both readings and both moves; only the second reading and the first moves lie between.
                (ClockSide::Start, ClockStep::Store) => StepVariation::OnceMore,
                (ClockSide::End, ClockStep::Store) => continue,
                (ClockSide::End, step) if step.takes_reading() => StepVariation::OnceMore,
                (ClockSide::Start, step) if step.takes_reading() => continue,
                _ => StepVariation::LeftOut,
            };
            let between = match side {
                ClockSide::Start => number > read,
                ClockSide::End => number <= read,
            };
            changes.push(StepChange { side, number, between, how });
        }
    }
    changes
}

/// Takes the pair of a timing method apart; none where too much was disturbed.
pub(crate) fn break_down_pair(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    random: &mut Random,
) -> Result<Option<PairBreakdown>, RunError> {
    let changes = list_changes(tested.clock);
    let pair = ProgramRecipe::empty(tested.clock);
    let edits = std::iter::once(None).chain(changes.iter().map(|change| Some(change.to_edit())));
    let programs = edits.map(|edit| ProgramRecipe { edit, ..pair }.build());
    let rounds = RulerRounds::new(tested.ruler, tested.step).with_programs(programs, false);
    let (layouts, count) = match tested.clock.executes_cpuid() {
        true => (CPUID_LAYOUTS, CPUID_ROUNDS),
        false => (LAYOUTS, ROUNDS),
    };
    let alone = rounds.run_unshared(executor, layouts, count, tested.width, random)?;
    let cycles = |contrast: &Contrast| estimate_contrast(&alone.used, tested.imul_latency, contrast, CONFIDENCE);
    let whole = Contrast::new([(0, 1.0)]);
    let (mut parts, mut rest) = (Vec::new(), whole.clone());
    for (at, change) in changes.iter().enumerate() {
        let cost = change.to_contrast(at + 1);
        if change.between {
            rest = rest.minus(&cost);
        }
        let Some(cost) = cycles(&cost) else { return Ok(None) };
        let StepChange { side, between, how, number } = *change;
        parts.push(PairStepCost { step: tested.clock.side_steps(side)[number].name(), side, between, how, cost });
    }
    let both = cycles(&whole).zip(cycles(&rest));
    Ok(both.map(|(whole, rest)| PairBreakdown { whole, parts, rest, shared: alone.shared }))
}

/// The code of a method's empty pair, as it runs: each instruction's bytes in hexadecimal, and its text. Bytes of
/// addresses in the context are those of no address.
pub fn list_pair_code(clock: &Clock) -> Vec<[String; 2]> {
    let listing = ProgramRecipe::list_empty_pair(clock);
    let bytes = listing.bytes();
    let line = |(instruction, text): (&Instruction, &str)| {
        let from = instruction.ip() as usize;
        [cyclescope_code::asm::to_hex(&bytes[from..from + instruction.len()]), text.to_string()]
    };
    listing.instructions().iter().zip(listing.text().lines()).map(line).collect()
}
