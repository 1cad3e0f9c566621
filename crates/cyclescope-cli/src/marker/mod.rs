//! `cyclescope marker`: what instrumentation costs when it is off, and when it is on.

mod around;
mod assembly;
mod bench;
mod beside;
mod choose;
mod evidence;
mod listing;
#[cfg(test)]
mod made_up;
mod plots;
mod records;
mod tables;

use crate::args::{Common, MarkerArgs};
use crate::evidence::Place;
use crate::failure::Failure;
use crate::isolated::isolated;
use crate::output::Output;
use crate::page::Page;
use crate::plots::Plots;
use crate::progress::Progress;
use crate::{executor, repro, run};
use around::{Absent, Around, Libraries, Loaded};
use bench::Chosen;
use choose::Choice;
use cyclescope::clock::Clock;
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::measure;
use cyclescope::record::exit;
use cyclescope::run::Request;
use cyclescope::study::marker::around::AROUND;
use cyclescope::study::marker::catalog::Catalog;
use cyclescope::study::marker::comparison::conclusions;
use cyclescope::study::marker::instance::Misfit;
use cyclescope::study::marker::published;
use cyclescope::study::marker::record::{MarkerRecord, Surroundings, records};
use cyclescope::study::marker::source::context::Context;
use cyclescope::study::marker::survey::{Event, Plan, Progress as Standing};
use cyclescope::study::marker::user::Skipped;
use evidence::Evidence;
use records::{PublishedRecord, SkippedRecord};

pub use cyclescope::study::marker::evidence::STUDY as NAME;
pub use evidence::replay;

/// Parts of the bar.
const PARTS: u64 = 1000;

/// Runs the command and returns the exit code: a table that completes is done, unless a marker was not what its state
/// says.
pub fn marker(common: &Common, args: &MarkerArgs, output: &mut Output) -> Result<u8, Failure> {
    let catalog = Catalog::of(common.offer().name)?;
    let clock = bench::clock(run::one_clock(common)?, catalog)?;
    let choice = Choice::new(args, catalog)?;
    if args.list {
        listing::list(&choice, output)?;
        return Ok(exit::DONE);
    }
    let machine = run::machine(common)?;
    machine.tsc.require()?;
    let mut libraries = compile(args, &choice, &machine)?;
    let ask = Ask { common, args, clock, choice: &choice, machine: &machine };
    match libraries.folder.take() {
        None => ask.answer(&libraries.load()?, output),
        folder => isolated(
            || libraries.load(),
            folder,
            |loaded| ask.answer(loaded, output),
            |failure| failure.report(common.json),
        ),
    }
}

/// Compiles what the build has not: loops of the user's, and designs of packages.
fn compile(args: &MarkerArgs, choice: &Choice, machine: &Machine) -> Result<Libraries, Failure> {
    let around = match (&args.around, &args.around_snippet) {
        (Some(file), _) => Some(Around::File(file)),
        (None, Some(text)) => Some(Around::Snippet(text)),
        (None, None) => None,
    };
    // Loops of the user's are compiled into this process.
    if choice.catalog.contexts.is_some() {
        return match around {
            None => Ok(Libraries::none()),
            Some(_) => Err(Failure::from(Unavailable {
                what: "your own loop in ring 0".to_string(),
                why: "the module's markers are compiled into it, in its own loops".to_string(),
                remedy: "leave --executor kernel out".to_string(),
            })),
        };
    }
    let contexts: Vec<Context> = choice.contexts.iter().map(|context| **context).collect();
    let cflags = args.cflags.as_deref();
    Libraries::compile(
        &around::Request { designs: &choice.designs, contexts: &contexts, around, cflags },
        machine,
    )
}

/// What was asked for.
struct Ask<'a> {
    common: &'a Common,
    args: &'a MarkerArgs,
    clock: Option<&'static Clock>,
    choice: &'a Choice,
    machine: &'a Machine,
}

impl Ask<'_> {
    /// Measures and reports.
    fn answer(&self, loaded: &Loaded, output: &mut Output) -> Result<u8, Failure> {
        let Ask { common, args, clock, choice, machine } = *self;
        let request = Request {
            clock,
            quick: common.quick,
            seed: common.seed.unwrap_or_else(run::seed),
            ..Request::default()
        };
        let plan = request.plan(&executor::capabilities(common, machine), machine)?;
        let plots = args.plots.as_deref();
        let mut plots = plots.map(|directory| Plots::new(directory, &machine.cpu.name())).transpose()?;
        let mut chosen = bench::choose(bench::Wanted { choice, machine, plan: &plan, loaded })?;
        let place = Place::prepare(common)?;
        let repro = repro::marker(common, args, plan.seed);
        let evidence = place.as_ref().map(|place| Evidence::new(place, machine, &repro));
        let mut evidence = evidence.transpose()?;
        let (surveyed, survey) = survey(common, args, &mut chosen, (machine, &plan), evidence.as_mut())?;
        if let Some(lock) = chosen.bench.executor().and_then(|executor| executor.lock_state()) {
            executor::warn_of_neighbours(lock, machine.target_cpu());
        }
        let skipped = std::mem::take(&mut chosen.skipped);
        let step = chosen.bench.step();
        if let Some(evidence) = &mut evidence {
            evidence.tell(&survey, step, &surveyed);
        }
        let report = Report::new(machine, surveyed, skipped, &loaded.absent);
        report.print(args, output)?;
        if let Some(plots) = &mut plots {
            plots::draw(plots, &report.records)?;
        }
        if let Some(evidence) = evidence {
            evidence.finish()?;
        }
        // What was asked for, and nothing of it is here.
        if report.records.is_empty() && !report.skipped.is_empty() {
            return Ok(exit::UNAVAILABLE);
        }
        let refuted = |record: &MarkerRecord| record.calls.is_some_and(|calls| !calls.holds());
        Ok(if report.records.iter().any(refuted) { exit::INTERNAL } else { exit::DONE })
    }
}

