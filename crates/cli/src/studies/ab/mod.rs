//! `cyclescope ab`: compares programs by alternating runs: slower, faster or the same?

mod compared_program;
mod failed_runs;
mod program_runner;
mod ranking_report;
mod record;
mod report;
mod report_notes;
mod rulers;
mod runs_file;
mod shell_syntax;

use crate::args::repro;
use crate::args::{AbArgs, CommonArgs};
use crate::output::{Failure, Output};
use crate::process::interrupt::ScratchFolder;
use crate::session::progress::ProgressDisplay;
use compared_program::{ComparedProgram, RunSurroundings};
use cyclescope::input;
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::statistics::median;
use cyclescope::study::ab::{
    ChangeVerdict, ComparisonOutcome, ProgramRanking, RUNS_LEAST, RankingOutcome, SAME_WITHIN, UnclearReason,
    compare_with_recorded, judge_over_builds,
};
use program_runner::ProgramRunner;
use record::{AbRow, AbRunRecord, AbSessionRecord, RankedProgram};
use report_notes::{FailedProgram, ReportNotes};
use runs_file::{RecordedRuns, RunsFile};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Seconds per benchmark of each program, without and with `--quick`, and seconds before a run is
/// stopped.
const BUDGET_SECONDS: [f64; 2] = [5.0, 1.5];
const TIMEOUT_SECONDS: f64 = 60.0;
/// Maximum number of runs in each of the two batches compared with recorded runs.
const BATCH_RUNS_MOST: usize = 100;
/// Rounds of two batches, which take whatever time they need.
const ROUNDS_LEAST: usize = 24;
/// Minimum number of runs per build.
const BUILD_RUNS_LEAST: usize = 8;
/// Name of the file for samples.
const SAMPLES_FILE: &str = "samples.jsonl";
/// Confidence level of the reported intervals.
const CONFIDENCE: f64 = 0.95;

/// Runs the command and returns the exit code.
pub fn run_ab(common: &CommonArgs, args: &AbArgs, output: &mut Output) -> Result<u8, Failure> {
    refuse_options(common, args)?;
    let builds = args.builds.map(|builds| builds as usize);
    let programs = args.programs.iter().map(|text| ComparedProgram::parse(text, builds));
    let programs = programs.collect::<Result<Vec<_>, _>>()?;
    let recorded = args.against.as_deref().map(runs_file::read_runs).transpose()?;
    let machine = common.detect_machine()?;
    machine.tsc.require()?;
    let work = RunningComparison::begin(common, args, programs, &machine)?;
    let (work, rows) = match &recorded {
        Some(recorded) => work.compare_with_recorded(recorded)?,
        None => work.compare_in_turn()?,
    };
    let notes = work.collect_notes();
    if args.programs.len() == 1 && recorded.is_none() {
        let runs = work.runs.len();
        work.finish(&[])?;
        if !output.is_json() {
            output.write_line(format!("{runs} runs are recorded"))?;
            notes.about_runs(|text| format!("`{text}`")).iter().try_for_each(|note| output.write_line(note))?;
        }
        return Ok(exit::DONE);
    }
    let session = work.session.clone();
    let kept = work.finish(&rows);
    let old = recorded.as_ref().map_or(&session, |recorded| &recorded.session);
    let old = if recorded.is_some() { old.programs.last() } else { old.programs.first() };
    let old = old.map_or("", String::as_str);
    let several = args.programs.len() > 2;
    match () {
        () if output.is_json() => rows.iter().try_for_each(|row| output.write_record(record::RESULT_KIND, row))?,
        () if args.markdown && several => ranking_report::print_markdown(&rows, &session, &notes, output)?,
        () if args.markdown => report::print_markdown(&rows, &session, old, &notes, output)?,
        () if several => ranking_report::print_text(&rows, &session, &notes, output)?,
        () => report::print_text(&rows, &session, old, &notes, output)?,
    }
    kept?;
    Ok(choose_exit_code(args, &rows))
}

