//! How long fillers alone take: the scale on which dispatch slots are counted.
//!
//! A body that takes as long as a loop of n fillers takes n slots. So a curve over the number of
//! fillers turns core cycles into slots, including what a loop's end costs and what long loops lose.
//! A kind of filler is trusted if it is as fast as the fastest kind: then nothing but the slots
//! limits it. NOPs are no measure of what is fastest, because some cores pack them.

use super::modes::find_lowest_mode;
use super::program_reading::ProgramReading;
use super::timing::{LoopedProgram, ProgramTimer, TimingSize, TimingSurroundings};
use crate::bodies::slot_filler::{FillerRegisters, SlotFiller};
use cyclescope_code::program::VectorSetup;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::median;
use cyclescope_exec::Executor;
use cyclescope_measure::sibling::SiblingWait;
use iced_x86::CpuidFeature;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Numbers of fillers in a loop.
const COUNTS: [usize; 10] = [24, 48, 72, 96, 120, 144, 192, 240, 320, 480];
/// The slopes between these and smaller ones show the rate. Some cores lose slots in longer loops.
const RATE_COUNT_MOST: usize = 192;
/// Fillers that are slower than the fastest by more than this share have another limit.
const RATE_SHARE: f64 = 0.03;
/// Layouts in a sweep, and rounds of each.
const SWEEP_SIZE: TimingSize = TimingSize { layouts: 4, warm_up: 1, rounds: 4 };
/// Approximate core cycles of the shortest call, if a core dispatches this many in a cycle.
const CALL_CYCLES: usize = 8_000;
const USUAL_WIDTH: usize = 6;
/// Sweeps are repeated until each loop has this many layouts with an idle sibling.
const LAYOUTS_LEAST: usize = 4;
const SWEEP_WAIT: Duration = Duration::from_secs(20);
/// The scale is settled if another sweep lowers none of its times by more than this share.
const SETTLED_SHARE: f64 = 0.01;
/// Kinds of fillers that slots are counted with.
const TRUSTED_LEAST: usize = 2;

/// Times of loops of fillers of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FillerCurve {
    /// The kind of filler.
    pub filler: SlotFiller,
    /// Whether vector fillers are VEX code.
    pub vex: bool,
    /// Numbers of fillers in ascending order, and core cycles of an iteration.
    pub points: Vec<(usize, f64)>,
}

impl FillerCurve {
    /// Fillers per core cycle: the median slope between any two points, so that no single one decides. `None` without
    /// two points.
    pub(crate) fn rate(&self) -> Option<f64> {
        let points: Vec<&(usize, f64)> = self.points.iter().filter(|(count, _)| *count <= RATE_COUNT_MOST).collect();
        let slopes_to = |(at, (many, most)): (usize, &&(usize, f64))| {
            let slope = |(few, least): &&(usize, f64)| (many - few) as f64 / (most - least);
            points[..at].iter().map(slope).collect::<Vec<f64>>()
        };
        let mut slopes: Vec<f64> = points.iter().enumerate().flat_map(slopes_to).collect();
        let rate = (!slopes.is_empty()).then(|| median(&mut slopes))?;
        (rate > 0.0 && rate.is_finite()).then_some(rate)
    }

    /// The core cycles of this number of fillers, if it was measured.
    fn find_point(&self, fillers: usize) -> Option<f64> {
        self.points.iter().find(|(count, _)| *count == fillers).map(|(_, cycles)| *cycles)
    }

    /// The number of fillers that take as long as this many core cycles.
    pub(crate) fn count_slots(&self, cycles: f64) -> f64 {
        let last = self.points.len().saturating_sub(2);
        let above = |at: &usize| self.points[at + 1].1 >= cycles;
        let at = (0..last).find(above).unwrap_or(last);
        let [(few, least), (many, most)] = [self.points[at], self.points[at + 1]];
        few as f64 + (cycles - least) / (most - least) * (many - few) as f64
    }

    /// Whether a machine may have this curve: more fillers take longer.
    fn is_possible(&self) -> bool {
        let rising = |pair: &[(usize, f64)]| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1;
        self.points.len() > 1 && self.points[0].1 > 0.0 && self.points.windows(2).all(rising)
    }
}