/// Measures all that was chosen.
fn survey(
    common: &Common,
    args: &MarkerArgs,
    chosen: &mut Chosen,
    (machine, plan): (&Machine, &measure::Plan),
    mut evidence: Option<&mut Evidence>,
) -> Result<(Vec<MarkerRecord>, Plan), Failure> {
    let emulated = machine.is_emulated();
    // There are no cycles there.
    let imul_latency = if emulated { 0.0 } else { bench::imul_latency(common, machine, plan)? };
    let survey = match common.quick {
        true => Plan::quick(imul_latency, plan.seed),
        false => Plan::new(imul_latency, plan.seed).over(chosen.contexts),
    };
    let surroundings = Surroundings {
        executor: common.offer().name,
        clock: plan.clock.name,
        confidence: survey.confidence,
        cpu: machine.target_cpu(),
        cpu_model: machine.cpu.name(),
        seed: plan.seed,
        repro: repro::marker(common, args, plan.seed),
        emulated,
    };
    let progress = Progress::new("calls are counted");
    let mut follow = |event: Event| {
        if let Some(evidence) = &mut evidence {
            evidence.take(&event);
        }
        if let Event::Progress(Standing { settled, subjects, done }) = event {
            let message = format!("{settled} of {subjects} markers converged");
            progress.tell((done * PARTS as f64) as u64, PARTS, message);
        }
    };
    let records = records(chosen.bench.as_mut(), &survey, &surroundings, &mut follow)?;
    Ok((records, survey))
}

/// All that there is to say.
struct Report<'a> {
    machine: &'a Machine,
    records: Vec<MarkerRecord>,
    skipped: Vec<SkippedRecord>,
    published: PublishedRecord,
}

impl<'a> Report<'a> {
    fn new(
        machine: &'a Machine,
        records: Vec<MarkerRecord>,
        skipped: Vec<Skipped>,
        absent: &[Absent],
    ) -> Report<'a> {
        let absent = absent.iter().map(|absent| SkippedRecord {
            design: absent.design.name,
            state: None,
            context: None,
            reason: absent.why.clone(),
            remedy: absent.remedy.clone(),
        });
        let skipped = skipped.into_iter().map(|(subject, misfit)| SkippedRecord {
            design: subject.design.name,
            state: Some(subject.state.name),
            context: Some(subject.context),
            remedy: match &misfit {
                Misfit::Untraced { why } => Some(why.remedy.clone()),
                _ => None,
            },
            reason: misfit.to_string(),
        });
        let removed = |record: &MarkerRecord| {
            let code = &record.code;
            let bytes = [code.function_likely_bytes, code.function_unlikely_bytes];
            record.context == AROUND && record.design != "none" && code.likely_bytes == 0 && bytes == [0, 0]
        };
        let (gone, records): (Vec<_>, Vec<_>) = records.into_iter().partition(removed);
        let gone = gone.into_iter().map(|record| SkippedRecord {
            design: record.design,
            state: None,
            context: Some(record.context),
            reason: format!(
                "{}: the compiler has removed the marker because it is unreachable",
                record.state
            ),
            remedy: None,
        });
        let published = PublishedRecord {
            source: published::SOURCE,
            machine: published::MACHINE,
            figures: published::beside(&records),
            conclusions: conclusions(&records),
        };
        Report { machine, skipped: skipped.chain(absent).chain(gone).collect(), published, records }
    }

    fn print(&self, args: &MarkerArgs, output: &mut Output) -> Result<(), Failure> {
        if output.is_json() {
            output.record("machine", self.machine)?;
            self.records.iter().try_for_each(|record| output.record("marker", record))?;
            self.skipped.iter().try_for_each(|skipped| output.record("marker.skipped", skipped))?;
            return output.record("marker.conclusions", &self.published);
        }
        let mut page = Page::new(output);
        tables::head(&mut page, &self.records)?;
        tables::contexts(&mut page, &self.records)?;
        tables::skipped(&mut page, &self.skipped)?;
        tables::calls(&mut page, &self.records)?;
        beside::figures(&mut page, &self.published)?;
        beside::conclusions(&mut page, &self.published.conclusions)?;
        if args.assembly {
            assembly::assembly(&mut page, &self.records)?;
        }
        output.finish()
    }
}
