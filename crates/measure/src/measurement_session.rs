//! The state of a running measurement: its executor, its question, and the common parts of its
//! programs.

use super::estimate::call;
use super::measurement_progress::MeasurementProgress;
use super::plan::{LengthenBy, Plan};
use super::question::CostQuestion;
use crate::ruler::RulerPrograms;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{Program, ProgramFrame, ProgramRecipe};
use cyclescope_code::snippet::{Snippet, SnippetOutline};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;
use std::time::Duration;

/// Approximate core cycles in a nanosecond, where an upper limit assumes 1.
pub(super) const CYCLES_PER_NS: f64 = 3.0;

/// Fewest memory accesses in the shortest body: more than any store buffer holds (Intel and AMD
/// optimisation manuals: at most 112 entries). Otherwise all stores of a sample fit in it, and
/// their cost is hidden.
pub(super) const MEMORY_ACCESSES_LEAST: usize = 128;
/// Iterations of a loop around copies that walk through much prepared memory, such as a ring of
/// pointers. The first accesses find caches and prefetchers as the init code left them. A ring of 2
/// 048 lines took 4.05 core cycles per line in its first part, and 4.24 over many laps (Zen 5).
const LAPS: u64 = 4;

/// A snippet of the question, and the common parts of its programs.
pub(super) struct MeasuredSnippet<'a> {
    pub(super) snippet: &'a Snippet,
    pub(super) outline: SnippetOutline,
    /// Each instance and its frame. The frame is `None` if anything is cold: evictions depend on
    /// the number of copies.
    instances: Vec<(&'a Snippet, Option<ProgramFrame>)>,
    /// Rough cost in core cycles, before it is measured.
    pub(super) guess: f64,
}

/// The state of a running measurement.
pub(super) struct MeasurementSession<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) question: &'a CostQuestion,
    pub(super) parts: Vec<MeasuredSnippet<'a>>,
    /// Iterations of the loop around the copies; `None` without a loop.
    pub(super) loop_count: Option<u64>,
    pub(super) plan: &'a Plan,
    /// The memory of all programs.
    pub(super) memory: ProgramMemory,
    pub(super) ruler: [Program; call::RULERS],
    pub(super) imul_latency: f64,
    pub(super) random: Random,
    /// Number of budgets that may be spent: more for training and for layouts measured after it.
    pub(super) budgets: u32,
    /// Calls of each function before a layout is measured, if its predictors learn slowly.
    pub(super) training: Option<u64>,
    /// Fastest calls of all training: one call of each function, in iterations of the ruler
    /// measured with it.
    pub(super) fastest: f64,
    /// The error that ended the code in training.
    pub(super) untrainable: Option<RunError>,
    /// Whether training was tried.
    pub(super) training_tried: bool,
    /// The executor's time at the start.
    pub(super) started: Duration,
    /// Receives progress reports.
    pub(super) watch: &'a mut dyn FnMut(MeasurementProgress),
}

impl<'a> MeasurementSession<'a> {
    pub(super) fn new(
        executor: &'a mut dyn Executor,
        question: &'a CostQuestion,
        plan: &'a Plan,
        watch: &'a mut dyn FnMut(MeasurementProgress),
    ) -> MeasurementSession<'a> {
        let started = executor.now();
        let outlines = question.snippets().iter().map(|instances| instances[0].outline(plan.avx));
        let outlines: Vec<SnippetOutline> = outlines.collect();
        let loop_count = choose_loop_count(plan, &outlines);
        let parts = question.snippets().iter().zip(outlines);
        let parts: Vec<MeasuredSnippet> = parts
            .map(|(instances, outline)| MeasuredSnippet::new(instances, outline, plan, loop_count.is_some()))
            .collect();
        let touched = parts.iter().any(|part| part.outline.touches_memory);
        let standard = || ProgramMemory::standard(parts[0].outline.world.element, touched);
        MeasurementSession {
            executor,
            question,
            memory: plan.memory.clone().unwrap_or_else(standard),
            parts,
            loop_count,
            plan,
            ruler: RulerPrograms::new(plan.clock).into_programs(),
            imul_latency: plan.imul_latency.unwrap_or(1.0),
            random: Random::new(plan.seed),
            budgets: 1,
            training: None,
            fastest: f64::INFINITY,
            untrainable: None,
            training_tried: false,
            started,
            watch,
        }
    }

    pub(super) fn is_cold(&self) -> bool {
        self.plan.cold.is_any()
    }

    /// Whether one program with varied iterations makes all bodies of a snippet.
    pub(super) fn uses_iterations(&self) -> bool {
        self.plan.lengthen == LengthenBy::Iterations
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.executor.now().saturating_sub(self.started)
    }
}

impl<'a> MeasuredSnippet<'a> {
    fn new(instances: &'a [Snippet], outline: SnippetOutline, plan: &Plan, in_loop: bool) -> MeasuredSnippet<'a> {
        let frame = |snippet: &'a Snippet| {
            let recipe = make_recipe(snippet, plan, outline, 0);
            (!plan.cold.is_any()).then(|| ProgramRecipe { looped: recipe.looped || in_loop, ..recipe }.build_frame())
        };
        let framed = instances.iter().map(|snippet| (snippet, frame(snippet))).collect();
        MeasuredSnippet { snippet: &instances[0], outline, instances: framed, guess: 0.0 }
    }

    /// Builds the program with `copies` copies for the layout with this number.
    pub(super) fn build_program(&self, plan: &Plan, layout: usize, copies: usize) -> Program {
        let (snippet, frame) = &self.instances[layout % self.instances.len()];
        match frame {
            Some(frame) => frame.build_program(snippet.code(), copies),
            None => make_recipe(snippet, plan, self.outline, copies).build(),
        }
    }
}

/// Iterations of the loop around the copies: the plan's, or [`LAPS`] if the shortest body then
/// makes as many accesses as the init code wrote, and more than the minimum. R15 counts the
/// iterations.
fn choose_loop_count(plan: &Plan, outlines: &[SnippetOutline]) -> Option<u64> {
    let chosen = plan.unit.is_none() && plan.lengthen == LengthenBy::Copies && !plan.cold.is_any();
    let walks = |outline: &SnippetOutline| outline.memory_accesses > 0 && outline.prepared > MEMORY_ACCESSES_LEAST;
    let laps = chosen && outlines.iter().any(walks) && !outlines.iter().any(|outline| outline.uses_r15);
    plan.loop_count.or(laps.then_some(LAPS))
}

fn make_recipe<'a>(snippet: &'a Snippet, plan: &Plan, outline: SnippetOutline, copies: usize) -> ProgramRecipe<'a> {
    ProgramRecipe {
        clock: plan.clock,
        world: outline.world,
        init: snippet.init(),
        snippet: snippet.code(),
        copies,
        looped: plan.loop_count.is_some() || plan.lengthen == LengthenBy::Iterations,
        cold: plan.cold,
        following: &[],
        edit: None,
    }
}
