//! Runs programs in turn: chooses order and layout, and records what each run took.

use super::compared_program::{ComparedProgram, LAYOUT_BYTES_MOST, RunSurroundings, adopt_orphans, run_failure};
use super::failed_runs::{FailedRuns, RunFailure};
use super::record::{AbRunRecord, WHOLE_PROGRAM};
use super::rulers::TickRulers;
use crate::output::Failure;
use crate::session::executor::warn_if_cpu_shared;
use cyclescope::executor::{CpuLock, OpenOptions};
use cyclescope::random::Random;
use cyclescope::study::ab::{BadSamples, RunSamples, read_samples};
use std::collections::{BTreeMap, BTreeSet};
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
    failed: FailedRuns,
    /// Benchmarks that a program could not measure, with its reason.
    unmeasured: BTreeMap<String, String>,
    /// Number of runs of all programs in which samples of a benchmark differ much.
    mixed: BTreeMap<String, usize>,
}

impl ProgramRunner {
    /// Creates a runner. Moves this process, and therefore every program that it starts, to the
    /// CPU.
    pub fn new(cpu: u32, seed: u64, around: RunSurroundings, programs: usize) -> Result<ProgramRunner, Failure> {
        pin_to_cpu(cpu)?;
        adopt_orphans();
        let lock = CpuLock::open(cpu as usize, OpenOptions::default().patience);
        let benchmarks = around.samples.is_none().then_some(false);
        Ok(ProgramRunner {
            around,
            rulers: TickRulers::new(),
            lock,
            random: Random::new(seed),
            cpu,
            benchmarks,
            failed: FailedRuns::new(programs),
            unmeasured: BTreeMap::new(),
            mixed: BTreeMap::new(),
        })
    }

    /// Runs each build once, untimed, to load files into memory and to find benchmarks. Returns the
    /// benchmarks of all programs.
    pub fn run_untimed(&mut self, programs: &[ComparedProgram]) -> Result<BTreeSet<String>, Failure> {
        let mut found = vec![BTreeSet::new(); programs.len()];
        for (number, program) in programs.iter().enumerate() {
            for build in 0..program.build_count() {
                found[number].extend(self.run_untimed_build(number, program, build)?.figures.into_keys());
            }
        }
        self.benchmarks = Some(found.iter().any(|names| !names.is_empty()) || !self.unmeasured.is_empty());
        if self.benchmarks == Some(false) {
            self.around.samples = None;
            return Ok([WHOLE_PROGRAM.to_string()].into());
        }
        let all: BTreeSet<String> = found.iter().flatten().chain(self.unmeasured.keys()).cloned().collect();
        let programs_with = |name: &String| found.iter().filter(|names| names.contains(name)).count();
        if programs.len() > 1 && !all.iter().any(|name| programs_with(name) > 1) {
            let without = programs.iter().zip(&found).find(|(_, names)| names.is_empty());
            let text = match without {
                Some((program, _)) => format!("`{}` wrote no samples, and another program did", program.text),
                None => "the programs have no benchmark name in common".to_string(),
            };
            return Err(Failure::usage(text, Some("use --whole to compare the CPU time of whole programs")));
        }
        Ok(all)
    }

    fn run_untimed_build(
        &mut self,
        number: usize,
        program: &ComparedProgram,
        build: usize,
    ) -> Result<RunSamples, Failure> {
        loop {
            let run = program.run_build(build, &self.around, 0);
            match run.and_then(|time| self.take_samples(program, time.elapsed)) {
                Ok(samples) => {
                    self.failed.note_success(number);
                    return Ok(samples);
                }
                Err(failure) => self.failed.note_failure(number, build, failure)?,
            }
        }
    }

    /// Runs all programs once, back to back in random order; the records are in the order of the
    /// programs. If a run fails, all are repeated.
    pub fn run_round(&mut self, programs: &[ComparedProgram]) -> Result<Vec<AbRunRecord>, Failure> {
        let mut order: Vec<usize> = (0..programs.len()).collect();
        self.random.shuffle(&mut order);
        loop {
            self.lock.acquire();
            let records = self.run_in_order(programs, &order);
            self.lock.release();
            if let Some(mut records) = records? {
                records.sort_by_key(|record| record.program);
                return Ok(records);
            }
        }
    }

