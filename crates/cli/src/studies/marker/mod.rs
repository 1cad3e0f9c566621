//! `cyclescope marker`: what instrumentation costs when it is off, and when it is on.

mod around;
mod assembly;
mod bench;
mod beside;
mod choose;
mod listing;
#[cfg(test)]
mod made_up;
mod plots;
mod tables;

use crate::args::repro;
use crate::args::{Common, MarkerArgs};
use crate::output::page::Page;
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::process::isolated::isolated;
use crate::session::driver::{Order, StudyView, drive};
use crate::session::evidence::unwritten;
use crate::session::executor::{self, Code};
use crate::session::replay_study;
use around::{Around, Libraries, Loaded};
use bench::{Chosen, Wanted};
use choose::Choice;
use cyclescope::clock::Clock;
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::record::{Quantity, exit};
use cyclescope::result::container::{Container, plain};
use cyclescope::run::Request;
use cyclescope::study::marker::catalog::Catalog;
use cyclescope::study::marker::found::{Found, SkippedRecord};
use cyclescope::study::marker::record::MarkerRecord;
use cyclescope::study::marker::source::context::Context;
use cyclescope::study::marker::{MarkerPlan, MarkerStudy};
use serde::Serialize;

pub use cyclescope::study::marker::NAME;

/// Runs the command and returns the exit code: a table that completes is done, unless a marker was not what its state
/// says.
pub fn marker(common: &Common, args: &MarkerArgs, output: &mut Output) -> Result<u8, Failure> {
    let catalog = Catalog::of(common.offer().name)?;
    let clock = bench::clock(common.one_clock()?, catalog)?;
    let choice = Choice::new(args, catalog)?;
    if args.list {
        listing::list(&choice, output)?;
        return Ok(exit::DONE);
    }
    let machine = common.machine()?;
    machine.tsc.require()?;
    let mut libraries = compile(args, &choice, &machine)?;
    let seed = common.chosen_seed();
    let ask = Ask { common, args, clock, choice: &choice, machine: &machine, seed };
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
    seed: u64,
}

impl Ask<'_> {
    /// Measures and reports.
    fn answer(&self, loaded: &Loaded, output: &mut Output) -> Result<u8, Failure> {
        let Ask { common, args, machine, .. } = *self;
        let repro = repro::command(NAME, args, common, self.seed);
        let order = Order { exports: args.exports.clone(), ..Order::new(common, machine, &repro)? };
        let mut study = self.study(loaded, &repro)?;
        drive(&Marker { assembly: args.assembly }, &mut study, order, output)
    }

    fn study(&self, loaded: &Loaded, repro: &str) -> Result<MarkerStudy, Failure> {
        let Ask { common, clock, choice, machine, seed, .. } = *self;
        let request = Request { clock, quick: common.quick, seed, ..Request::default() };
        let plan = request.plan(&common.capabilities(machine), machine)?;
        let Chosen { bench, skipped, contexts } =
            bench::choose(Wanted { choice, machine, plan: &plan, loaded })?;
        let skipped = skipped.into_iter().map(SkippedRecord::from);
        let open = executor::opening(common, machine, plan.clock.reads_counter(), Code::Own);
        let plan = MarkerPlan {
            executor: choice.catalog.executor.to_string(),
            plan,
            quick: common.quick,
            contexts,
            emulated: machine.is_emulated(),
            cpu: machine.target_cpu(),
            cpu_model: machine.cpu.name(),
            skipped: skipped.chain(loaded.absent.iter().cloned()).collect(),
        };
        let facts = plain(machine).map_err(unwritten)?;
        Ok(MarkerStudy::new(plan, facts, repro.to_string(), bench, open))
    }
}

/// How `marker` looks.
struct Marker {
    assembly: bool,
}

impl StudyView for Marker {
    type Study = MarkerStudy;

    fn text(&self, study: &MarkerStudy, output: &mut Output) -> Result<(), Failure> {
        let Some(Found { records, skipped, published }) = &study.found else { return Ok(()) };
        let mut page = Page::new(output);
        tables::head(&mut page, records)?;
        tables::contexts(&mut page, records)?;
        tables::skipped(&mut page, skipped)?;
        tables::calls(&mut page, records)?;
        let executor = records.first().map_or("user", |record| record.executor);
        beside::figures(&mut page, published, executor)?;
        beside::conclusions(&mut page, &published.conclusions)?;
        if self.assembly { assembly::assembly(&mut page, records) } else { Ok(()) }
    }

    fn pictures(&self, study: &MarkerStudy, machine: &str) -> Vec<Picture> {
        study.found.as_ref().map_or(Vec::new(), |found| plots::pictures(&found.records, machine))
    }

    fn exit(&self, study: &MarkerStudy) -> u8 {
        let Some(Found { records, skipped, .. }) = &study.found else { return exit::DONE };
        let refuted = |record: &MarkerRecord| record.calls.is_some_and(|calls| !calls.holds());
        match records.is_empty() {
            // What was asked for, and nothing of it is here.
            true if !skipped.is_empty() => exit::UNAVAILABLE,
            _ if records.iter().any(refuted) => exit::INTERNAL,
            _ => exit::DONE,
        }
    }

    fn replayed(&self, study: &MarkerStudy, output: &mut Output) -> Result<(), Failure> {
        let records = study.found.iter().flat_map(|found| &found.records);
        records.map(Replayed::from).try_for_each(|replayed| output.record("marker.replay", &replayed))
    }
}

/// Computes a survey again from its evidence.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay(&Marker { assembly: false }, container, output)
}

/// A cost computed again, kind `marker.replay`.
#[derive(Serialize)]
struct Replayed<'a> {
    design: &'a str,
    state: &'a str,
    context: &'a str,
    cost: Quantity,
    visits: usize,
}

impl<'a> From<&'a MarkerRecord> for Replayed<'a> {
    fn from(record: &'a MarkerRecord) -> Replayed<'a> {
        let MarkerRecord { design, state, context, cost, visits, .. } = record;
        Replayed { design, state, context, cost: *cost, visits: *visits }
    }
}
