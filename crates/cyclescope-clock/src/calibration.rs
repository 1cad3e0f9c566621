//! What a pair takes on this machine, and how many core cycles pass in a tick.

use crate::chain::{Additions, Chain, FloatMultiplications, Multiplications, NoOperations, Ruler};
use crate::pair::{Pair, hide};
use crate::unit::{CoreCycles, Ticks};
use core::hint::{black_box, spin_loop};

/// Rounds of a trial of the calibration, trials of which the middle one counts, and rounds of a reading of the ruler.
const ROUNDS: usize = 101;
const TRIALS: usize = 7;
/// Trials of what is subtracted. With 7 it was off by 0.7 core cycles, with so many by 0.2 (standard deviations of 40 programs in C, Zen 4, whose
/// TSC has steps of 26).
const TRIALS_OF_PAIR: usize = 63;
const READINGS: usize = 7;
/// Lengths of the code by which the step is found, and by how much one differs from the next.
const LENGTHS: usize = 256;
const STRIDE: usize = 37;
/// Steps of the clock that the ruler takes at least.
const STEPS: f64 = 250.0;
/// Readings beyond so many times the middle one, and two steps of the clock, are of something else: an interrupt, another program.
pub(crate) const BEYOND: f64 = 1.5;
/// Core cycles a multiplication above which each waited for the one before.
const FREE: f64 = 1.5;
/// Share by which the latency of a multiplication may differ from a whole number of cycles.
const WHOLE: f64 = 0.02;

/// How many core cycles pass in a tick of a pair's readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Core cycles a tick, now.
    pub cycles: f64,
    /// The share of it by which single readings of the ruler differ: half of what the middle ones span.
    pub spread: f64,
}

/// What a pair takes on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// What a pair adds to a chain of multiplications: what is subtracted.
    pub pair: CoreCycles,
    /// The least and the most that it adds to any code that was tried: code that waits for nothing is hidden beside the pair for some
    /// cycles, and some chains begin late.
    pub between: [CoreCycles; 2],
    /// What a pair around nothing takes.
    pub empty: CoreCycles,
    /// Core cycles a tick, when this was measured.
    pub scale: Scale,
    /// The step of the readings.
    pub step: Ticks,
    /// Whether the readings wait for the code between them. LFENCE does not where an AMD processor was not told to.
    pub waits: bool,
    /// Whether two rulers agree: the latency of a multiplication is a whole number of additions.
    pub rulers_agree: bool,
    /// Loops of the ruler in a reading, so that it takes many steps.
    loops: u32,
}

impl Scale {
    /// Reads the ruler: some microseconds.
    pub fn read<P: Pair>(calibration: &Calibration) -> Scale {
        Scale::of::<P>(calibration.loops)
    }

    fn of<P: Pair>(loops: u32) -> Scale {
        let mut spans = [0.0; READINGS];
        let mut value = 1;
        for span in &mut spans {
            let short = timed::<P>(&mut value, |value| repeated(value, loops, Ruler::short));
            let long = timed::<P>(&mut value, |value| repeated(value, loops, Ruler::long));
            *span = long as f64 - short as f64;
        }
        spans.sort_unstable_by(f64::total_cmp);
        let [_, low, less, middle, more, high, _] = spans;
        // The step of the clock is in a single one and less in the mean of three.
        let middle = ((less + middle + more) / 3.0).max(1.0);
        Scale {
            cycles: Ruler::LINKS * f64::from(loops) / middle,
            spread: (high - low).max(0.0) / middle / 2.0,
        }
    }
}

impl Calibration {
    /// Measures a pair: some milliseconds. Other work that interrupts it is left out.
    pub fn measure<P: Pair>() -> Calibration {
        let step = step::<P>();
        let loops = (STEPS * step / Ruler::LINKS).max(1.0) as u32;
        let scale = || Scale::of::<P>(loops).cycles;
        let [empty, _] = usual::<TRIALS>(|| [empty::<P>(step, &scale), 0.0]);
        let [additions, _] = usual::<TRIALS>(|| added::<P, Additions>(step, &scale));
        let [multiplications, latency] =
            usual::<TRIALS_OF_PAIR>(|| added::<P, Multiplications>(step, &scale));
        let [floats, _] = usual::<TRIALS>(|| added::<P, FloatMultiplications>(step, &scale));
        let [free, _] = usual::<TRIALS>(|| added::<P, NoOperations>(step, &scale));
        let all = [empty, additions, multiplications, floats, free];
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let whole = (latency + 0.5) as u64 as f64;
        Calibration {
            pair: CoreCycles(multiplications),
            between: [CoreCycles(least), CoreCycles(most)],
            empty: CoreCycles(empty),
            scale: Scale::of::<P>(loops),
            step: Ticks(step),
            // Where it does not, the chain is hidden beside it, or goes on behind it.
            waits: multiplications > 0.0 && latency > FREE,
            rulers_agree: (latency - whole).abs() < WHOLE * whole,
            loops,
        }
    }
}