/// The curves of all kinds of fillers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<FillerCurve>", into = "Vec<FillerCurve>")]
pub struct FillerCurves {
    curves: Vec<FillerCurve>,
    /// The least time for each number of fillers, of all trusted kinds but NOPs and of all chords between others.
    fastest: Option<FillerCurve>,
}

/// The curves of a survey that counts no slots.
pub(crate) static NO_FILLER_CURVES: FillerCurves = FillerCurves { curves: Vec::new(), fastest: None };

impl From<Vec<FillerCurve>> for FillerCurves {
    fn from(curves: Vec<FillerCurve>) -> FillerCurves {
        let mut all = FillerCurves { curves, fastest: None };
        all.fastest = all.find_fastest();
        all
    }
}

impl From<FillerCurves> for Vec<FillerCurve> {
    fn from(all: FillerCurves) -> Vec<FillerCurve> {
        all.curves
    }
}

impl FillerCurves {
    /// Measures the curves, until another sweep finds no faster fillers.
    pub(crate) fn measure(
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        features: &CpuFeatures,
        random: &mut Random,
    ) -> Result<FillerCurves, RunError> {
        let has_vex = features.find_missing(&[CpuidFeature::AVX]).is_empty();
        let kinds: Vec<bool> = [false, true].into_iter().take(1 + usize::from(has_vex)).collect();
        let mut wait = SiblingWait::new(SWEEP_WAIT);
        let mut known = FillerCurves::default();
        loop {
            let (mut curves, mut shared) = (known.curves.clone(), false);
            for vex in &kinds {
                let sweep = FillerSweep::measure(timer, executor, *vex, &mut wait, random)?;
                sweep.curves.into_iter().for_each(|curve| lower_or_add(&mut curves, curve));
                shared |= sweep.shared;
            }
            let found = FillerCurves::from(curves);
            let is_settled = found.is_near(&known);
            known = found;
            // A sibling may be busy for a part of a call, unseen. Then kinds that only the slots limit differ.
            let is_doubtful = shared && kinds.iter().any(|vex| known.list_trusted(*vex).len() < TRUSTED_LEAST);
            if is_settled && !is_doubtful || !wait.pause_before_retry(executor, !is_settled) {
                return Ok(known);
            }
        }
    }

    /// Whether the scale is hardly lower than an earlier one.
    fn is_near(&self, earlier: &FillerCurves) -> bool {
        let near = |(count, cycles): &(usize, f64)| {
            let before = earlier.fastest().and_then(|curve| curve.find_point(*count));
            before.is_some_and(|before| *cycles >= (1.0 - SETTLED_SHARE) * before)
        };
        self.fastest().is_none_or(|curve| curve.points.iter().all(near))
    }

    /// The scale: no fillers are faster than this.
    pub(crate) fn fastest(&self) -> Option<&FillerCurve> {
        self.fastest.as_ref()
    }

    fn find_fastest(&self) -> Option<FillerCurve> {
        let trusted = self.curves.iter().filter(|curve| self.list_trusted(curve.vex).contains(&curve.filler));
        find_least_curve(trusted)
    }

    /// The curve of a kind of filler.
    fn find_curve(&self, filler: SlotFiller, vex: bool) -> Option<&FillerCurve> {
        self.curves.iter().find(|curve| (curve.filler, curve.vex) == (filler, vex))
    }

    /// The fastest trusted loop of about this many fillers: their kind, their number, and the core cycles of
    /// as many fillers on the scale.
    pub(super) fn find_fastest_loop(&self, fillers: usize, vex: bool) -> Option<(SlotFiller, usize, f64)> {
        let (count, cycles) = *self.fastest()?.points.iter().min_by_key(|(count, _)| count.abs_diff(fillers))?;
        let trusted = self.list_trusted(vex).into_iter().filter(|filler| *filler != SlotFiller::Nop);
        let points = trusted.filter_map(|filler| Some((filler, self.find_curve(filler, vex)?.find_point(count)?)));
        let (filler, _) = points.min_by(|one, other| one.1.total_cmp(&other.1))?;
        Some((filler, count, cycles))
    }

    /// Slots per core cycle: the rate of the fastest fillers but NOPs. `None` without any. The least times of all
    /// kinds count: short loops of one kind that were disturbed make its own rate too large.
    pub fn width(&self) -> Option<f64> {
        find_least_curve(self.curves.iter())?.rate()
    }

