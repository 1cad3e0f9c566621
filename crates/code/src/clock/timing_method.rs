//! A timing method as data, from which all its other properties follow.

use super::step::ClockStep;
use crate::asm::Emitter;
use cyclescope_core::machine::tsc::TscFacts;
use cyclescope_core::machine::tsc_read::TscRead;
use cyclescope_core::machine::tsc_step::{step_nanos, step_ticks};
use cyclescope_core::unit::Unit;
use iced_x86::{CpuidFeature, Register};

/// Ordering promises of a method for the code around its readings: each excludes one of the five faults in
/// `docs/how-it-measures.md`. A fault that is not excluded may still not occur on a given core.
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
    /// Each promise: its letter in lists, its words, and whether it is made.
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
    /// Its name: the instructions of its start and, where they differ, of its end.
    pub name: &'static str,
    /// Names that the documents it comes from suggest, `paper-` for Intel's paper, `notes-` for the notes on
    /// RDTSC(P) and `agner-` for Agner Fog's manual of test programs.
    pub also: &'static [&'static str],
    /// One line on its use, and on what it does not order.
    pub about: &'static str,
    /// Where it was described.
    pub source: &'static str,
    /// The unit of its readings.
    pub counts: Unit,
    /// Its ordering promises.
    pub promises: OrderingPromises,
    /// The steps before the body. Exactly one of them is [`ClockStep::Store`].
    pub start: &'static [ClockStep],
    /// The steps after the body. Exactly one of them is [`ClockStep::Store`].
    pub end: &'static [ClockStep],
}

impl Clock {
    pub(super) fn steps(&self) -> impl Iterator<Item = &ClockStep> {
        self.start.iter().chain(self.end)
    }

    /// The CPU features that its instructions need.
    pub fn required_features(&self) -> Vec<CpuidFeature> {
        let mut features: Vec<_> = self.steps().filter_map(|step| step.required_feature()).collect();
        features.sort();
        features.dedup();
        features
    }

    /// The general purpose registers that its start changes. They are saved and restored around it.
    pub fn clobbers(&self) -> Vec<Register> {
        self.side_clobbers(ClockSide::Start)
    }

    /// The general purpose registers that one side changes.
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

    /// Whether it reads a hardware counter with RDPMC, which an executor has to open first.
    pub fn reads_counter(&self) -> bool {
        self.steps().any(|step| *step == ClockStep::Rdpmc)
    }

    /// Whether a step calls a function of the system, on the caller's stack and with its calling convention.
    pub fn calls_system(&self) -> bool {
        self.steps().any(|step| *step == ClockStep::ClockGettime)
    }

    /// How its end reads the TSC, as far as the step of its readings goes.
    pub fn tsc_read(&self) -> TscRead {
        if self.end.contains(&ClockStep::Rdtscp) { TscRead::Rdtscp } else { TscRead::LfenceRdtsc }
    }

    /// The step of its readings on a machine, in its raw units; 1 where it counts single units or the step is unknown.
    /// Takes some milliseconds where the step was not given with the machine.
    pub fn reading_step(&self, tsc: &TscFacts) -> f64 {
        match self.counts {
            Unit::TscTicks => step_ticks(tsc, self.tsc_read()).known().copied().unwrap_or(1.0),
            // A step that is taken for less makes outliers of readings that are one step longer.
            Unit::Nanos => step_nanos(tsc).known().copied().unwrap_or(1.0),
            _ => 1.0,
        }
    }

    /// Whether it executes CPUID, which leaves the guest in a virtual machine.
    pub fn executes_cpuid(&self) -> bool {
        self.steps().any(|step| *step == ClockStep::Cpuid)
    }

    /// The steps of one side.
    pub fn side_steps(&self, side: ClockSide) -> &'static [ClockStep] {
        match side {
            ClockSide::Start => self.start,
            ClockSide::End => self.end,
        }
    }

    /// Emits the reading before or after the body, with an edit where one is given.
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

/// A side of a method: the reading before the body or the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSide {
    /// Before the body.
    Start,
    /// After it.
    End,
}

impl ClockSide {
    /// Both, in the order of execution.
    pub const BOTH: [ClockSide; 2] = [ClockSide::Start, ClockSide::End];
}

/// One step of a method that is done another number of times than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepEdit {
    /// The side that it is on.
    pub side: ClockSide,
    /// Its number on that side, from 0.
    pub step: usize,
    /// How often it is done.
    pub times: usize,
}
