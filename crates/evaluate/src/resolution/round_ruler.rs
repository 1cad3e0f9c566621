//! Rounds of calls with the ruler among them, and which of them are fit for use.
//!
//! The ruler is the chain of `imul` at two lengths, with the width sentinel, as in [`cyclescope_measure::ruler`]; the programs under
//! test are called among them, in another order in each layout. The ruler is read by a fenced and cheap method that
//! counts the same: one that can't read the ruler well would spoil each of its readings twice.

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

/// The columns of the programs under test begin behind those of the ruler.
pub(super) use column::BRIEF as TESTED;

/// Untimed rounds at the start of each layout, in which caches and predictors meet the code.
const WARM_UP: u32 = 1;

/// Of thousands of rounds a share is enough.
const SHARED_ROUNDS_POLICY: SiblingPolicy = SiblingPolicy { least: 0, ..SiblingPolicy::USUAL };

/// The ruler of a round.
pub(super) struct RoundRuler {
    programs: [Program; TESTED],
    loops: u64,
    gauge: Gauge,
    /// The step of the readings in raw units.
    step: f64,
}

impl RoundRuler {
    /// The ruler of a tested clock, with this number of iterations.
    pub(super) fn new(tested: &TestedClock, loops: u64) -> RoundRuler {
        let RulerPrograms { imul: [short, long], sentinel, .. } = RulerPrograms::new(tested.ruler);
        let gauge = Gauge::brief_ruler(loops, sentinel_loops(tested.step), tested.imul_latency);
        RoundRuler { programs: [short, long, sentinel], loops, gauge, step: tested.step }
    }

    /// Its programs, the first of each batch.
    pub(super) fn ruler_programs(&self) -> [Program; TESTED] {
        self.programs.clone()
    }

    /// What the instrument may be wrong by, in core cycles a copy: see [`Gauge::systematic_error`].
    pub(super) fn systematic_error(&self, cost: f64, copies: f64) -> f64 {
        self.gauge.systematic_error(cost, copies)
    }

    /// What the ruler of this round says; none where a reading ran backwards or the long chain was not longer.
    pub(super) fn read_scale(&self, round: &[f64]) -> Option<RulerScale> {
        Some(self.gauge.read(round)).filter(RulerScale::is_sane)
    }

    /// A round's width, and its standard error as a share of it.
    fn width_with_error(&self, scale: &RulerScale) -> (f64, f64) {
        (scale.width, self.gauge.width_error(scale, self.step, 1))
    }

    /// Whether a round's width is that of a core of its own.
    fn is_alone(&self, scale: &RulerScale, quiet: &UnsharedWidth) -> bool {
        let (width, error) = self.width_with_error(scale);
        quiet.is_alone(width, error)
    }

    /// What the ruler of an undisturbed round says, from all of these rounds; none where no round has a rate.
    ///
    /// An interrupt in either reading, and a change of frequency between the two, shows in what the short one takes
    /// beside its chain; a busy sibling in the sentinel.
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

    /// A layout's rounds whose ruler is sound, and which a busy sibling did not come near, each with its rate.
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

    /// A layout that calls the programs of `code`, the ruler's first, as often as `tested` says: the place in `code` and
    /// the iterations of each call.
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

/// How layouts of this many rounds run.
pub(super) fn layout_pace(rounds: u32) -> BatchPace {
    BatchPace { warm_up: WARM_UP, rounds, ..BatchPace::default() }
}

/// The rounds of some layouts.
pub(super) fn flatten_rounds<'a>(
    layouts: impl Iterator<Item = &'a LayoutSamples> + Clone,
) -> impl Iterator<Item = &'a [f64]> + Clone {
    layouts.flat_map(LayoutSamples::rounds)
}

/// What undisturbed rulers are like.
pub(super) struct SoundRulers {
    overhead: UndisturbedBand,
    /// The width of a core of its own.
    quiet: UnsharedWidth,
    /// Whether the core was shared with a busy sibling nearly all the time, so that such rounds are used.
    pub(super) shared: bool,
    /// One step of the readings in core cycles.
    step: f64,
}

/// Core cycles by which the readings of a body with branches may differ, times what [`UndisturbedBand`] allows, before they
/// count as disturbed: 48 are twice a mispredicted branch, which belongs to the body, and far below an interrupt.
const BRANCH_SCALE: f64 = 8.0;

impl SoundRulers {
    /// Where a body's undisturbed readings lie, from all of them in core cycles; none without readings.
    pub(super) fn reading_band(&self, cycles: Vec<f64>, branches: bool) -> Option<UndisturbedBand> {
        UndisturbedBand::from_values(cycles, if branches { self.step.max(BRANCH_SCALE) } else { self.step })
    }
}
