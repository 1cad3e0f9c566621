//! `cyclescope evaluate`: measures the cost, spread and resolution of each timing method on this
//! machine.

mod graphs;
mod method_table;
mod parts;
mod sections;
mod series;
mod staircases;
mod summary;
mod tables;

use crate::args::repro;
use crate::args::{CommonArgs, EvaluateArgs, find_clock};
use crate::input::event_request::read_request;
use crate::output::event_table::{CountedSubject, print_event_table};
use crate::output::page::TextPage;
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::session::driver::{StudyOrder, StudyView, drive_study};
use crate::session::replay_study;
use crate::studies::line_view::TextDetail;
use cyclescope::asm::CodeMode;
use cyclescope::clock::{self, Clock};
use cyclescope::events::CounterRequest;
use cyclescope::executor::{Capabilities, DEFAULT_OFFER, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::result::container::EvidenceContainer;
use cyclescope::result::counter_record::CountedEvents;
use cyclescope::study::evaluate::ensemble_reader::SamplingSize;
use cyclescope::study::evaluate::evaluation::Evaluation;
use cyclescope::study::evaluate::plan::{self, EvaluatePlan, ExperimentTimes, RefusedMethod};
use cyclescope::study::evaluate::{EvaluateStudy, MethodCandidate};
use std::time::Duration;

pub use cyclescope::study::evaluate::NAME;

/// Runs the command and returns the exit code. A completed evaluation succeeds, whatever its
/// verdict.
pub fn run_evaluate(common: &CommonArgs, args: &EvaluateArgs, output: &mut Output) -> Result<u8, Failure> {
    let names = common.clock.iter().chain(&args.clocks).flat_map(|names| names.split(','));
    let names: Vec<&str> = names.map(str::trim).filter(|name| !name.is_empty()).collect();
    if names.is_empty() && !(common.clock.is_empty() && args.clocks.is_empty()) {
        return Err(Failure::usage("no timing method is named", Some("`cyclescope --clock list` shows all")));
    }
    let named = find_clocks(&names)?;
    let machine = common.detect_machine()?;
    machine.tsc.require()?;
    let (candidates, not_run) = choose_candidates(named, args.code_mode.mode(), common, &machine)?;
    // Checked before anything is created: a failure must leave nothing behind.
    [DEFAULT_OFFER, common.offer()].into_iter().try_for_each(|offer| (offer.check)(&machine))?;
    let counters = read_request(&args.events, &machine)?;
    let plan = build_plan(common, args, candidates, not_run, counters);
    let repro = repro::format_repro(NAME, args, common, plan.seed);
    let options = OpenOptions { force: common.force, own_code: true, ..OpenOptions::default() };
    let mut study = EvaluateStudy::new(machine.clone(), plan, options, repro.clone());
    let exports = args.exports.clone();
    let view = EvaluateView { draws: exports.has(&["plots"]), prints_series: args.series, prints_all: args.why };
    let order = StudyOrder { exports, ..StudyOrder::new(common, args.code_mode.mode(), &machine, &repro)? };
    drive_study(&view, &mut study, order, output)
}

/// How `evaluate` presents its result.
struct EvaluateView {
    /// Whether it draws graphs.
    draws: bool,
    /// Whether it prints each ensemble.
    prints_series: bool,
    /// Whether it prints all tables and reasons, however many methods were measured.
    prints_all: bool,
}

impl EvaluateView {
    /// Few methods are explained, many are summed up.
    fn chosen_detail(&self, found: &Evaluation) -> TextDetail {
        let clocks = clock::ALL_CLOCKS.iter();
        let measured =
            clocks.filter(|clock| found.methods.iter().any(|method| method.candidate.clock.name == clock.name));
        match self.prints_all || 2 * measured.count() <= clock::ALL_CLOCKS.len() {
            true => TextDetail::Reasons,
            false => TextDetail::Summary,
        }
    }
}

impl StudyView for EvaluateView {
    type Study = EvaluateStudy;

    fn print_text(&self, study: &EvaluateStudy, output: &mut Output) -> Result<(), Failure> {
        let Some(found) = &study.found else { return Ok(()) };
        if self.prints_series {
            series::print_series(found, output)?;
        }
        let mut page = TextPage::new(output);
        // An incomplete evaluation has nothing to compare.
        if !found.complete {
            return tables::print_samples(&mut page, found, &study.plan.not_run);
        }
        match self.chosen_detail(found) {
            TextDetail::Summary => {
                summary::print_summary(&mut page, found, &study.around, study.plan.mode)?;
                print_events(&mut page, found)?;
            }
            TextDetail::Numbers | TextDetail::Reasons => print_details(&mut page, study, found)?,
        }
        if self.draws {
            let count = graphs::draw_graphs(study).len();
            page.print_row("graphs", &format!("{count} in the directory of --plots"))?;
        }
        Ok(())
    }

    fn pictures(&self, study: &EvaluateStudy, _machine: &str) -> Vec<Picture> {
        graphs::draw_graphs(study)
    }
}

/// Prints all tables; the verdict comes last.
fn print_details(page: &mut TextPage, study: &EvaluateStudy, found: &Evaluation) -> Result<(), Failure> {
    let not_run = &study.plan.not_run;
    sections::print_machine(page, found, study)?;
    tables::print_samples(page, found, not_run)?;
    tables::print_published(page, found)?;
    tables::print_resolution(page, found)?;
    staircases::print_staircases(page, found)?;
    tables::print_contamination(page, found, not_run)?;
    parts::print_parts(page, found, study.plan.mode)?;
    print_events(page, found)?;
    sections::print_claims(page, &found.claims)?;
    sections::print_verdicts(page, found)
}

/// Prints the events of an empty pair of each method, over all counted ensembles and in each.
fn print_events(page: &mut TextPage, found: &Evaluation) -> Result<(), Failure> {
    let mut subjects = Vec::new();
    for method in &found.methods {
        let Some(counted) = method.method.as_ref().and_then(|sampled| sampled.counted.as_ref()) else { continue };
        let subject = |name: String, events: &'_ CountedEvents| (name, events.counters.clone(), events.passes);
        subjects.push(subject(method.candidate.to_string(), &counted.all));
        let each = counted.ensembles.iter().enumerate();
        subjects.extend(each.map(|(number, events)| subject(format!("  ensemble {}", number + 1), events)));
    }
    let subjects: Vec<CountedSubject> = subjects
        .iter()
        .map(|(name, counters, passes)| CountedSubject {
            name: name.clone(),
            counters,
            passes: Some(*passes),
            more: Vec::new(),
        })
        .collect();
    print_event_table(page, ("Events of an empty pair and its call", "method"), &subjects)
}

/// Recomputes an evaluation from its evidence.
pub fn replay_evaluate(container: &EvidenceContainer, output: &mut Output) -> Result<u8, Failure> {
    let view = EvaluateView { draws: false, prints_series: false, prints_all: false };
    replay_study::replay_study(&view, container, output)
}

/// The timing methods of these names, without duplicates; `None` for all methods.
fn find_clocks(names: &[&str]) -> Result<Option<Vec<&'static Clock>>, Failure> {
    if names.is_empty() || names.contains(&"all") {
        return Ok(None);
    }
    let mut clocks: Vec<&'static Clock> = Vec::new();
    for name in names {
        let clock = find_clock(name)?;
        if clocks.iter().all(|other| other.name != clock.name) {
            clocks.push(clock);
        }
    }
    Ok(Some(clocks))
}

