//! What limits a mix: the best assignment of its µops to the ports of a result file.

use crate::classes_record::ClassRecord;
use crate::port_assignment::{PortAssignment, PortLimit};
use crate::port_labels::PortBits;
use crate::port_notation::{read_port_labels, read_uops};
use crate::ports_comparison::PortsTable;
use crate::ports_row::PortsRow;
use cyclescope_instr::experiments::slot_judgement::SlotVerdict;
use cyclescope_measure::result::mix_record::{
    MixBoundRecord, MixPartPorts, MixPartRecord, MixPortsRecord, PortLoadRecord, SLOTS_RESOURCE,
};

/// What a file of ports says about a mix.
#[derive(Debug, Clone, PartialEq)]
pub struct MixLimitation {
    /// The best assignment.
    pub ports: MixPortsRecord,
    /// Lower limits of the cost, the largest first. Empty if the ports of a form are not known.
    pub bounds: Vec<MixBoundRecord>,
}

/// A form of a mix, as a file of ports knows it.
#[derive(Debug, Clone, Copy)]
pub struct MixedForm<'a> {
    /// Its name and number of copies.
    pub part: &'a MixPartRecord,
    /// Its operands without the value of a constant.
    pub operands: &'a str,
}

/// Ports by name, each with a bit of its own.
#[derive(Default)]
struct NamedPorts {
    names: Vec<String>,
}

impl NamedPorts {
    /// The bit of a port. `None` if there are too many.
    fn find_or_add(&mut self, name: String) -> Option<PortBits> {
        let port = match self.names.iter().position(|known| *known == name) {
            Some(port) => port,
            None if self.names.len() == PortBits::BITS as usize => return None,
            None => {
                self.names.push(name);
                self.names.len() - 1
            }
        };
        Some(1 << port)
    }

    /// Reads the µops of a row: the ports of each, and their number.
    fn read_uops(&mut self, text: &str) -> Option<Vec<(PortBits, u64)>> {
        let uops = read_uops(text, read_port_labels)?;
        let group = |uops: crate::port_notation::NamedUops| {
            let ports = uops.ports.into_iter().map(|name| self.find_or_add(name));
            let ports = ports.collect::<Option<Vec<PortBits>>>()?.into_iter().fold(0, |all, port| all | port);
            Some((ports, uops.count))
        };
        uops.into_iter().map(group).collect()
    }

    /// The names of these ports, as rows write them.
    fn describe(&self, ports: PortBits) -> String {
        let mut names: Vec<&str> =
            (0..self.names.len()).filter(|port| ports >> port & 1 == 1).map(|port| self.names[port].as_str()).collect();
        names.sort_unstable();
        let mut text = String::new();
        let mut before = None;
        for (unit, number) in names.into_iter().map(|name| name.split_at(1)) {
            text.push_str(if before == Some(unit) { "" } else { unit });
            text.push_str(number);
            before = Some(unit);
        }
        text
    }
}

