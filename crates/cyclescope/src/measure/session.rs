//! The state of a running measurement: its executor, its question, and the common parts of its programs.

use super::estimate::call;
use super::plan::{Lengthen, Plan};
use super::question::Question;
use super::standing::Standing;
use crate::error::RunError;
use crate::executor::Executor;
use crate::program::memory::Memory;
use crate::program::{Frame, Program, Recipe};
use crate::random::Random;
use crate::ruler::Ruler;
use crate::snippet::{Outline, Snippet};
use std::time::Duration;

/// Core cycles in a nanosecond, about, where an upper limit assumes 1.
pub(super) const CYCLES_PER_NS: f64 = 3.0;

/// A snippet of the question, with what its programs have in common.
pub(super) struct Part<'a> {
    pub(super) snippet: &'a Snippet,
    pub(super) outline: Outline,
    /// Each instance of it, and its frame, `None` where something is cold: evictions depend on the number of copies.
    instances: Vec<(&'a Snippet, Option<Frame>)>,
    /// Its cost in core cycles, roughly, before it is measured.
    pub(super) guess: f64,
}

/// The state of a running measurement.
pub(super) struct Session<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) question: &'a Question,
    pub(super) parts: Vec<Part<'a>>,
    pub(super) plan: &'a Plan,
    /// The memory of all programs.
    pub(super) memory: Memory,
    pub(super) ruler: [Program; call::RULERS],
    pub(super) imul_latency: f64,
    pub(super) random: Random,
    /// Number of pauses because the core was shared.
    pub(super) pauses: u32,
    /// Budgets that may be spent: more for training and for what is measured after it.
    pub(super) budgets: u32,
    /// Calls of each function before a layout is measured, where its predictors learn slowly.
    pub(super) training: Option<u64>,
    /// What ended the code in training.
    pub(super) untrainable: Option<RunError>,
    /// Whether it was tried if training changes a cost.
    pub(super) tried: bool,
    /// The executor's time at the start.
    pub(super) started: Duration,
    /// Who waits for it.
    pub(super) watch: &'a mut dyn FnMut(Standing),
}

impl<'a> Session<'a> {
    pub(super) fn new(
        executor: &'a mut dyn Executor,
        question: &'a Question,
        plan: &'a Plan,
        watch: &'a mut dyn FnMut(Standing),
    ) -> Session<'a> {
        let started = executor.now();
        let parts: Vec<Part> =
            question.snippets().iter().map(|instances| Part::new(instances, plan)).collect();
        let touched = parts.iter().any(|part| part.outline.touches_memory);
        let standard = || Memory::standard(parts[0].outline.world.element, touched);
        Session {
            executor,
            question,
            memory: plan.memory.clone().unwrap_or_else(standard),
            parts,
            plan,
            ruler: Ruler::new(plan.clock).programs(),
            imul_latency: plan.imul_latency.unwrap_or(1.0),
            random: Random::new(plan.seed),
            pauses: 0,
            budgets: 1,
            training: None,
            untrainable: None,
            tried: false,
            started,
            watch,
        }
    }

    pub(super) fn is_cold(&self) -> bool {
        self.plan.cold.is_any()
    }

    /// Whether one program makes all bodies of a snippet.
    pub(super) fn iterates(&self) -> bool {
        self.plan.lengthen == Lengthen::Iterations
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.executor.now().saturating_sub(self.started)
    }
}

impl<'a> Part<'a> {
    fn new(instances: &'a [Snippet], plan: &Plan) -> Part<'a> {
        let snippet = &instances[0];
        let outline = snippet.outline(plan.avx);
        let frame =
            |snippet: &'a Snippet| (!plan.cold.is_any()).then(|| recipe(snippet, plan, outline, 0).frame());
        let instances = instances.iter().map(|snippet| (snippet, frame(snippet))).collect();
        Part { snippet, outline, instances, guess: 0.0 }
    }

    /// The program with this number of copies, for the layout of this number.
    pub(super) fn program(&self, plan: &Plan, layout: usize, copies: usize) -> Program {
        let (snippet, frame) = &self.instances[layout % self.instances.len()];
        match frame {
            Some(frame) => frame.program(snippet.code(), copies),
            None => recipe(snippet, plan, self.outline, copies).build(),
        }
    }
}

fn recipe<'a>(snippet: &'a Snippet, plan: &Plan, outline: Outline, copies: usize) -> Recipe<'a> {
    Recipe {
        clock: plan.clock,
        world: outline.world,
        init: snippet.init(),
        snippet: snippet.code(),
        copies,
        looped: plan.loop_count.is_some() || plan.lengthen == Lengthen::Iterations,
        cold: plan.cold,
        following: &[],
        edit: None,
    }
}
