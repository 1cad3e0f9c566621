//! Measures how long a pair takes on this machine, and how many core cycles pass per tick.
//!
//! The ruler is a chain of multiplications, measured with one block and with many blocks in turns.
//! Their common part is the pair, and their difference is the ruler. Background load on the core or
//! on its sibling affects both, and the code between two readings of the ruler too.

use crate::chain::{
    Additions, BLOCK, Chain, FloatMultiplications, LoadedMultiplications, NoOperations, multiplications, pass,
};
use crate::pair::Pair;
use crate::unit::{CoreCycles, Ticks};
use core::hint::black_box;

/// Rounds per half reading of the ruler, and trials of the calibration, of which the median counts.
/// Over 40 programs in C the standard deviation of the pair was 0.7 core cycles with 7 trials and
/// 0.2 with 63 (Zen 4, whose TSC has steps of 26).
const ROUNDS: usize = 101;
const TRIALS: usize = 63;
/// Readings of the ruler's shorter chain per reading of the longer one. They are quicker, and they
/// determine the pair.
const SHORTER: usize = 3;
/// Kinds of code around which a pair is measured.
const CODES: usize = 6;
/// Step between successive lengths of code, and ranges of lengths: code that passes before a
/// reading, and code that shows the clock's step. So readings fall anywhere between two steps of
/// the clock.
const STRIDE: usize = 37;
const PASSED: usize = 64;
const LENGTHS: usize = 256;
/// Fewest steps of the clock that the ruler takes, if a multiplication takes two ticks; and fewest
/// blocks.
const STEPS: f64 = 20.0;
const MULTIPLICATION: f64 = 2.0;
const BLOCKS: u32 = 4;
/// A reading above this multiple of the median plus two steps of the clock contains something else:
/// an interrupt or another program.
pub(crate) const BEYOND: f64 = 1.5;
/// If the ruler changes by more than this share, the readings in between are doubtful.
#[cfg(feature = "std")]
pub(crate) const MOVED: f64 = 0.01;
/// Core cycles per multiplication, above which each waited for the one before.
const FREE: f64 = 1.5;
/// Cycles by which the measured latency of a multiplication may differ from a whole number. The number
/// is whole, so this decides only whether it is certain: a busy sibling slowed additions by up to 13 %
/// (Raptor Cove).
const UNLIKE: f64 = 0.25;

/// One reading of the ruler: the current core cycles per tick, and the current time of a pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Core cycles per tick.
    pub cycles: f64,
    /// Ticks that the pair adds to a chain of multiplications. With background load on the sibling
    /// it took 81 to 88 core cycles (Zen 4).
    pub pair: Ticks,
    /// Difference of the core cycles per tick between the halves of the reading, as a share.
    pub spread: f64,
}

/// Time of a pair on this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Cycles that a pair added to a chain of multiplications during the calibration.
    pub pair: CoreCycles,
    /// The fewest and the most cycles that it added to any of the tried codes. Code that waits for
    /// nothing partly overlaps with the pair, and some chains begin late.
    pub between: [CoreCycles; 2],
    /// Cycles of a pair around nothing.
    pub empty: CoreCycles,
    /// The ruler's reading during the calibration.
    pub scale: Scale,
    /// The step of the readings.
    pub step: Ticks,
    /// Whether the readings wait for the code between them. On AMD, LFENCE waits only if the system
    /// has enabled that.
    pub waits: bool,
    /// Whether two rulers agree: a multiplication takes nearly a whole number of additions.
    pub rulers_agree: bool,
    /// Cycles of a multiplication.
    pub(crate) latency: CoreCycles,
    /// Blocks of the ruler's longer chain.
    blocks: u32,
}

/// Code of two lengths, in ticks: the time that a pair adds, and the time of the shorter code
/// alone.
#[derive(Debug, Clone, Copy)]
struct Added {
    pair: f64,
    code: f64,
}

