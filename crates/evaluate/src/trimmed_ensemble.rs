//! The samples of a method without interrupts, frequency changes and a busy sibling.
//!
//! The paper's machine had frequency scaling and hyper-threading off, and its program no
//! interrupts. Elsewhere the literal criteria judge the machine, not the method. A pair of 100 core
//! cycles takes 77 ticks of a 2.3 GHz TSC at 3.0 GHz and 64 at 3.6. One interrupt in a million
//! samples dominates the variance.
//!
//! So an ensemble is read in blocks short enough for one frequency. Each block keeps samples less
//! than four steps above its minimum, and a ruler measures the ticks per core cycle.

use super::TestedClock;
use super::chance_variance::chance_variance;
use super::ensemble::{DurationCount, INSANE_DURATION};
use super::ergodic_verdict::ErgodicVerdict;
use super::power_sums::PowerSums;
use cyclescope_code::program::Program;
use cyclescope_core::statistics::{mean, median, quantiles, quartile_deviation, value_range};
use cyclescope_exec::{ProgramCall, Sample};
use cyclescope_measure::ruler::{Gauge, RulerPrograms, UnsharedWidth, column, raw_duration, sentinel_loops};
use cyclescope_measure::schedule;
use cyclescope_measure::sibling::{KeptReplicates, SiblingPolicy};
use serde::Serialize;

/// Samples above a block's minimum by this number of clock steps are dropped.
pub(crate) const TRIM_STEPS: f64 = 4.0;
/// Fewest iterations of the ruler's loops, and iterations per unit of the clock's step. The two
/// chains differ by at least 3 000 cycles and 300 steps.
///
/// A loop's exit is predicted for many blocks and then mispredicted for many. With 20 iterations
/// this moved a rate by 24 cycles of 600, and the overhead of every method by 4 % (Xeon, family 6,
/// model 207).
const LOOPS_LEAST: u64 = 100;
const LOOPS_PER_STEP: f64 = 20.0;
/// A block's rate is the median of this number of blocks around it. An interrupt in the ruler
/// spoils one rate, and a frequency holds for milliseconds (0.5 ms or more, measured).
const RATE_BLOCKS: usize = 5;
/// Two required shares of samples. If nine of ten ensembles keep the larger share, the trimmed
/// samples represent the method. If nine of ten keep less than the smaller one, they say nothing.
/// Between them the answer depends on the required share.
const KEPT_SHARES: [f64; 2] = [0.4, 0.6];
/// Share of ensembles that may keep less than most, and share that may keep more.
const FEW_ENSEMBLES_SHARE: f64 = 0.1;
/// Fewest ensembles for a verdict.
const ENSEMBLES_LEAST: usize = 4;

/// The ruler's calls at the end of each block.
pub(crate) use column::BRIEF as RULERS;

/// The ruler's programs.
pub(crate) fn block_ruler_programs(tested: &TestedClock) -> [Program; RULERS] {
    let RulerPrograms { imul: [short, long], sentinel, .. } = RulerPrograms::for_mode(tested.ruler, tested.mode);
    [short, long, sentinel]
}

/// Converts raw units to steps and core cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnitScale {
    /// Step of the clock, in raw units.
    pub step: f64,
    /// Latency of the ruler's `imul` in core cycles.
    pub imul_latency: f64,
}

/// The ruler's calls in ensemble `number`; its programs are at three places from `first`.
pub(crate) fn block_ruler_calls(step: f64, number: usize, first: usize) -> [ProgramCall; RULERS] {
    let calls = schedule::ruler_calls(block_ruler_loops(step, number), sentinel_loops(step));
    calls.map(|call| ProgramCall { place: first + call.place, ..call })
}

/// Iterations of the ruler in ensemble `number`. They vary by a quarter between ensembles, because
/// the cost of a loop's exit depends on them.
fn block_ruler_loops(step: f64, number: usize) -> u64 {
    let most = LOOPS_LEAST.max((LOOPS_PER_STEP * step) as u64);
    // Steps of an odd size that does not divide the range visit all of it.
    let spread = most / 4;
    most - number as u64 * 7 % (spread + 1)
}

/// One block: sums over the kept samples, and its ruler.
#[derive(Debug, Clone, Copy)]
struct BlockSums {
    kept: f64,
    sum: f64,
    /// Squared distances from the block's mean.
    squares: f64,
    /// Raw units per core cycle.
    rate: f64,
    /// Additions per cycle according to the width sentinel.
    width: f64,
}

