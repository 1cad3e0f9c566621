//! Rounds of calls that include the ruler, and the selection of undisturbed rounds.
//!
//! The ruler is the chain of `imul` at two lengths, with the width sentinel, as in
//! [`cyclescope_measure::ruler`]. The programs under test are called between its parts, in a new
//! order in each layout. A fenced and cheap method with the same counter reads the ruler. A method
//! that reads the ruler poorly would spoil each of its readings twice.

use crate::TestedClock;
use cyclescope_code::program::Program;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::median;
use cyclescope_exec::{PlacedProgram, ProgramCall};
use cyclescope_measure::ruler::{
    Gauge, LayoutSamples, RulerPrograms, RulerScale, UndisturbedBand, UnsharedWidth, column, sentinel_loops,
};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout};
use cyclescope_measure::sibling::SiblingPolicy;

/// Column of the first program under test, after those of the ruler.
pub(super) use column::BRIEF as TESTED;

/// Untimed rounds at the start of each layout, which warm up caches and predictors.
const WARM_UP: u32 = 1;

/// A share of thousands of rounds is enough.
const SHARED_ROUNDS_POLICY: SiblingPolicy = SiblingPolicy { least: 0, ..SiblingPolicy::USUAL };

/// The ruler of a round.
pub(super) struct RoundRuler {
    programs: [Program; TESTED],
    loops: u64,
    gauge: Gauge,
    /// Step of the readings, in raw units.
    step: f64,
}

impl RoundRuler {
    /// The ruler for a tested clock, with this number of iterations.
    pub(super) fn new(tested: &TestedClock, loops: u64) -> RoundRuler {
        let RulerPrograms { imul: [short, long], sentinel, .. } = RulerPrograms::for_mode(tested.ruler, tested.mode);
        let gauge = Gauge::brief_ruler(loops, sentinel_loops(tested.step), tested.imul_latency);
        RoundRuler { programs: [short, long, sentinel], loops, gauge, step: tested.step }
    }

    /// Its programs, which come first in each batch.
    pub(super) fn ruler_programs(&self) -> [Program; TESTED] {
        self.programs.clone()
    }

    /// Possible error of the instrument in core cycles per copy: see [`Gauge::systematic_error`].
    pub(super) fn systematic_error(&self, cost: f64, copies: f64) -> f64 {
        self.gauge.systematic_error(cost, copies)
    }

    /// The scale from the ruler of this round; `None` if a reading ran backwards or the long chain
    /// was not longer.
    pub(super) fn read_scale(&self, round: &[f64]) -> Option<RulerScale> {
        Some(self.gauge.read(round)).filter(RulerScale::is_sane)
    }

    /// Width in a round, and its standard error as a share of it.
    fn width_with_error(&self, scale: &RulerScale) -> (f64, f64) {
        (scale.width, self.gauge.width_error(scale, self.step, 1))
    }

    /// Whether the width of a round is that of an unshared core.
    fn is_alone(&self, scale: &RulerScale, quiet: &UnsharedWidth) -> bool {
        let (width, error) = self.width_with_error(scale);
        quiet.is_alone(width, error)
    }

    /// Characteristics of undisturbed rulers, from all of these rounds; `None` if no round has a
    /// rate.
    ///
    /// An interrupt in either reading, and a change of frequency between them, affect the time that
    /// the short reading takes beyond its chain. A busy sibling affects the sentinel.
    pub(super) fn find_sound_rulers<'a>(&self, rounds: impl Iterator<Item = &'a [f64]>) -> Option<SoundRulers> {
        let scales: Vec<RulerScale> = rounds.filter_map(|round| self.read_scale(round)).collect();
        if scales.is_empty() {
            return None;
        }
        let step = self.step / median(&mut scales.iter().map(|scale| scale.rate).collect::<Vec<_>>());
        let overhead = UndisturbedBand::from_values(scales.iter().map(|scale| scale.overhead).collect(), step)?;
        let quiet = UnsharedWidth::from_widths(scales.iter().map(|scale| self.width_with_error(scale)), None);
        let alone = scales.iter().filter(|scale| self.is_alone(scale, &quiet)).count();
        let shared = !SHARED_ROUNDS_POLICY.is_enough(alone, scales.len());
        Some(SoundRulers { overhead, quiet: if shared { UnsharedWidth::default() } else { quiet }, shared, step })
    }

    /// The rounds of a layout with a valid ruler and without a busy sibling, each with its rate.
    pub(super) fn usable_rounds<'a>(
        &'a self,
        layout: &'a LayoutSamples,
        sound: &'a SoundRulers,
    ) -> impl Iterator<Item = (f64, &'a [f64])> {
        let scales: Vec<Option<RulerScale>> = layout.rounds().map(|round| self.read_scale(round)).collect();
        let alone = |scale: &Option<RulerScale>| scale.is_some_and(|scale| self.is_alone(&scale, &sound.quiet));
        let alone: Vec<bool> = scales.iter().map(alone).collect();
        let near = |index: usize| &alone[index.saturating_sub(1)..alone.len().min(index + 2)];
        let clear: Vec<bool> = (0..alone.len()).map(|index| near(index).iter().all(|alone| *alone)).collect();
        let mostly = 2 * clear.iter().filter(|clear| **clear).count() >= clear.len();
        let rounds = layout.rounds().zip(scales).zip(clear);
        rounds.filter_map(move |((round, scale), clear)| {
            let scale = scale?;
            (sound.overhead.contains(scale.overhead) && mostly && clear).then_some((scale.rate, round))
        })
    }

    /// A layout that calls the programs of `code`, the ruler's first, as often as `tested`
    /// requests. Its entries are the place in `code` and the iterations of each call.
    pub(super) fn build_stage(
        &self,
        code: Vec<PlacedProgram>,
        tested: &[ProgramCall],
        random: &mut Random,
    ) -> PlannedLayout {
        let rulers = schedule::ruler_calls::<TESTED>(self.loops, sentinel_loops(self.step));
        PlannedLayout::with_shuffled_calls(code, rulers.iter().chain(tested).copied().collect(), random)
    }
}

/// The pace of layouts with this number of rounds.
pub(super) fn layout_pace(rounds: u32) -> BatchPace {
    BatchPace { warm_up: WARM_UP, rounds, ..BatchPace::default() }
}

/// The rounds of some layouts.
pub(super) fn flatten_rounds<'a>(
    layouts: impl Iterator<Item = &'a LayoutSamples> + Clone,
) -> impl Iterator<Item = &'a [f64]> + Clone {
    layouts.flat_map(LayoutSamples::rounds)
}

/// Characteristics of undisturbed rulers.
pub(super) struct SoundRulers {
    overhead: UndisturbedBand,
    /// Width of an unshared core.
    quiet: UnsharedWidth,
    /// Whether a sibling was busy nearly all the time, so that such rounds are used.
    pub(super) shared: bool,
    /// One step of the readings in core cycles.
    step: f64,
}

/// Acceptable difference between readings of a body with branches, in core cycles before the factor
/// of [`UndisturbedBand`]. The product is 48: twice a mispredicted branch, which belongs to the
/// body, and far below an interrupt.
const BRANCH_SCALE: f64 = 8.0;

impl SoundRulers {
    /// The range of a body's undisturbed readings, from all of its readings in core cycles; `None`
    /// without readings.
    pub(super) fn reading_band(&self, cycles: Vec<f64>, branches: bool) -> Option<UndisturbedBand> {
        UndisturbedBand::from_values(cycles, if branches { self.step.max(BRANCH_SCALE) } else { self.step })
    }
}
