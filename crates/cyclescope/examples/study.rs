//! A custom study: how much longer does a load take that crosses the end of a cache line?
//!
//!     cargo run --release -p cyclescope --example study

use cyclescope::Scope;
use cyclescope::error::Error;
use cyclescope::measure::contrast::Contrast;
use cyclescope::measure::rounds::{LayoutRounds, RulerRounds, estimate_contrast, find_unshared_width, select_unshared};
use cyclescope::program::{Program, ProgramRecipe};
use cyclescope::random::Random;
use cyclescope::snippet::Snippet;

/// Loads per program: many, so that the pair of clock readings is a small part of it.
const LOADS: usize = 400;
const LAYOUTS: usize = 24;
/// Timed rounds in each layout.
const ROUNDS: u32 = 32;
const CONFIDENCE: f64 = 0.95;

fn main() -> Result<(), Error> {
    let mut scope = Scope::open()?;
    let imul_latency = scope.imul_latency()?;
    let plan = scope.plan().clone();
    // Each load's address depends on the load before it. R14 points to the start of a cache line in
    // every layout.
    let program = |offset: usize| -> Result<Program, Error> {
        let load = Snippet::parse(&format!("mov rax, [r14+rax+{offset}]; and rax, 0"))?;
        let init = Snippet::parse("xor eax, eax")?;
        let recipe = ProgramRecipe::empty(plan.clock);
        Ok(ProgramRecipe { init: init.code(), snippet: load.code(), copies: LOADS, ..recipe }.build())
    };
    // Columns 0 and 1 stay within a line. Of the 8 bytes of column 2, the last 4 are in the next
    // line. All have a displacement, which alone can cost a cycle.
    let programs = [program(8)?, program(24)?, program(60)?];
    let rounds = RulerRounds::new(plan.clock, plan.step).with_programs(programs, true);
    let layouts = rounds.run(scope.executor(), LAYOUTS, ROUNDS, &mut Random::new(plan.seed))?;
    // A layout without undisturbed rounds has no reading. A layout with a busy sibling is left
    // out.
    let readings: Vec<_> = layouts.iter().filter_map(LayoutRounds::read).collect();
    let threshold = find_unshared_width(&readings, None);
    let alone = select_unshared(readings, threshold);
    if alone.shared {
        println!("something else used the core's execution units in most layouts");
    }
    let cases = [("in the same line, 16 bytes further", 1), ("across the end of a line", 2)];
    for (what, column) in cases {
        // Uses whole programs in the contrast, because the instrument's error in its interval is
        // per program.
        let contrast = Contrast::slope_between([0, column], 1.0);
        let Some(more) = estimate_contrast(&alone.used, imul_latency, &contrast, CONFIDENCE) else {
            println!("{what}: too few layouts were undisturbed");
            continue;
        };
        let [value, low, high] = [more.value, more.low, more.high].map(|cycles| cycles / LOADS as f64);
        println!("{what}: {value:+.3} core cycles per load, 95 % interval {low:+.3} to {high:+.3}");
    }
    Ok(())
}