    /// The kinds of fillers that only the slots limit, the most trusted first.
    pub(crate) fn list_trusted(&self, vex: bool) -> Vec<SlotFiller> {
        let Some(width) = self.width() else { return Vec::new() };
        let is_full = |rate: f64| (rate / width - 1.0).abs() <= RATE_SHARE;
        let trusted =
            |filler: &SlotFiller| self.find_curve(*filler, vex).and_then(FillerCurve::rate).is_some_and(is_full);
        SlotFiller::ALL.into_iter().filter(trusted).collect()
    }

    /// Whether a machine may have these curves.
    pub fn is_possible(&self) -> bool {
        self.curves.iter().all(FillerCurve::is_possible)
    }
}

/// The least time for each number of fillers, of these kinds but NOPs and of all chords between others.
fn find_least_curve<'a>(curves: impl Iterator<Item = &'a FillerCurve>) -> Option<FillerCurve> {
    let curves: Vec<&FillerCurve> = curves.filter(|curve| curve.filler != SlotFiller::Nop).collect();
    let least = |count: usize| {
        let cycles = curves.iter().filter_map(|curve| curve.find_point(count)).min_by(f64::total_cmp)?;
        Some((count, cycles))
    };
    let points: Vec<(usize, f64)> = COUNTS.into_iter().filter_map(least).collect();
    let curve = FillerCurve { points: lower_to_chords(&points), ..(*curves.first()?).clone() };
    curve.is_possible().then_some(curve)
}

/// Adds a curve. A known one of its kind keeps the lower time of each number of fillers.
fn lower_or_add(curves: &mut Vec<FillerCurve>, curve: FillerCurve) {
    let kind = |curve: &FillerCurve| (curve.filler, curve.vex);
    let Some(known) = curves.iter_mut().find(|known| kind(known) == kind(&curve)) else {
        curves.push(curve);
        return;
    };
    let lower = |count: usize| {
        let points = [known.find_point(count), curve.find_point(count)];
        Some((count, points.into_iter().flatten().min_by(f64::total_cmp)?))
    };
    let points = COUNTS.into_iter().filter_map(lower).collect();
    let lowered = FillerCurve { points, ..curve };
    // Points of two sweeps may contradict each other.
    if lowered.is_possible() {
        *known = lowered;
    }
}

/// Points on the lower convex envelope of these points, which are in ascending order. A loop that is slower than the
/// chord between a shorter and a longer one loses slots by its place in memory: up to 1.5 of 72 on Zen 3.
fn lower_to_chords(points: &[(usize, f64)]) -> Vec<(usize, f64)> {
    let slope = |from: (usize, f64), to: (usize, f64)| (to.1 - from.1) / (to.0 - from.0) as f64;
    let mut low: Vec<(usize, f64)> = Vec::new();
    let mut from = points.first().copied();
    while let Some(start) = from {
        let later = points.iter().copied().filter(|point| point.0 > start.0);
        let next = later.clone().min_by(|one, other| slope(start, *one).total_cmp(&slope(start, *other)));
        let until = next.map_or(start.0 + 1, |next| next.0);
        let between = points.iter().map(|point| point.0).filter(|count| (start.0..until).contains(count));
        let chord = |count: usize| start.1 + next.map_or(0.0, |next| slope(start, next) * (count - start.0) as f64);
        low.extend(between.map(|count| (count, chord(count))));
        from = next;
    }
    low
}

/// A loop of this many fillers alone, whose shortest call has these iterations.
pub(super) fn build_filler_loop(
    timer: &ProgramTimer,
    filler: SlotFiller,
    vex: bool,
    count: usize,
    loops: u64,
) -> LoopedProgram {
    let registers = FillerRegisters::without_form(timer.mode, vex);
    let codes = filler.encode_fillers(&registers).expect("fillers can be encoded");
    let period: Vec<u8> = codes.iter().cycle().take(count).flatten().copied().collect();
    let world = Snippet::new(period.clone(), Vec::new(), "").with_mode(timer.mode).outline(true).world;
    LoopedProgram { program: timer.build_program(world, &[], &period, 1), copies: 1, loops }
}

/// The curves of all kinds of fillers, from one sweep.
struct FillerSweep {
    /// Kinds without figures are left out.
    curves: Vec<FillerCurve>,
    /// Whether the sibling was busy in some rounds.
    shared: bool,
}

