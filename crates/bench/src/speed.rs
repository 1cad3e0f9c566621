//! Speed: the whole process for one snippet, and many snippets inside one process.
//!
//! The parts are measured from outside: by an executor with a stopwatch, by repeating the library's
//! steps on the same batch, and by the readings themselves, which show how long the measured code
//! ran.

use crate::lab::{Lab, SectionResult};
use cyclescope::error::RunError;
use cyclescope::executor::{Batch, Capabilities, Executor, Sample};
use cyclescope::machine::Machine;
use cyclescope::measure::{Plan, Precision, measure_cost};
use cyclescope::program::ProgramRecipe;
use cyclescope::ruler::RulerPrograms;
use cyclescope::run::RunRequest;
use cyclescope::snippet::Snippet;
use cyclescope::statistics::{mean, median, quantile};
use cyclescope::unit::Unit;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Starts of the command line of each kind.
const PROCESS_STARTS: usize = 20;
/// The half width that the many snippets must reach, in core cycles.
const HALF_WIDTH: f64 = 0.02;

/// Runs the section.
pub fn check_speed(lab: &mut Lab) -> SectionResult {
    time_processes(lab)?;
    time_in_process(lab)
}

/// `cyclescope run` from start to exit.
fn time_processes(lab: &mut Lab) -> SectionResult {
    let program = std::env::current_exe()?.with_file_name("cyclescope");
    for (arguments, limit) in [(&[][..], 250.0), (&["--quick"][..], 60.0)] {
        let text = format!("one `run{}` takes at most {limit} ms, idle", arguments.join(" ").replace("--", " --"));
        if !program.exists() {
            let figure = "there is no cyclescope next to this program; `make bench` builds both".to_string();
            lab.record_demand(&text, None, figure);
            continue;
        }
        let mut took = Vec::new();
        for snippet in ["imul rax, rax", "mulps xmm0, xmm1", "add rax, [r14]", "mov [r14], rax", "nop"] {
            for _ in 0..PROCESS_STARTS / 5 {
                let mut command = Command::new(&program);
                command.arg("run").args(arguments).arg(snippet).arg("--cpu").arg(lab.cpu.to_string());
                let started = Instant::now();
                command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
                took.push(started.elapsed().as_secs_f64() * 1e3);
            }
        }
        took.sort_by(f64::total_cmp);
        // Not the longest: a run waits up to 30 s for another run on the same CPU to end.
        let [middle, most, worst] = [0.5, 0.95, 1.0].map(|share| quantile(&took, share));
        let figure =
            format!("median {middle:.1} ms, 95 % within {most:.1} ms, longest of {PROCESS_STARTS} {worst:.1} ms");
        println!("{text}: {figure}");
        lab.record_demand(&text, Some(most <= limit), figure);
    }
    Ok(())
}

/// An executor with a stopwatch.
struct StopwatchExecutor<'a> {
    inner: &'a mut dyn Executor,
    took: Duration,
    batches: Vec<Batch>,
    /// Raw units of the clock that the timed calls took, including warm-ups in proportion to their
    /// number.
    units: f64,
}

impl Executor for StopwatchExecutor<'_> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.inner.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        let started = Instant::now();
        let samples = self.inner.run(batch)?;
        self.took += started.elapsed();
        let units: u64 = samples.iter().map(|sample| sample.end.saturating_sub(sample.start)).sum();
        self.units += units as f64 * f64::from(batch.rounds + batch.warm_up) / f64::from(batch.rounds);
        self.batches.push(batch.clone());
        take(&samples);
        Ok(())
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn pause(&mut self, time: Duration) {
        self.inner.pause(time);
    }
}

/// The time of one snippet by part, in milliseconds.
#[derive(Default)]
struct TimeBreakdown {
    whole: Vec<f64>,
    executor: Vec<f64>,
    running: Vec<f64>,
    placing: Vec<f64>,
    building: Vec<f64>,
    estimating: Vec<f64>,
    half_widths: Vec<f64>,
    batches: Vec<f64>,
}

fn time_in_process(lab: &mut Lab) -> SectionResult {
    let codes = list_snippets();
    let required = Some(Precision { cycles: HALF_WIDTH, share: 0.0, cap: None });
    let request = RunRequest { quick: true, required, ..RunRequest::default() };
    let plan = lab.make_plan(&request)?;
    let units_per_ms = measure_units_per_ms(lab, &plan)?;
    let mut user = lab.spawn_executor()?;
    // The first commands fault in the arena and the samples.
    if let Some(snippet) = lab.assemble_snippet("add rax, rbx", "")? {
        measure_cost(&mut user, &snippet, &plan)?;
    }
    let mut plain = Vec::new();
    let mut parts = TimeBreakdown::default();
    let mut reached = 0;
    let mut snippets = Vec::new();
    for code in &codes {
        snippets.extend(lab.assemble_snippet(code, "")?);
    }
    // Without pauses, as in a table of instructions: a worker that waits long falls asleep.
    for snippet in &snippets {
        let plan = Plan { seed: lab.next_seed(), ..plan.clone() };
        let started = Instant::now();
        let result = measure_cost(&mut user, snippet, &plan)?;
        plain.push(started.elapsed().as_secs_f64() * 1e3);
        let half_width = result.estimate.as_ref().map_or(f64::INFINITY, |result| result.cost.half_width());
        reached += usize::from(half_width <= HALF_WIDTH);
        parts.half_widths.push(half_width);
    }
    for snippet in &snippets {
        let plan = Plan { seed: lab.next_seed(), ..plan.clone() };
        parts.add_measurement(&mut user, snippet, &plan, units_per_ms)?;
    }
    let middle = median(&mut plain.clone());
    println!(
        "\n{} snippets in one process: median {middle:.3} ms, mean {:.3} ms, longest {:.3} ms; {reached} of them \
         reached ±{HALF_WIDTH}, median half width {:.4}",
        plain.len(),
        mean(&plain),
        plain.iter().copied().fold(0.0, f64::max),
        median(&mut parts.half_widths),
    );
    parts.print_medians();
    lab.record_demand(
        "many snippets in one process: median at most 0.5 ms each, 8 layouts, half width 0.02",
        Some(middle <= 0.5 && 2 * reached >= plain.len()),
        format!("median {middle:.3} ms over {} snippets, {reached} reached the half width", plain.len()),
    );
    Ok(())
}

