//! `cyclescope ab`: two programs, run in turn: slower, faster, the same?

mod child;
mod clock;
mod record;
mod recorded;
mod report;
mod session;

use crate::args::repro;
use crate::args::{AbArgs, Common};
use crate::output::{Failure, Output};
use crate::process::interrupt::Scratch;
use crate::session::progress::Progress;
use child::{Program, Surroundings};
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::statistics::median;
use cyclescope::study::ab::{Comparison, FEWEST, Outcome, Verdict, WITHIN, against, over_builds};
use record::{Row, RunRecord, SessionRecord};
use recorded::{Recorded, Recording};
use session::{Session, WHOLE};
use std::fs::OpenOptions;
use std::time::{Duration, Instant};

/// Seconds for each benchmark, with `--quick` and without, and until a run is ended.
const BUDGET: [f64; 2] = [10.0, 3.0];
const TIMEOUT: f64 = 60.0;
/// Runs at most that are compared with recorded ones, in each of two batches.
const MOST: usize = 100;
/// Runs of each build at least.
const OF_A_BUILD: usize = 8;
/// The file that samples go to.
const SAMPLES: &str = "samples.jsonl";
/// The level of intervals that are told.
const CONFIDENCE: f64 = 0.95;

/// Runs the command and returns the exit code.
pub fn ab(common: &Common, args: &AbArgs, output: &mut Output) -> Result<u8, Failure> {
    refuse(common, args)?;
    let builds = args.builds.map(|builds| builds as usize);
    let programs = args.programs.iter().map(|text| Program::parse(text, builds));
    let programs = programs.collect::<Result<Vec<_>, _>>()?;
    let recorded = args.against.as_deref().map(recorded::read).transpose()?;
    let machine = common.machine()?;
    machine.tsc.require()?;
    let work = Work::begin(common, args, programs, &machine)?;
    let (work, rows) = match &recorded {
        Some(recorded) => work.against(recorded)?,
        None => work.in_turn()?,
    };
    if args.programs.len() == 1 && recorded.is_none() {
        let runs = work.runs.len();
        work.finish(&[])?;
        return if output.is_json() {
            Ok(exit::DONE)
        } else {
            output.line(format!("{runs} runs are recorded")).map(|()| exit::DONE)
        };
    }
    let session = work.session.clone();
    let kept = work.finish(&rows);
    let old = recorded.as_ref().map_or(&session, |recorded| &recorded.session);
    let old = if recorded.is_some() { old.programs.last() } else { old.programs.first() };
    let old = old.map_or("", String::as_str);
    match () {
        () if output.is_json() => rows.iter().try_for_each(|row| output.record(record::RESULT, row))?,
        () if args.markdown => report::markdown(&rows, &session, old, output)?,
        () => report::text(&rows, &session, old, output)?,
    }
    kept?;
    Ok(code(args, &rows))
}

/// What makes no sense, before anything runs.
fn refuse(common: &Common, args: &AbArgs) -> Result<(), Failure> {
    let given = [
        ("--clock", !common.clock.is_empty()),
        ("--evidence", common.evidence.is_some()),
        ("--executor", !common.offer().is_default()),
        ("--force", common.force),
        ("--beside", !common.beside.is_empty()),
        ("--beside-cpu", !common.beside_cpu.is_empty()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        let remedy = if *name == "--evidence" { "--out keeps every run" } else { "leave it out" };
        return Err(Failure::usage(format!("{name} has no effect with ab"), Some(remedy)));
    }
    match (args.programs.len(), &args.against, &args.out) {
        (2, Some(_), _) => {
            let remedy = "name the new program alone, or leave --against out";
            Err(Failure::usage("--against compares with a file, and not with a second program", Some(remedy)))
        }
        (1, None, None) => {
            let remedy = "name OLD and NEW; or --against a file; or --out a file, to record its runs";
            Err(Failure::usage("there is one program, and nothing to compare it with", Some(remedy)))
        }
        _ => Ok(()),
    }
}

/// The exit code of a result: what is known comes before what is not.
fn code(args: &AbArgs, rows: &[Row]) -> u8 {
    let slower = |row: &Row, limit: f64| {
        row.verdict == Verdict::Slower && row.change.high.is_some_and(|high| high >= limit)
    };
    let unclear = rows.iter().any(|row| row.verdict == Verdict::Unclear);
    match args.fail_on_slower {
        Some(limit) if rows.iter().any(|row| slower(row, limit)) => exit::SLOWER,
        _ if args.fail_on_unclear && unclear => exit::NOISY,
        _ => exit::DONE,
    }
}

/// A comparison under way.
struct Work<'a> {
    args: &'a AbArgs,
    programs: Vec<Program>,
    names: Vec<String>,
    session: SessionRecord,
    running: Session,
    recording: Option<Recording>,
    runs: Vec<RunRecord>,
    budget: Duration,
    repro: String,
    /// Where samples go; removed at the end.
    _scratch: Scratch,
}

