//! The cost of a program on the simulated machine without noise: the truth.

use super::scenario::{Scenario, SimulatedMode};
use super::timeline::SimulatedWorkKind;
use cyclescope_code::program::Program;
use cyclescope_code::program::chains;
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_exec::{Batch, Layout};

/// Overhead of an iteration of the width sentinel's loop in core cycles: `nop`, `dec` and `jnz`
/// take two of five slots in a cycle.
const SENTINEL_LOOP: f64 = 0.4;

/// A program in one layout, ready to be called.
#[derive(Debug, Clone)]
pub(super) struct PlacedBody {
    pub(super) kind: SimulatedWorkKind,
    /// A hash of its snippet.
    pub(super) snippet: u64,
    /// Core cycles of one copy.
    copy: f64,
    copies: f64,
    looped: bool,
    /// Core cycles of entry and exit.
    pub(super) boundary: f64,
    /// Number of calls made in this layout.
    pub(super) calls: u32,
}

impl PlacedBody {
    /// A program where code placement has no effect.
    fn new(scenario: &Scenario, program: &Program) -> PlacedBody {
        PlacedBody {
            kind: classify_snippet(program.snippet()),
            snippet: hash_bytes(0, program.snippet()),
            copy: scenario.cost_of(program.snippet()),
            copies: program.copies() as f64,
            looped: program.is_looped(),
            boundary: scenario.boundary,
            calls: 0,
        }
    }

    /// Repeats of the snippet in a call.
    pub(super) fn snippet_repeats(&self, loop_count: u64) -> f64 {
        self.copies * if self.looped { loop_count as f64 } else { 1.0 }
    }

    /// Core cycles of a call's body.
    pub(super) fn body_cycles(&self, scenario: &Scenario, loop_count: u64) -> f64 {
        let iterations = if self.looped { loop_count as f64 } else { 1.0 };
        let copies = self.snippet_repeats(loop_count);
        let mut cycles = match scenario.buffer.filter(|_| self.kind == SimulatedWorkKind::Snippet) {
            Some(buffer) => {
                let swallowed = copies.min(buffer.copies);
                swallowed * buffer.cost + (copies - swallowed) * self.copy
            }
            None => copies * self.copy,
        };
        if self.kind == SimulatedWorkKind::Snippet {
            cycles += self.copies * scenario.decoding;
        }
        if self.looped {
            cycles = match self.kind {
                SimulatedWorkKind::Sentinel => cycles + SENTINEL_LOOP * iterations,
                _ => cycles.max(scenario.loop_floor * iterations),
            };
        }
        (cycles - scenario.slack).max(0.0)
    }
}

/// The bodies of a batch in one of its layouts, on the machine with this seed.
pub(super) fn place_bodies(scenario: &Scenario, batch: &Batch, layout: &Layout, machine: u64) -> Vec<PlacedBody> {
    let place = layout_fingerprint(machine, layout);
    layout.code.iter().map(|code| place_body(scenario, &batch.programs[code.program], place)).collect()
}

fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| mix_seeds(hash, u64::from(*byte)))
}

fn place_body(scenario: &Scenario, program: &Program, place: u64) -> PlacedBody {
    let mut body = PlacedBody::new(scenario, program);
    // All lengths of one snippet share its effect; different snippets in the same layout do not.
    let by_snippet = hash_bytes(place, program.snippet());
    let by_program = mix_seeds(by_snippet, program.copies() as u64);
    if body.kind == SimulatedWorkKind::Imul && program.copies() == chains::IMUL_LINKS[1] {
        body.boundary += scenario.ruler_boundary;
    }
    if body.kind == SimulatedWorkKind::Snippet {
        let shift = 2.0 * Random::new(by_program).uniform() - 1.0;
        body.boundary = (body.boundary + scenario.boundary_spread * shift).max(0.0);
        let effects = scenario.layout;
        let mut random = Random::new(mix_seeds(by_snippet, 1));
        if let Some(SimulatedMode { probability, factor, by_program: alone }) = effects.mode {
            let mut die = Random::new(mix_seeds(if alone { by_program } else { by_snippet }, 2));
            if die.happens(probability) {
                body.copy *= factor;
            }
        }
        body.copy *= 1.0 + effects.relative * random.normal();
        body.copy = (body.copy + effects.absolute * random.normal()).max(0.0);
    }
    body
}

pub(super) fn layout_fingerprint(machine: u64, layout: &Layout) -> u64 {
    let code = layout.code.iter().map(|place| u64::from(place.offset));
    let data = layout.data.iter().map(|shift| *shift as u64);
    code.chain(data).fold(machine, mix_seeds)
}

pub(super) fn classify_snippet(snippet: &[u8]) -> SimulatedWorkKind {
    match snippet {
        chains::ADD => SimulatedWorkKind::Add,
        chains::IMUL | chains::IMUL_32 => SimulatedWorkKind::Imul,
        chains::SENTINEL => SimulatedWorkKind::Sentinel,
        _ => SimulatedWorkKind::Snippet,
    }
}

impl Scenario {
    /// Core cycles of one copy of a snippet without effects of code placement. It is known for the
    /// ruler's chains, and set by the scenario for others.
    pub(crate) fn cost_of(&self, snippet: &[u8]) -> f64 {
        match classify_snippet(snippet) {
            SimulatedWorkKind::Add => 1.0,
            SimulatedWorkKind::Imul => f64::from(self.imul_latency),
            SimulatedWorkKind::Sentinel => chains::SENTINEL_ADDS as f64 / self.adds_per_cycle,
            SimulatedWorkKind::Fixed | SimulatedWorkKind::Snippet => {
                let listed = self.costs.iter().find(|(known, _)| known == snippet);
                listed.map_or(self.cost, |(_, cost)| *cost)
            }
        }
    }

    /// The mean of a copy's cost over all layouts, in core cycles: the true value of an estimate
    /// over layouts.
    pub fn mean_cost_of(&self, snippet: &[u8]) -> f64 {
        let cost = self.cost_of(snippet);
        match self.layout.mode.filter(|_| classify_snippet(snippet) == SimulatedWorkKind::Snippet) {
            Some(mode) => cost * (1.0 + mode.probability * (mode.factor - 1.0)),
            None => cost,
        }
    }

    /// Core cycles between the readings of one call, undisturbed and without effects of code
    /// placement.
    pub fn call_cycles(&self, program: &Program, loop_count: u64) -> f64 {
        let body = PlacedBody::new(self, program);
        self.overhead + body.boundary + body.body_cycles(self, loop_count)
    }
}
