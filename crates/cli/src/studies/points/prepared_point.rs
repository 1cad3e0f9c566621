//! Points that are ready to be measured: assembled, compiled and checked.

use super::expand::PointRequest;
use crate::args::CommonArgs;
use crate::args::repro;
use crate::input::event_request::read_request;
use crate::input::target::{FoundTarget, FunctionLibraries, LoadedFunction, RunTarget};
use crate::output::Failure;
use crate::session::evidence;
use crate::studies::run;
use crate::studies::run::option_needs::{CommandSubject, require_needs};
use cyclescope::events::CounterRequest;
use cyclescope::machine::Machine;
use cyclescope::record::{ErrorRecord, exit};
use cyclescope::run::RunRequest;
use cyclescope::study::points::{PointLabel, PointRun, failure_fields};
use cyclescope::study::run::AdviceTexts;
use std::cell::OnceCell;

/// A point after assembly and compilation.
pub struct PreparedPoint {
    label: PointLabel,
    /// What is measured, or why it can't be measured here.
    pub ready: Result<ReadyPoint, Box<ErrorRecord>>,
}

/// A point that can be measured.
pub struct ReadyPoint {
    request: RunRequest,
    /// What is measured.
    pub target: RunTarget,
    /// The names of its variants.
    names: Vec<String>,
    /// The events to count.
    counters: Option<CounterRequest>,
    /// The texts of the command that advice repeats.
    advice: AdviceTexts,
    /// The command that measures this point alone.
    pub repro: String,
}

impl PreparedPoint {
    /// Builds the point's study from the functions of all libraries.
    pub fn build_course(
        &self,
        common: &CommonArgs,
        machine: &Machine,
        loaded: &[LoadedFunction],
    ) -> Result<(PointLabel, PointRun), Failure> {
        let course = match &self.ready {
            Ok(ReadyPoint { request, target, names, counters, advice, repro }) => {
                let study = run::build_study(common, machine, (target, loaded), request, repro)?;
                let study = study.with_variant_names(names.clone()).with_advice_texts(advice.clone());
                Ok(Box::new(study.with_counters(counters.clone())))
            }
            Err(refused) => Err(failure_fields(refused).map_err(evidence::evidence_failure)?),
        };
        Ok((self.label.clone(), course))
    }
}

/// Assembles and compiles every point, and returns the machine that they were checked against.
pub fn prepare_points(
    common: &CommonArgs,
    asked: Vec<PointRequest>,
    libraries: &mut FunctionLibraries,
) -> Result<(Vec<PreparedPoint>, Machine), Failure> {
    let known = OnceCell::new();
    let machine = || match known.get() {
        Some(machine) => Ok(Machine::clone(machine)),
        None => common.detect_machine().map(|machine| known.get_or_init(|| machine).clone()),
    };
    let mut prepared = Vec::with_capacity(asked.len());
    for PointRequest { label, place, args, advice, refusal } in asked {
        if let Some(refused) = refusal {
            prepared.push(PreparedPoint { label, ready: Err(refused) });
            continue;
        }
        let mut ready = || {
            let request = run::build_request(common, &args)?;
            let FoundTarget { target, names, machine, .. } =
                RunTarget::find_target(common, &args, request.seed, libraries, machine)?;
            let is_function = target.is_function();
            require_needs(common, &args, CommandSubject { has_points: true, is_function })?;
            run::require_runnable(common, &target)?;
            let counters = read_request(&args.events, &machine)?;
            // All points use the same CPU, including those of a resumed file.
            let common = CommonArgs { cpu: Some(machine.target_cpu()), ..common.clone() };
            let repro = repro::format_repro(run::NAME, &args, &common, request.seed);
            Ok(ReadyPoint { request, target, names, counters, advice: advice.clone(), repro })
        };
        let ready = match ready() {
            Ok(ready) => Ok(ready),
            // Other points may not need what this machine lacks.
            Err(Failure::Error(record)) if record.exit == exit::UNAVAILABLE => Err(record),
            Err(failure) => return Err(failure.with_subject(&place)),
        };
        prepared.push(PreparedPoint { label, ready });
    }
    Ok((prepared, machine()?))
}
