//! The cost of a program on the simulated machine without noise: the planted truth.

use super::scenario::{Mode, Scenario};
use super::timeline::Kind;
use cyclescope_code::program::Program;
use cyclescope_code::program::chains;
use cyclescope_core::random::{Random, mix};
use cyclescope_exec::{Batch, Layout};

/// Overhead of an iteration of the width sentinel's loop in core cycles: `nop`, `dec` and `jnz` take two of five slots
/// in a cycle.
const SENTINEL_LOOP: f64 = 0.4;

/// A program in one layout, ready to be called.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) kind: Kind,
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

impl Body {
    /// A program where code placement has no effect.
    fn new(scenario: &Scenario, program: &Program) -> Body {
        Body {
            kind: kind(program.snippet()),
            snippet: hash(0, program.snippet()),
            copy: scenario.cost_of(program.snippet()),
            copies: program.copies() as f64,
            looped: program.looped(),
            boundary: scenario.boundary,
            calls: 0,
        }
    }

    /// Repeats of the snippet in a call.
    pub(super) fn repeats(&self, loop_count: u64) -> f64 {
        self.copies * if self.looped { loop_count as f64 } else { 1.0 }
    }

    /// Core cycles of a call's body.
    pub(super) fn cycles(&self, scenario: &Scenario, loop_count: u64) -> f64 {
        let iterations = if self.looped { loop_count as f64 } else { 1.0 };
        let copies = self.repeats(loop_count);
        let mut cycles = match scenario.buffer.filter(|_| self.kind == Kind::Snippet) {
            Some(buffer) => {
                let swallowed = copies.min(buffer.copies);
                swallowed * buffer.cost + (copies - swallowed) * self.copy
            }
            None => copies * self.copy,
        };
        if self.looped {
            cycles = match self.kind {
                Kind::Sentinel => cycles + SENTINEL_LOOP * iterations,
                _ => cycles.max(scenario.loop_floor * iterations),
            };
        }
        (cycles - scenario.slack).max(0.0)
    }
}

/// The bodies of a batch in one of its layouts, on the machine with this seed.
pub(super) fn bodies(scenario: &Scenario, batch: &Batch, layout: &Layout, machine: u64) -> Vec<Body> {
    let place = fingerprint(machine, layout);
    layout.code.iter().map(|code| placed(scenario, &batch.programs[code.program], place)).collect()
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(seed, |hash, byte| mix(hash, u64::from(*byte)))
}

fn placed(scenario: &Scenario, program: &Program, place: u64) -> Body {
    let mut body = Body::new(scenario, program);
    // Lengths of one snippet share its effect, different snippets in the same layout do not.
    let by_snippet = hash(place, program.snippet());
    let by_program = mix(by_snippet, program.copies() as u64);
    if body.kind == Kind::Imul && program.copies() == chains::IMUL_LINKS[1] {
        body.boundary += scenario.ruler_boundary;
    }
    if body.kind == Kind::Snippet {
        let shift = 2.0 * Random::new(by_program).unit() - 1.0;
        body.boundary = (body.boundary + scenario.boundary_spread * shift).max(0.0);
        let effects = scenario.layout;
        let mut random = Random::new(mix(by_snippet, 1));
        if let Some(Mode { probability, factor, by_program: alone }) = effects.mode {
            let mut die = Random::new(mix(if alone { by_program } else { by_snippet }, 2));
            if die.happens(probability) {
                body.copy *= factor;
            }
        }
        body.copy *= 1.0 + effects.relative * random.normal();
        body.copy = (body.copy + effects.absolute * random.normal()).max(0.0);
    }
    body
}

pub(super) fn fingerprint(machine: u64, layout: &Layout) -> u64 {
    let code = layout.code.iter().map(|place| u64::from(place.offset));
    let data = layout.data.iter().map(|shift| *shift as u64);
    code.chain(data).fold(machine, mix)
}

pub(super) fn kind(snippet: &[u8]) -> Kind {
    match snippet {
        chains::ADD => Kind::Add,
        chains::IMUL => Kind::Imul,
        chains::SENTINEL => Kind::Sentinel,
        _ => Kind::Snippet,
    }
}

impl Scenario {
    /// Core cycles of one copy of a snippet where code placement has no effect: known for the ruler's chains, planted
    /// by the scenario for others.
    pub(crate) fn cost_of(&self, snippet: &[u8]) -> f64 {
        match kind(snippet) {
            Kind::Add => 1.0,
            Kind::Imul => f64::from(self.imul_latency),
            Kind::Sentinel => chains::SENTINEL_ADDS as f64 / self.adds_per_cycle,
            Kind::Fixed | Kind::Snippet => {
                let planted = self.costs.iter().find(|(known, _)| known == snippet);
                planted.map_or(self.cost, |(_, cost)| *cost)
            }
        }
    }

    /// The mean of a copy's cost over all layouts, in core cycles: the true value of an estimate over layouts.
    pub fn mean_cost_of(&self, snippet: &[u8]) -> f64 {
        let cost = self.cost_of(snippet);
        match self.layout.mode.filter(|_| kind(snippet) == Kind::Snippet) {
            Some(mode) => cost * (1.0 + mode.probability * (mode.factor - 1.0)),
            None => cost,
        }
    }

    /// Core cycles from reading to reading of one call, undisturbed and where code placement has no effect.
    pub fn cycles(&self, program: &Program, loop_count: u64) -> f64 {
        let body = Body::new(self, program);
        self.overhead + body.boundary + body.cycles(self, loop_count)
    }
}