    /// Returns the records, or `None` if a run failed.
    fn run_in_order(
        &mut self,
        programs: &[ComparedProgram],
        order: &[usize],
    ) -> Result<Option<Vec<AbRunRecord>>, Failure> {
        let mut before = self.rulers.read_cycles_per_tick();
        let mut records = Vec::new();
        for number in order {
            let program = &programs[*number];
            let build = self.random.below(program.build_count());
            match self.run_timed_build(*number, program, build, before) {
                Ok(record) => {
                    self.failed.note_success(*number);
                    [_, before] = record.rulers;
                    records.push(record);
                }
                Err(failure) => {
                    self.failed.note_failure(*number, build, failure)?;
                    return Ok(None);
                }
            }
        }
        Ok(Some(records))
    }

    fn run_timed_build(
        &mut self,
        number: usize,
        program: &ComparedProgram,
        build: usize,
        before: f64,
    ) -> Result<AbRunRecord, RunFailure> {
        let layout = self.random.below(LAYOUT_BYTES_MOST);
        let time = program.run_build(build, &self.around, layout)?;
        let rulers = [before, self.rulers.read_cycles_per_tick()];
        let cycles = match self.benchmarks {
            Some(true) => self.take_samples(program, time.elapsed)?.figures,
            _ => [(WHOLE_PROGRAM.to_string(), self.rulers.to_core_cycles(time.total(), rulers))].into(),
        };
        let [user_us, system_us] = [time.user, time.system].map(|time| time.as_micros() as u64);
        Ok(AbRunRecord { program: number, build, user_us, system_us, rulers, cycles })
    }

    /// Reads the samples of a run that took this time, and empties their file.
    fn take_samples(&mut self, program: &ComparedProgram, elapsed: Duration) -> Result<RunSamples, RunFailure> {
        let Some(path) = &self.around.samples else { return Ok(RunSamples::default()) };
        let found = read_samples(path, elapsed).map_err(|bad| {
            let remedy = "see section ab of docs/reference.md for the format, or compare whole programs with --whole";
            match &bad {
                BadSamples::File(file) if !file.is_usage() => {
                    Failure::internal(bad.to_string()).with_system_remedy(file.why.system_errno())
                }
                _ => Failure::usage(format!("bad samples from `{}`: {bad}", program.text), Some(remedy)),
            }
        });
        // A new file, whatever the program did to the old one.
        let removed = std::fs::remove_file(path).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        });
        removed
            .and_then(|()| std::fs::File::create_new(path))
            .map_err(|error| Failure::from_system("can't create a file for samples", &error))?;
        let found = found.map_err(RunFailure::repeatable)?;
        self.unmeasured.extend(found.unmeasured.clone());
        found.mixed.iter().for_each(|name| *self.mixed.entry(name.clone()).or_default() += 1);
        if found.figures.is_empty() && found.unmeasured.is_empty() && (found.announced || self.benchmarks == Some(true))
        {
            let when = if found.announced { "though it began to report" } else { "unlike before" };
            let text = format!("`{}` wrote no samples in this run, {when}", program.text);
            let remedy = "let it return from main or call exit, so that it reports; or use --whole";
            return Err(RunFailure::repeatable(run_failure("program", text, None, remedy)));
        }
        Ok(found)
    }

    /// Whether the programs are compared as a whole.
    pub fn compares_whole(&self) -> bool {
        self.benchmarks == Some(false)
    }

    /// The failed runs that were repeated.
    pub fn failed_runs(&self) -> &FailedRuns {
        &self.failed
    }

    /// Whether the samples of a benchmark differ much in a third of `runs`.
    pub fn mixes_samples(&self, name: &str, runs: usize) -> bool {
        self.mixed.get(name).is_some_and(|mixed| 3 * mixed > runs)
    }

    /// Benchmarks that a program could not measure, with its reason.
    pub fn unmeasured(&self) -> &BTreeMap<String, String> {
        &self.unmeasured
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
    Err(Failure::from_system(format!("can't move to CPU {cpu}"), &error))
}
