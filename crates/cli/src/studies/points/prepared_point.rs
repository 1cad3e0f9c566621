//! Points that are ready to be measured: assembled, compiled, checked.

use super::expand::{PointRequest, with_place};
use crate::args::CommonArgs;
use crate::args::repro;
use crate::input::target::{FoundTarget, FunctionLibraries, FunctionPair, RunTarget};
use crate::output::Failure;
use crate::session::evidence;
use crate::studies::run;
use cyclescope::machine::Machine;
use cyclescope::record::{ErrorRecord, exit};
use cyclescope::run::RunRequest;
use cyclescope::study::points::{PointLabel, PointRun, failure_fields};
use std::cell::OnceCell;

/// A point that is ready to be measured.
pub struct PreparedPoint {
    label: PointLabel,
    /// What is measured, or why that can't be here.
    pub ready: Result<ReadyPoint, Box<ErrorRecord>>,
}

/// What is measured, and how.
pub struct ReadyPoint {
    request: RunRequest,
    /// What is measured.
    pub target: RunTarget,
    /// The command that measures it alone.
    pub repro: String,
}

impl PreparedPoint {
    /// Its study, with the functions of all libraries.
    pub fn build_course(
        &self,
        common: &CommonArgs,
        machine: &Machine,
        loaded: &[FunctionPair],
    ) -> Result<(PointLabel, PointRun), Failure> {
        let course = match &self.ready {
            Ok(ReadyPoint { request, target, repro }) => {
                Ok(Box::new(run::build_study(common, machine, (target, loaded), request, repro)?))
            }
            Err(refused) => Err(failure_fields(refused).map_err(evidence::evidence_failure)?),
        };
        Ok((self.label.clone(), course))
    }
}

/// Assembles and compiles what each point measures, and returns the machine that it was checked against.
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
    for PointRequest { label, place, args } in asked {
        let mut ready = || {
            let request = run::build_request(common, &args)?;
            let FoundTarget { target, machine, .. } =
                RunTarget::find_target(common, &args, request.seed, libraries, machine)?;
            run::require_runnable(common, &target, &request)?;
            // All points are of one CPU, also those of a file that is resumed.
            let common = CommonArgs { cpu: Some(machine.target_cpu()), ..common.clone() };
            let repro = repro::format_repro(run::NAME, &args, &common, request.seed);
            Ok(ReadyPoint { request, target, repro })
        };
        let ready = match ready() {
            Ok(ready) => Ok(ready),
            // Others may have only what this machine has.
            Err(Failure::Error(record)) if record.exit == exit::UNAVAILABLE => Err(record),
            Err(failure) => return Err(with_place(&place, failure)),
        };
        prepared.push(PreparedPoint { label, ready });
    }
    Ok((prepared, machine()?))
}
