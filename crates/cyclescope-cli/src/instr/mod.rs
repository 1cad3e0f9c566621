//! `cyclescope instr`: latency and reciprocal throughput of instructions.

mod choose;
mod explain;
mod file;
mod follower;
mod listing;
mod replay;
mod session;
pub mod tables;

use crate::args::{Common, InstrArgs};
use crate::evidence::{Place, recorded, unwritten};
use crate::executor;
use crate::failure::Failure;
use crate::output::Output;
use crate::{interrupt, repro, run};
use cyclescope::executor::Executor;
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::record::exit;
use cyclescope::result::container::Evidence;
use cyclescope::result::recording::ExecutorFacts;
use cyclescope::run::Request;
use cyclescope::study::instr::evidence::{self, STUDY, SurveyFacts};
use cyclescope::study::instr::experiments::effort::Effort;
use cyclescope::study::instr::forms::subject::Subject;
use cyclescope::study::instr::rows::row::Row;
use cyclescope::study::instr::selection;
use cyclescope::study::instr::survey::{Known, Survey};
use cyclescope::study::instr::tables::export;
use cyclescope::study::instr::tables::summary::Summary;
use file::{Kept, ResultFile};
use follower::Follower;
use serde::Serialize;
use serde_json::Value;
use session::{GaugeRecord, MachineLine, Session};
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

pub use replay::replay;

/// Runs the command and returns the exit code: a table that completes is done, failed forms included, unless none was
/// measured.
pub fn instr(common: &Common, args: &InstrArgs, output: &mut Output) -> Result<u8, Failure> {
    refuse_evidence(common, args)?;
    run::one_clock(common)?;
    let (mut file, mut kept) = (None, Kept::default());
    if let Some(path) = &args.resume {
        let (opened, found) = ResultFile::resume(path)?;
        (file, kept) = (Some(opened), found);
    }
    if let (Some(path), None) = (&args.resume, &kept.head)
        && choose::names_nothing(args)
    {
        let text = format!("{} has no complete first line, so it names no forms", path.display());
        return Err(Failure::usage(text, Some("name the forms again, or begin a new file with --out")));
    }
    let adopted = kept.head.as_ref().map(|(_, session)| session.adopt(common, args));
    let (common, args) = adopted.as_ref().map_or((common, args), |(common, args)| (common, args));
    let subjects = choose::subjects(args)?;
    if args.list {
        let machine = run::machine(common)?;
        listing::list(&subjects, &machine, executor::capabilities(common, &machine).ring, output)?;
        return Ok(exit::DONE);
    }
    [&args.csv, &args.markdown].into_iter().flatten().try_for_each(|path| writable(path))?;
    let machine = run::machine(common)?;
    let bench = Bench::new(common, &machine)?;
    if args.explain.is_some() {
        return bench.explain(args, subjects, output);
    }
    if let Some(path) = &args.out {
        file = Some(ResultFile::create(path)?);
    }
    bench.survey(args, subjects, (file, kept), output)
}

/// Fails where evidence would not be that of a whole survey.
fn refuse_evidence(common: &Common, args: &InstrArgs) -> Result<(), Failure> {
    let others =
        [("--resume", args.resume.is_some()), ("--explain", args.explain.is_some()), ("--list", args.list)];
    match others.iter().find(|(_, given)| *given).filter(|_| common.evidence.is_some()) {
        Some((option, _)) => {
            let remedy = "leave one of them out: evidence is of a survey from its beginning to its end";
            Err(Failure::usage(format!("--evidence does not go with {option}"), Some(remedy)))
        }
        None => Ok(()),
    }
}

/// What measurements are made with.
struct Bench<'a> {
    common: &'a Common,
    machine: &'a Machine,
    plan: Plan,
    effort: Effort,
}

/// The last line of JSON, kind `instr.summary`.
#[derive(Serialize)]
struct SummaryRecord<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// Forms whose rows a file had already.
    resumed: usize,
    seconds: f64,
    cpu: u32,
    cpu_model: String,
    clock: &'a str,
    executor: &'a str,
    seed: u64,
    repro: String,
}