/// Rejects meaningless options before anything runs.
fn refuse_options(common: &CommonArgs, args: &AbArgs) -> Result<(), Failure> {
    let given = [
        ("--clock", !common.clock.is_empty()),
        ("--evidence", common.evidence.is_some()),
        ("--executor", !common.offer().is_default()),
        ("--force", common.force),
        ("--beside", !common.beside.is_empty()),
        ("--beside-cpu", !common.beside_cpu.is_empty()),
    ];
    if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
        let remedy = if *name == "--evidence" { "use --out to keep every run" } else { "leave it out" };
        return Err(Failure::usage(format!("{name} has no effect with ab"), Some(remedy)));
    }
    match (args.programs.len(), &args.against, &args.out) {
        (2.., Some(_), _) => {
            let remedy = "name only the new program, or leave out --against";
            Err(Failure::usage("--against compares one program with a file, not several programs", Some(remedy)))
        }
        (1, None, None) => {
            let remedy = "name OLD and NEW, or add --against FILE, or --out FILE to record its runs";
            Err(Failure::usage("nothing to compare the program with", Some(remedy)))
        }
        _ => Ok(()),
    }
}

/// The exit code of a result. Certain results take precedence over unclear ones. A benchmark that
/// vanished has no answer: neither option may pass for the lack of one.
fn choose_exit_code(args: &AbArgs, rows: &[AbRow]) -> u8 {
    let slower = |row: &AbRow, limit: f64| {
        row.verdict == ChangeVerdict::Slower && row.change.high.is_some_and(|high| high >= limit)
    };
    let any = |verdict| rows.iter().any(|row| row.verdict == verdict);
    let vanished = any(ChangeVerdict::OnlyOld) && (args.fail_on_unclear || args.fail_on_slower.is_some());
    match args.fail_on_slower {
        Some(limit) if rows.iter().any(|row| slower(row, limit)) => exit::SLOWER,
        _ if vanished || args.fail_on_unclear && any(ChangeVerdict::Unclear) => exit::FELL_SHORT,
        _ => exit::DONE,
    }
}

/// A comparison in progress.
struct RunningComparison<'a> {
    args: &'a AbArgs,
    programs: Vec<ComparedProgram>,
    /// The benchmarks of all programs.
    names: BTreeSet<String>,
    session: AbSessionRecord,
    running: ProgramRunner,
    recording: Option<RunsFile>,
    runs: Vec<AbRunRecord>,
    budget: Duration,
    /// Time of the runs that are compared.
    spent: Duration,
    repro: String,
    /// Folder for samples; removed at the end.
    _scratch: ScratchFolder,
}