impl Added {
    /// Computes both from readings of the two lengths. Readings of both are cut at the same
    /// distance above their median. Otherwise an interrupt of some length would count in the longer
    /// one only.
    fn from_readings(shorter: &mut [u64], longer: &mut [u64], times: f64, step: f64) -> Added {
        let (shorter, longer) = (sorted(shorter), sorted(longer));
        let beyond = middle(shorter) * (BEYOND - 1.0) + 2.0 * step;
        let [shorter, longer] = [shorter, longer].map(|ticks| mean(ticks, middle(ticks) + beyond));
        let code = (longer - shorter) / (times - 1.0);
        Added { pair: shorter - code, code }
    }
}

/// The time of each piece of code, by readings of one piece and of `times` pieces.
#[cfg(feature = "std")]
pub(crate) fn time_of_each(one: &mut [u64], many: &mut [u64], times: u32, step: Ticks) -> Ticks {
    Ticks(Added::from_readings(one, many, f64::from(times), step.0).code)
}

impl Scale {
    /// Reads the ruler, in a tenth of a millisecond.
    pub fn read<P: Pair>(calibration: &Calibration) -> Scale {
        let half = || turns::<P>(calibration.blocks, calibration.step.0);
        let (one, other) = (half(), half());
        let both = (one.code + other.code).max(1.0);
        Scale {
            cycles: 2.0 * BLOCK * calibration.latency.0 / both,
            pair: Ticks((one.pair + other.pair) / 2.0),
            spread: (one.code - other.code).abs() / both,
        }
    }

    /// Converts ticks to core cycles, and subtracts the pair around them. The ticks were counted
    /// between this reading of the ruler and `later`.
    pub fn cycles_to(&self, later: &Scale, ticks: Ticks) -> CoreCycles {
        let pair = (self.pair.0 + later.pair.0) / 2.0;
        CoreCycles((ticks.0 - pair) * (self.cycles + later.cycles) / 2.0)
    }
}

impl Calibration {
    /// Cycles of a block of the ruler.
    #[cfg(feature = "std")]
    pub(crate) fn block(&self) -> CoreCycles {
        CoreCycles(BLOCK * self.latency.0)
    }

    /// Time of a reading of the ruler.
    #[cfg(feature = "std")]
    pub(crate) fn ruler(&self) -> Ticks {
        let block = self.block().0 / self.scale.cycles;
        let round = (SHORTER as f64 + f64::from(self.blocks)) * block + (SHORTER as f64 + 1.0) * self.scale.pair.0;
        // Both halves.
        Ticks(2.0 * ROUNDS as f64 * round)
    }

    /// Measures a pair, in some milliseconds. Readings that background load interrupts are left
    /// out.
    pub fn measure<P: Pair>() -> Calibration {
        let step = step::<P>();
        let blocks = BLOCKS.max((STEPS * step / MULTIPLICATION / BLOCK) as u32);
        // The first trial fetches the code.
        trial::<P>(blocks, step);
        let trials: [Trial; TRIALS] = core::array::from_fn(|_| trial::<P>(blocks, step));
        // Background load lowers it, so the upper quartile counts.
        let measured = quantile(trials.map(|trial| trial.latency), 0.75);
        let WholeLatency { cycles: latency, is_certain: rulers_agree } = WholeLatency::from_measured(measured);
        let block = quantile(trials.map(|trial| trial.block), 0.5);
        let pair = quantile(trials.map(|trial| trial.pair), 0.5);
        let more: [f64; CODES - 1] = core::array::from_fn(|code| {
            quantile(trials.map(|trial| trial.more.get(code).copied().unwrap_or_default()), 0.5)
        });
        let cycles = |blocks: f64| CoreCycles(blocks * BLOCK * latency);
        let least = more.iter().copied().fold(0.0, f64::min);
        let most = more.iter().copied().fold(0.0, f64::max);
        let [empty, ..] = more;
        Calibration {
            pair: cycles(pair),
            between: [cycles(pair + least), cycles(pair + most)],
            empty: cycles(pair + empty),
            scale: Scale { cycles: cycles(1.0).0 / block, pair: Ticks(pair * block), spread: 0.0 },
            step: Ticks(step),
            // If the readings do not wait, the chain overlaps with the pair, or continues after it.
            waits: pair > 0.0 && measured > FREE,
            rulers_agree,
            latency: CoreCycles(latency),
            blocks,
        }
    }
}

