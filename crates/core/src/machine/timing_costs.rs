//! Costs of the timing instructions, which show whether a hypervisor or the kernel intercepts them;
//! and the proof that LFENCE waits.
//!
//! A cost is the median over a warm loop of the instruction alone, minus an empty loop, in TSC
//! ticks.
//!
//! Limits: good enough to distinguish 30 from 3 000; use a measurement in core cycles for more.

use std::arch::asm;

use serde::{Deserialize, Serialize};

use super::fact::Fact;
use super::features::CpuFeatures;
use super::tsc::TscFacts;
use super::tsc_read::{lfence_rdtsc, rdtsc, rdtscp};
use crate::error::Unavailable;

/// Costs of the timing instructions, in TSC ticks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimingCosts {
    /// One CPUID (leaf 0).
    pub cpuid: Fact<f64>,
    /// One RDTSC in a series.
    pub rdtsc: f64,
    /// One RDTSCP in a series.
    pub rdtscp: Fact<f64>,
    /// One LFENCE; RDTSC in a series.
    pub lfence_rdtsc: f64,
    /// Whether LFENCE waits for earlier instructions, by experiment.
    pub lfence: LfenceProof,
}

/// A CPUID that stays in the processor takes 25 to 250 ticks. One that exits takes 1 000 and more
/// (12 970 core cycles on a Zen 4 VM).
pub const CPUID_EXITS_ABOVE: f64 = 1000.0;
/// A TSC read takes 10 to 80 ticks. One that exits or is emulated takes 500 and more.
pub(crate) const TSC_EXITS_ABOVE: f64 = 500.0;

impl TimingCosts {
    /// Measures all costs in a few milliseconds.
    pub(crate) fn measure(tsc: &TscFacts, features: &CpuFeatures) -> Result<TimingCosts, Unavailable> {
        tsc.require_readable()?;
        // SAFETY (of all reads below): `require` checked that RDTSC does not fault; RDTSCP runs
        // only if the features include it.
        let rdtscp = if features.has_rdtscp() {
            Fact::Known(measure_cost(16, || {
                // SAFETY: see above.
                unsafe { rdtscp() };
            }))
        } else {
            Fact::unknown("the processor has no RDTSCP")
        };
        Ok(TimingCosts {
            cpuid: measure_cpuid_cost(features),
            rdtsc: measure_cost(16, || {
                // SAFETY: see above.
                unsafe { rdtsc() };
            }),
            rdtscp,
            lfence_rdtsc: measure_cost(16, || {
                // SAFETY: see above.
                unsafe { lfence_rdtsc() };
            }),
            lfence: prove_lfence(),
        })
    }

    /// Whether CPUID exits to a hypervisor.
    pub fn cpuid_exits(&self) -> Option<bool> {
        self.cpuid.known().map(|&ticks| ticks > CPUID_EXITS_ABOVE)
    }

    /// Whether reading the TSC exits the processor.
    pub fn tsc_exits(&self) -> bool {
        self.rdtsc > TSC_EXITS_ABOVE
    }
}

/// An empty feature list means that CPUID could not run
/// ([`super::cpuid_leaves::CpuidLeaves::read`]).
fn measure_cpuid_cost(features: &CpuFeatures) -> Fact<f64> {
    if !features.has(iced_x86::CpuidFeature::CPUID) {
        return Fact::unknown("CPUID faults in this process");
    }
    Fact::Known(measure_cost(1, || {
        std::hint::black_box(raw_cpuid::native_cpuid::cpuid_count(0, 0));
    }))
}

const COST_REPETITIONS: usize = 31;

/// Median ticks of one `run` in a series of `count`, minus the median of an empty bracket.
fn measure_cost(count: u32, run: impl Fn()) -> f64 {
    let bracket = |rounds: u32| {
        median_of_runs(COST_REPETITIONS, || {
            // SAFETY: only called after `TscFacts::require`.
            let start = unsafe { lfence_rdtsc() };
            for _ in 0..rounds {
                run();
            }
            // SAFETY: as above.
            unsafe { lfence_rdtsc() }.wrapping_sub(start)
        })
    };
    bracket(1);
    (bracket(count) as f64 - bracket(0) as f64) / f64::from(count)
}

