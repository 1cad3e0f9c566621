//! The step of the TSC: reads return multiples of some number of ticks (2, 4, 26, 38 …). It is
//! measured for each reading sequence.
//!
//! Idea: two reads with a random delay between them differ by multiples of the step, so their
//! deltas lie on a lattice. The Fourier transform of the histogram has a peak at each multiple of
//! 1/step; the lowest peak gives the step. Unlike a gcd, this survives deltas that are off by one
//! (5 to 11 % of bare RDTSC pairs on Zen 4). It also finds fractional steps, as of a TSC that the
//! hypervisor scales.
//!
//! Limits: steps from 2 to about 100 ticks. A fractional step below 3.5 reads as 1. A core whose
//! clock is slower than the TSC sees its own period as a step.

use cyclescope_platform::time::read_steady_clock;
use serde::{Deserialize, Serialize};

use super::fact::Fact;
use super::tsc::TscFacts;
use super::tsc_read::{TscRead, lfence_rdtsc, rdtsc, rdtscp};

/// Step found in a set of deltas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TscStep {
    /// Step in TSC ticks; 1 if the deltas show none.
    pub ticks: f64,
    /// Share of deltas on the lattice: whole multiples of the step, rounded if the step is
    /// fractional.
    pub on_lattice: f64,
    /// Share of deltas one tick off a multiple, for steps of 4 and more; else 0.
    pub off_by_one: f64,
    /// The smallest delta, in ticks.
    pub least: u64,
    /// The median delta, in ticks.
    pub median: u64,
}

/// Width of the histogram above the least delta, in ticks. The random delays stay well below it;
/// interrupts exceed it.
const HISTOGRAM_TICKS: usize = 512;
/// Frequencies of the transform, between 0 and 1/2 per tick: four per width of a peak.
const FREQUENCIES: usize = 4 * HISTOGRAM_TICKS / 2;
/// A lattice with 10 % of deltas one tick off has a peak of 0.8 at a step of 2, and a higher one at
/// larger steps.
const LEAST_PEAK_STRENGTH: f64 = 0.7;
/// The transform of the delays themselves must first fall below this, or the deltas spread too
/// little.
const LOBE_END_STRENGTH: f64 = 0.4;
/// Distance in frequencies from the rise through `LEAST_PEAK_STRENGTH` to the top of the peak, at
/// most.
const PEAK_WIDTH: usize = 6;
/// Fewer deltas, or fewer different ones, show nothing.
const FEWEST_DELTAS: usize = 500;
const FEWEST_DISTINCT: usize = 4;

/// Finds the step from deltas between two reads, in ticks.
pub(crate) fn find_step(deltas: &[u64]) -> Fact<TscStep> {
    if deltas.len() < FEWEST_DELTAS {
        return Fact::unknown(format!("{} deltas are too few", deltas.len()));
    }
    let mut sorted = deltas.to_vec();
    sorted.sort_unstable();
    // One spurious low delta must not move the window, so the 0.1 % quantile is used as the least.
    let least = sorted[sorted.len() / 1000];
    let histogram = delta_histogram(&sorted, least);
    let distinct = histogram.iter().filter(|&&count| count > 0.0).count();
    if distinct < FEWEST_DISTINCT {
        return Fact::unknown(format!("the deltas take only {distinct} different values"));
    }
    let Some(period) = find_lattice_period(&histogram) else {
        return Fact::unknown("the deltas are spread too little");
    };
    let ticks = snap_to_whole(period, &sorted);
    let (on_lattice, off_by_one) = lattice_shares(&sorted, ticks);
    Fact::Known(TscStep { ticks, on_lattice, off_by_one, least: sorted[0], median: sorted[sorted.len() / 2] })
}

/// Histogram of the distance from `least`, as shares of the deltas in the window.
fn delta_histogram(sorted: &[u64], least: u64) -> Vec<f64> {
    let mut counts = vec![0.0; HISTOGRAM_TICKS];
    for &delta in sorted {
        if let Some(count) = delta.checked_sub(least).and_then(|offset| counts.get_mut(offset as usize)) {
            *count += 1.0;
        }
    }
    let total: f64 = counts.iter().sum();
    counts.iter().map(|count| count / total).collect()
}

/// Period of the lowest peak above the lobe at frequency 0; 1.0 without a peak. `None` if the
/// lobe does not end.
fn find_lattice_period(histogram: &[f64]) -> Option<f64> {
    let frequency = |index: usize| index as f64 / (2.0 * FREQUENCIES as f64);
    let mut index = 1;
    while component_strength(histogram, frequency(index)) > LOBE_END_STRENGTH {
        index += 1;
        if index > FREQUENCIES / 2 {
            return None;
        }
    }
    while index <= FREQUENCIES {
        if component_strength(histogram, frequency(index)) >= LEAST_PEAK_STRENGTH {
            return Some(1.0 / find_peak_frequency(histogram, frequency(index), frequency(PEAK_WIDTH)));
        }
        index += 1;
    }
    Some(1.0)
}