/// The blocks of one incomplete ensemble.
#[derive(Debug, Clone, Default)]
pub(crate) struct EnsembleBlocks {
    blocks: Vec<BlockSums>,
    samples: u64,
    powers: PowerSums,
}

impl EnsembleBlocks {
    /// Adds a block of ensemble `number`: its durations and the ruler's calls.
    pub(crate) fn add_block(
        &mut self,
        durations: &[DurationCount],
        ruler: &[Sample],
        scale: &UnitScale,
        number: usize,
    ) {
        let least = durations.iter().map(|one| one.duration).min().unwrap_or(0);
        let limit = least.saturating_add((TRIM_STEPS * scale.step) as u64);
        // Distances from the minimum are small enough for integer sums.
        let (mut kept, mut sum, mut squares) = (0_u64, 0_u64, 0_u64);
        for DurationCount { duration, count } in
            durations.iter().filter(|one| one.duration < limit.min(INSANE_DURATION))
        {
            let above = duration - least;
            kept += count;
            sum += count * above;
            squares += count * above * above;
            self.powers.add_value(above as f64, *count as f64);
        }
        let (kept, sum, squares) = (kept as f64, sum as f64, squares as f64);
        let gauge =
            Gauge::brief_ruler(block_ruler_loops(scale.step, number), sentinel_loops(scale.step), scale.imul_latency);
        let ruler = gauge.read(&ruler.iter().map(raw_duration).collect::<Vec<_>>());
        self.samples += durations.iter().map(|one| one.count).sum::<u64>();
        self.blocks.push(BlockSums {
            kept,
            sum: sum + kept * least as f64,
            squares: squares - sum * sum / kept.max(1.0),
            rate: ruler.rate,
            width: ruler.width,
        });
    }

    /// Completes the ensemble; `None` without a valid rate.
    pub(crate) fn finish_ensemble(&mut self) -> Option<TrimmedEnsemble> {
        let blocks = std::mem::take(&mut self.blocks);
        let samples = std::mem::take(&mut self.samples);
        let powers = std::mem::take(&mut self.powers);
        let (mut kept, mut sum, mut squares, mut cycles) = (0.0, 0.0, 0.0, 0.0);
        let (mut rates, mut widths) = (Vec::new(), Vec::new());
        for (at, block) in blocks.iter().enumerate() {
            let around = at.saturating_sub(RATE_BLOCKS / 2)..(at + RATE_BLOCKS / 2 + 1).min(blocks.len());
            let rate = median(&mut blocks[around].iter().map(|block| block.rate).collect::<Vec<_>>());
            if !(rate.is_finite() && rate > 0.0) {
                continue;
            }
            kept += block.kept;
            sum += block.sum;
            squares += block.squares;
            cycles += block.sum / rate;
            rates.push(rate);
            widths.push(block.width);
        }
        if rates.is_empty() || kept == 0.0 {
            return None;
        }
        Some(TrimmedEnsemble {
            samples,
            kept: kept as u64,
            overhead: cycles / kept,
            raw: sum / kept,
            // Each block has its own mean.
            variance: squares / (kept - rates.len() as f64).max(1.0),
            moments: powers.central_moments(),
            rate: mean(&rates),
            width: quantiles(&mut widths, [0.25])[0],
        })
    }
}

/// The trimmed part of one ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TrimmedEnsemble {
    /// Number of samples taken.
    pub samples: u64,
    /// Number of samples kept.
    pub kept: u64,
    /// Mean of the kept samples in core cycles.
    pub overhead: f64,
    /// Mean of the kept samples in raw units of the clock.
    pub raw: f64,
    /// Variance of the kept samples within blocks, in raw units².
    pub variance: f64,
    /// Second and fourth central moment of the samples' distances from their block's minimum, in
    /// raw units² and ⁴. Only the method affects them, because a frequency change moves a whole
    /// block.
    pub moments: [f64; 2],
    /// Raw units per core cycle, averaged over blocks.
    pub rate: f64,
    /// Additions per core cycle that at least three quarters of the blocks reach.
    pub width: f64,
}