impl PortsTable {
    /// Finds the best assignment of the µops of a mix.
    pub fn limit_mix(&self, forms: &[MixedForm]) -> MixLimitation {
        let mut named = NamedPorts::default();
        let (mut uops, mut slots): (Vec<(PortBits, u64)>, u64) = (Vec::new(), 0);
        let mut parts = Vec::new();
        for MixedForm { part, operands } in forms {
            let is_own = |row: &&PortsRow| row.code == part.code && row.operands == *operands;
            let row = self.rows.iter().rfind(is_own);
            let (own, part_ports) = match (row, self.find_class(&part.form, &part.code)) {
                (None, Some(class)) => read_class(part, class, &mut named),
                _ => read_part(part, row, &mut named),
            };
            parts.push(part_ports);
            if let Some(PartUops { uops: own, slots: own_slots }) = own {
                uops.extend(own.into_iter().map(|(ports, count)| (ports, count.saturating_mul(part.count as u64))));
                slots = u64::saturating_add(slots, own_slots.saturating_mul(part.count as u64));
            }
        }
        let is_known = parts.iter().all(|part| part.ports.is_some());
        let width = self.width();
        let assignment = if is_known && width > 0.0 { PortAssignment::find(&uops) } else { None };
        let Some(assignment) = assignment else {
            let ports = MixPortsRecord { parts, ..MixPortsRecord::default() };
            return MixLimitation { ports, bounds: Vec::new() };
        };
        let by_ports = |limit: &PortLimit| {
            MixBoundRecord::new(&named.describe(limit.ports), limit.uops as f64, f64::from(limit.ports.count_ones()))
        };
        let mut bounds: Vec<MixBoundRecord> = assignment.limits.iter().map(by_ports).collect();
        bounds.push(MixBoundRecord::new(SLOTS_RESOURCE, slots as f64, width));
        bounds.sort_by(|one, other| other.cycles.total_cmp(&one.cycles));
        let mut loads: Vec<PortLoadRecord> = assignment
            .loads
            .iter()
            .map(|(port, uops)| PortLoadRecord { port: named.names[*port].clone(), uops: *uops })
            .collect();
        loads.sort_by(|one, other| one.port.cmp(&other.port));
        let ports = MixPortsRecord { cycles: Some(bounds[0].cycles), binds: list_binding(&bounds), loads, parts };
        MixLimitation { ports, bounds }
    }
}

/// The µops of a part that has no row: it is a form of this class, measured beside those of the rows.
fn read_class(part: &MixPartRecord, class: &ClassRecord, named: &mut NamedPorts) -> (Option<PartUops>, MixPartPorts) {
    let (form, solutions) = (part.form.clone(), class.solutions);
    let text = format!("1*{}", class.ports);
    match named.read_uops(&text) {
        Some(uops) => {
            (Some(PartUops { uops, slots: 1 }), MixPartPorts { form, ports: Some(text), solutions, why: None })
        }
        None => {
            let why = Some("no ports explain all mixes of its class".to_string());
            (None, MixPartPorts { form, ports: None, solutions, why })
        }
    }
}

/// The resources that need as long as the first one, but for rounding.
fn list_binding(bounds: &[MixBoundRecord]) -> Vec<String> {
    const ROUNDING: f64 = 1e-9;
    let least = bounds[0].cycles * (1.0 - ROUNDING);
    bounds.iter().filter(|bound| bound.cycles >= least).map(|bound| bound.resource.clone()).collect()
}

/// The µops and slots of a copy.
struct PartUops {
    uops: Vec<(PortBits, u64)>,
    slots: u64,
}