/// Chooses the methods to evaluate, and lists those that can't run. Fails if a named method can't
/// run on the requested executor. Methods for another executor also run on the default one, so that
/// both can be compared.
fn choose_candidates(
    named: Option<Vec<&'static Clock>>,
    mode: CodeMode,
    common: &CommonArgs,
    machine: &Machine,
) -> Result<(Vec<MethodCandidate>, Vec<RefusedMethod>), Failure> {
    let asked = common.capabilities(machine);
    asked.require_mode(mode)?;
    for clock in named.iter().flatten() {
        asked.require_clock_for(clock, mode, machine)?;
    }
    let mut executors: Vec<Capabilities> = vec![(DEFAULT_OFFER.capabilities)(machine)];
    executors.extend(Some(asked).filter(|_| !common.offer().is_default()));
    let clocks = named.unwrap_or_else(|| clock::ALL_CLOCKS.iter().collect());
    Ok(plan::split_candidates(clocks, mode, machine, &executors))
}

fn build_plan(
    common: &CommonArgs,
    args: &EvaluateArgs,
    candidates: Vec<MethodCandidate>,
    not_run: Vec<RefusedMethod>,
    counters: Option<CounterRequest>,
) -> EvaluatePlan {
    let (size, usual, slow, times) = match common.quick {
        true => (plan::SIZE_QUICK, plan::BUDGET_QUICK, plan::SLOW_METHOD_TIME_QUICK, ExperimentTimes::QUICK),
        false => (SamplingSize::PAPER, plan::BUDGET, plan::SLOW_METHOD_TIME, ExperimentTimes::FULL),
    };
    let own_size = args.ensembles.is_some() || args.samples.is_some() || args.resolution_samples.is_some();
    let budget = match args.budget {
        Some(seconds) => Duration::from_secs_f64(seconds),
        // A user who sets the number of samples waits for them, except for those of slow methods.
        None if own_size => A_DAY,
        None => usual,
    };
    EvaluatePlan {
        candidates,
        not_run,
        mode: args.code_mode.mode(),
        size: SamplingSize {
            ensembles: args.ensembles.unwrap_or(size.ensembles),
            samples: args.samples.unwrap_or(size.samples),
        },
        budget,
        slow: args.budget.is_none().then_some(slow),
        times: times.scale_to_budget(budget, usual),
        resolution_samples: args.resolution_samples,
        seed: common.chosen_seed(),
        series: args.series,
        counters,
    }
}

/// In effect no budget.
const A_DAY: Duration = Duration::from_secs(86_400);
