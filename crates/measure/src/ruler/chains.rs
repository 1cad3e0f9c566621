//! The ruler: chains of known length in core cycles, measured together with the samples.
//!
//! A chain of dependent `imul` or `add` takes a fixed number of core cycles at every frequency of
//! the core. So a sample divided by the ruler is in core cycles. Each chain is measured at two
//! lengths, whose difference does not contain the readings' overhead. The lengths differ by the
//! size of the loop's body, not by the number of iterations. Doubling the iterations moved the
//! loop's exit, and so the difference, by up to one cycle in 900. Equal iteration counts agreed
//! with unrolled chains within 1 in 10 000.
//!
//! `imul` is the primary chain. A busy sibling delays both chains, `add` up to three times more per
//! cycle, since its links compete for a port every cycle. The ratio of the two checks the ruler.
//! The *width sentinel*, a burst of independent adds, detects the sibling.
//!
//! Each loop has at most 64 bytes, lies in one cache line, and accesses no memory.

use super::unshared_width::LeastWidth;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
pub use cyclescope_code::program::chains::IMUL;
pub(crate) use cyclescope_code::program::chains::{ADD, IMUL_32, IMUL_LINKS, SENTINEL, SENTINEL_ADDS};
use cyclescope_code::program::{EntryState, LoopPlan, Program, ProgramRecipe};
use cyclescope_core::machine::integer_adders::IntegerAdders;
use iced_x86::Register;

/// Copies in the sentinel's loop: the most that fit, since a short loop loses slots at its end.
/// Twelve additions and the counter took 3.0 cycles per iteration on a core with five adders, not
/// 2.6.
const SENTINEL_COPIES: usize = 4;

/// Fewest iterations of the sentinel's loop: some two hundred core cycles.
pub const SENTINEL_LOOPS: u64 = 40;

/// Iterations per unit of the clock's step. The sentinel then takes some twenty steps, so every
/// sample shows a busy sibling, which adds a half. With 40 iterations and a simulated step of 38,
/// only 86 % of the intervals with an intermittently busy sibling contained the truth.
const LOOPS_PER_STEP: f64 = 5.0;

/// Iterations of the sentinel's loop with a clock of this step.
pub fn sentinel_loops(step: f64) -> u64 {
    SENTINEL_LOOPS.max((LOOPS_PER_STEP * step) as u64)
}

/// Additions in `loops` iterations of the sentinel's loop.
pub fn sentinel_adds(loops: u64) -> f64 {
    (SENTINEL_ADDS * SENTINEL_COPIES) as f64 * loops as f64
}

/// Additions per core cycle that the sentinel reads on an unshared core with this number of adders.
/// The countdown of each iteration takes an adder too.
pub fn sentinel_width(adders: u32) -> f64 {
    let adds = (SENTINEL_ADDS * SENTINEL_COPIES) as f64;
    f64::from(adders) * adds / (adds + 1.0)
}

/// The least width that the sentinel reads on an unshared core with these adders.
pub fn least_unshared_width(adders: IntegerAdders) -> LeastWidth {
    LeastWidth { least: adders.least_share * sentinel_width(adders.count) }
}

/// Links in the short and the long loop body of the `add` chain.
pub const ADD_LINKS: [usize; 2] = [8, 24];

/// Links by which the two bodies of the `add` chain differ.
pub const ADD_SPAN: f64 = (ADD_LINKS[1] - ADD_LINKS[0]) as f64;
/// Links by which the two bodies of the `imul` chain differ.
pub const IMUL_SPAN: f64 = (IMUL_LINKS[1] - IMUL_LINKS[0]) as f64;

/// The ruler's programs.
#[derive(Debug, Clone)]
pub struct RulerPrograms {
    /// The `imul` chain, short and long.
    pub imul: [Program; 2],
    /// The `add` chain, short and long.
    pub add: [Program; 2],
    /// The width sentinel.
    pub sentinel: Program,
}

impl RulerPrograms {
    /// Builds the programs of the ruler, read by `clock`.
    pub fn new(clock: &Clock) -> RulerPrograms {
        RulerPrograms::for_mode(clock, CodeMode::default())
    }

    /// Builds the programs for code of a mode.
    pub fn for_mode(clock: &Clock, mode: CodeMode) -> RulerPrograms {
        let recipe = |snippet, copies| {
            let world = EntryState { mode, ..EntryState::default() };
            ProgramRecipe { world, ..ProgramRecipe::with_loop(clock, snippet, copies) }
        };
        let imul = match mode {
            CodeMode::Bits64 => IMUL,
            CodeMode::Bits32 => IMUL_32,
        };
        let sentinel = match mode {
            CodeMode::Bits64 => recipe(SENTINEL, SENTINEL_COPIES),
            // The sentinel changes all registers of 32-bit code but ECX, which it adds.
            CodeMode::Bits32 => {
                ProgramRecipe { looped: Some(LoopPlan::counted_by(Register::RCX)), ..recipe(SENTINEL, SENTINEL_COPIES) }
            }
        };
        RulerPrograms {
            imul: IMUL_LINKS.map(|links| recipe(imul, links).build()),
            add: ADD_LINKS.map(|links| recipe(ADD, links).build()),
            sentinel: sentinel.build(),
        }
    }

    /// All programs: `imul` short and long, `add` short and long, the sentinel.
    pub fn into_programs(self) -> [Program; 5] {
        let RulerPrograms { imul: [imul_short, imul_long], add: [add_short, add_long], sentinel } = self;
        [imul_short, imul_long, add_short, add_long, sentinel]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::ALL_MODES;

    #[test]
    fn every_loop_fits_in_one_cache_line() {
        let both = |clock| ALL_MODES.map(|mode| (clock, mode));
        for (clock, mode) in cyclescope_code::clock::ALL_CLOCKS.iter().flat_map(both) {
            if clock.check_mode(mode).is_err() {
                continue;
            }
            let ruler = RulerPrograms::for_mode(clock, mode);
            for program in ruler.imul.iter().chain(&ruler.add).chain([&ruler.sentinel]) {
                assert!(program.body_range().len() <= 64, "{} bytes with {}", program.body_range().len(), clock.name);
            }
        }
    }
}
