//! Evidence: all that a number was computed from, in a directory, and the way back to the number.
//!
//! | file | content |
//! |---|---|
//! | `machine.json` | the machine's facts |
//! | `plan.json` | snippet, clock and everything else that [`estimate`] needs |
//! | `programs.jsonl` | the machine code of each program, one a line |
//! | `layouts.jsonl` | where each layout placed them, in which order it called them, its lengths |
//! | `samples.jsonl` | each layout's raw readings, start and end in turn |
//! | `run.json` | the result |
//!
//! Programs are stored before they are placed; references to the context are RIP-relative with the context a
//! nominal distance away.

use crate::aperf::Aperf;
use crate::caveat::{Caveat, Code, caveats};
use crate::clock::Clock;
use crate::executor::{Call, Placed, Progress, Sample};
use crate::machine::Machine;
use crate::measure::estimate::{LayoutData, Shape, call, estimate};
use crate::measure::{Acquisition, Measurement, Plan, Precision};
use crate::program::Cold;
use crate::record::RunRecord;
use crate::ruler::LayoutSamples;
use crate::run::{Run, hex};
use crate::snippet::Snippet;
use crate::unit::Hertz;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// The directory inside the evidence of a function that holds that of calling an empty one.
pub const EMPTY_CALL: &str = "empty-call";

const MACHINE: &str = "machine.json";
const PLAN: &str = "plan.json";
const PROGRAMS: &str = "programs.jsonl";
const LAYOUTS: &str = "layouts.jsonl";
const SAMPLES: &str = "samples.jsonl";
const RUN: &str = "run.json";

/// What was asked for, what was chosen, and what is needed to compute the result again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedPlan {
    /// The schema of these files.
    pub schema: String,
    /// How reports show the snippet.
    pub text: String,
    /// The machine code of one copy, in hexadecimal.
    pub code: String,
    /// The init code, in hexadecimal.
    pub init: String,
    /// The timing method.
    pub clock: String,
    /// How to read the rounds.
    pub shape: Shape,
    /// u.
    pub unit: usize,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Whether the number of untimed rounds was fixed.
    pub warm_up_fixed: bool,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Layouts of the first batch.
    pub first_layouts: usize,
    /// The precision that the measurement stopped at.
    pub aim: Precision,
    /// Seconds after which no further batch was begun.
    pub budget_s: f64,
    /// How many lines of layouts and samples belong to one layout.
    pub runs_per_layout: usize,
    /// What was cold when a body began.
    pub cold: Cold,
    /// Whether u was fixed.
    pub unit_fixed: bool,
    /// Iterations of the loop around the copies; null without a loop.
    pub loop_count: Option<u64>,
    /// Whether the cost was found proportional to the number of copies.
    pub linear: bool,
    /// Whether the cost was found to have stopped moving.
    pub settled: bool,
    /// Whether the machine was emulated.
    pub emulated: bool,
    /// The precision without which the result is too noisy.
    pub asked: Precision,
    /// The level of the intervals.
    pub confidence: f64,
    /// The seed of all that was random.
    pub seed: u64,
    /// Seconds that the measurement took.
    pub elapsed_s: f64,
    /// The TSC's rate across the measurement in hertz: low, value, high.
    pub tsc: Option<[f64; 3]>,
    /// How far TSC, APERF and MPERF went; null where nothing reads them.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// What of the processor's state the code left changed.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The executor.
    pub executor: String,
    /// The CPU that it ran on.
    pub cpu: u32,
    /// The CPU's model.
    pub cpu_model: String,
}

