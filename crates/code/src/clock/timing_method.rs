//! A timing method as data; all its other properties are derived from that.

use super::step::ClockStep;
use crate::asm::{CodeMode, Emitter};
use cyclescope_core::error::Unavailable;
use cyclescope_core::machine::tsc::TscFacts;
use cyclescope_core::machine::tsc_read::TscRead;
use cyclescope_core::machine::tsc_step::{step_nanos, step_ticks};
use cyclescope_core::unit::Unit;
use iced_x86::{CpuidFeature, Register};

/// Ordering guarantees of a method for the code around its readings. Each excludes one of the five
/// faults in `docs/how-it-measures.md`. A fault that is not excluded may still not occur on a given
/// core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct OrderingPromises {
    /// Code before the pair has executed when the start is read.
    pub leading_done: bool,
    /// No instruction of the body executes before the start is read.
    pub body_waits: bool,
    /// The body has executed when the end is read.
    pub body_done: bool,
    /// No instruction after the pair executes before the end is read.
    pub following_waits: bool,
    /// Stores of the body are globally visible when the end is read.
    pub stores_drained: bool,
}

impl OrderingPromises {
    /// Each guarantee: its letter in lists, its description, and whether it holds.
    pub fn list_promises(&self) -> [(char, &'static str, bool); 5] {
        [
            ('l', "leading code is done", self.leading_done),
            ('b', "the body waits for the start", self.body_waits),
            ('e', "the body is done at the end", self.body_done),
            ('f', "following code waits", self.following_waits),
            ('s', "stores are drained", self.stores_drained),
        ]
    }
}

/// A timing method.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Name: the instructions of its start and, if they differ, of its end.
    pub name: &'static str,
    /// Names from the literature: `paper-` for Intel's paper, `notes-` for the notes on RDTSC(P),
    /// `agner-` for Agner Fog's manual of test programs.
    pub also: &'static [&'static str],
    /// One line on its use and on what it does not order.
    pub about: &'static str,
    /// Source that describes it.
    pub source: &'static str,
    /// Unit of its readings.
    pub counts: Unit,
    /// Ordering guarantees.
    pub promises: OrderingPromises,
    /// Steps before the body. Exactly one of them is [`ClockStep::Store`].
    pub start: &'static [ClockStep],
    /// Steps after the body. Exactly one of them is [`ClockStep::Store`].
    pub end: &'static [ClockStep],
}

impl Clock {
    pub(super) fn steps(&self) -> impl Iterator<Item = &ClockStep> {
        self.start.iter().chain(self.end)
    }

    /// CPU features that its instructions need.
    pub fn required_features(&self) -> Vec<CpuidFeature> {
        let mut features: Vec<_> = self.steps().filter_map(|step| step.required_feature()).collect();
        features.sort();
        features.dedup();
        features
    }

    /// General-purpose registers that its start changes. They are saved before and restored after
    /// it.
    pub fn clobbers(&self) -> Vec<Register> {
        self.side_clobbers(ClockSide::Start)
    }

    /// General-purpose registers that one side changes.
    pub fn side_clobbers(&self, side: ClockSide) -> Vec<Register> {
        let steps = self.side_steps(side).iter();
        let mut clobbers: Vec<_> = steps.flat_map(|step| step.clobbers()).copied().collect();
        clobbers.sort();
        clobbers.dedup();
        clobbers
    }

    /// Whether one of its instructions faults in user mode.
    pub fn needs_ring0(&self) -> bool {
        self.steps().any(|step| *step == ClockStep::RewriteCr0)
    }

    /// Whether it reads a hardware counter with RDPMC. The executor must open that counter first.
    pub fn reads_counter(&self) -> bool {
        self.steps().any(|step| *step == ClockStep::Rdpmc)
    }

    /// Whether a step calls a function of the system, with its calling convention, on the caller's
    /// stack.
    pub fn calls_system(&self) -> bool {
        self.steps().any(|step| *step == ClockStep::ClockGettime)
    }

    /// The TSC read of its end, which determines the step of its readings.
    pub fn tsc_read(&self) -> TscRead {
        if self.end.contains(&ClockStep::Rdtscp) { TscRead::Rdtscp } else { TscRead::LfenceRdtsc }
    }

    /// Step of its readings on a machine, in raw units; 1 if it counts single units or the step is
    /// unknown. Takes some milliseconds if the step was not given with the machine.
    pub fn reading_step(&self, tsc: &TscFacts) -> f64 {
        match self.counts {
            Unit::TscTicks => step_ticks(tsc, self.tsc_read()).known().copied().unwrap_or(1.0),
            // If the step is underestimated, readings that are one step longer become outliers.
            Unit::Nanos => step_nanos(tsc).known().copied().unwrap_or(1.0),
            _ => 1.0,
        }
    }

    /// Whether programs of a mode can use it.
    ///
    /// # Errors
    ///
    /// Fails for 32-bit code if a step calls 64-bit code.
    pub fn check_mode(&self, mode: CodeMode) -> Result<(), Unavailable> {
        if mode == CodeMode::Bits64 || !(self.calls_system() || self.needs_ring0()) {
            return Ok(());
        }
        let why = if self.calls_system() { "it calls a 64-bit library" } else { "it needs ring 0, and so 64-bit code" };
        Err(Unavailable {
            what: format!("clock {} in 32-bit code", self.name),
            why: why.to_string(),
            remedy: "choose another clock (--clock list), or leave --bits 32 out".to_string(),
        })
    }

    /// Whether it executes CPUID, which exits the guest in a virtual machine.
    pub fn executes_cpuid(&self) -> bool {
        self.steps().any(|step| *step == ClockStep::Cpuid)
    }

    /// Steps of one side.
    pub fn side_steps(&self, side: ClockSide) -> &'static [ClockStep] {
        match side {
            ClockSide::Start => self.start,
            ClockSide::End => self.end,
        }
    }

    /// Emits the reading before or after the body, with an edit if given.
    pub fn emit_side(&self, side: ClockSide, edit: Option<StepEdit>, emitter: &mut Emitter) {
        let reading = match side {
            ClockSide::Start => std::mem::offset_of!(crate::context::ProgramContext, start),
            ClockSide::End => std::mem::offset_of!(crate::context::ProgramContext, end),
        };
        let edit = edit.filter(|edit| edit.side == side);
        for (number, step) in self.side_steps(side).iter().enumerate() {
            let times = edit.filter(|edit| edit.step == number).map_or(1, |edit| edit.times);
            (0..times).for_each(|_| step.emit_step(emitter, reading));
        }
    }
}

/// Side of a method: the reading before the body or the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSide {
    /// Before the body.
    Start,
    /// After the body.
    End,
}

impl ClockSide {
    /// Both sides in order of execution.
    pub const BOTH: [ClockSide; 2] = [ClockSide::Start, ClockSide::End];
}

/// Changes how often one step of a method is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepEdit {
    /// Side of the step.
    pub side: ClockSide,
    /// Index on that side, from 0.
    pub step: usize,
    /// Number of executions.
    pub times: usize,
}