/// Magnitude of the histogram's Fourier component; 1 if all deltas lie on one lattice of this
/// frequency.
fn component_strength(histogram: &[f64], frequency: f64) -> f64 {
    let (sin, cos) = (std::f64::consts::TAU * frequency).sin_cos();
    let (mut re, mut im) = (0.0, 0.0);
    // Horner's scheme in powers of e^(iω): one multiplication per bin, and no table of sines.
    for &share in histogram.iter().rev() {
        (re, im) = (re * cos - im * sin + share, re * sin + im * cos);
    }
    re.hypot(im)
}

/// Frequency of the peak whose slope begins at `start`, searched over `width` upward, to 1 part in
/// 200 of that.
fn find_peak_frequency(histogram: &[f64], start: f64, width: f64) -> f64 {
    let (mut best, mut height) = (start, 0.0);
    for part in 0..=200 {
        let frequency = (start + width * f64::from(part) / 200.0).min(0.5);
        let found = component_strength(histogram, frequency);
        if found > height {
            (best, height) = (frequency, found);
        }
    }
    best
}

/// Rounds `period` to the nearest whole number if the deltas fit that at least as well.
fn snap_to_whole(period: f64, sorted: &[u64]) -> f64 {
    let whole = period.round();
    let fits = (period - whole).abs() < 0.02 * period && lattice_shares(sorted, whole).0 >= LEAST_PEAK_STRENGTH;
    if fits { whole } else { period }
}

/// Shares of deltas on the lattice, and one tick off it.
fn lattice_shares(sorted: &[u64], ticks: f64) -> (f64, f64) {
    let (mut on, mut beside) = (0usize, 0usize);
    for &delta in sorted {
        let multiple = (delta as f64 / ticks).round() * ticks;
        // Half a tick of rounding, which a whole step never needs.
        let distance = (delta as f64 - multiple).abs();
        if distance <= if ticks.fract() == 0.0 { 0.0 } else { 1.0 } {
            on += 1;
        } else if distance <= 1.0 {
            beside += 1;
        }
    }
    let share = |count: usize| count as f64 / sorted.len() as f64;
    (share(on), if ticks >= 4.0 { share(beside) } else { 0.0 })
}

/// Pairs of readings that show the step well enough for planning, in about a millisecond.
const PLANNING_PAIRS: usize = 8_000;

/// Step of one reading sequence on a machine's TSC, in ticks. Given with the machine, else measured
/// on the calling thread's CPU in about a millisecond.
pub fn step_ticks(tsc: &TscFacts, reading: TscRead) -> Fact<f64> {
    if let Some(given) = tsc.given {
        return Fact::Known(given.step);
    }
    if let Err(refused) = tsc.require() {
        return Fact::Unknown(refused.why);
    }
    if reading == TscRead::Rdtscp && !tsc.rdtscp {
        return Fact::unknown("the processor has no RDTSCP");
    }
    // SAFETY: RDTSC does not fault, and RDTSCP exists if it is used: both were checked above.
    unsafe { measure_step(reading, PLANNING_PAIRS) }.map(|step| step.ticks)
}

/// Step of the system's clock (CLOCK_MONOTONIC_RAW) in nanoseconds. Derived from the parameters
/// given with the machine, else measured on the calling thread's CPU in some milliseconds. It is
/// the step of the kernel's counter, such as the TSC. `clock_getres` reports the resolution of
/// timers instead, 1 ns.
pub fn step_nanos(tsc: &TscFacts) -> Fact<f64> {
    match tsc.given {
        Some(given) => Fact::Known(given.step / given.rate.0 * 1e9),
        None => {
            let deltas = measure_deltas(PLANNING_PAIRS, read_steady_clock);
            find_step(&deltas).map(|step| step.ticks).or_else(|| find_coarse_step(&deltas))
        }
    }
}

/// Rarer values are disturbances.
const FREQUENT_SHARE: f64 = 0.02;

/// Smallest distance between two frequent deltas, for clocks with steps beyond the window of
/// [`find_step`]. Few values are frequent there. Those within two units of each other are one
/// multiple of the step, rounded up and down.
fn find_coarse_step(deltas: &[u64]) -> Fact<f64> {
    let mut sorted = deltas.to_vec();
    sorted.sort_unstable();
    let least = FREQUENT_SHARE * sorted.len() as f64;
    let multiples = sorted.chunk_by(|low, high| high - low <= 2);
    let multiples = multiples.filter(|multiple| multiple.len() as f64 >= least);
    let means = multiples.map(|multiple| multiple.iter().sum::<u64>() as f64 / multiple.len() as f64);
    let means: Vec<f64> = means.collect();
    match means.windows(2).map(|pair| pair[1] - pair[0]).min_by(f64::total_cmp) {
        Some(step) => Fact::Known(step),
        None => Fact::unknown("the deltas have one frequent value only"),
    }
}