impl FillerSweep {
    fn measure(
        timer: &ProgramTimer,
        executor: &mut dyn Executor,
        vex: bool,
        wait: &mut SiblingWait,
        random: &mut Random,
    ) -> Result<FillerSweep, RunError> {
        let loops = |count: usize| (CALL_CYCLES * USUAL_WIDTH / count) as u64;
        let program = |filler| COUNTS.map(|count| build_filler_loop(timer, filler, vex, count, loops(count)));
        let programs: Vec<LoopedProgram> = SlotFiller::ALL.into_iter().flat_map(program).collect();
        let vectors = if vex { VectorSetup::Ymm } else { VectorSetup::Legacy };
        let surroundings = TimingSurroundings { touches_memory: true, vectors, ..TimingSurroundings::default() };
        let mut readings = vec![ProgramReading::default(); programs.len()];
        let count = |readings: &[ProgramReading]| readings.iter().map(|reading| reading.cycles.len()).sum::<usize>();
        loop {
            let known = count(&readings);
            let timings = timer.time_programs(executor, &programs, SWEEP_SIZE, surroundings, random)?;
            for layout in &timings {
                readings.iter_mut().zip(layout).for_each(|(reading, timing)| reading.add_rate_layout(timing));
            }
            let is_known = |reading: &ProgramReading| reading.cycles.len() >= LAYOUTS_LEAST;
            if readings.iter().all(is_known) || !wait.pause_before_retry(executor, count(&readings) > known) {
                break;
            }
        }
        let curve = |(filler, readings): (SlotFiller, &[ProgramReading])| {
            let point =
                |(count, reading): (usize, &ProgramReading)| Some((count, find_lowest_mode(&reading.cycles)?.value));
            FillerCurve { filler, vex, points: COUNTS.into_iter().zip(readings).filter_map(point).collect() }
        };
        let curves = SlotFiller::ALL.into_iter().zip(readings.chunks(COUNTS.len())).map(curve);
        let shared = readings.iter().any(|reading| !reading.shared.is_empty());
        Ok(FillerSweep { curves: curves.filter(FillerCurve::is_possible).collect(), shared })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Curves of fillers with these rates, and one slot for the end of a loop.
    pub(crate) fn curves_with_rates(rates: &[(SlotFiller, f64)]) -> FillerCurves {
        let curve = |(filler, rate): &(SlotFiller, f64)| FillerCurve {
            filler: *filler,
            vex: false,
            points: COUNTS.map(|count| (count, (count + 1) as f64 / rate)).to_vec(),
        };
        FillerCurves::from(rates.iter().map(curve).collect::<Vec<FillerCurve>>())
    }

    #[test]
    fn a_curve_counts_slots_between_and_beyond_its_points() {
        let curves = curves_with_rates(&[(SlotFiller::Move, 8.0)]);
        let curve = curves.fastest().unwrap();
        for slots in [3.0, 24.0, 100.0, 480.0, 600.0] {
            assert!((curve.count_slots((slots + 1.0) / 8.0) - slots).abs() < 1e-9);
        }
        assert!((curve.rate().unwrap() - 8.0).abs() < 1e-9 && curve.is_possible());
    }

    #[test]
    fn points_above_a_chord_are_lowered_to_it() {
        let low = lower_to_chords(&[(24, 4.0), (48, 8.5), (72, 12.0), (96, 17.0), (120, 21.0), (144, 25.0)]);
        assert_eq!(low.len(), 6);
        let expected = [4.0, 8.0, 12.0, 12.0 + 13.0 / 3.0, 12.0 + 26.0 / 3.0, 25.0];
        assert!(low.iter().zip(expected).all(|((_, cycles), wanted)| (cycles - wanted).abs() < 1e-9), "{low:?}");
        let convex = [(24, 4.0), (48, 8.0), (72, 12.5)];
        assert_eq!(lower_to_chords(&convex), convex, "a core that loses slots in longer loops");
        assert_eq!((lower_to_chords(&[(24, 4.0)]), lower_to_chords(&[])), (vec![(24, 4.0)], vec![]));
    }

    #[test]
    fn a_sweep_lowers_the_scale_until_it_is_settled() {
        let curve = |factor: f64| {
            let mut curve = curves_with_rates(&[(SlotFiller::Move, 6.0)]).curves.remove(0);
            curve.points[3].1 *= factor;
            curve
        };
        let mut curves = Vec::new();
        [curve(1.1), curve(1.0), curve(1.05)].into_iter().for_each(|curve| lower_or_add(&mut curves, curve));
        assert_eq!(curves, [curve(1.0)], "the least time of all sweeps counts");
        let scale = |factor: f64| {
            let rates = [(SlotFiller::Move, 6.0 / factor), (SlotFiller::ZeroIdiom, 6.0 / factor)];
            curves_with_rates(&rates)
        };
        assert!(!scale(1.0).is_near(&FillerCurves::default()), "one sweep settles nothing");
        assert!(scale(1.0).is_near(&scale(1.005)) && !scale(1.0).is_near(&scale(1.04)));
        assert!(FillerCurves::default().is_near(&FillerCurves::default()), "without fillers there is no scale");
    }

    #[test]
    fn no_single_point_decides_a_rate() {
        // Blends on Zen 3 in a VM with a busy sibling: 6.7 between 48 and 96 fillers, but 5.5 in the long run.
        let blend = [24.0, 5.95, 48.0, 10.94, 72.0, 15.09, 96.0, 18.11, 120.0, 22.63, 144.0, 26.78, 192.0, 36.74];
        let point = |pair: &[f64]| (pair[0] as usize, pair[1]);
        let points = blend.chunks(2).map(point).collect();
        let mut curves: Vec<FillerCurve> =
            curves_with_rates(&[(SlotFiller::Move, 6.0), (SlotFiller::ZeroIdiom, 6.0)]).into();
        curves.push(FillerCurve { filler: SlotFiller::Blend, vex: false, points });
        let curves = FillerCurves::from(curves);
        assert!((curves.width().unwrap() - 6.0).abs() < 1e-9);
        assert_eq!(curves.list_trusted(false), [SlotFiller::ZeroIdiom, SlotFiller::Move]);
    }

    #[test]
    fn the_fastest_loop_is_of_a_kind_that_slots_limit() {
        let rates = [(SlotFiller::ZeroIdiom, 7.9), (SlotFiller::Move, 8.0), (SlotFiller::Nop, 8.1)];
        let curves = curves_with_rates(&rates);
        assert_eq!(curves.find_fastest_loop(100, false), Some((SlotFiller::Move, 96, 97.0 / 8.0)));
        assert_eq!(curves.find_fastest_loop(10_000, false).unwrap().1, 480);
        assert_eq!(curves.find_fastest_loop(100, true), None, "no such code was measured");
        assert_eq!(FillerCurves::default().find_fastest_loop(100, false), None);
    }

    #[test]
    fn disturbed_short_loops_of_a_kind_do_not_widen_the_core() {
        // Blends on Zen 3 beside a shell's loop: slots beyond the fillers.
        let lost = [(24, 9.6), (48, 11.8), (72, 15.4), (96, 10.4), (120, 12.3), (144, 5.1), (192, 2.8)];
        let points = lost.map(|(count, lost)| (count, (count as f64 + lost) / 6.0)).to_vec();
        let blend = FillerCurve { filler: SlotFiller::Blend, vex: false, points };
        assert!(blend.rate().unwrap() > 6.2);
        let mut curves: Vec<FillerCurve> =
            curves_with_rates(&[(SlotFiller::Move, 6.0), (SlotFiller::ZeroIdiom, 6.0)]).into();
        curves.push(blend);
        let curves = FillerCurves::from(curves);
        assert!((curves.width().unwrap() - 6.0).abs() < 0.01);
        assert_eq!(curves.list_trusted(false), [SlotFiller::ZeroIdiom, SlotFiller::Move]);
    }

    #[test]
    fn fillers_with_another_limit_are_not_trusted() {
        let rates = [(SlotFiller::ZeroIdiom, 5.0), (SlotFiller::Blend, 7.9), (SlotFiller::Move, 8.0)];
        let curves = curves_with_rates(&rates);
        assert_eq!(curves.list_trusted(false), [SlotFiller::Blend, SlotFiller::Move]);
        assert_eq!(curves.fastest().unwrap().points[0], (24, 25.0 / 8.0), "the fastest kind is the scale");
        let packed = [(SlotFiller::Move, 8.0), (SlotFiller::Nop, 12.0)];
        assert_eq!(curves_with_rates(&packed).list_trusted(false), [SlotFiller::Move]);
        assert!(FillerCurves::default().list_trusted(false).is_empty());
    }
}
