//! Names of ports: a letter for what uses them, and a number.
//!
//! Time shows no vendor's numbers. So a name says what the port is for: `A` if general registers
//! use it, `V` vectors, `K` masks, `L` loads, `S` stores, `P` several of these. A number has one
//! character: 0 to 9, then a to z.

use crate::class_findings::ClassFindings;
use crate::class_set::ClassSet;
use cyclescope_instr::forms::target_form::TargetForm;
use std::collections::BTreeMap;

/// A port and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PortLabel {
    users: ClassSet,
    name: String,
}

/// The names of all ports of a map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortLabels {
    labels: Vec<PortLabel>,
}

/// A set of ports, one bit of a number for each.
pub type PortBits = u64;

/// What a form is for: a letter.
pub fn find_unit(target: &TargetForm) -> char {
    let operands = target.operands();
    let has = |is_own: &dyn Fn(&str) -> bool| operands.split(", ").any(is_own);
    let is_memory = |operand: &str| operand.starts_with('m') && operand[1..].starts_with(|c: char| c.is_ascii_digit());
    match () {
        () if operands.split(", ").next().is_some_and(is_memory) => 'S',
        () if has(&is_memory) => 'L',
        () if has(&|operand| operand.starts_with(['x', 'y', 'z']) && operand[1..].starts_with("mm")) => 'V',
        () if has(&|operand| operand.starts_with('k')) => 'K',
        () => 'A',
    }
}

/// Whether a form computes with a memory operand, and does not just move it.
pub fn is_compound(target: &TargetForm) -> bool {
    const PLAIN_MOVES: [&str; 7] = ["mov", "movaps", "movups", "movapd", "movupd", "movdqa", "movdqu"];
    let mnemonic = target.mnemonic();
    let plain = mnemonic.strip_prefix('v').unwrap_or(&mnemonic);
    matches!(find_unit(target), 'L' | 'S') && !PLAIN_MOVES.contains(&plain)
}

/// Whether a form reads memory.
pub fn reads_memory(target: &TargetForm) -> bool {
    target.anatomy().is_some_and(|anatomy| anatomy.inputs.iter().any(|input| input.name == "mem_data"))
}

impl PortLabels {
    /// Names the ports of the first map of each component. `units` has the letter of each class.
    pub fn new(findings: &ClassFindings, units: &[char]) -> PortLabels {
        let mut labels = Vec::new();
        let mut counts: BTreeMap<char, u32> = BTreeMap::new();
        for component in &findings.components {
            let Some(map) = component.solutions.maps.first() else { continue };
            for group in map.groups() {
                let mut own: Vec<char> = group.users.list_classes().map(|class| units[class]).collect();
                own.sort_unstable();
                own.dedup();
                let unit = if own.len() == 1 { own[0] } else { 'P' };
                for _ in 0..group.ports {
                    let count = counts.entry(unit).or_default();
                    let Some(number) = char::from_digit(*count, 36) else { break };
                    labels.push(PortLabel { users: group.users, name: format!("{unit}{number}") });
                    *count += 1;
                }
            }
        }
        // A set has a bit for each port.
        labels.truncate(PortBits::BITS as usize);
        PortLabels { labels }
    }

    /// The ports of a class.
    pub fn list_ports(&self, class: usize) -> PortBits {
        let own = self.labels.iter().enumerate().filter(|(_, label)| label.users.contains(class));
        own.fold(0, |ports, (port, _)| ports | 1 << port)
    }

    /// The names of these ports in short: `A012V3`.
    pub fn describe(&self, ports: PortBits) -> String {
        let names = self.labels.iter().enumerate().filter(|(port, _)| ports >> port & 1 == 1);
        let mut text = String::new();
        let mut before = None;
        for (_, PortLabel { name, .. }) in names {
            let (unit, number) = name.split_at(1);
            match before == Some(unit) {
                true => text.push_str(number),
                false => text.push_str(name),
            }
            before = Some(unit);
        }
        text
    }

    /// Whether one of these ports has a name with one of these letters.
    pub fn has_unit(&self, ports: PortBits, units: &[char]) -> bool {
        let mut named = self.labels.iter().enumerate().filter(|(port, _)| ports >> port & 1 == 1);
        named.any(|(_, label)| label.name.starts_with(units))
    }

    /// The µops with these ports, as tables write them: `1*A0+2*V01`.
    pub fn describe_uops(&self, uops: &[PortBits]) -> String {
        let mut counts: BTreeMap<PortBits, usize> = BTreeMap::new();
        uops.iter().for_each(|ports| *counts.entry(*ports).or_default() += 1);
        let shares: Vec<String> =
            counts.iter().map(|(ports, count)| format!("{count}*{}", self.describe(*ports))).collect();
        shares.join("+")
    }
}

/// Core cycles that the best assignment needs for µops with these ports: the maximum over all unions
/// of sets.
pub fn best_cycles(uops: &[(PortBits, f64)]) -> f64 {
    let mut unions: Vec<PortBits> = vec![0];
    for (ports, _) in uops {
        for index in 0..unions.len() {
            let union = unions[index] | ports;
            if !unions.contains(&union) {
                unions.push(union);
            }
        }
    }
    let cycles = |union: &PortBits| {
        let confined = uops.iter().filter(|(ports, _)| ports & !union == 0);
        confined.map(|(_, count)| count).sum::<f64>() / f64::from(union.count_ones())
    };
    unions.iter().skip(1).map(cycles).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_findings::SharingComponent;
    use crate::map_search::MapSolutions;
    use crate::port_map::PortMap;

    #[test]
    fn names_of_many_ports_can_be_read_back() {
        let map = PortMap::from_port_bits(&[0xfff, 0x800]);
        let solutions = MapSolutions { maps: vec![map], complete: true, ..MapSolutions::default() };
        let (classes, odd) = ((0..2).collect(), ClassSet::default());
        let component = SharingComponent { classes, steered: true, solutions, odd };
        let findings = ClassFindings { components: vec![component], ..ClassFindings::default() };
        let labels = PortLabels::new(&findings, &['A', 'A']);
        let text = labels.describe(labels.list_ports(0));
        assert_eq!(text, "A0123456789ab");
        assert_eq!(crate::port_notation::read_port_labels(&text).map(|names| names.len()), Some(12));
    }

    #[test]
    fn ports_are_named_by_what_uses_them() {
        let map = PortMap::from_port_bits(&[0b0111, 0b0001, 0b1001]);
        let component = SharingComponent {
            classes: (0..3).collect(),
            steered: true,
            solutions: MapSolutions { maps: vec![map], complete: true, ..MapSolutions::default() },
            odd: ClassSet::default(),
        };
        let findings = ClassFindings { components: vec![component], ..ClassFindings::default() };
        let labels = PortLabels::new(&findings, &['A', 'A', 'V']);
        let [all, one, vector] = [0, 1, 2].map(|class| labels.list_ports(class));
        assert_eq!([all, one, vector].map(PortBits::count_ones), [3, 1, 2]);
        assert_eq!(labels.describe(all), "A01P0");
        assert_eq!(labels.describe_uops(&[one, all, one]), "2*P0+1*A01P0");
        assert_eq!(best_cycles(&[(all, 3.0), (one, 2.0)]), 2.0);
        assert_eq!(best_cycles(&[(all, 6.0), (one, 1.0)]), 7.0 / 3.0);
    }
}