/// The latency of a multiplication, which is a whole number of cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
struct WholeLatency {
    cycles: f64,
    /// Whether no other number is near.
    is_certain: bool,
}

impl WholeLatency {
    /// From the measured one. A busy sibling disturbs additions, and multiplications less.
    fn from_measured(measured: f64) -> WholeLatency {
        let cycles = ((measured + 0.5) as u64).max(1) as f64;
        WholeLatency { cycles, is_certain: (measured - cycles).abs() < UNLIKE }
    }
}

/// A trial of the calibration.
#[derive(Debug, Clone, Copy)]
struct Trial {
    /// Additions in the time of a multiplication.
    latency: f64,
    /// A block of the ruler in ticks; the pair in blocks, and its additional blocks around other
    /// code.
    block: f64,
    pair: f64,
    more: [f64; CODES - 1],
}

fn trial<P: Pair>(blocks: u32, step: f64) -> Trial {
    let ruler = turns::<P>(blocks, step);
    let additions = added::<P, Additions>(step);
    let others = [
        empty::<P>(step),
        added::<P, FloatMultiplications>(step),
        added::<P, NoOperations>(step),
        added::<P, LoadedMultiplications>(step),
        additions,
    ];
    let block = ruler.code.max(1.0);
    Trial {
        latency: Additions::LINKS / additions.code.max(1.0) * block / BLOCK,
        block,
        pair: ruler.pair / block,
        more: others.map(|other| (other.pair - ruler.pair) / block),
    }
}

/// The number that this share of them does not exceed.
fn quantile<const NUMBER: usize>(mut numbers: [f64; NUMBER], share: f64) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get((share * NUMBER as f64) as usize).copied().unwrap_or_default()
}

/// Measures one block of the ruler and many of them, in turns.
fn turns<P: Pair>(blocks: u32, step: f64) -> Added {
    let code = |blocks| move |value| multiplications(value, blocks);
    in_turns::<P, SHORTER>(f64::from(blocks), step, code(1), code(blocks))
}

/// The time that a pair adds to a chain.
fn added<P: Pair, C: Chain>(step: f64) -> Added {
    in_turns::<P, 1>(2.0, step, C::short, C::long)
}

/// The time of a pair around nothing.
fn empty<P: Pair>(step: f64) -> Added {
    in_turns::<P, 1>(2.0, step, |value| value, |value| value)
}

/// Times `short` and `long` in turns. Each round has `SHORTER` readings of `short` and one of
/// `long`, which is `times` as long.
#[inline(always)]
fn in_turns<P: Pair, const SHORTER: usize>(
    times: f64,
    step: f64,
    short: impl Fn(u64) -> u64,
    long: impl Fn(u64) -> u64,
) -> Added {
    let (mut shorter, mut longer) = ([[0; SHORTER]; ROUNDS], [0; ROUNDS]);
    let mut value = 1;
    for (number, (shorter, longer)) in shorter.iter_mut().zip(&mut longer).enumerate() {
        value = pass(value, (number * STRIDE % PASSED) as u32);
        for shorter in shorter {
            *shorter = timed::<P>(&mut value, &short);
        }
        *longer = timed::<P>(&mut value, &long);
    }
    Added::from_readings(shorter.as_flattened_mut(), &mut longer, times, step)
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

fn sorted(ticks: &mut [u64]) -> &[u64] {
    ticks.sort_unstable();
    ticks
}

fn middle(sorted: &[u64]) -> f64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default() as f64
}

/// The mean of the readings up to a limit. A mean is finer than the clock's step.
fn mean(ticks: &[u64], limit: f64) -> f64 {
    let kept = || ticks.iter().map(|ticks| *ticks as f64).filter(|ticks| *ticks <= limit);
    kept().sum::<f64>() / kept().count().max(1) as f64
}

/// The step of a pair's readings in ticks: the mean distance between the tick counts of code of
/// many lengths. If single readings are off by one, because of the processor or of clock scaling in
/// a hypervisor, the result is too small, but at least a third of the step.
fn step<P: Pair>() -> f64 {
    let mut taken = [0; ROUNDS];
    for (number, taken) in taken.iter_mut().enumerate() {
        *taken = timed::<P>(&mut 1, |value| pass(value, (number * STRIDE % LENGTHS) as u32));
    }
    step_of(&mut taken)
}