fn median_of_runs(count: usize, measure: impl Fn() -> u64) -> u64 {
    let mut found: Vec<u64> = (0..count).map(|_| measure()).collect();
    found.sort_unstable();
    found[count / 2]
}

/// Experiment on LFENCE: a chain of multiplications before a TSC read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LfenceProof {
    /// Ticks that 128 more multiplications add to a very long chain: their real cost.
    pub chain: f64,
    /// Ticks that they add before LFENCE; RDTSC.
    pub fenced: f64,
    /// Ticks that they add before a bare RDTSC. Less than `chain` if RDTSC overtakes them.
    pub bare: f64,
    /// Whether LFENCE waits for the chain: `fenced` is at least 70 % of `chain`.
    pub waits: bool,
}

/// A chain this long exceeds any reorder buffer, so a bare read can overtake only its end.
const LONG_CHAIN_BLOCKS: u32 = 64;

/// Runs the experiment. A chain of 128 multiplications (a few hundred core cycles) fits into a
/// reorder buffer. A read that does not wait completes before the chain ends, so one or two such
/// chains before it make no difference.
fn prove_lfence() -> LfenceProof {
    // SAFETY (of both reads): only called after `TscFacts::require`.
    let after = |blocks: u32, read: fn() -> u64| {
        median_of_runs(COST_REPETITIONS, || {
            // SAFETY: see above.
            let start = unsafe { lfence_rdtsc() };
            run_multiplications(blocks);
            read().wrapping_sub(start)
        }) as f64
    };
    // SAFETY: see above.
    let fenced: fn() -> u64 = || unsafe { lfence_rdtsc() };
    // SAFETY: see above.
    let bare: fn() -> u64 = || unsafe { rdtsc() };
    let chain = (after(2 * LONG_CHAIN_BLOCKS, bare) - after(LONG_CHAIN_BLOCKS, bare)) / f64::from(LONG_CHAIN_BLOCKS);
    let fenced = after(1, fenced) - after(0, fenced);
    let bare = after(1, bare) - after(0, bare);
    LfenceProof { chain, fenced, bare, waits: chain > 0.0 && fenced >= 0.7 * chain }
}

/// Executes `blocks` times 128 dependent `imul rax, rax`.
#[inline(always)]
fn run_multiplications(blocks: u32) {
    let mut chain = 1u64;
    for _ in 0..blocks {
        // SAFETY: multiplies a register by itself.
        unsafe {
            asm!(".rept 128", "imul {0}, {0}", ".endr", inout(reg) chain, options(nomem, nostack));
        }
    }
    std::hint::black_box(chain);
}

#[cfg(test)]
mod tests {
    use super::super::Machine;
    use super::*;

    /// The fence adds the cost of the chain, neither less nor more, in the middle of five
    /// experiments. Another task on this CPU, or a clock that changes between the parts, disturbs
    /// one or two.
    #[test]
    fn lfence_waits_where_it_is_guaranteed() {
        let machine = Machine::detect();
        let tries: Result<Vec<TimingCosts>, _> =
            (0..5).map(|_| TimingCosts::measure(&machine.tsc, &machine.features)).collect();
        let mut tries = match tries {
            Err(refused) => return cyclescope_skipped::report_skipped(refused),
            Ok(_) if machine.features.lfence_order().known().is_none() => {
                return cyclescope_skipped::report_skipped("nothing guarantees here that LFENCE waits");
            }
            Ok(tries) => tries,
        };
        let share = |traps: &TimingCosts| traps.lfence.fenced / traps.lfence.chain;
        tries.sort_by(|a, b| share(a).total_cmp(&share(b)));
        assert!((0.7..=1.3).contains(&share(&tries[2])) && tries[2].lfence.waits, "{tries:?}");
    }
}
