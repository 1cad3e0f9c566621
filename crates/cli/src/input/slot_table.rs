//! Dispatch slots from a result file of `instr`.

use crate::output::Failure;
use cyclescope::input::{self, InputKind};
use cyclescope::machine::Machine;
use cyclescope::result::container::to_json_value;
use cyclescope::study::describe_processor_changes;
use cyclescope::study::instr::rows::instr_row::InstrRow;
use cyclescope::study::instr::rows::instr_table::InstrTable;
use cyclescope::study::instr::session::LinkCostsRecord;
use serde_json::Value;
use std::path::Path;

const REMEDY: &str = "name a file from `cyclescope instr --out`";

/// The slots in a file.
pub struct SlotTable {
    /// The file's name.
    pub name: String,
    /// The line of kind `machine`.
    pub machine: Option<Value>,
    /// The rows, some without slots.
    pub rows: Vec<InstrRow>,
    /// Slots per core cycle.
    pub width: f64,
}

impl SlotTable {
    /// Reads a file. Fails if it has no dispatch width.
    pub fn read(path: &Path) -> Result<SlotTable, Failure> {
        let name = path.display().to_string();
        let bytes = input::read_input(path, InputKind::Results).map_err(|bad| Failure::from_input(&bad, REMEDY))?;
        let InstrTable { machine, rows, .. } =
            InstrTable::read(&bytes).map_err(|error| Failure::from_file(&name, error))?;
        let gauge = machine.as_ref().map(|head| head["gauge"].clone());
        let gauge = gauge.and_then(|gauge| serde_json::from_value::<LinkCostsRecord>(gauge).ok());
        let width = gauge.filter(|gauge| gauge.fillers.is_possible()).and_then(|gauge| gauge.fillers.width());
        match width {
            Some(width) => Ok(SlotTable { name, machine, rows, width }),
            None => Err(Failure::usage(format!("{name} has no dispatch width"), Some(REMEDY))),
        }
    }

    /// Fails if the file is of another machine than this one.
    pub fn require_machine(&self, machine: &Machine) -> Result<(), Failure> {
        let remedy = "name a file that `cyclescope instr --out` wrote on this machine";
        require_same_machine(&self.name, self.machine.as_ref(), machine, remedy)
    }
}

/// Fails if a file with this first line has the results of another machine than this one.
pub fn require_same_machine(name: &str, head: Option<&Value>, machine: &Machine, remedy: &str) -> Result<(), Failure> {
    let Some(head) = head else {
        let text = format!("{name} has no first line of kind machine, so it may be that of another one");
        return Err(Failure::usage(text, Some(remedy)));
    };
    let changes = describe_processor_changes(head, &to_json_value(machine).expect("facts are plain data"));
    match changes.is_empty() {
        true => Ok(()),
        false => {
            let text = format!("{name} has the results of another machine: {}", changes.join("; "));
            Err(Failure::usage(text, Some(remedy)))
        }
    }
}