/// The mean distance of different numbers, without the tenths at both ends.
fn step_of(ticks: &mut [u64]) -> f64 {
    ticks.sort_unstable();
    let tenth = ticks.len() / 10;
    let middle = ticks.get(tenth..ticks.len() - tenth).unwrap_or_default();
    let gaps = || middle.iter().zip(middle.iter().skip(1)).map(|(one, next)| next - one).filter(|gap| *gap > 0);
    let (number, span) = (gaps().count(), gaps().sum::<u64>());
    if number > 0 { span as f64 / number as f64 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::{Added, Calibration, Scale, TRIALS, WholeLatency, added, quantile, step_of, turns};
    use crate::chain::{BLOCK, LoadedMultiplications};
    use crate::pairs::LfenceRdtscLfence;
    use crate::unit::{CoreCycles, Ticks};

    #[test]
    fn the_pair_is_the_mean_of_two_readings_of_the_ruler() {
        let scale = |cycles, pair| Scale { cycles, pair: Ticks(pair), spread: 0.0 };
        let cycles = scale(1.5, 50.0).cycles_to(&scale(1.25, 70.0), Ticks(160.0));
        assert_eq!(cycles, CoreCycles(137.5));
    }

    #[test]
    fn the_ends_cover_code_that_begins_with_a_load() {
        // The sibling may become busy between the two measurements.
        let is_covered = || {
            let calibration = Calibration::measure::<LfenceRdtscLfence>();
            let later = core::array::from_fn::<f64, TRIALS, _>(|_| {
                let ruler = turns::<LfenceRdtscLfence>(calibration.blocks, calibration.step.0);
                let loaded = added::<LfenceRdtscLfence, LoadedMultiplications>(calibration.step.0);
                (loaded.pair - ruler.pair) / ruler.code.max(1.0) * BLOCK * calibration.latency.0
            });
            quantile(later, 0.5) < calibration.between[1].0 - calibration.pair.0 + 3.0
        };
        assert!((0..10).any(|_| is_covered()), "code that begins with a load is outside");
    }

    #[test]
    fn a_latency_is_whole_also_beside_a_busy_sibling() {
        let whole = |cycles, is_certain| WholeLatency { cycles, is_certain };
        for (measured, latency) in [
            (3.001, whole(3.0, true)),
            (3.06, whole(3.0, true)),
            (2.885, whole(3.0, true)),
            (2.65, whole(3.0, false)),
            (5.9, whole(6.0, true)),
        ] {
            assert_eq!(WholeLatency::from_measured(measured), latency, "{measured}");
        }
    }

    #[test]
    fn interrupts_change_neither_the_pair_nor_the_ruler() {
        // A pair of 60 ticks, with code of 140 ticks once and four times. One reading in ten has an
        // interrupt of 150 ticks, less than half of the longer code.
        let interrupted = |ticks| move |number| if number % 10 == 3 { ticks + 150 } else { ticks };
        let [mut shorter, mut longer] = [200, 620].map(|ticks| core::array::from_fn::<u64, 100, _>(interrupted(ticks)));
        let added = Added::from_readings(&mut shorter, &mut longer, 4.0, 2.0);
        assert_eq!((added.pair, added.code), (60.0, 140.0));
    }

    #[test]
    fn a_step_is_found_even_if_single_readings_are_off_by_one() {
        let step = |ticks_of: &dyn Fn(u64) -> u64| {
            step_of(&mut core::array::from_fn::<u64, 100, _>(|number| ticks_of(number as u64)))
        };
        assert_eq!(step(&|number| 30 + 2 * number), 2.0);
        assert_eq!(step(&|number| 30 + number), 1.0);
        assert_eq!(step(&|number| (30 + 2 * number) / 36 * 36), 36.0);
        let off = step(&|number| (30 + 2 * number) / 36 * 36 + number % 2);
        assert!((12.0..=36.0).contains(&off), "{off}");
        assert_eq!(step(&|_| 7), 1.0);
    }
}
