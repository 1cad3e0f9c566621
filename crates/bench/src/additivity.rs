//! Additivity: k more links of an `add` chain cost k more cycles, and renamed registers cost the
//! same.
//!
//! This needs no known costs, so it works on every core. The links add register to register,
//! because some cores fold additions of an immediate.

use crate::lab::{Lab, LoadCondition, SectionResult};
use crate::tally::tolerance;
use cyclescope::run::RunRequest;

/// Chains through RAX that do not depend on RBX, and code before them.
const CHAINS: &[[&str; 2]] = &[
    ["imul rax, rax", ""],
    ["crc32 rax, rcx", ""],
    ["pdep rax, rax, rcx", ""],
    ["lea rax, [rax+rcx]", ""],
    ["popcnt rax, rax", ""],
    ["mov rax, [rax]", "mov rax, r14; xor ebx, ebx; mov [r14], r14"],
];

/// Numbers of added links.
const LINKS: [usize; 4] = [1, 2, 3, 5];

/// Groups of the same snippet with different registers.
const RENAMED: &[&[&str]] = &[
    &["imul rax, rax", "imul rcx, rcx", "imul r9, r9", "imul r13, r13"],
    &["crc32 rax, rbx", "crc32 rdx, rcx", "crc32 r8, r10", "crc32 r12, r11"],
    &["mulps xmm0, xmm1", "mulps xmm3, xmm2", "mulps xmm9, xmm12", "mulps xmm15, xmm14"],
    &["imul rax, rbx; add rax, rcx", "imul r8, rdx; add r8, r9", "imul r11, r12; add r11, r13"],
    &["xor rax, rbx", "xor rdx, rcx", "xor r8, r9", "xor r13, r10"],
];

/// Measurements of each snippet in each condition.
const RUNS: usize = 5;

/// Runs the section.
pub fn check_additivity(lab: &mut Lab) -> SectionResult {
    let (mut right, mut pairs, mut worst) = (0, 0, 0.0_f64);
    let mut count = |excess: Option<f64>, margin: f64| {
        pairs += 1;
        right += usize::from(excess.is_some_and(|excess| excess.abs() <= margin));
        worst = worst.max(excess.map_or(f64::INFINITY, f64::abs));
    };
    println!("{:<44} {:>8} {:>9}   excess over the sum, worst of {RUNS}: k = 1, 2, 3, 5", "chain", "", "alone");
    for load in LoadCondition::BOTH {
        let load_guard = lab.start_load(load)?;
        for [chain, init] in CHAINS {
            let Some(alone) = measure_costs(lab, chain, init)? else { continue };
            let base = mean_of_given(&alone);
            let mut cells = String::new();
            for links in LINKS {
                let longer = format!("{chain}{}", "; add rax, rbx".repeat(links));
                let mut largest = Some(0.0_f64);
                for cost in measure_costs(lab, &longer, init)?.unwrap_or_default() {
                    let excess = cost.zip(base).map(|(cost, base)| cost - base - links as f64);
                    count(excess, tolerance(base.unwrap_or(0.0) + links as f64));
                    largest = largest.zip(excess).map(|(a, b)| if a.abs() > b.abs() { a } else { b });
                }
                cells.push_str(&largest.map_or("     none".to_string(), |excess| format!(" {excess:+8.4}")));
            }
            println!("{chain:<44} {:>8} {:>9.4}  {cells}", load.name(), base.unwrap_or(f64::NAN));
        }
        drop(load_guard);
    }
    let figure = format!("{right} of {pairs} within the tolerance, worst excess {worst:.4}");
    lab.record_demand("k chained adds cost k more cycles (k = 1, 2, 3, 5)", Some(right == pairs), figure);
    check_renaming(lab)
}

fn check_renaming(lab: &mut Lab) -> SectionResult {
    let (mut right, mut groups, mut worst) = (0, 0, 0.0_f64);
    println!("\n{:<44} {:>8}   mean of {RUNS} in each set of registers", "chain", "spread");
    for group in RENAMED {
        let mut means = Vec::new();
        for code in *group {
            means.extend(measure_costs(lab, code, "")?.as_deref().and_then(mean_of_given));
        }
        let Some(low) = means.iter().copied().reduce(f64::min) else { continue };
        let spread = means.iter().copied().fold(low, f64::max) - low;
        groups += 1;
        right += usize::from(means.len() == group.len() && spread <= tolerance(low));
        worst = worst.max(spread);
        let cells: Vec<String> = means.iter().map(|mean| format!("{mean:.4}")).collect();
        println!("{:<44} {spread:>8.4}   {}", group[0], cells.join("  "));
    }
    let figure = format!("{right} of {groups} groups, largest spread {worst:.4}");
    lab.record_demand("renaming registers changes nothing", Some(right == groups), figure);
    Ok(())
}

/// The cost in several measurements, `None` for each without a number. `None` in place of all if
/// the CPU cannot run it.
fn measure_costs(lab: &mut Lab, code: &str, init: &str) -> SectionResult<Option<Vec<Option<f64>>>> {
    let Some(snippet) = lab.assemble_snippet(code, init)? else { return Ok(None) };
    let mut costs = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let run = lab.measure(&snippet, &RunRequest::default())?;
        costs.push(run.estimate().map(|estimate| estimate.cost.value));
    }
    Ok(Some(costs))
}

/// The mean of the given numbers; `None` if all are missing.
fn mean_of_given(costs: &[Option<f64>]) -> Option<f64> {
    let given: Vec<f64> = costs.iter().flatten().copied().collect();
    (!given.is_empty()).then(|| cyclescope::statistics::mean(&given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_covers_the_given_numbers() {
        assert_eq!(mean_of_given(&[Some(1.0), None, Some(3.0)]), Some(2.0));
        assert_eq!(mean_of_given(&[None]), None);
    }

    #[test]
    fn every_snippet_assembles() {
        let renamed = RENAMED.iter().flat_map(|group| group.iter());
        for code in CHAINS.iter().flatten().chain(renamed) {
            cyclescope::asm::parse_assembly(code).unwrap_or_else(|error| panic!("{code}: {error}"));
        }
    }
}