impl Work<'_> {
    fn begin<'a>(
        common: &Common,
        args: &'a AbArgs,
        programs: Vec<Program>,
        machine: &Machine,
    ) -> Result<Work<'a>, Failure> {
        let seed = common.chosen_seed();
        let (cpu, scratch) = (machine.target_cpu(), Scratch::new(&[SAMPLES])?);
        let output = args.output.as_ref().map(|path| OpenOptions::new().append(true).create(true).open(path));
        let output = output.transpose().map_err(|error| {
            let remedy = "name a file where you may write";
            Failure::usage(format!("the file of --output can't be written: {error}"), Some(remedy))
        })?;
        let samples = (!args.whole).then(|| scratch.path(SAMPLES));
        if let Some(path) = &samples {
            std::fs::File::create_new(path)
                .map_err(|error| Failure::internal(format!("making a file failed: {error}")))?;
        }
        let timeout = Duration::from_secs_f64(args.timeout.unwrap_or(TIMEOUT));
        let session = SessionRecord {
            programs: programs.iter().map(|program| program.text.clone()).collect(),
            core: machine.cpu.name(),
            cpu,
            kernel: machine.kernel.clone(),
            seed,
        };
        // A file that can't be written is told before anything runs.
        let recording = args.out.as_deref().map(|path| Recording::begin(path, &session)).transpose()?;
        let mut running = Session::new(cpu, seed, Surroundings { samples, output, timeout })?;
        let names = running.first(&programs)?;
        let each = args.budget.unwrap_or(BUDGET[usize::from(common.quick)]);
        let budget = Duration::from_secs_f64((each * names.len() as f64).min(1e7));
        let repro = repro::command("ab", args, common, seed);
        let (runs, _scratch) = (Vec::new(), scratch);
        Ok(Work { args, programs, names, session, running, recording, runs, budget, repro, _scratch })
    }

    /// Runs all programs once, and keeps it.
    fn round(&mut self) -> Result<Vec<RunRecord>, Failure> {
        let runs = self.running.round(&self.programs)?;
        if let Some(recording) = &mut self.recording {
            runs.iter().try_for_each(|run| recording.run(run))?;
        }
        self.runs.extend(runs.iter().cloned());
        Ok(runs)
    }

    /// Pairs, until every benchmark is decided or the time is over. One program alone is run as often as a file needs.
    fn in_turn(mut self) -> Result<(Self, Vec<Row>), Failure> {
        let mut comparisons = vec![Comparison::new(self.within()); self.names.len()];
        let (begun, progress) = (Instant::now(), Progress::new(0, 1));
        let alone = self.programs.len() == 1;
        loop {
            let spent = begun.elapsed();
            let open = comparisons.iter().filter(|comparison| !comparison.is_decided()).count();
            let looked =
                comparisons.iter().all(|comparison| comparison.is_decided() || comparison.has_begun());
            let enough = if alone { self.runs.len() >= 2 * MOST } else { open == 0 && self.has_all_builds() };
            let late = spent >= self.budget && if alone { self.runs.len() >= FEWEST } else { looked };
            if enough || late {
                break;
            }
            let [done, total] = [spent.min(self.budget), self.budget].map(|time| time.as_millis() as u64);
            progress.tell(done, total, format!("{open} of {} undecided", comparisons.len()));
            let runs = self.round()?;
            if let [old, new] = &runs[..] {
                for (name, comparison) in self.names.iter().zip(&mut comparisons) {
                    if let (Some(old), Some(new)) = (old.cycles.get(name), new.cycles.get(name)) {
                        comparison.add(*old, *new);
                    }
                }
            }
        }
        drop(progress);
        let outcome = |(name, comparison): (&String, &Comparison)| match self.args.builds {
            Some(_) => over_builds(
                comparison.outcome(),
                &self.by_build(0, name),
                &self.by_build(1, name),
                self.within(),
            ),
            None => comparison.outcome(),
        };
        let outcomes: Vec<Outcome> = self.names.iter().zip(&comparisons).map(outcome).collect();
        let rows = self.rows(&outcomes, |work, name| work.figures(0, name));
        Ok((self, rows))
    }

    /// Two batches of runs, against those of a file.
    fn against(mut self, recorded: &Recorded) -> Result<(Self, Vec<Row>), Failure> {
        let old = |name: &String| -> Vec<f64> {
            recorded.runs.iter().filter_map(|run| run.cycles.get(name).copied()).collect()
        };
        self.names.retain(|name| !old(name).is_empty());
        if self.names.is_empty() {
            let remedy = "record it again with the same --whole, or name another file";
            return Err(Failure::usage("the file has no runs of what this program measures", Some(remedy)));
        }
        let mut ends = [0; 2];
        for end in &mut ends {
            let (begun, before) = (Instant::now(), self.runs.len());
            while self.runs.len() - before < FEWEST
                || begun.elapsed() < self.budget / 2 && self.runs.len() - before < MOST
            {
                self.round()?;
            }
            *end = self.runs.len();
        }
        let outcome = |name: &String| {
            let batch = |runs: &[RunRecord]| {
                runs.iter().filter_map(|run| run.cycles.get(name).copied()).collect::<Vec<_>>()
            };
            let batches = [batch(&self.runs[..ends[0]]), batch(&self.runs[ends[0]..])];
            against(&old(name), [&batches[0], &batches[1]], self.within())
        };
        let outcomes: Vec<Outcome> = self.names.iter().map(outcome).collect();
        let rows = self.rows(&outcomes, |_, name| old(&name.to_string()));
        Ok((self, rows))
    }

    fn within(&self) -> f64 {
        self.args.within.unwrap_or(WITHIN)
    }

    /// Core cycles in all runs of a program.
    fn figures(&self, program: usize, name: &str) -> Vec<f64> {
        let runs = self.runs.iter().filter(|run| run.program == program);
        runs.filter_map(|run| run.cycles.get(name).copied()).collect()
    }

    /// The same by build.
    fn by_build(&self, program: usize, name: &str) -> Vec<Vec<f64>> {
        let mut builds = vec![Vec::new(); self.programs[program].builds()];
        for run in self.runs.iter().filter(|run| run.program == program) {
            builds[run.build].extend(run.cycles.get(name));
        }
        builds
    }

    /// Whether every build has as many runs as its median needs.
    fn has_all_builds(&self) -> bool {
        let runs = |program, build| {
            self.runs.iter().filter(|run| run.program == program && run.build == build).count()
        };
        self.args.builds.is_none()
            || (0..self.programs.len()).all(|program| {
                (0..self.programs[program].builds()).all(|build| runs(program, build) >= OF_A_BUILD)
            })
    }

    fn rows(&self, outcomes: &[Outcome], old: impl Fn(&Self, &str) -> Vec<f64>) -> Vec<Row> {
        let last = self.programs.len() - 1;
        let times = |time: fn(&RunRecord) -> u64| -> Option<[f64; 2]> {
            let of = |program| {
                let runs = self.runs.iter().filter(|run| run.program == program);
                middle(runs.map(|run| time(run) as f64).collect())
            };
            Some([of(0)?, of(last)?]).filter(|_| self.names == [WHOLE] && last > 0)
        };
        let row = |(name, outcome): (&String, &Outcome)| Row {
            name: name.clone(),
            verdict: outcome.verdict,
            why: outcome.why,
            change: record::quantity(outcome),
            confidence: CONFIDENCE,
            old: middle(old(self, name)),
            new: middle(self.figures(last, name)),
            user_us: times(|run| run.user_us),
            system_us: times(|run| run.system_us),
            pairs: outcome.pairs,
            interleaved: self.args.against.is_none(),
            within: self.within(),
            cpu: self.session.cpu,
            seed: self.session.seed,
            caveats: record::caveats(outcome.why),
            repro: self.repro.clone(),
        };
        self.names.iter().zip(outcomes).map(row).collect()
    }

    /// Ends the file.
    fn finish(self, rows: &[Row]) -> Result<(), Failure> {
        self.running.warn();
        self.recording.map_or(Ok(()), |recording| recording.finish(rows))
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| median(&mut values))
}