/// Raw units of the plan's clock in a millisecond.
fn measure_units_per_ms(lab: &mut Lab, plan: &Plan) -> SectionResult<f64> {
    if plan.clock.counts == Unit::Nanos {
        return Ok(1e6);
    }
    let Some(snippet) = lab.assemble_snippet("imul rax, rax", "")? else { return Ok(f64::NAN) };
    let run = lab.measure(&snippet, &RunRequest::default())?;
    Ok(run.tsc.map_or(f64::NAN, |[_, rate, _]| rate.0 / 1e3))
}

impl TimeBreakdown {
    /// Measures a snippet once more, with stopwatches.
    fn add_measurement(
        &mut self,
        user: &mut dyn Executor,
        snippet: &Snippet,
        plan: &Plan,
        units_per_ms: f64,
    ) -> SectionResult {
        let mut watched = StopwatchExecutor { inner: user, took: Duration::ZERO, batches: Vec::new(), units: 0.0 };
        let started = Instant::now();
        let result = measure_cost(&mut watched, snippet, plan)?;
        self.whole.push(started.elapsed().as_secs_f64() * 1e3);
        self.executor.push(watched.took.as_secs_f64() * 1e3);
        self.running.push(watched.units / units_per_ms);
        self.batches.push(watched.batches.len() as f64);
        let world = snippet.outline(plan.avx).world;
        let mut arena = vec![0; 4 << 20];
        let started = Instant::now();
        for batch in &watched.batches {
            for place in batch.layouts.iter().flat_map(|layout| &layout.code) {
                let at = place.offset as usize;
                batch.programs[place.program].relocate_into(at as u64, 0, &mut arena[at..]);
            }
        }
        self.placing.push(started.elapsed().as_secs_f64() * 1e3);
        let started = Instant::now();
        let (init, code) = (snippet.init(), snippet.code());
        let recipe = ProgramRecipe { world, init, ..ProgramRecipe::empty(plan.clock) };
        let frame = recipe.build_frame();
        let rulers = black_box(RulerPrograms::new(plan.clock).into_programs()).len();
        for program in watched.batches.iter().flat_map(|batch| &batch.programs[rulers..]) {
            black_box(frame.build_program(code, program.copies()));
        }
        self.building.push(started.elapsed().as_secs_f64() * 1e3);
        let started = Instant::now();
        black_box(result.estimate_at(plan.confidence));
        self.estimating.push(started.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }

    fn print_medians(mut self) {
        let row = |what: &str, values: &mut [f64]| println!("  {what:<66}{:>8.3}", median(values));
        row("median ms of a measurement, with stopwatches", &mut self.whole);
        row("in the executor: placing code, round trips, running", &mut self.executor);
        row("  of this between the clock's readings (warm-up included)", &mut self.running);
        row("  of this placing code, repeated here in warm memory", &mut self.placing);
        row("building programs, repeated here", &mut self.building);
        row("one estimate from all samples, repeated here", &mut self.estimating);
        row("batches of layouts", &mut self.batches);
    }
}

/// Different snippets of at most five cycles.
fn list_snippets() -> Vec<String> {
    let mut snippets = Vec::new();
    let registers = ["rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12"];
    for (index, register) in registers.iter().enumerate() {
        let other = registers[(index + 1) % registers.len()];
        for name in ["add", "sub", "xor", "and", "or", "imul", "adc", "crc32", "popcnt", "lzcnt", "bsf"] {
            snippets.push(format!("{name} {register}, {other}"));
        }
        for name in ["not", "neg", "inc", "bswap"] {
            snippets.push(format!("{name} {register}"));
        }
    }
    for number in 0..8 {
        for name in ["addps", "mulps", "addpd", "mulsd", "paddd", "pxor", "andps", "pshufb", "maxps"] {
            snippets.push(format!("{name} xmm{number}, xmm{}", number + 8));
        }
    }
    snippets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_enough_different_snippets() {
        let mut all = list_snippets();
        for code in &all {
            cyclescope::asm::parse_assembly(code).unwrap_or_else(|error| panic!("{code}: {error}"));
        }
        all.sort();
        all.dedup();
        assert!(all.len() >= 100);
    }
}
