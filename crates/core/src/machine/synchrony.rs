//! Whether the TSCs of different CPUs agree: offset and drift by ping-pong, with hard bounds. Also
//! whether time runs backwards from one CPU to another.
//!
//! Two pinned threads exchange readings through a cache line, in short blocks spread over the given
//! time; `bounds` evaluates them. A thread that loses its CPU for a while only loses exchanges. A
//! delay only makes single exchanges less informative. Neither makes a bound wrong.
//!
//! Limits: the bound is as wide as the fastest exchange plus two steps of the TSC. The fastest
//! exchange takes about one round trip of a cache line. A step that differs between the CPUs is not
//! detected. If a hypervisor moves a virtual CPU between processors whose TSCs disagree during the
//! test, it shows as a jump.

pub(crate) mod bounds;
mod pingpong;
mod pinned_jobs;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Machine;
use super::fact::Fact;
use super::tsc_read::TscRead;
use super::tsc_step::measure_step;
use bounds::{TscComparison, TscExchange, compare_exchanges};

/// Comparison of the TSCs of other CPUs with that of the target CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TscSynchrony {
    /// The target CPU: A in all comparisons.
    pub cpu: u32,
    /// How both sides read the TSC; an LFENCE follows each read.
    pub reading: TscRead,
    /// Step of the readings that the bounds assume, in ticks.
    pub step_ticks: f64,
    /// Whether that step is known. If not, it is the largest detectable step.
    pub step_known: bool,
    /// The other CPUs, nearest first.
    pub pairs: Vec<CpuComparison>,
    /// Allowed CPUs that were not compared.
    pub untested: Vec<u32>,
    /// Whether RDTSCP tells the CPUs apart; `None` without RDTSCP, or if a CPU did not answer.
    #[serde(default)]
    pub numbers: Option<CpuNumbers>,
    /// Duration in seconds.
    pub seconds: f64,
}

/// The numbers that RDTSCP returns beside the time, from IA32_TSC_AUX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuNumbers {
    /// CPUs on which it was executed.
    pub cpus: usize,
    /// Those whose number in the low 12 bits was the system's (Linux, `segment.h`,
    /// `VDSO_CPUNODE_BITS`).
    pub right: usize,
}

/// Comparison with one other CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuComparison {
    /// CPU number: B of the comparison.
    pub cpu: u32,
    /// Result of the exchanges; unknown if there were none.
    pub comparison: Fact<TscComparison>,
    /// Blocks without any exchange.
    pub lost_blocks: usize,
    /// Why the last such block had none.
    pub why_lost: Option<String>,
}

impl TscSynchrony {
    /// Whether time never ran backwards between any two of the CPUs; `None` if no CPU was compared.
    pub fn is_monotonic(&self) -> Option<bool> {
        let mut compared = self.pairs.iter().filter_map(|pair| pair.comparison.known()).peekable();
        compared.peek()?;
        Some(compared.all(TscComparison::is_monotonic))
    }
}

/// Largest number of CPUs to compare.
const MOST_CPUS: usize = 8;
/// Blocks per CPU. With fewer than 8, drift could go undetected. Each block should last longer than
/// a busy CPU's scheduler makes a thread wait.
const BLOCKS_PER_CPU: std::ops::RangeInclusive<u128> = 8..=16;
const BLOCK_TIME: Duration = Duration::from_millis(10);
/// Exchanges per block. A block takes one or two milliseconds, long enough for some fast exchanges.
const BLOCK_EXCHANGES: usize = 4000;
/// Time in which all CPUs must return their number.
const NUMBERS_TIME: Duration = Duration::from_millis(100);
/// Pairs of reads that show the step within a few milliseconds.
const STEP_PAIRS: usize = 30_000;
/// Assumed step if it is unknown: the largest detectable one ([`super::tsc_step`]).
const LARGEST_STEP: f64 = 100.0;

/// Chooses how the exchanges read the TSC: the read must wait for the preceding message.
pub fn choose_reading(machine: &Machine) -> Fact<TscRead> {
    if machine.features.lfence_order().known().is_some() {
        return Fact::Known(TscRead::LfenceRdtsc);
    }
    if machine.features.has_rdtscp() {
        return Fact::Known(TscRead::Rdtscp);
    }
    Fact::unknown("no TSC read waits for a message: LFENCE is not known to wait, and there is no RDTSCP")
}

