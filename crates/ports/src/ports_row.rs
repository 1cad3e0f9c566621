//! The line of a form, of kind `ports`.

use crate::deciding_mix::DecidingMix;
use cyclescope_core::unit::Unit;
use cyclescope_instr::rows::dispatch_slots::DispatchSlots;
use cyclescope_measure::result::caveat::{Caveat, CaveatKind};
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// How certain the ports of a form are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortsVerdict {
    /// One answer explains all mixes.
    Exact,
    /// Several answers do.
    Several,
    /// It shares something that is no port.
    Shared,
    /// It takes groups of slots of its own, as microcode does.
    Microcoded,
    /// Time can't tell.
    Untold,
    /// No answer explains all mixes.
    Odd,
}

/// Ports that a form keeps busy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortResource {
    /// The names of the ports.
    pub set: String,
    /// Number of ports.
    pub ports: u32,
    /// Port cycles of a copy that can be spent only there.
    pub cycles: Quantity,
    /// The published names of the ports, if a published map was given and decides them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

impl PortResource {
    pub(crate) fn new(set: String, ports: u32, cycles: Quantity) -> PortResource {
        PortResource { set, ports, cycles, alias: None }
    }
}

/// The ports of one form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortsRow {
    /// The name in the instruction database.
    pub code: String,
    /// The mnemonic in lower case.
    pub mnemonic: String,
    /// The explicit operands.
    pub operands: String,
    /// The encoding.
    pub encoding: String,
    /// The executor that ran the code.
    pub executor: String,
    /// Core cycles of a copy alone. Null if it can't be timed in mixes.
    pub cycles: Quantity,
    /// The dispatch slots of a copy. Null if they were not counted.
    pub slots: Option<DispatchSlots>,
    /// The first form of its class: all forms of a class have one µop and the same ports. Null
    /// without a class.
    pub class: Option<String>,
    /// Ports that it keeps busy: facts.
    pub resources: Vec<PortResource>,
    /// Its µops and their ports, such as `1*A0123`: the simplest answer that explains the mixes. Null
    /// without one.
    pub ports: Option<String>,
    /// The same with published names, if a published map was given and decides them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Number of answers that explain the mixes; 3 means three or more.
    pub solutions: usize,
    /// How certain they are.
    pub verdict: PortsVerdict,
    /// The reason, with the mixes that decided it.
    pub why: String,
    /// The mixes that decided it; only if an explanation was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<DecidingMix>,
    /// Reservations.
    pub caveats: Vec<Caveat>,
    /// The command that repeats it.
    pub repro: String,
}

/// A form's key, figures alone, and the command that repeats it.
pub(crate) struct RowStart {
    pub(crate) code: String,
    pub(crate) mnemonic: String,
    pub(crate) operands: String,
    pub(crate) encoding: String,
    pub(crate) executor: String,
    pub(crate) cycles: Option<Quantity>,
    pub(crate) slots: Option<DispatchSlots>,
    pub(crate) repro: String,
}

#[cfg(test)]
impl RowStart {
    pub(crate) fn named(code: &str) -> RowStart {
        let text = String::new;
        RowStart {
            code: code.to_string(),
            mnemonic: text(),
            operands: text(),
            encoding: text(),
            executor: text(),
            cycles: None,
            slots: None,
            repro: text(),
        }
    }
}

impl PortsRow {
    /// A row without ports, for this reason.
    pub(crate) fn without_ports(start: RowStart, verdict: PortsVerdict, why: String) -> PortsRow {
        let RowStart { code, mnemonic, operands, encoding, executor, cycles, slots, repro } = start;
        PortsRow {
            code,
            mnemonic,
            operands,
            encoding,
            executor,
            cycles: cycles.unwrap_or(Quantity::refused(Unit::CoreCycles)),
            slots,
            class: None,
            resources: Vec::new(),
            ports: None,
            alias: None,
            solutions: 0,
            verdict,
            why,
            mixes: Vec::new(),
            caveats: Vec::new(),
            repro,
        }
    }

    /// Whether a quiet machine could have timed it.
    pub fn is_untimed(&self) -> bool {
        self.caveats.iter().any(|caveat| caveat.code == CaveatKind::Noisy)
    }

    /// Its name in texts.
    pub fn name(&self) -> String {
        format!("{} {}", self.mnemonic, self.operands).trim_end().to_string()
    }
}

/// Whether more forms lack a time for want of a quiet machine than have one.
pub(crate) fn most_are_untimed(rows: &[PortsRow]) -> bool {
    let timed = rows.iter().filter(|row| row.cycles.value.is_some()).count();
    rows.iter().filter(|row| row.is_untimed()).count() > timed
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::statistics::Interval;

    #[test]
    fn a_survey_falls_short_if_most_forms_lack_a_time() {
        let row = |name| PortsRow::without_ports(RowStart::named(name), PortsVerdict::Untold, "a reason".to_string());
        let cycles = Quantity::new(Interval::with_margin(1.0, 0.1), Unit::CoreCycles);
        let timed = PortsRow { cycles, ..row("timed") };
        let noisy = Caveat { code: CaveatKind::Noisy, text: "it had no undisturbed round".to_string() };
        let untimed = PortsRow { caveats: vec![noisy], ..row("untimed") };
        // A branch is never timed.
        let rows = [timed, row("branch"), row("branch"), untimed.clone()];
        assert!(!most_are_untimed(&rows) && most_are_untimed(&[&rows[..], &[untimed]].concat()));
    }
}
