//! What everything ran on, and which demands were met.

use crate::lab::{Demand, Lab};
use cyclescope::machine::Machine;

/// Prints the machine's facts and a line for each demand.
pub fn print(lab: &Lab) {
    println!("\n== machine\n");
    for (name, value) in facts(&lab.machine, lab.cpu) {
        println!("{name:<14}{value}");
    }
    println!("\n== demands\n");
    for demand in &lab.demands {
        println!("{}", line(demand));
    }
}

fn line(demand: &Demand) -> String {
    let verdict = match demand.met {
        Some(true) => "PASS",
        Some(false) => "MISS",
        None => "UNKNOWN",
    };
    format!("{verdict:<8}{}: {}", demand.text, demand.figure)
}

/// What distinguishes this machine from another, by name.
fn facts(machine: &Machine, cpu: usize) -> Vec<(&'static str, String)> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_string());
    let hypervisor = machine.hypervisor.as_ref();
    let told = machine.tsc.sources.iter().find_map(|source| {
        let rate = source.rate.known()?;
        Some(format!("{:.3} MHz by {}", rate.megahertz(), source.name))
    });
    vec![
        ("processor", known(machine.cpu.brand.known().cloned())),
        ("core", machine.cpu.name()),
        ("family/model", format!("{:#x}/{:#x}", machine.cpu.family, machine.cpu.model)),
        ("microcode", known(machine.cpu.microcode.known().map(|revision| format!("{revision:#x}")))),
        ("CPU", cpu.to_string()),
        (
            "hypervisor",
            hypervisor.map_or("none that CPUID admits to".to_string(), |found| found.name.clone()),
        ),
        ("TSC", format!("invariant: {}, rate: {}", machine.tsc.invariant, known(told))),
        ("kernel", machine.kernel.clone()),
        ("load", known(load())),
    ]
}

/// How many programs wanted to run, this one and its busy loop included: "idle" means idle of ours alone.
fn load() -> Option<String> {
    let averages = std::fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = averages.split_whitespace();
    Some(format!("{} over the last minute, {} over five", numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_is_one_line() {
        let demand = |met| Demand { text: "costs".to_string(), met, figure: "40 of 40".to_string() };
        assert_eq!(line(&demand(Some(true))), "PASS    costs: 40 of 40");
        assert_eq!(line(&demand(Some(false))), "MISS    costs: 40 of 40");
        assert_eq!(line(&demand(None)), "UNKNOWN costs: 40 of 40");
    }
}