/// Compares the target CPU's TSC with those of at most eight other allowed CPUs within `time`. 0.3
/// to 2 s are a good choice; a longer time gives tighter bounds of the drift.
///
/// `step` is that of [`choose_reading`] in ticks, if known from
/// [`super::tsc_study::TscStudy::find_step`]; otherwise it is measured. The calling thread's
/// affinity stays unchanged.
pub fn measure_synchrony(machine: &Machine, step: Option<f64>, time: Duration) -> Fact<TscSynchrony> {
    // If the TSC is forbidden, so is the system's clock: nothing is timed before this.
    if let Err(refused) = machine.tsc.require_readable() {
        return Fact::unknown(refused.why);
    }
    let (reading, cpus, untested) = match (choose_reading(machine), machine.other_cpus(MOST_CPUS)) {
        (Fact::Unknown(why), _) | (_, Fact::Unknown(why)) => return Fact::Unknown(why),
        (Fact::Known(reading), Fact::Known((cpus, rest))) => (reading, cpus, rest),
    };
    let Some(target) = &machine.target else { return Fact::unknown("the allowed CPUs are unknown") };
    if cpus.is_empty() {
        return Fact::unknown("this process may use one CPU only");
    }
    let started = Instant::now();
    let known_step = step.or_else(|| measure_step_on(target.cpu, reading, started + time / 4));
    let step = known_step.unwrap_or(LARGEST_STEP);
    let mut logs: Vec<ExchangeLog> = cpus.iter().map(|&cpu| ExchangeLog { cpu, ..ExchangeLog::default() }).collect();
    // SAFETY: `require` has made sure that the TSC can be read, and `reading` that this way exists.
    unsafe { exchange_all(target.cpu, reading, &mut logs, time.saturating_sub(started.elapsed())) };
    let all = [&[target.cpu], &cpus[..]].concat();
    Fact::Known(TscSynchrony {
        cpu: target.cpu,
        reading,
        step_ticks: step,
        step_known: known_step.is_some(),
        pairs: logs.into_iter().map(|log| log.into_comparison(step)).collect(),
        untested,
        numbers: machine.features.has_rdtscp().then(|| read_cpu_numbers(&all)).flatten(),
        seconds: started.elapsed().as_secs_f64(),
    })
}

/// Exchanges with one CPU, in blocks.
#[derive(Default)]
struct ExchangeLog {
    cpu: u32,
    blocks: Vec<Vec<TscExchange>>,
    lost: usize,
    why: Option<String>,
}

impl ExchangeLog {
    fn into_comparison(self, step: f64) -> CpuComparison {
        let comparison = match (compare_exchanges(&self.blocks, step), &self.why) {
            (Fact::Unknown(_), Some(why)) => Fact::unknown(why.clone()),
            (Fact::Unknown(_), None) => Fact::unknown("there was no time left"),
            (known, _) => known,
        };
        CpuComparison { cpu: self.cpu, comparison, lost_blocks: self.lost, why_lost: self.why }
    }
}

/// Exchanges with all CPUs in turn, repeatedly, so that each is observed over the whole time.
///
/// # Safety
/// Threads of this process may read the TSC in this way.
unsafe fn exchange_all(target: u32, reading: TscRead, logs: &mut [ExchangeLog], time: Duration) {
    let started = Instant::now();
    let count = logs.len() as u32;
    let fitting = time.as_nanos() / (BLOCK_TIME * count).as_nanos();
    let rounds = fitting.clamp(*BLOCKS_PER_CPU.start(), *BLOCKS_PER_CPU.end()) as u32;
    let time_of = |block: u32| started + time * block / (rounds * count);
    for round in 0..rounds {
        cyclescope_platform::time::sleep(time_of(round * count).saturating_duration_since(Instant::now()));
        for turn in 0..count {
            // Each round begins with another CPU, so that no CPU always follows a slow one.
            let log = &mut logs[((turn + round) % count) as usize];
            let until = time_of(round * count + turn + 1);
            if Instant::now() >= until {
                log.lost += 1;
                log.why.get_or_insert_with(|| "the preceding blocks used all the time".to_string());
                continue;
            }
            // SAFETY: the caller guarantees it.
            match unsafe { pingpong::exchange_readings([target, log.cpu], reading, BLOCK_EXCHANGES, until) } {
                Ok(exchanges) => log.blocks.push(exchanges),
                Err(why) => {
                    log.lost += 1;
                    log.why = Some(why);
                }
            }
        }
    }
}

/// Executes RDTSCP on each of these CPUs.
fn read_cpu_numbers(cpus: &[u32]) -> Option<CpuNumbers> {
    let job = |cpu: &u32| -> (u32, pinned_jobs::PinnedJob<u32>) {
        let read = |_: &pinned_jobs::JobLimit| {
            let mut number = 0;
            // SAFETY: the caller has made sure that the CPU has the instruction and that the TSC can be
            // read; it writes the number.
            unsafe { std::arch::x86_64::__rdtscp(&raw mut number) };
            number & 0xfff
        };
        (*cpu, Box::new(read))
    };
    let numbers = pinned_jobs::run_on_cpus(cpus.iter().map(job).collect(), Instant::now() + NUMBERS_TIME).ok()?;
    let right = numbers.iter().zip(cpus).filter(|(number, cpu)| number == cpu).count();
    Some(CpuNumbers { cpus: cpus.len(), right })
}

/// Measures the step on the target CPU.
fn measure_step_on(cpu: u32, reading: TscRead, until: Instant) -> Option<f64> {
    // SAFETY: only called after `TscFacts::require`, and with a reading that exists.
    let job: pinned_jobs::PinnedJob<_> = Box::new(move |_| unsafe { measure_step(reading, STEP_PAIRS) });
    let found = pinned_jobs::run_on_cpus(vec![(cpu, job)], until).ok()?;
    found[0].known().map(|step| step.ticks)
}
