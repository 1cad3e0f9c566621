//! The state of a running measurement: its executor, its question, and the common parts of its
//! programs.

use super::estimate::call;
use super::measurement_progress::MeasurementProgress;
use super::plan::{LengthenBy, Plan};
use super::question::CostQuestion;
use super::steadiness::SteadinessReport;
use crate::placement::CACHE_LINE;
use crate::ruler::RulerPrograms;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{LoopObstacle, LoopPlan, Program, ProgramFrame, ProgramRecipe};
use cyclescope_code::snippet::{Snippet, SnippetOutline};
use cyclescope_core::error::{RunError, Unavailable};
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

/// Iterations of the loop around the copies in each body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum LoopLength {
    /// There is no loop.
    #[default]
    NoLoop,
    /// This number.
    Fixed(u64),
    /// This number for now: the measurement adapts it.
    Chosen(u64),
}

impl LoopLength {
    /// The number of times that each copy runs in a sample.
    pub(super) fn iterations(self) -> u64 {
        match self {
            LoopLength::NoLoop => 1,
            LoopLength::Fixed(count) | LoopLength::Chosen(count) => count,
        }
    }

    pub(super) fn is_chosen(self) -> bool {
        matches!(self, LoopLength::Chosen(_))
    }
}

/// The state of a running measurement.
pub(super) struct MeasurementSession<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) question: &'a CostQuestion,
    pub(super) parts: Vec<MeasuredSnippet<'a>>,
    /// Iterations of the loop around the copies.
    pub(super) loop_length: LoopLength,
    pub(super) plan: &'a Plan,
    /// The memory of all programs.
    pub(super) memory: ProgramMemory,
    pub(super) ruler: [Program; call::RULERS],
    pub(super) imul_latency: f64,
    pub(super) random: Random,
    /// Alignment of the bodies to the cache line in the first layout.
    pub(super) first_alignment: usize,
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
    /// Whether the copies of each snippet do the same work.
    pub(super) steadiness: Vec<SteadinessReport>,
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
    ) -> Result<MeasurementSession<'a>, RunError> {
        let started = executor.now();
        let mode = question.snippets()[0][0].mode();
        let outlines = question.snippets().iter().map(|instances| instances[0].outline(plan.avx));
        let outlines: Vec<SnippetOutline> = outlines.collect();
        let loops: Vec<Result<LoopPlan, LoopObstacle>> =
            question.snippets().iter().map(|instances| plan_loop(plan, &instances[0])).collect();
        let loop_length = choose_loop_length(plan, &outlines, &loops)?;
        let mut random = Random::new(plan.seed);
        let first_alignment = random.below(CACHE_LINE);
        let parts = question.snippets().iter().zip(outlines).zip(loops);
        let parts: Vec<MeasuredSnippet> = parts
            .map(|((instances, outline), loops)| {
                let looped = match (plan.lengthen, loop_length) {
                    (LengthenBy::Iterations, _) => Some(LoopPlan::PLAIN),
                    (_, LoopLength::NoLoop) => None,
                    _ => loops.ok(),
                };
                MeasuredSnippet::new(instances, outline, plan, looped)
            })
            .collect();
        let touched = parts.iter().any(|part| part.outline.touches_memory);
        let standard = || ProgramMemory::standard(parts[0].outline.world.element, touched);
        Ok(MeasurementSession {
            executor,
            question,
            memory: plan.memory.clone().unwrap_or_else(standard),
            parts,
            loop_length,
            plan,
            ruler: RulerPrograms::for_mode(plan.clock, mode).into_programs(),
            imul_latency: known_latency(plan, mode).unwrap_or(1.0),
            random,
            first_alignment,
            budgets: 1,
            training: None,
            fastest: f64::INFINITY,
            untrainable: None,
            training_tried: false,
            steadiness: Vec::new(),
            started,
            watch,
        })
    }

    /// Latency of the ruler's `imul`, if it is known before it is measured.
    pub(super) fn known_latency(&self) -> Option<f64> {
        known_latency(self.plan, self.parts[0].snippet.mode())
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
    fn new(
        instances: &'a [Snippet],
        outline: SnippetOutline,
        plan: &Plan,
        looped: Option<LoopPlan>,
    ) -> MeasuredSnippet<'a> {
        let frame = |snippet: &'a Snippet| {
            let recipe = make_recipe(snippet, plan, outline, 0);
            (!plan.cold.is_any()).then(|| ProgramRecipe { looped, ..recipe }.build_frame())
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

/// Latency of the ruler's `imul` from data of the micro-architecture, which has that of 64 bits.
pub(crate) fn known_latency(plan: &Plan, mode: CodeMode) -> Option<f64> {
    plan.imul_latency.filter(|_| mode == CodeMode::Bits64)
}

/// The loop that a snippet can have. It may move its addresses for a given number of iterations.
fn plan_loop(plan: &Plan, snippet: &Snippet) -> Result<LoopPlan, LoopObstacle> {
    if plan.loop_count.is_some() { snippet.loop_plan_with_moves() } else { snippet.loop_plan() }
}

/// Iterations of the loop around the copies: the plan's, or [`LAPS`] if the shortest body then
/// makes as many accesses as the init code wrote, and more than the minimum.
///
/// # Errors
///
/// Fails if the plan asks for a loop that a snippet can't have.
fn choose_loop_length(
    plan: &Plan,
    outlines: &[SnippetOutline],
    loops: &[Result<LoopPlan, LoopObstacle>],
) -> Result<LoopLength, RunError> {
    if plan.cold.is_any() || plan.lengthen == LengthenBy::Iterations {
        return Ok(LoopLength::NoLoop);
    }
    let obstacle = loops.iter().find_map(|planned| planned.err());
    match (plan.loop_count, obstacle) {
        (Some(count), None) => return Ok(LoopLength::Fixed(count)),
        (Some(_), Some(obstacle)) => {
            return Err(RunError::Unavailable(Unavailable {
                what: "a loop around the snippet".to_string(),
                why: obstacle.to_string(),
                remedy: "leave out the number of iterations".to_string(),
            }));
        }
        (None, Some(_)) => return Ok(LoopLength::NoLoop),
        (None, None) => {}
    }
    let walks = |outline: &SnippetOutline| outline.memory_accesses > 0 && outline.prepared > MEMORY_ACCESSES_LEAST;
    Ok(match (plan.lengthen, outlines.iter().any(walks) && plan.unit.is_none()) {
        (_, true) => LoopLength::Fixed(LAPS),
        (LengthenBy::LoopedCopies, false) => LoopLength::Chosen(1),
        (_, false) => LoopLength::NoLoop,
    })
}

fn make_recipe<'a>(snippet: &'a Snippet, plan: &Plan, outline: SnippetOutline, copies: usize) -> ProgramRecipe<'a> {
    ProgramRecipe {
        world: outline.world,
        init: snippet.init(),
        snippet: snippet.code(),
        copies,
        cold: plan.cold,
        ..ProgramRecipe::empty(plan.clock)
    }
}
