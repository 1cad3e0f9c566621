//! The benches that measure markers: one for each place where code can run.

use super::marker_choice::MarkerChoice;
use super::marker_libraries::LoadedMarkers;
use crate::output::Failure;
use crate::session::executor::CodeOrigin;
use cyclescope::clock::Clock;
use cyclescope::error::Unavailable;
use cyclescope::executor::kernel::markers::KernelMarkers;
use cyclescope::executor::user::UserOptions;
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::study::marker::bench::{MarkerBench, MarkerCase, SelectedBench};
use cyclescope::study::marker::catalog::MarkerCatalog;
use cyclescope::study::marker::compiled_design::CompiledDesign;
use cyclescope::study::marker::custom_loop::CUSTOM_LOOP_NAME;
use cyclescope::study::marker::kernel::{self, KernelBench};
use cyclescope::study::marker::user::{SkippedCase, UserBench};

/// A bench, and the cases that it can't measure.
pub struct ChosenBench {
    /// The bench.
    pub bench: Box<dyn MarkerBench>,
    /// Requested cases that the bench can't measure.
    pub skipped: Vec<SkippedCase>,
    /// Number of contexts.
    pub contexts: usize,
}

/// Everything that a bench is built from.
#[derive(Clone, Copy)]
pub struct BenchRequest<'a> {
    /// The chosen markers.
    pub choice: &'a MarkerChoice,
    /// The machine.
    pub machine: &'a Machine,
    /// The measuring plan.
    pub plan: &'a Plan,
    /// Markers that this command compiled.
    pub loaded: &'a LoadedMarkers,
}

type MakeBench = fn(BenchRequest) -> Result<ChosenBench, Failure>;

/// The bench of each executor.
const EXECUTOR_BENCHES: &[(&str, MakeBench)] = &[("user", make_user_bench), ("kernel", make_ring_0_bench)];

/// Creates the requested bench.
pub fn make_bench(request: BenchRequest) -> Result<ChosenBench, Failure> {
    let executor = request.choice.catalog.executor;
    let (_, make) = EXECUTOR_BENCHES.iter().find(|(name, _)| *name == executor).expect("each catalog has a bench");
    make(request)
}

/// The timing method for markers, if none is named.
pub fn choose_clock(named: Option<&'static Clock>, catalog: &MarkerCatalog) -> Result<Option<&'static Clock>, Failure> {
    match (catalog.clock, named) {
        (None, named) => Ok(named),
        (Some(own), None) => Ok(Clock::find_named(own)),
        (Some(own), Some(clock)) if clock.name == own => Ok(named),
        (Some(own), Some(clock)) => Err(Failure::from(Unavailable {
            what: format!("the clock {} for the module's markers", clock.name),
            why: format!("the module reads {own}"),
            remedy: "leave out --clock".to_string(),
        })),
    }
}

fn make_user_bench(request: BenchRequest) -> Result<ChosenBench, Failure> {
    let BenchRequest { choice, machine, plan, loaded } = request;
    let cpu = machine.target_cpu() as usize;
    let own_code = CodeOrigin::of_generated(choice.around).shares_workers();
    let options = UserOptions { cpu, counter: plan.clock.reads_counter(), own_code, ..UserOptions::default() };
    // The build compiles no 32-bit code.
    let is_built = !choice.around && choice.mode.is_default();
    let mut designs = if is_built { CompiledDesign::list_built() } else { Vec::new() };
    designs.retain(|compiled| choice.designs.contains(&compiled.design));
    designs.extend(loaded.compiled.iter().cloned());
    let contexts: Vec<&str> = match choice.around {
        true => vec![CUSTOM_LOOP_NAME],
        false => choice.contexts.iter().map(|context| context.name).collect(),
    };
    let caches = &machine.topology.caches;
    let (bench, mut skipped) = UserBench::new(
        &options,
        plan.clock,
        plan.step,
        (&designs, loaded.probes.clone()),
        &contexts,
        caches,
        plan.seed,
    )?;
    let bench = SelectedBench::new(bench, |case| choice.criteria.includes_case(case));
    skipped.retain(|(case, _)| choice.criteria.includes_case(case));
    Ok(ChosenBench { bench: Box::new(bench), skipped, contexts: contexts.len() })
}

fn make_ring_0_bench(request: BenchRequest) -> Result<ChosenBench, Failure> {
    let BenchRequest { choice, machine, plan, .. } = request;
    let criteria = &choice.criteria;
    let arounds = match criteria.all {
        true => kernel::CONTEXTS.iter().map(|(_, around)| *around).collect(),
        false => {
            let named = choice.contexts.iter().map(|context| kernel::find_context(context.name));
            named.collect::<Result<Vec<_>, Unavailable>>()?
        }
    };
    let markers = KernelMarkers::open(machine.target_cpu() as usize, UserOptions::default().patience)?;
    let bench = KernelBench::new(markers, &arounds, plan.step, plan.seed)?;
    let request = |case: &MarkerCase| {
        choice.designs.iter().any(|design| design.name == case.design.name) && criteria.includes_case(case)
    };
    let bench = SelectedBench::new(bench, request);
    Ok(ChosenBench { bench: Box::new(bench), skipped: Vec::new(), contexts: arounds.len() })
}