impl<'a> Bench<'a> {
    fn new(common: &'a Common, machine: &'a Machine) -> Result<Bench<'a>, Failure> {
        let request = Request {
            clock: run::one_clock(common)?,
            unroll: None,
            loop_count: None,
            cold: Default::default(),
            warm_up: None,
            samples: None,
            layouts: None,
            precision: None,
            aim: None,
            confidence: None,
            budget: None,
            seed: common.seed.unwrap_or_else(run::seed),
            quick: common.quick,
        };
        machine.tsc.require()?;
        let plan = request.plan(&executor::capabilities(common, machine), machine)?;
        let effort = if common.quick { Effort::QUICK } else { Effort::FULL };
        Ok(Bench { common, machine, plan, effort })
    }

    fn cpu(&self) -> u32 {
        self.machine.target_cpu()
    }

    fn open(&self) -> Result<Box<dyn Executor>, Failure> {
        executor::open(self.common, self.machine, self.plan.clock.reads_counter())
    }

    /// What a survey of these forms is told of the machine and of what to do.
    fn facts(&self, executor: &dyn Executor, subjects: &[Subject]) -> SurveyFacts {
        let machine = (&self.machine.features, self.machine.is_emulated());
        SurveyFacts::new(ExecutorFacts::of(executor), (self.plan.clone(), self.effort), machine, subjects)
    }

    /// Measures what links cost.
    fn begin<'f>(
        &self,
        executor: &mut dyn Executor,
        facts: &'f SurveyFacts,
        subjects: Vec<Subject>,
    ) -> Result<Survey<'f>, Failure>
    where
        'a: 'f,
    {
        Ok(evidence::begin(executor, facts, &self.machine.features, subjects)?)
    }

    fn explain(&self, args: &InstrArgs, subjects: Vec<Subject>, output: &mut Output) -> Result<u8, Failure> {
        if subjects.len() > explain::MOST {
            let some: Vec<String> =
                subjects.iter().take(3).map(|s| format!("'{}'", selection::full_name(s))).collect();
            let text = format!("{} forms are too many to explain at once", subjects.len());
            let remedy = format!("name at most {}, such as {}", explain::MOST, some.join(", "));
            return Err(Failure::usage(text, Some(&remedy)));
        }
        let mut executor = self.open()?;
        let facts = self.facts(executor.as_ref(), &subjects);
        let survey = self.begin(executor.as_mut(), &facts, subjects)?;
        let repro = |row: &Row| {
            let name = format!("{} {}", row.code, row.operands);
            let args =
                InstrArgs { filters: Vec::new(), explain: Some(name.trim_end().to_string()), ..args.clone() };
            repro::instr(self.common, &args, self.plan.seed)
        };
        explain::explain_all(&survey, executor.as_mut(), &repro, output)?;
        executor::warn_of_neighbours(executor.as_ref(), self.cpu());
        Ok(exit::DONE)
    }

    fn survey(
        &self,
        args: &InstrArgs,
        subjects: Vec<Subject>,
        (mut file, kept): (Option<ResultFile>, Kept),
        output: &mut Output,
    ) -> Result<u8, Failure> {
        let begun = Instant::now();
        let plan = &self.plan;
        let session = Session::new(
            args,
            &subjects,
            (self.effort, plan.confidence),
            (plan.clock.name, self.cpu(), plan.seed),
            self.common,
        );
        if let (Some((machine, old)), Some(path)) = (&kept.head, &args.resume) {
            old.require(&session, machine, self.machine, &path.display().to_string())?;
        }
        let repro = repro::instr(self.common, args, plan.seed);
        let mut place = Place::prepare(self.common)?;
        let evidence = place.as_ref().map(|place| place.begin(STUDY, &repro, self.machine)).transpose()?;
        if let Some(place) = &mut place {
            place.keeps_parts = true;
        }
        let (rows, resumed) =
            self.rows(args, subjects, (&session, file.as_mut(), kept), evidence.as_ref(), output)?;
        interrupt::farewell(None);
        if let Some(file) = file {
            file.finish();
        }
        let summary = Summary::of(&rows);
        let seconds = begun.elapsed().as_secs_f64();
        let record = SummaryRecord {
            summary: &summary,
            resumed,
            seconds,
            cpu: self.cpu(),
            cpu_model: self.machine.cpu.name(),
            clock: plan.clock.name,
            executor: self.common.offer().name,
            seed: plan.seed,
            repro,
        };
        if output.is_json() {
            output.record("instr.summary", &record)?;
        } else {
            tables::rows(&rows.iter().collect::<Vec<_>>(), output)?;
            tables::summary(&summary, seconds, output)?;
        }
        output.finish()?;
        export_to(args.csv.as_deref(), &rows, |rows, out| export::csv(rows, out))?;
        export_to(args.markdown.as_deref(), &rows, |rows, out| export::markdown(rows, out))?;
        if let Some(evidence) = evidence {
            evidence.keep(|writer| writer.record("instr.summary", &record));
            evidence.finish().map_err(unwritten)?;
        }
        let nothing = summary.all.measured == 0 && summary.all.failed > 0;
        Ok(if nothing { exit::FAULT } else { exit::DONE })
    }

    /// All rows, those that a file has already included, and how many these are.
    fn rows(
        &self,
        args: &InstrArgs,
        subjects: Vec<Subject>,
        (session, mut file, kept): (&Session, Option<&mut ResultFile>, Kept),
        evidence: Option<&Rc<Evidence>>,
        output: &mut Output,
    ) -> Result<(Vec<Row>, usize), Failure> {
        let whole = kept.rows.len() == subjects.len();
        let earlier = match file.as_mut() {
            Some(file) if kept.head.is_some() && !whole => file.journal(session)?,
            _ => Vec::new(),
        };
        let open = || self.open().map(|executor| recorded(executor, evidence));
        let mut executor = if whole { None } else { Some(open()?) };
        let facts = executor.as_ref().map(|executor| self.facts(executor.as_ref(), &subjects));
        if let Some((evidence, facts)) = evidence.zip(facts.as_ref()) {
            evidence.keep(|writer| writer.set_facts(facts));
        }
        let mut survey = executor
            .as_mut()
            .zip(facts.as_ref())
            .map(|(executor, facts)| self.begin(executor.as_mut(), facts, subjects.clone()))
            .transpose()?;
        if let (Some(survey), Some((machine, _))) = (&mut survey, &kept.head) {
            GaugeRecord::of(machine)?.adopt_by(&mut survey.gauge);
        }
        self.head(session, &kept, survey.as_ref(), file.as_deref_mut(), output)?;
        interrupt::farewell(
            file.as_ref().map(|file| format!("interrupted; resume with {}", file.resume_command())),
        );
        let mut follower =
            Follower::new((self.common, args), (session, self.machine), &subjects, (file, evidence), output);
        let complete = follower.known(kept.rows)?;
        let resumed = complete.len();
        if let (Some(survey), Some(executor)) = (&survey, &mut executor) {
            let done = earlier.into_iter().filter(|done| !complete.contains(&done.form)).collect();
            let known = Known { complete, done };
            follower.begin(survey.standing(&known));
            survey.run(executor.as_mut(), known, &mut |event, standing| follower.take(event, standing))?;
            executor::warn_of_neighbours(executor.as_ref(), self.cpu());
        }
        Ok((follower.finish()?, resumed))
    }

    /// The first line: of the file that is resumed, or a new one.
    fn head(
        &self,
        session: &Session,
        kept: &Kept,
        survey: Option<&Survey>,
        file: Option<&mut ResultFile>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if let Some((Value::Object(fields), _)) = &kept.head {
            let mut fields = fields.clone();
            // These the new line has itself.
            fields.retain(|name, _| name != "schema" && name != "kind");
            return if output.is_json() { output.record("machine", &fields) } else { Ok(()) };
        }
        let Some(survey) = survey else { return Ok(()) };
        let line =
            MachineLine { machine: self.machine, survey: session, gauge: GaugeRecord::new(&survey.gauge) };
        file.map_or(Ok(()), |file| file.append("machine", &line))?;
        if output.is_json() { output.record("machine", &line) } else { Ok(()) }
    }
}

/// Fails early where a table could not be written after hours.
fn writable(path: &Path) -> Result<(), Failure> {
    use rustix::fs::{Access, access};
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let place = if path.exists() { path } else { folder };
    let why = match access(place, Access::WRITE_OK) {
        Err(errno) => std::io::Error::from(errno).to_string(),
        Ok(()) if path.is_dir() => "it is a directory".to_string(),
        Ok(()) => return Ok(()),
    };
    let text = format!("no table can be written to {}: {why}", path.display());
    Err(Failure::usage(text, Some("name a file where you may write")))
}

fn export_to(
    path: Option<&Path>,
    rows: &[Row],
    write: impl FnOnce(&[Row], &mut Vec<u8>) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let mut bytes = Vec::new();
    let written = write(rows, &mut bytes).and_then(|()| std::fs::write(path, bytes));
    written.map_err(|error| Failure::internal(format!("writing {} failed: {error}", path.display())))
}
