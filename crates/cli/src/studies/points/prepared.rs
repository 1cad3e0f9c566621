//! Points that are ready to be measured: assembled, compiled, checked.

use super::expand::{Asked, at};
use crate::args::Common;
use crate::args::repro;
use crate::input::target::{Found, Libraries, Loaded, Target};
use crate::output::Failure;
use crate::session::evidence;
use crate::studies::run;
use cyclescope::machine::Machine;
use cyclescope::record::{ErrorRecord, exit};
use cyclescope::run::Request;
use cyclescope::study::points::{Course, Label, fields};
use std::cell::OnceCell;

/// A point that is ready to be measured.
pub struct Prepared {
    label: Label,
    /// What is measured, or why that can't be here.
    pub ready: Result<Ready, Box<ErrorRecord>>,
}

/// What is measured, and how.
pub struct Ready {
    request: Request,
    /// What is measured.
    pub target: Target,
    /// The command that measures it alone.
    pub repro: String,
}

impl Prepared {
    /// Its study, with the functions of all libraries.
    pub fn course(
        &self,
        common: &Common,
        machine: &Machine,
        loaded: &[Loaded],
    ) -> Result<(Label, Course), Failure> {
        let course = match &self.ready {
            Ok(Ready { request, target, repro }) => {
                Ok(Box::new(run::study(common, machine, (target, loaded), request, repro)?))
            }
            Err(refused) => Err(fields(refused).map_err(evidence::unwritten)?),
        };
        Ok((self.label.clone(), course))
    }
}

/// Assembles and compiles what each point measures, and returns the machine that it was checked against.
pub fn prepare(
    common: &Common,
    asked: Vec<Asked>,
    libraries: &mut Libraries,
) -> Result<(Vec<Prepared>, Machine), Failure> {
    let known = OnceCell::new();
    let machine = || match known.get() {
        Some(machine) => Ok(Machine::clone(machine)),
        None => common.machine().map(|machine| known.get_or_init(|| machine).clone()),
    };
    let mut prepared = Vec::with_capacity(asked.len());
    for Asked { label, place, args } in asked {
        let mut ready = || {
            let request = run::request(common, &args)?;
            let Found { target, machine, .. } =
                Target::find(common, &args, request.seed, libraries, machine)?;
            run::judge(common, &target, &request)?;
            // All points are of one CPU, also those of a file that is resumed.
            let common = Common { cpu: Some(machine.target_cpu()), ..common.clone() };
            let repro = repro::command(run::NAME, &args, &common, request.seed);
            Ok(Ready { request, target, repro })
        };
        let ready = match ready() {
            Ok(ready) => Ok(ready),
            // Others may have only what this machine has.
            Err(Failure::Error(record)) if record.exit == exit::UNAVAILABLE => Err(record),
            Err(failure) => return Err(at(&place, failure)),
        };
        prepared.push(Prepared { label, ready });
    }
    Ok((prepared, machine()?))
}
