//! The state of a running measurement: its executor, its snippet, and the common parts of its programs.

use super::estimate::call;
use super::plan::Plan;
use crate::executor::Executor;
use crate::program::{Frame, Program, Recipe};
use crate::random::Random;
use crate::ruler::Ruler;
use crate::snippet::{Outline, Snippet};
use std::time::Duration;

/// The state of a running measurement.
pub(super) struct Session<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) snippet: &'a Snippet,
    pub(super) plan: &'a Plan,
    pub(super) outline: Outline,
    pub(super) ruler: [Program; call::RULERS],
    /// The common parts of all programs of the snippet.
    pub(super) frame: Option<Frame>,
    pub(super) imul_latency: f64,
    pub(super) random: Random,
    /// Number of pauses because the core was shared.
    pub(super) pauses: u32,
    /// The executor's time at the start.
    pub(super) started: Duration,
}

impl<'a> Session<'a> {
    pub(super) fn new(executor: &'a mut dyn Executor, snippet: &'a Snippet, plan: &'a Plan) -> Session<'a> {
        let outline = snippet.outline(plan.avx);
        let started = executor.now();
        Session {
            frame: (!plan.cold.is_any()).then(|| recipe(snippet, plan, outline, 0).frame()),
            executor,
            snippet,
            plan,
            outline,
            ruler: Ruler::new(plan.clock).programs(),
            imul_latency: plan.imul_latency.unwrap_or(1.0),
            random: Random::new(plan.seed),
            pauses: 0,
            started,
        }
    }

    pub(super) fn is_cold(&self) -> bool {
        self.plan.cold.is_any()
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.executor.now().saturating_sub(self.started)
    }
}

pub(super) fn recipe<'a>(
    snippet: &'a Snippet,
    plan: &'a Plan,
    outline: Outline,
    copies: usize,
) -> Recipe<'a> {
    Recipe {
        clock: plan.clock,
        world: outline.world,
        init: snippet.init(),
        snippet: snippet.code(),
        copies,
        looped: plan.loop_count.is_some(),
        cold: plan.cold,
        following: &[],
        edit: None,
    }
}