/// Measures the step of one reading sequence, from `pairs` pairs of reads (100 000 take about 10
/// ms).
///
/// # Safety
/// RDTSC must not fault here, and for [`TscRead::Rdtscp`] the processor must have it.
pub(crate) unsafe fn measure_step(reading: TscRead, pairs: usize) -> Fact<TscStep> {
    // SAFETY: the caller has checked that the instructions may be executed.
    let deltas = unsafe {
        match reading {
            TscRead::Rdtsc => measure_deltas(pairs, || rdtsc()),
            TscRead::Rdtscp => measure_deltas(pairs, || rdtscp().0),
            TscRead::LfenceRdtsc => measure_deltas(pairs, || lfence_rdtsc()),
        }
    };
    find_step(&deltas)
}

/// Deltas with a random delay between the reads: a chain of 0 to 255 additions. The delay varies by
/// single core cycles, so that it has no lattice of its own.
fn measure_deltas(pairs: usize, read: impl Fn() -> u64) -> Vec<u64> {
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut deltas = Vec::with_capacity(pairs);
    for _ in 0..pairs {
        random = xorshift(random);
        let start = read();
        spin_additions(random as u8);
        deltas.push(read().wrapping_sub(start));
    }
    deltas
}

/// Marsaglia's xorshift64 (Journal of Statistical Software 8/14, 2003).
fn xorshift(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    state
}

#[inline(always)]
fn spin_additions(cycles: u8) {
    let mut chain = 1u64;
    for _ in 0..cycles {
        // SAFETY: an addition of a register to itself.
        unsafe { std::arch::asm!("add {0}, {0}", inout(reg) chain, options(nomem, nostack)) };
    }
    std::hint::black_box(chain);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::machine::tsc::TscParameters;
    use crate::unit::Hertz;

    /// Deltas of a clock with this step: true intervals of 40 to 360 ticks, `off_by_one` % of them
    /// off by one and 1 in 500 interrupted.
    fn simulate_deltas(step: f64, off_by_one: u64) -> Vec<u64> {
        let mut random = 1u64;
        (0..100_000)
            .map(|_| {
                random = xorshift(random);
                let start = (random >> 20 & 0xFFFF) as f64 / 7.0;
                let end = start + 40.0 + (random & 0xFFFF) as f64 / 204.8;
                let stepped = |time: f64| ((time / step).floor() * step).floor() as u64;
                random = xorshift(random);
                let interrupt = if random.is_multiple_of(500) { 5000 + random % 999 } else { 0 };
                let extra_tick = u64::from(random / 1000 % 100 < off_by_one);
                stepped(end + interrupt as f64) - stepped(start) + extra_tick
            })
            .collect()
    }

    #[test]
    fn whole_steps_are_found_despite_disturbances() {
        for step in [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 26.0, 38.0, 100.0] {
            for off_by_one in [0, 5, 11] {
                let found = find_step(&simulate_deltas(step, off_by_one));
                let found = found.known().unwrap_or_else(|| panic!("{step}: {:?}", found.why()));
                assert_eq!(found.ticks, step, "{off_by_one} % off by one: {found:?}");
                let on_lattice = if step == 1.0 { 1.0 } else { 1.0 - off_by_one as f64 / 100.0 };
                assert!((found.on_lattice - on_lattice).abs() < 0.01, "{step}: {found:?}");
            }
        }
    }

    #[test]
    fn steps_of_a_scaled_counter_are_found() {
        for step in [25.96, 37.37, 7.3, 4.6] {
            let found = *find_step(&simulate_deltas(step, 5)).known().unwrap();
            assert!((found.ticks / step - 1.0).abs() < 0.01, "{step}: {found:?}");
        }
    }

    #[test]
    fn steps_of_the_system_clock_are_found() {
        // An ACPI timer (3.579545 MHz) in whole nanoseconds: four to six steps, 1 value in 100
        // interrupted.
        let step = 1e9 / 3_579_545.0;
        let deltas: Vec<u64> = (0..8000u32)
            .map(|index| match index % 100 {
                0 => 9000 + u64::from(index),
                _ => (f64::from(index % 3 + 4) * step + f64::from(index % 7) / 7.0).floor() as u64,
            })
            .collect();
        let found = *find_coarse_step(&deltas).known().unwrap();
        assert!((found / step - 1.0).abs() < 0.01, "{found}");
        assert!(find_coarse_step(&[20; 8000]).why().is_some());
        let given = TscFacts { given: Some(TscParameters { rate: Hertz(2.6e9), step: 26.0 }), ..Machine::detect().tsc };
        assert_eq!(step_nanos(&given).known(), Some(&10.0));
        let here = step_nanos(&Machine::detect().tsc);
        assert!(here.known().is_none_or(|step| *step >= 1.0), "{here:?}");
    }

    #[test]
    fn too_few_deltas_give_unknown() {
        assert!(find_step(&[26; 100]).why().is_some());
        assert!(find_step(&[26; 10_000]).why().unwrap().contains("1 different"));
        let narrow: Vec<u64> = (0..10_000).map(|index| 100 + index % 3).collect();
        assert!(find_step(&narrow).why().is_some());
    }
}