impl RunningComparison<'_> {
    fn begin<'a>(
        common: &CommonArgs,
        args: &'a AbArgs,
        programs: Vec<ComparedProgram>,
        machine: &Machine,
    ) -> Result<RunningComparison<'a>, Failure> {
        let seed = common.chosen_seed();
        let (cpu, scratch) = (machine.target_cpu(), ScratchFolder::new(&[SAMPLES_FILE])?);
        let output = args.output.as_ref().map(|path| input::append_to_file(path));
        let output = output.transpose().map_err(|error| {
            let remedy = "name a new or regular file in a writable directory";
            Failure::usage(format!("can't write the file of --output: {error}"), Some(remedy))
        })?;
        let samples = (!args.whole).then(|| scratch.path(SAMPLES_FILE));
        if let Some(path) = &samples {
            std::fs::File::create_new(path).map_err(|error| Failure::from_system("can't create a file", &error))?;
        }
        let timeout = Duration::from_secs_f64(args.timeout.unwrap_or(TIMEOUT_SECONDS));
        let session = AbSessionRecord {
            programs: programs.iter().map(|program| program.text.clone()).collect(),
            core: machine.cpu.name(),
            cpu,
            kernel: machine.kernel.clone(),
            seed,
        };
        // An unwritable file is reported before anything runs.
        let recording = args.out.as_deref().map(|path| RunsFile::create(path, &session)).transpose()?;
        let around = RunSurroundings { samples, output, timeout, warned: Cell::new(false) };
        let mut running = ProgramRunner::new(cpu, seed, around, programs.len())?;
        let names = running.run_untimed(&programs)?;
        // A program alone is recorded for a comparison with another one.
        let compared = programs.len().max(2) as f64;
        let each = args.budget.unwrap_or(BUDGET_SECONDS[usize::from(common.quick)] * compared);
        let budget = Duration::from_secs_f64((each * names.len() as f64).min(1e7));
        let repro = repro::format_repro("ab", args, common, seed);
        let (runs, _scratch) = (Vec::new(), scratch);
        Ok(RunningComparison {
            args,
            programs,
            names,
            session,
            running,
            recording,
            runs,
            budget,
            spent: Duration::ZERO,
            repro,
            _scratch,
        })
    }

    /// Runs all programs once and records the runs.
    fn run_round(&mut self) -> Result<Vec<AbRunRecord>, Failure> {
        let runs = self.running.run_round(&self.programs)?;
        if let Some(recording) = &mut self.recording {
            recording.append_failures(self.running.failed_runs().all())?;
            runs.iter().try_for_each(|run| recording.append_run(run))?;
        }
        self.names.extend(runs.iter().flat_map(|run| run.cycles.keys().cloned()));
        self.runs.extend(runs.iter().cloned());
        Ok(runs)
    }

    /// Runs rounds until every benchmark is decided or the time is over. A single program runs as
    /// often as a file needs.
    fn compare_in_turn(mut self) -> Result<(Self, Vec<AbRow>), Failure> {
        let mut rankings = BTreeMap::<String, ProgramRanking>::new();
        let (begun, progress) = (Instant::now(), ProgressDisplay::new(0, 1));
        let alone = self.programs.len() == 1;
        loop {
            let spent = begun.elapsed();
            let all: usize = rankings.values().map(ProgramRanking::pair_count).sum();
            let open: usize = rankings.values().map(ProgramRanking::open_pairs).sum();
            let rounds = self.runs.len() / self.programs.len();
            // A benchmark that some runs lack may never be evaluated.
            let looked = rounds > 0 && rankings.values().all(ProgramRanking::has_begun) || rounds >= ROUNDS_LEAST;
            let enough = if alone {
                self.runs.len() >= 2 * BATCH_RUNS_MOST
            } else {
                rounds > 0 && open == 0 && self.has_all_builds()
            };
            let late = spent >= self.budget && if alone { self.runs.len() >= RUNS_LEAST } else { looked };
            if enough || late {
                break;
            }
            let [done, total] = [spent.min(self.budget), self.budget].map(|time| time.as_millis() as u64);
            progress.show(done, total, format!("{open} of {all} undecided"));
            let runs = self.run_round()?;
            for name in &self.names {
                let times: Vec<Option<f64>> = runs.iter().map(|run| run.cycles.get(name).copied()).collect();
                let new = || ProgramRanking::new(self.programs.len(), self.same_limit());
                rankings.entry(name.clone()).or_insert_with(new).add_round(&times);
            }
        }
        drop(progress);
        self.spent = begun.elapsed();
        let rows = rankings.iter().flat_map(|(name, ranking)| {
            let found = ranking.outcome(|pair, outcome| self.judge_pair(name, ranking, pair, outcome));
            self.build_ranked_rows(name, &found)
        });
        let rows = rows.collect();
        Ok((self, rows))
    }

    /// The outcome of a pair of programs, over their builds if they have several.
    fn judge_pair(
        &self,
        name: &str,
        ranking: &ProgramRanking,
        pair: [usize; 2],
        outcome: ComparisonOutcome,
    ) -> ComparisonOutcome {
        if self.args.builds.is_none() {
            return outcome;
        }
        let builds = pair.map(|program| self.cycles_by_build(program, name));
        judge_over_builds(outcome, [&builds[0], &builds[1]], self.same_limit(), ranking.pair_count())
    }

    /// Compares two batches of runs with those of a file.
    fn compare_with_recorded(mut self, recorded: &RecordedRuns) -> Result<(Self, Vec<AbRow>), Failure> {
        let old: Vec<&AbRunRecord> = recorded.runs.iter().collect();
        if self.names.iter().all(|name| find_cycles(&old, name).is_empty()) {
            let remedy = "record it again with the same use of --whole, or name another file";
            return Err(Failure::usage("the file has no runs of this program's benchmarks", Some(remedy)));
        }
        self.names.extend(recorded.runs.iter().flat_map(|run| run.cycles.keys().cloned()));
        let mut ends = [0; 2];
        for end in &mut ends {
            let (begun, before) = (Instant::now(), self.runs.len());
            while self.runs.len() - before < RUNS_LEAST
                || begun.elapsed() < self.budget / 2 && self.runs.len() - before < BATCH_RUNS_MOST
            {
                self.run_round()?;
            }
            *end = self.runs.len();
        }
        let outcome = |name: &String| {
            let new = self.program_runs(0);
            let figures = [&old, &new].map(|runs| find_cycles(runs, name));
            let present = ComparisonOutcome::of_presence(!figures[0].is_empty(), !figures[1].is_empty());
            present.unwrap_or_else(|| {
                let batches = [&new[..ends[0]], &new[ends[0]..]].map(|runs| find_cycles(runs, name));
                compare_with_recorded(&figures[0], [&batches[0], &batches[1]], self.same_limit())
            })
        };
        let rows = self.names.iter().map(|name| self.build_row(name, &outcome(name), 0, &old, None)).collect();
        Ok((self, rows))
    }

    fn same_limit(&self) -> f64 {
        self.args.within.unwrap_or(SAME_WITHIN)
    }

    /// All runs of a program.
    fn program_runs(&self, program: usize) -> Vec<&AbRunRecord> {
        self.runs.iter().filter(|run| run.program == program).collect()
    }

    /// Core cycles of a benchmark by build.
    fn cycles_by_build(&self, program: usize, name: &str) -> Vec<Vec<f64>> {
        let mut builds = vec![Vec::new(); self.programs[program].build_count()];
        for run in self.runs.iter().filter(|run| run.program == program) {
            builds[run.build].extend(run.cycles.get(name));
        }
        builds
    }

    /// Whether every build has enough runs for its median.
    fn has_all_builds(&self) -> bool {
        let runs = |program, build| self.runs.iter().filter(|run| run.program == program && run.build == build).count();
        self.args.builds.is_none()
            || (0..self.programs.len()).all(|program| {
                (0..self.programs[program].build_count()).all(|build| runs(program, build) >= BUILD_RUNS_LEAST)
            })
    }

    /// The rows of a benchmark: each program but the first, compared with the first.
    fn build_ranked_rows(&self, name: &str, found: &RankingOutcome) -> Vec<AbRow> {
        let ranks = found.ranks();
        let rows = found.against_first().map(|(program, outcome)| {
            let ranked = RankedProgram { program, old_rank: ranks[0], new_rank: ranks[program] };
            let ranked = (self.programs.len() > 2).then_some(ranked);
            self.build_row(name, &outcome, program, &self.program_runs(0), ranked)
        });
        rows.collect()
    }

    /// The row of a benchmark of this program, compared with these runs of the old program.
    fn build_row(
        &self,
        name: &str,
        outcome: &ComparisonOutcome,
        program: usize,
        old: &[&AbRunRecord],
        ranked: Option<RankedProgram>,
    ) -> AbRow {
        let compared = [old, &self.program_runs(program)];
        let [old_cycles, new_cycles] = compared.map(|runs| find_cycles(runs, name));
        let vanished = matches!(outcome.verdict, ChangeVerdict::OnlyOld | ChangeVerdict::OnlyNew);
        let runs_without =
            if vanished { [0; 2] } else { [old.len() - old_cycles.len(), compared[1].len() - new_cycles.len()] };
        let whole = self.running.compares_whole() && program > 0;
        let times = |time: fn(&AbRunRecord) -> u64| -> Option<[f64; 2]> {
            let [old, new] = compared.map(|runs| median_of(runs.iter().map(|run| time(run) as f64).collect()));
            Some([old?, new?]).filter(|_| whole)
        };
        let interleaved = self.args.against.is_none();
        let failed = self.running.failed_runs();
        let unmeasured = self.running.unmeasured().contains_key(name);
        let why = outcome.why.map(|why| match why {
            UnclearReason::TooFew if unmeasured => UnclearReason::NotMeasured,
            why => why,
        });
        AbRow {
            name: name.to_string(),
            ranked,
            verdict: outcome.verdict,
            why,
            change: record::change_quantity(outcome),
            confidence: CONFIDENCE,
            old: median_of(old_cycles),
            new: median_of(new_cycles),
            user_us: times(|run| run.user_us),
            system_us: times(|run| run.system_us),
            failed_runs: [if interleaved { failed.count(0) } else { 0 }, failed.count(program)],
            runs_without,
            budget_needed: self.estimate_budget(outcome).filter(|_| interleaved),
            pairs: outcome.pairs,
            interleaved,
            within: self.same_limit(),
            cpu: self.session.cpu,
            seed: self.session.seed,
            caveats: record::unclear_caveats(why),
            repro: self.repro.clone(),
        }
    }

    /// Seconds for each benchmark that would probably decide this one, with one digit.
    fn estimate_budget(&self, outcome: &ComparisonOutcome) -> Option<f64> {
        let times = outcome.times_as_many_pairs(self.same_limit())?;
        let pairs: usize = outcome.pairs.iter().sum();
        // Runs that took longer than the budget count with their time.
        let spent = self.spent.as_secs_f64() / self.names.len() as f64 * pairs as f64
            / (self.runs.len() / self.programs.len()).max(1) as f64;
        let seconds = times * spent;
        let digit = 10f64.powf(seconds.max(1.0).log10().floor());
        Some((seconds / digit).ceil() * digit)
    }

    /// What the report says besides the rows.
    fn collect_notes(&self) -> ReportNotes {
        let failed = self.running.failed_runs();
        let programs = self.programs.iter().enumerate().filter_map(|(number, program)| {
            let first = failed.all().iter().find(|failed| failed.program == number)?;
            let runs = failed.count(number) + self.program_runs(number).len();
            Some(FailedProgram {
                program: program.text.clone(),
                failed: failed.count(number),
                runs,
                first: first.text.clone(),
            })
        });
        ReportNotes {
            failed: programs.collect(),
            unmeasured: self.running.unmeasured().clone(),
            mixed: self
                .names
                .iter()
                .filter(|name| self.running.mixes_samples(name, self.runs.len()))
                .cloned()
                .collect(),
            lacks_samples: self.running.compares_whole() && !self.args.whole,
        }
    }

    /// Completes the file.
    fn finish(self, rows: &[AbRow]) -> Result<(), Failure> {
        self.running.warn_if_shared();
        self.recording.map_or(Ok(()), |recording| recording.finish(rows))
    }
}

/// Core cycles of a benchmark in the runs that have it.
fn find_cycles(runs: &[&AbRunRecord], name: &str) -> Vec<f64> {
    runs.iter().filter_map(|run| run.cycles.get(name).copied()).collect()
}

fn median_of(mut values: Vec<f64>) -> Option<f64> {
    (!values.is_empty()).then(|| median(&mut values))
}
