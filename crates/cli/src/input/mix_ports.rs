//! The ports of a mix's forms, from a result file of `ports`.

use super::slot_table::require_same_machine;
use crate::output::Failure;
use cyclescope::input::{self, InputKind};
use cyclescope::machine::Machine;
use cyclescope::record::MixPartRecord;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::rows::instr_table::InstrTable;
use cyclescope::study::ports::mix_ports::{MixLimitation, MixedForm};
use cyclescope::study::ports::ports_comparison::PortsTable;
use std::path::Path;

const REMEDY: &str = "name a file that `cyclescope ports --out` wrote on this machine";

/// The limits of a mix by ports and slots, as a result file of `ports` on this machine has them.
pub fn find_port_limits(
    path: &Path,
    targets: &[TargetForm],
    parts: &[MixPartRecord],
    machine: &Machine,
) -> Result<MixLimitation, Failure> {
    let name = path.display().to_string();
    let bytes = input::read_input(path, InputKind::Results).map_err(|bad| Failure::from_input(&bad, REMEDY))?;
    let InstrTable { machine: head, .. } =
        InstrTable::read(&bytes).map_err(|error| Failure::from_file(&name, error))?;
    let table = PortsTable::read(&bytes).map_err(|error| Failure::from_file(&name, error))?;
    let Some(table) = table else {
        return Err(Failure::usage(format!("{name} has no ports of instructions"), Some(REMEDY)));
    };
    require_same_machine(&name, head.as_ref(), machine, REMEDY)?;
    // The ports of a form do not depend on its constant, as far as a file knows.
    let operands: Vec<String> = targets.iter().map(|target| target.form.describe_operands()).collect();
    let forms: Vec<MixedForm> =
        parts.iter().zip(&operands).map(|(part, operands)| MixedForm { part, operands }).collect();
    Ok(table.limit_mix(&forms))
}
