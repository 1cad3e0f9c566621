//! Prints the machine's facts, and which requirements were met.

use crate::lab::{Demand, Lab};
use cyclescope::machine::Machine;
use std::process::ExitCode;

/// Prints the machine's facts and a line for each requirement.
pub fn print_report(lab: &Lab) {
    println!("\n== machine\n");
    for (name, value) in machine_facts(&lab.machine, lab.cpu) {
        println!("{name:<14}{value}");
    }
    println!("\n== demands\n");
    for demand in &lab.demands {
        println!("{}", format_demand(demand));
    }
}

/// Prints the missed requirements as the last lines. Returns the program's exit code.
pub fn print_missed(demands: &[Demand]) -> ExitCode {
    let (text, code) = format_missed(demands);
    print!("\n{text}");
    ExitCode::from(code)
}

/// The last lines, and the exit code: 1 if a requirement was missed. A requirement that this
/// machine cannot decide was not missed.
fn format_missed(demands: &[Demand]) -> (String, u8) {
    let missed: Vec<String> =
        demands.iter().filter(|demand| demand.met == Some(false)).map(|demand| format_demand(demand) + "\n").collect();
    let decided = demands.iter().filter(|demand| demand.met.is_some()).count();
    let text = format!("{} of {decided} requirements are missed\n{}", missed.len(), missed.concat());
    (text, u8::from(!missed.is_empty()))
}

fn format_demand(demand: &Demand) -> String {
    let verdict = match demand.met {
        Some(true) => "PASS",
        Some(false) => "MISS",
        None => "UNKNOWN",
    };
    format!("{verdict:<8}{}: {}", demand.text, demand.figure)
}

/// Facts that distinguish this machine from another, by name.
fn machine_facts(machine: &Machine, cpu: usize) -> Vec<(&'static str, String)> {
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_string());
    let hypervisor = machine.hypervisor.as_ref();
    let tsc_rate = machine.tsc.sources.iter().find_map(|source| {
        let rate = source.rate.known()?;
        Some(format!("{:.3} MHz by {}", rate.to_megahertz(), source.name))
    });
    vec![
        ("processor", known(machine.cpu.brand.known().cloned())),
        ("core", machine.cpu.name()),
        ("family/model", format!("{:#x}/{:#x}", machine.cpu.family, machine.cpu.model)),
        ("microcode", known(machine.cpu.microcode.known().map(|revision| format!("{revision:#x}")))),
        ("CPU", cpu.to_string()),
        ("hypervisor", hypervisor.map_or("none reported by CPUID".to_string(), |found| found.name.clone())),
        ("TSC", format!("invariant: {}, rate: {}", machine.tsc.invariant, known(tsc_rate))),
        ("kernel", machine.kernel.clone()),
        ("load", known(read_load())),
    ]
}

/// The number of programs that wanted to run, including this one and its busy loop: "idle" means
/// only that this program adds no load.
fn read_load() -> Option<String> {
    let averages = std::fs::read_to_string("/proc/loadavg").ok()?;
    let mut numbers = averages.split_whitespace();
    Some(format!("{} over the last minute, {} over five", numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(met: Option<bool>) -> Demand {
        Demand { text: "costs".to_string(), met, figure: "40 of 40".to_string() }
    }

    #[test]
    fn a_missed_requirement_is_named_last_and_exits_with_1() {
        let met = [demand(Some(true)), demand(None)];
        assert_eq!(format_missed(&met), ("0 of 1 requirements are missed\n".to_string(), 0));
        assert_eq!(format_missed(&[]).1, 0);
        let missed = [demand(Some(true)), demand(Some(false)), demand(None)];
        let text = "1 of 2 requirements are missed\nMISS    costs: 40 of 40\n";
        assert_eq!(format_missed(&missed), (text.to_string(), 1));
    }

    #[test]
    fn a_requirement_is_one_line() {
        assert_eq!(format_demand(&demand(Some(true))), "PASS    costs: 40 of 40");
        assert_eq!(format_demand(&demand(Some(false))), "MISS    costs: 40 of 40");
        assert_eq!(format_demand(&demand(None)), "UNKNOWN costs: 40 of 40");
    }
}