/// What a row says about a part of a mix.
fn read_part(part: &MixPartRecord, row: Option<&PortsRow>, named: &mut NamedPorts) -> (Option<PartUops>, MixPartPorts) {
    let refuse = |why: &str| {
        let (form, why) = (part.form.clone(), Some(why.to_string()));
        (None, MixPartPorts { form, ports: None, solutions: 0, why })
    };
    let Some(row) = row else { return refuse("the file lacks it") };
    let Some(ports) = &row.ports else { return refuse(&row.why) };
    let slots = row.slots.as_ref().filter(|slots| slots.verdict == SlotVerdict::Exact).and_then(|slots| slots.whole);
    let (Some(uops), Some(slots)) = (named.read_uops(ports), slots) else {
        return refuse("the file has no certain slots of it, or writes its ports in an unknown way");
    };
    let found =
        MixPartPorts { form: part.form.clone(), ports: Some(ports.clone()), solutions: row.solutions, why: None };
    (Some(PartUops { uops, slots: slots as u64 }), found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes_record::ClassesRecord;
    use crate::ports_row::{PortsVerdict, RowStart};
    use cyclescope_core::statistics::Interval;
    use cyclescope_core::unit::Unit;
    use cyclescope_instr::rows::dispatch_slots::DispatchSlots;
    use cyclescope_measure::result::record::Quantity;

    /// A file of forms with these ports and slots, on a core of six slots per cycle.
    fn build_table(forms: &[(&str, &str, usize)]) -> PortsTable {
        let row = |(code, ports, slots): &(&str, &str, usize)| {
            let count = Quantity::new(Interval::with_margin(*slots as f64, 0.01), Unit::Slots);
            let (verdict, whole) = (SlotVerdict::Exact, Some(*slots));
            let slots = DispatchSlots { count, verdict, whole, fillers: Vec::new(), why: None };
            let start = RowStart { slots: Some(slots), ..RowStart::named(code) };
            let ports = (!ports.is_empty()).then(|| ports.to_string());
            let why = "it is odd".to_string();
            PortsRow { ports, solutions: 1, ..PortsRow::without_ports(start, PortsVerdict::Exact, why) }
        };
        let class = ClassRecord {
            ports: "A23".to_string(),
            count: 2,
            forms: vec!["rorx".to_string(), "rorx (evex)".to_string()],
            solutions: 1,
            alias: None,
        };
        let classes = ClassesRecord { width: 6.0, classes: vec![class], ..ClassesRecord::default() };
        PortsTable::from_records(forms.iter().map(row).collect(), classes)
    }

    fn limit(table: &PortsTable, forms: &[(&str, usize)]) -> MixLimitation {
        let part = |(code, count): &(&str, usize)| MixPartRecord {
            code: code.to_string(),
            form: code.to_lowercase(),
            count: *count,
        };
        let parts: Vec<MixPartRecord> = forms.iter().map(part).collect();
        let forms: Vec<MixedForm> = parts.iter().map(|part| MixedForm { part, operands: "" }).collect();
        table.limit_mix(&forms)
    }

    #[test]
    fn the_binding_resource_is_named() {
        let table = build_table(&[("ADD", "1*A0123", 1), ("IMUL", "1*A1", 1), ("ADDM", "1*A0123+1*L01", 2)]);
        let found = limit(&table, &[("IMUL", 2), ("ADD", 4), ("ADDM", 2)]);
        let bounds: Vec<(&str, f64)> =
            found.bounds.iter().map(|bound| (bound.resource.as_str(), bound.cycles)).collect();
        assert_eq!(bounds, [("A0123", 2.0), ("slots", 10.0 / 6.0), ("L01", 1.0)]);
        assert_eq!((found.ports.cycles, found.ports.binds), (Some(2.0), vec!["A0123".to_string()]));
        let loads: Vec<String> =
            found.ports.loads.iter().map(|load| format!("{} {:.1}", load.port, load.uops)).collect();
        assert_eq!(loads, ["A0 2.0", "A1 2.0", "A2 2.0", "A3 2.0", "L0 1.0", "L1 1.0"]);
        let multiplied = limit(&table, &[("IMUL", 5), ("ADD", 4)]).ports;
        assert_eq!((multiplied.cycles, multiplied.binds), (Some(5.0), vec!["A1".to_string()]));
        assert_eq!(limit(&table, &[("IMUL", 2), ("ADDM", 4)]).ports.binds, ["A1", "L01"], "both take 2 core cycles");
        // A form that was measured beside others has no row, but a class.
        let shifted = limit(&table, &[("RORX", 6), ("ADD", 2)]).ports;
        assert_eq!((shifted.cycles, shifted.binds), (Some(3.0), vec!["A23".to_string()]));
        let slots = build_table(&[("ADD", "1*A0123", 3)]);
        assert_eq!(limit(&slots, &[("ADD", 4)]).ports.binds, ["slots"]);
    }

    #[test]
    fn a_form_without_ports_leaves_no_answer() {
        let table = build_table(&[("ADD", "1*A0123", 1), ("ODD", "", 1), ("BAD", "1*(", 1)]);
        for (form, why) in [("ODD", "it is odd"), ("NONE", "lacks"), ("BAD", "unknown way")] {
            let found = limit(&table, &[("ADD", 1), (form, 1)]);
            assert_eq!((found.ports.cycles, found.bounds.len()), (None, 0));
            let [add, other] = &found.ports.parts[..] else { panic!("two parts") };
            assert_eq!((add.ports.as_deref(), other.ports.as_deref()), (Some("1*A0123"), None));
            assert!(other.why.as_ref().is_some_and(|text| text.contains(why)), "{other:?}");
        }
    }
}
