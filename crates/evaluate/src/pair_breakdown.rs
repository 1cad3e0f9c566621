//! The cost of each step of an empty pair of readings.
//!
//! The notes list what the overhead of `rdtscp; lfence` consists of: the first LFENCE, two moves,
//! the second RDTSCP. This module measures each step: the time of the pair minus the time of the
//! pair without the step. Some steps cannot be left out: the moves that keep the first reading, and
//! the second reading. These are executed twice instead. Parts that overlap add up to more than the
//! whole, and the rest is then negative. The rest also contains work outside the steps: restoring
//! registers after the first reading, and the part of the first reading after it samples the
//! counter.
//!
//! Limits: without a step, others may begin earlier. A second step of one kind may be cheaper than
//! the first. The measured cost of the step includes both effects.

use super::TestedClock;
use cyclescope_code::asm::CodeMode;
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

/// Confidence level of the intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Layouts and rounds of each: about ten milliseconds.
const LAYOUTS: usize = 24;
const ROUNDS: u32 = 16;
/// Layouts for a method with CPUID, which exits to the hypervisor in a virtual machine.
const CPUID_LAYOUTS: usize = 12;
const CPUID_ROUNDS: u32 = 8;

/// How the cost of a step was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepVariation {
    /// The pair minus the pair without the step.
    LeftOut,
    /// The pair with the step executed twice, minus the pair.
    OnceMore,
}

/// The cost of one step of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairStepCost {
    /// Name of the step.
    pub step: &'static str,
    /// The side of the pair.
    pub side: ClockSide,
    /// Whether it executes between the two samplings of the counter. Steps outside should cost
    /// nothing.
    pub between: bool,
    /// How the cost was measured.
    pub how: StepVariation,
    /// Cost in core cycles.
    pub cost: Interval,
}

/// The costs of a pair's steps, in core cycles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairBreakdown {
    /// The empty pair, measured in the same rounds.
    pub whole: Interval,
    /// Its steps, in execution order.
    pub parts: Vec<PairStepCost>,
    /// The whole minus the steps between the readings.
    pub rest: Interval,
    /// Whether a busy sibling shared the core during the measurement.
    pub shared: bool,
}

impl PairBreakdown {
    /// The cost of this step on this side.
    pub(crate) fn find_step(&self, side: ClockSide, step: ClockStep) -> Option<&PairStepCost> {
        self.parts.iter().find(|part| part.side == side && part.step == step.name())
    }
}

/// A step to vary, and how its cost follows from the variation.
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

    /// The contrast for its cost. Column 0 holds the unchanged pair, `column` the changed one.
    fn to_contrast(self, column: usize) -> Contrast {
        match self.how {
            StepVariation::LeftOut => Contrast::slope_between([column, 0], 1.0),
            StepVariation::OnceMore => Contrast::slope_between([0, column], 1.0),
        }
    }
}

/// The steps to vary.
fn list_changes(clock: &Clock) -> Vec<StepChange> {
    let mut changes = Vec::new();
    for side in ClockSide::BOTH {
        let steps = clock.side_steps(side);
        let Some(read) = steps.iter().position(|step| step.takes_reading()) else { continue };
        for (number, step) in steps.iter().enumerate() {
            let how = match (side, step) {
                // A pair needs both readings and both moves. Only the second reading and the first
                // moves lie between.
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

/// Measures the cost of each step of a method's pair; `None` if too many rounds were disturbed.
pub(crate) fn break_down_pair(
    executor: &mut dyn Executor,
    tested: &TestedClock,
    random: &mut Random,
) -> Result<Option<PairBreakdown>, RunError> {
    let changes = list_changes(tested.clock);
    let pair = tested.empty_recipe();
    let edits = std::iter::once(None).chain(changes.iter().map(|change| Some(change.to_edit())));
    let programs = edits.map(|edit| ProgramRecipe { edit, ..pair }.build());
    let rounds = RulerRounds::for_mode(tested.ruler, tested.step, tested.mode).with_programs(programs, false);
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

/// The code of a method's empty pair as it runs in a mode: the bytes of each instruction in hexadecimal, and
/// its text. Context addresses are placeholders.
pub fn list_pair_code(clock: &Clock, mode: CodeMode) -> Vec<[String; 2]> {
    let listing = ProgramRecipe::list_empty_pair(clock, mode);
    let bytes = listing.bytes();
    let line = |(instruction, text): (&Instruction, &str)| {
        let from = instruction.ip() as usize;
        [cyclescope_code::asm::to_hex(&bytes[from..from + instruction.len()]), text.to_string()]
    };
    listing.instructions().iter().zip(listing.text().lines()).map(line).collect()
}