/// The trimmed samples of all ensembles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrimmedSummary {
    /// The verdict: see [`TrimmedSummary::from_ensembles`].
    pub ergodic: ErgodicVerdict,
    /// Median of the ensembles' mean samples, in core cycles.
    pub overhead: f64,
    /// Standard deviation of these means in core cycles, from the middle half of the ensembles.
    pub overhead_spread: f64,
    /// Median of the ensembles' variances, in raw units².
    pub variance: f64,
    /// Spread of these variances beyond chance, in raw units².
    pub variance_spread: f64,
    /// The step of the clock in core cycles.
    pub step_cycles: f64,
    /// Share of samples that was dropped, in the ensembles used.
    pub dropped_share: f64,
    /// Shares of its samples that an ensemble kept: nine of ten ensembles keep more than the first,
    /// and nine of ten less than the second.
    pub kept_shares: [f64; 2],
    /// Share of ensembles that differ from the median by a step or more.
    pub outlying_share: f64,
    /// Ensembles with a busy sibling. They are excluded unless they are the majority.
    pub shared: usize,
    /// Whether they are the majority, so that all ensembles were used.
    pub mostly_shared: bool,
    /// Lowest and highest rate of an ensemble, in raw units per core cycle.
    pub rates: [f64; 2],
}

/// Median, and standard deviation from the middle half. A few disturbed ensembles affect neither.
fn median_and_spread(mut values: Vec<f64>) -> (f64, f64) {
    (median(&mut values), quartile_deviation(&mut values))
}

/// Width of an unshared core according to these ensembles.
pub(crate) fn find_quiet(ensembles: &[TrimmedEnsemble]) -> UnsharedWidth {
    UnsharedWidth::from_widths(ensembles.iter().map(|ensemble| (ensemble.width, WIDTH_ERROR)), None)
}

/// Standard error of an ensemble's width, as a share of it. Blocks on a quiet core lie within 5 %
/// (Xeon, family 6, model 207), and a single block decides.
const WIDTH_ERROR: f64 = 0.025;

/// The verdict for ensembles that kept these shares ([`TrimmedSummary::kept_shares`]). `constant`
/// says whether they agree.
fn judge_constancy([low, high]: [f64; 2], constant: bool) -> ErgodicVerdict {
    let [least, enough] = KEPT_SHARES;
    if high < least {
        ErgodicVerdict::No
    } else if low < enough {
        ErgodicVerdict::DependsOnShare
    } else {
        ErgodicVerdict::from(constant)
    }
}

/// All ensembles count if most ran with a busy sibling. The few others would not represent this
/// core.
const SHARED_ENSEMBLES_POLICY: SiblingPolicy = SiblingPolicy { least: 0, least_share: 0.5, ..SiblingPolicy::USUAL };

/// The ensembles that count. For `earlier` see [`TrimmedSummary::from_ensembles`].
pub(crate) fn keep_unshared(ensembles: &[TrimmedEnsemble], earlier: UnsharedWidth) -> KeptReplicates<&TrimmedEnsemble> {
    let quiet = find_quiet(ensembles).or_earlier(earlier);
    SHARED_ENSEMBLES_POLICY.keep_unshared(ensembles.iter().collect(), quiet, |ensemble| (ensemble.width, WIDTH_ERROR))
}