impl SavedPlan {
    /// Whether an estimate can be computed with it: what [`Plan`] promises may not hold in a damaged file.
    fn is_sound(&self) -> bool {
        let Shape { loop_count, imul_latency, step, .. } = self.shape;
        (1e-6..1.0).contains(&self.confidence)
            && (1..=MOST).contains(&loop_count)
            && (0..=MOST).contains(&(self.unit as u64))
            && imul_latency > 0.0
            && step >= 0.0
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedLayout {
    copies: [usize; 3],
    ruler_loops: u64,
    code: Vec<Placed>,
    round: Vec<Call>,
    data: Vec<i32>,
    seed: u64,
}

/// No count of copies or iterations is higher.
const MOST: u64 = 1 << 40;

/// The schema of the evidence's files.
const SCHEMA: &str = "cyclescope-evidence/1";

/// Makes the directory for evidence; one that exists has to be empty.
pub fn prepare(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    if fs::read_dir(directory)?.next().is_some() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the directory is not empty"));
    }
    Ok(())
}

/// Writes a run's evidence into a directory that [`prepare`] made. Where that fails, no part of it stays.
pub fn write(
    directory: &Path,
    machine: &Machine,
    snippet: &Snippet,
    plan: &Plan,
    run: &Run,
    record: &RunRecord,
    asked: Precision,
) -> io::Result<()> {
    let written = write_files(directory, machine, snippet, plan, run, record, asked);
    if written.is_err() {
        for name in [MACHINE, PLAN, PROGRAMS, LAYOUTS, SAMPLES, RUN] {
            // The first error is the one to tell.
            let _ = fs::remove_file(directory.join(name));
        }
    }
    written
}

fn write_files(
    directory: &Path,
    machine: &Machine,
    snippet: &Snippet,
    plan: &Plan,
    run: &Run,
    record: &RunRecord,
    asked: Precision,
) -> io::Result<()> {
    write_one(&directory.join(MACHINE), machine)?;
    write_one(&directory.join(PLAN), &saved_plan(snippet, plan, run, record, asked))?;
    let acquisition = &run.measurement.acquisition;
    let mut programs = lines(&directory.join(PROGRAMS))?;
    let mut layouts = lines(&directory.join(LAYOUTS))?;
    let mut samples = lines(&directory.join(SAMPLES))?;
    let runs = acquisition.runs_per_layout;
    let mut data = acquisition.layouts.iter().flat_map(|layout| std::iter::repeat_n(layout, runs));
    let mut first = 0;
    for (batch, readings) in &acquisition.evidence {
        for program in &batch.programs {
            write_line(&mut programs, &hex(program.code()))?;
        }
        let per_layout = readings.chunks_exact(batch.rounds as usize * batch.calls());
        for (layout, readings) in batch.layouts.iter().zip(per_layout) {
            let Some(LayoutData { copies, ruler_loops, .. }) = data.next() else { break };
            let place = |place: &Placed| Placed { program: place.program + first, ..*place };
            let saved = SavedLayout {
                copies: *copies,
                ruler_loops: *ruler_loops,
                code: layout.code.iter().map(place).collect(),
                round: layout.round.clone(),
                data: layout.data.clone(),
                seed: layout.seed,
            };
            write_line(&mut layouts, &saved)?;
            let flat: Vec<u64> = readings.iter().flat_map(|sample| [sample.start, sample.end]).collect();
            write_line(&mut samples, &flat)?;
        }
        first += batch.programs.len();
    }
    for (name, mut file) in [(PROGRAMS, programs), (LAYOUTS, layouts), (SAMPLES, samples)] {
        file.flush().map_err(|error| named(&directory.join(name), error))?;
    }
    // Last, so that a directory with a result has everything.
    write_one(&directory.join(RUN), record)
}

fn saved_plan(snippet: &Snippet, plan: &Plan, run: &Run, record: &RunRecord, asked: Precision) -> SavedPlan {
    let Measurement { acquisition, linear, settled, elapsed, .. } = &run.measurement;
    SavedPlan {
        schema: SCHEMA.to_string(),
        text: snippet.text().to_string(),
        code: hex(snippet.code()),
        init: hex(snippet.init()),
        clock: plan.clock.name.to_string(),
        shape: acquisition.shape,
        unit: acquisition.unit,
        warm_up: acquisition.warm_up,
        warm_up_fixed: plan.warm_up.is_some(),
        rounds: plan.rounds,
        first_layouts: plan.layouts,
        aim: plan.precision,
        budget_s: plan.budget.as_secs_f64(),
        runs_per_layout: acquisition.runs_per_layout,
        cold: plan.cold,
        unit_fixed: plan.unit.is_some(),
        loop_count: plan.loop_count,
        linear: *linear,
        settled: *settled,
        emulated: run.caveats.iter().any(|caveat| caveat.code == Code::Emulated),
        asked,
        confidence: plan.confidence,
        seed: plan.seed,
        elapsed_s: elapsed.as_secs_f64(),
        tsc: run.tsc.map(|rates| rates.map(|rate| rate.0)),
        progress: acquisition.progress,
        changed: run.changed.clone(),
        executor: record.executor.clone(),
        cpu: record.cpu,
        cpu_model: record.cpu_model.clone(),
    }
}

/// A run computed again from its evidence.
#[derive(Debug)]
pub struct Replay {
    /// The snippet.
    pub snippet: Snippet,
    /// What was asked for and chosen.
    pub plan: SavedPlan,
    /// The timing method.
    pub clock: &'static Clock,
    /// The run, its estimate computed anew.
    pub run: Run,
    /// The result as it was written.
    pub written: serde_json::Value,
}

/// Reads evidence and computes its number again.
pub fn read(directory: &Path) -> io::Result<Replay> {
    let plan: SavedPlan = read_one(&directory.join(PLAN))?;
    let written: serde_json::Value = read_one(&directory.join(RUN))?;
    let clock = Clock::named(&plan.clock)
        .filter(|_| plan.schema == SCHEMA)
        .ok_or_else(|| damaged(&directory.join(PLAN), "it was written by another version"))?;
    if !plan.is_sound() {
        return Err(damaged(&directory.join(PLAN), "a number in it is out of its range"));
    }
    let layouts: Vec<SavedLayout> = read_lines(&directory.join(LAYOUTS))?;
    let readings: Vec<Vec<u64>> = read_lines(&directory.join(SAMPLES))?;
    let runs = plan.runs_per_layout;
    if layouts.len() != readings.len() || runs == 0 || !layouts.len().is_multiple_of(runs) {
        return Err(damaged(&directory.join(SAMPLES), "it does not have a line for each layout"));
    }
    let data: Option<Vec<LayoutData>> =
        layouts.chunks_exact(runs).zip(readings.chunks_exact(runs)).map(layout_data).collect();
    let data = data.ok_or_else(|| damaged(&directory.join(SAMPLES), "a line has the wrong length"))?;
    let bytes = |text: &str| {
        crate::asm::hex(text).map_err(|_| damaged(&directory.join(PLAN), "it holds no machine code"))
    };
    let snippet = Snippet::new(bytes(&plan.code)?, bytes(&plan.init)?, plan.text.clone());
    let measurement = Measurement {
        estimate: estimate(&data, &plan.shape, plan.confidence),
        linear: plan.linear,
        settled: plan.settled,
        elapsed: Duration::from_secs_f64(plan.elapsed_s.clamp(0.0, 1e9)),
        acquisition: Acquisition {
            unit: plan.unit,
            warm_up: plan.warm_up,
            ruler_loops: data.first().map_or(0, |layout| layout.ruler_loops),
            shape: plan.shape,
            runs_per_layout: runs,
            layouts: data,
            evidence: Vec::new(),
            progress: plan.progress,
            round_s: 0.0,
        },
    };
    let mut caveats = caveats(&measurement, plan.asked);
    caveats.extend(Aperf::of(&measurement, clock).and_then(|aperf| aperf.caveat()));
    if plan.emulated {
        caveats.insert(0, Caveat::emulated());
    }
    let tsc = plan.tsc.map(|rates| rates.map(Hertz));
    let run = Run { measurement, caveats, tsc, changed: plan.changed.clone() };
    Ok(Replay { snippet, plan, clock, run, written })
}

/// One layout's data from the lines that belong to it.
fn layout_data((layouts, readings): (&[SavedLayout], &[Vec<u64>])) -> Option<LayoutData> {
    let mut lines = layouts.iter().zip(readings).map(|(layout, readings)| line_samples(layout, readings));
    let mut samples = lines.next()??;
    for line in lines {
        samples.append(line?);
    }
    let SavedLayout { copies, ruler_loops, .. } = layouts[0];
    Some(LayoutData { copies, ruler_loops, samples })
}

fn line_samples(layout: &SavedLayout, readings: &[u64]) -> Option<LayoutSamples> {
    let calls = layout.round.len();
    let order: Vec<usize> = layout.round.iter().map(|call| call.place).collect();
    let valid = calls == call::COUNT && order.iter().all(|place| *place < calls);
    if !valid || !readings.len().is_multiple_of(2 * calls) || readings.is_empty() {
        return None;
    }
    let samples: Vec<Sample> =
        readings.chunks_exact(2).map(|pair| Sample { start: pair[0], end: pair[1] }).collect();
    Some(LayoutSamples::new(&samples, &order))
}

fn damaged(path: &Path, how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {how}", path.display()))
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn lines(path: &Path) -> io::Result<BufWriter<File>> {
    File::create_new(path).map(BufWriter::new).map_err(|error| named(path, error))
}

fn write_line<T: Serialize>(file: &mut BufWriter<File>, content: &T) -> io::Result<()> {
    serde_json::to_writer(&mut *file, content)?;
    file.write_all(b"\n")
}

fn write_one<T: Serialize>(path: &Path, content: &T) -> io::Result<()> {
    let mut file = lines(path)?;
    write_line(&mut file, content).and_then(|()| file.flush()).map_err(|error| named(path, error))
}

fn read_one<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let text = fs::read(path).map_err(|error| named(path, error))?;
    serde_json::from_slice(&text).map_err(|error| damaged(path, &error.to_string()))
}

fn read_lines<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let file = File::open(path).map_err(|error| named(path, error))?;
    let parse = |line: io::Result<String>| {
        serde_json::from_str(&line?).map_err(|error| damaged(path, &error.to_string()))
    };
    BufReader::new(file).lines().map(parse).collect()
}
