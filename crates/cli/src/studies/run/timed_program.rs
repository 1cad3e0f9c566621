//! `--write-elf`: the timed program of a measured snippet as a file.

use crate::args::{CommonArgs, find_clock};
use crate::output::executable::ExecutableProgram;
use crate::output::table_file::{require_writable, write_executable_file};
use crate::output::{Failure, Output};
use cyclescope::clock::Clock;
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::program::ProgramRecipe;
use cyclescope::program::memory::ProgramMemory;
use cyclescope::record::RunRecord;
use cyclescope::snippet::Snippet;
use std::path::Path;

/// Core cycles that the calls of a written program take together: about a second.
const WHOLE_CYCLES: f64 = 3e9;
/// Calls of a program whose cost is unknown.
const DEFAULT_CALLS: f64 = 1000.0;

/// A snippet whose program is written after the measurement.
pub struct TimedProgram<'a> {
    path: &'a Path,
    snippet: Snippet,
    avx: bool,
}

impl<'a> TimedProgram<'a> {
    /// Checks early that the program of this snippet can be written.
    pub fn prepare(
        path: &'a Path,
        common: &CommonArgs,
        snippet: &Snippet,
        machine: &Machine,
    ) -> Result<TimedProgram<'a>, Failure> {
        common.one_clock()?.map_or(Ok(()), require_own_readings)?;
        require_writable(path)?;
        let avx = machine.features.has(iced_x86::CpuidFeature::AVX);
        Ok(TimedProgram { path, snippet: snippet.join_setup(), avx })
    }

    /// Writes the program with the copies and iterations of a result.
    pub fn write(&self, record: &RunRecord, output: &mut Output) -> Result<(), Failure> {
        let clock = find_clock(&record.clock)?;
        require_own_readings(clock)?;
        let outline = self.snippet.outline(self.avx);
        let looped = record.loop_count.and_then(|_| self.snippet.loop_plan_with_moves().ok());
        let recipe = ProgramRecipe {
            world: outline.world,
            init: self.snippet.init(),
            snippet: self.snippet.code(),
            copies: record.unroll,
            looped,
            ..ProgramRecipe::empty(clock)
        };
        let loop_count = record.loop_count.filter(|_| looped.is_some()).unwrap_or(1);
        let cycles = record.cost.value.map(|cost| cost * record.unroll as f64 * loop_count as f64);
        let calls = cycles.filter(|cycles| *cycles > 0.0).map_or(DEFAULT_CALLS, |cycles| WHOLE_CYCLES / cycles);
        let calls = calls.clamp(1.0, 1e7) as u64;
        let memory = ProgramMemory::standard(outline.world.element, outline.touches_memory);
        let program = recipe.build();
        let bytes = ExecutableProgram { program: &program, memory: &memory, loop_count, calls }.to_elf();
        write_executable_file(self.path, &bytes).map_err(|error| {
            let remedy = "name a new or regular file in a writable directory";
            Failure::from_writing(format!("can't write {}", self.path.display()), &error, remedy)
        })?;
        if output.is_json() {
            return Ok(());
        }
        output.write_line("")?;
        output.write_line(format!("  program: {} ({} copies, {calls} calls)", self.path.display(), record.unroll))
    }
}

/// Fails if a program without a library can't make the readings of this clock.
fn require_own_readings(clock: &Clock) -> Result<(), Failure> {
    if !clock.calls_system() && !clock.reads_counter() {
        return Ok(());
    }
    Err(Failure::from(Unavailable {
        what: format!("a program of its own with the clock {}", clock.name),
        why: "its readings need the C library or the kernel".to_string(),
        remedy: "choose a clock that reads the TSC, such as --clock lfence-rdtsc-lfence".to_string(),
    }))
}
