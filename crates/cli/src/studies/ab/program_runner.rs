//! Runs programs in turn: chooses order and layout, and records what each run took.

use super::compared_program::{ComparedProgram, LAYOUT_BYTES_MOST, RunSurroundings, adopt_orphans};
use super::record::{AbRunRecord, WHOLE_PROGRAM};
use super::rulers::TickRulers;
use crate::output::Failure;
use crate::session::executor::warn_if_cpu_shared;
use cyclescope::executor::{CpuLock, OpenOptions};
use cyclescope::random::Random;
use cyclescope::study::ab::{BadSamples, BenchmarkFigures, read_figures};
use std::collections::BTreeMap;
use std::time::Duration;

/// Runs programs on one CPU.
pub struct ProgramRunner {
    around: RunSurroundings,
    rulers: TickRulers,
    lock: CpuLock,
    random: Random,
    cpu: u32,
    /// Whether programs have benchmarks; unknown before the first run.
    benchmarks: Option<bool>,
}

impl ProgramRunner {
    /// Creates a runner. Moves this process, and therefore every program that it starts, to the
    /// CPU.
    pub fn new(cpu: u32, seed: u64, around: RunSurroundings) -> Result<ProgramRunner, Failure> {
        pin_to_cpu(cpu)?;
        adopt_orphans();
        let lock = CpuLock::open(cpu as usize, OpenOptions::default().patience);
        let benchmarks = around.samples.is_none().then_some(false);
        Ok(ProgramRunner { around, rulers: TickRulers::new(), lock, random: Random::new(seed), cpu, benchmarks })
    }

    /// Runs each build once, untimed, to load files into memory and to find benchmarks. Returns the
    /// benchmarks that all programs have.
    pub fn run_untimed(&mut self, programs: &[ComparedProgram]) -> Result<Vec<String>, Failure> {
        let mut found: Vec<BenchmarkFigures> = Vec::new();
        for program in programs {
            for build in 0..program.build_count() {
                let time = program.run_build(build, &self.around, 0)?;
                found.push(self.take_samples(program, time.elapsed)?);
            }
        }
        let has = |figures: &BenchmarkFigures| !figures.is_empty();
        self.benchmarks = Some(found.iter().any(has));
        if self.benchmarks == Some(false) {
            self.around.samples = None;
            return Ok(vec![WHOLE_PROGRAM.to_string()]);
        }
        let in_all = |name: &&String| found.iter().all(|figures| figures.contains_key(*name));
        let names: Vec<String> = found[0].keys().filter(in_all).cloned().collect();
        let all = found.iter().flat_map(|figures| figures.keys());
        let mut alone: Vec<&str> = all.filter(|name| !names.contains(name)).map(String::as_str).collect();
        alone.sort_unstable();
        alone.dedup();
        if names.is_empty() {
            let text = "the programs have no benchmark name in common";
            return Err(Failure::usage(text, Some("use --whole to compare the CPU time of whole programs")));
        }
        if !alone.is_empty() {
            crate::output::failure::print_warning(&format!(
                "skipping benchmarks that not every program has: {}",
                alone.join(", ")
            ));
        }
        Ok(names)
    }

    /// Runs all programs once, back to back in random order; the records are in the order of the
    /// programs.
    pub fn run_round(&mut self, programs: &[ComparedProgram]) -> Result<Vec<AbRunRecord>, Failure> {
        let mut order: Vec<usize> = (0..programs.len()).collect();
        self.random.shuffle(&mut order);
        self.lock.acquire();
        let records = self.run_in_order(programs, &order);
        self.lock.release();
        let mut records = records?;
        records.sort_by_key(|(number, _)| *number);
        Ok(records.into_iter().map(|(_, record)| record).collect())
    }

    fn run_in_order(
        &mut self,
        programs: &[ComparedProgram],
        order: &[usize],
    ) -> Result<Vec<(usize, AbRunRecord)>, Failure> {
        let mut before = self.rulers.read_cycles_per_tick();
        let mut records = Vec::new();
        for number in order {
            let program = &programs[*number];
            let layout = self.random.below(LAYOUT_BYTES_MOST);
            let build = self.random.below(program.build_count());
            let time = program.run_build(build, &self.around, layout)?;
            let after = self.rulers.read_cycles_per_tick();
            let figures = match self.benchmarks {
                Some(true) => self.take_samples(program, time.elapsed)?,
                _ => BTreeMap::from([(
                    WHOLE_PROGRAM.to_string(),
                    self.rulers.to_core_cycles(time.total(), [before, after]),
                )]),
            };
            let [user_us, system_us] = [time.user, time.system].map(|time| time.as_micros() as u64);
            let (program, rulers) = (*number, [before, after]);
            records.push((program, AbRunRecord { program, build, user_us, system_us, rulers, cycles: figures }));
            before = after;
        }
        Ok(records)
    }

    /// Reads the samples of a run that took this time, and empties their file.
    fn take_samples(&self, program: &ComparedProgram, elapsed: Duration) -> Result<BenchmarkFigures, Failure> {
        let Some(path) = &self.around.samples else { return Ok(BenchmarkFigures::new()) };
        let found = read_figures(path, elapsed).map_err(|bad| {
            let remedy = "see section ab of docs/reference.md for the format, or compare whole programs with --whole";
            let internal = matches!(&bad, BadSamples::File(bad) if !bad.is_usage());
            match internal {
                true => Failure::internal(bad.to_string()),
                false => Failure::usage(format!("bad samples from `{}`: {bad}", program.text), Some(remedy)),
            }
        })?;
        // A new file, whatever the program did to the old one.
        let made = std::fs::remove_file(path).and_then(|()| std::fs::File::create_new(path));
        made.map_err(|error| Failure::internal(format!("can't create a file for samples: {error}")))?;
        if self.benchmarks == Some(true) && found.is_empty() {
            let text = format!("`{}` wrote no samples in this run, unlike before", program.text);
            let remedy = "run it alone with CYCLESCOPE_AB=samples.jsonl, or use --whole";
            return Err(super::compared_program::run_failure("program", text, None, remedy));
        }
        Ok(found)
    }

    /// Warns if other runs on the CPU were possible.
    pub fn warn_if_shared(&self) {
        warn_if_cpu_shared(self.lock.state(), self.cpu);
    }
}

/// Moves this process to a CPU.
fn pin_to_cpu(cpu: u32) -> Result<(), Failure> {
    // SAFETY: zeros are an empty set, which outlives the calls. A CPU number beyond the set is not
    // added, and the system rejects the empty set.
    let moved = unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        if (cpu as usize) < 8 * size_of::<libc::cpu_set_t>() {
            libc::CPU_SET(cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if moved == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    Err(Failure::internal(format!("can't move to CPU {cpu}: {error}")))
}