impl TrimmedSummary {
    /// Judges the ensembles of a method. `step` is in raw units. The method is ergodic if
    ///
    /// - the overhead in core cycles differs between ensembles by less than one step of the clock
    ///   (as a standard deviation). This is the paper's "constant minimum", which was constant to
    ///   its step of 4 ticks;
    /// - the variance differs between ensembles by less than step²/4 (as a standard deviation), the
    ///   most that rounding to steps causes;
    /// - nine of ten ensembles keep at least six of ten samples.
    ///
    /// It is not ergodic if one of the first two fails, or if nine of ten ensembles keep less than
    /// four of ten samples. Between these shares the answer depends on the required share, and says
    /// little about the method.
    ///
    /// `earlier` is the width of an unshared core that [`find_quiet`] found for other methods with
    /// the same ruler. `None` with fewer than four ensembles.
    pub(crate) fn from_ensembles(
        ensembles: &[TrimmedEnsemble],
        step: f64,
        earlier: UnsharedWidth,
    ) -> Option<TrimmedSummary> {
        let KeptReplicates { used, shared_count: shared, shared: mostly_shared } = keep_unshared(ensembles, earlier);
        if used.len() < ENSEMBLES_LEAST {
            return None;
        }
        let collect_figures =
            |figure: fn(&TrimmedEnsemble) -> f64| used.iter().map(|ensemble| figure(ensemble)).collect::<Vec<_>>();
        let (overhead, overhead_spread) = median_and_spread(collect_figures(|ensemble| ensemble.overhead));
        let (variance, variance_spread) = median_and_spread(collect_figures(|ensemble| ensemble.variance));
        let kept = mean(&collect_figures(|ensemble| ensemble.kept as f64)) as u32;
        let chance = chance_variance(used.iter().map(|ensemble| ensemble.moments), kept)?;
        let variance_spread = (variance_spread.powi(2) - chance).max(0.0).sqrt();
        let rates = collect_figures(|ensemble| ensemble.rate);
        let all: u64 = used.iter().map(|ensemble| ensemble.samples).sum();
        let kept: u64 = used.iter().map(|ensemble| ensemble.kept).sum();
        let dropped_share = 1.0 - kept as f64 / all as f64;
        let step_cycles = step / mean(&rates);
        let mut shares = collect_figures(|ensemble| ensemble.kept as f64 / ensemble.samples as f64);
        let kept_shares = quantiles(&mut shares, [FEW_ENSEMBLES_SHARE, 1.0 - FEW_ENSEMBLES_SHARE]);
        let constant = overhead_spread < step_cycles && variance_spread < step * step / 4.0;
        let outlying = used.iter().filter(|ensemble| (ensemble.overhead - overhead).abs() >= step_cycles).count();
        Some(TrimmedSummary {
            ergodic: judge_constancy(kept_shares, constant),
            overhead,
            overhead_spread,
            variance,
            variance_spread,
            step_cycles,
            dropped_share,
            kept_shares,
            outlying_share: outlying as f64 / used.len() as f64,
            shared,
            mostly_shared,
            rates: value_range(rates),
        })
    }

    /// Whether nine of ten ensembles kept enough samples to represent the method.
    pub(crate) fn keeps_enough(&self) -> bool {
        self.kept_shares[0] >= KEPT_SHARES[1]
    }

    /// Explains the verdict in one sentence.
    pub fn explain_verdict(&self, step: f64) -> String {
        let [low, high] = self.kept_shares;
        let remains = format!(
            "{:.1} % of the samples lie at least {TRIM_STEPS} steps above the minimum of their block and were \
             dropped; {:.1} % remain, in most ensembles {:.0} to {:.0} %",
            100.0 * self.dropped_share,
            100.0 * (1.0 - self.dropped_share),
            100.0 * low,
            100.0 * high
        );
        if high < KEPT_SHARES[0] {
            return format!("{remains}: too few for a verdict");
        }
        if !self.keeps_enough() {
            let [least, enough] = KEPT_SHARES.map(|share| 100.0 * share);
            return format!("{remains}: the verdict depends on the required share, {least:.0} or {enough:.0} %");
        }
        if self.overhead_spread >= self.step_cycles {
            return format!(
                "the overhead differs between ensembles by {:.2} core cycles, more than a step of {:.2}",
                self.overhead_spread, self.step_cycles
            );
        }
        if self.variance_spread >= step * step / 4.0 {
            return format!(
                "the variance differs between ensembles by {:.2}, more than rounding to steps explains, {:.2}",
                self.variance_spread,
                step * step / 4.0
            );
        }
        let coarse = if self.step_cycles > 8.0 {
            format!("; a step of {:.0} core cycles hides smaller differences", self.step_cycles)
        } else {
            String::new()
        };
        format!(
            "the overhead is {:.2} core cycles, within {:.2} in the middle half of the ensembles; {:.1} % of them are \
             a step or more off; {:.1} % of the samples were dropped and {:.1} % remain{coarse}",
            self.overhead,
            self.overhead_spread,
            100.0 * self.outlying_share,
            100.0 * self.dropped_share,
            100.0 * (1.0 - self.dropped_share)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_between_the_two_limits_is_undecided() {
        let shares = [[0.99, 1.0], [0.6, 0.7], [0.55, 0.7], [0.45, 0.62], [0.2, 0.45], [0.1, 0.39], [0.0, 0.05]];
        let constant = shares.map(|shares| judge_constancy(shares, true));
        use ErgodicVerdict::{DependsOnShare as Open, No, Yes};
        assert_eq!(constant, [Yes, Yes, Open, Open, Open, No, No]);
        assert_eq!(shares.map(|shares| judge_constancy(shares, false)), [No, No, Open, Open, Open, No, No]);
    }
}