/// The middle one of several trials, number by number: the core's clock may change within one.
fn usual<const TRIALS: usize>(trial: impl Fn() -> [f64; 2]) -> [f64; 2] {
    // The first one fetches the code.
    trial();
    let mut trials = [[0.0; TRIALS]; 2];
    for number in 0..TRIALS {
        for (trials, found) in trials.iter_mut().zip(trial()) {
            trials.iter_mut().skip(number).take(1).for_each(|place| *place = found);
        }
    }
    trials.map(|mut trials| {
        trials.sort_unstable_by(f64::total_cmp);
        trials.get(TRIALS / 2).copied().unwrap_or_default()
    })
}

/// What a pair around nothing takes, in core cycles.
fn empty<P: Pair>(step: f64, scale: &dyn Fn() -> f64) -> f64 {
    let mut empty = [0; ROUNDS];
    let before = scale();
    let mut value = 1;
    for ticks in &mut empty {
        *ticks = timed::<P>(&mut value, |value| value);
    }
    typical(&mut empty, step) * (before + scale()) / 2.0
}

/// What a pair adds to a chain, and what each link takes, in core cycles.
fn added<P: Pair, C: Chain>(step: f64, scale: &dyn Fn() -> f64) -> [f64; 2] {
    let (mut short, mut long) = ([0; ROUNDS], [0; ROUNDS]);
    let before = scale();
    let mut value = 1;
    for (number, (short, long)) in short.iter_mut().zip(&mut long).enumerate() {
        // So that readings fall anywhere between two steps of the clock.
        (0..number % 8).for_each(|_| spin_loop());
        *short = timed::<P>(&mut value, C::short);
        *long = timed::<P>(&mut value, C::long);
    }
    let scale = (before + scale()) / 2.0;
    let [short, long] = [typical(&mut short, step), typical(&mut long, step)];
    [(2.0 * short - long) * scale, (long - short) * scale / C::LINKS]
}

/// Ticks between the two readings around some code.
#[inline(always)]
fn timed<P: Pair>(value: &mut u64, code: impl Fn(u64) -> u64) -> u64 {
    let before = black_box(*value);
    let started = P::start();
    let after = code(before);
    let ended = P::end();
    *value = black_box(after);
    ended.wrapping_sub(started)
}

#[inline(always)]
fn repeated(mut value: u64, times: u32, code: impl Fn(u64) -> u64) -> u64 {
    for _ in 0..times {
        value = code(value);
    }
    value
}

/// The mean of what is not far beyond the middle: the clock's step is in single readings and not in their mean.
fn typical(ticks: &mut [u64], step: f64) -> f64 {
    ticks.sort_unstable();
    let middle = ticks.get(ticks.len() / 2).copied().unwrap_or_default() as f64;
    let most = BEYOND * middle + 2.0 * step;
    let kept = || ticks.iter().map(|ticks| *ticks as f64).filter(|ticks| *ticks <= most);
    let number = kept().count().max(1);
    kept().sum::<f64>() / number as f64
}

/// The step of a pair's readings, in ticks: the mean distance of the numbers of ticks that code of many lengths takes. Where readings are off by
/// one, since a processor counts so or a hypervisor scales the clock, it is less than the step, and at least a third of it.
fn step<P: Pair>() -> f64 {
    let mut taken = [0; ROUNDS];
    for (number, taken) in taken.iter_mut().enumerate() {
        let links = (number * STRIDE % LENGTHS) as u32;
        *taken = timed::<P>(&mut 1, |value| repeated(value, links, one_link));
    }
    step_of(&mut taken)
}

/// The mean distance of different numbers, without the tenths at both ends.
fn step_of(ticks: &mut [u64]) -> f64 {
    ticks.sort_unstable();
    let tenth = ticks.len() / 10;
    let middle = ticks.get(tenth..ticks.len() - tenth).unwrap_or_default();
    let gaps =
        || middle.iter().zip(middle.iter().skip(1)).map(|(one, next)| next - one).filter(|gap| *gap > 0);
    let (number, span) = (gaps().count(), gaps().sum::<u64>());
    if number > 0 { span as f64 / number as f64 } else { 1.0 }
}

#[inline(always)]
fn one_link(value: u64) -> u64 {
    hide(value.wrapping_add(hide(value)))
}

#[cfg(test)]
mod tests {
    use super::step_of;

    #[test]
    fn a_step_is_found_where_single_readings_are_off_by_one() {
        let step = |of: &dyn Fn(u64) -> u64| {
            step_of(&mut core::array::from_fn::<u64, 100, _>(|number| of(number as u64)))
        };
        assert_eq!(step(&|number| 30 + 2 * number), 2.0);
        assert_eq!(step(&|number| 30 + number), 1.0);
        assert_eq!(step(&|number| (30 + 2 * number) / 36 * 36), 36.0);
        let off = step(&|number| (30 + 2 * number) / 36 * 36 + number % 2);
        assert!((12.0..=36.0).contains(&off), "{off}");
        assert_eq!(step(&|_| 7), 1.0);
    }
}
