//! Reads the rounds of a layout: core cycles of each program, apart for rounds with a busy sibling.

use super::round_calls::{CALL_LENGTHS, LoopedProgram, RULER_CALLS, RoundCalls, WAKE_UP_LOOPS};
use super::round_calls::{count_probe_loops, count_program_calls};
use cyclescope_core::statistics::mean;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::ruler::{
    Gauge, LayoutSamples, LeastWidth, RulerScale, RunningMedian, UnsharedWidth, WidthLearner, column, sentinel_loops,
};
use std::cell::RefCell;
use std::ops::Range;

/// Core cycles per instance of one program in one layout, one figure per round.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProgramTiming {
    /// By round, from the difference of 4N and N iterations.
    pub cycles: Vec<f64>,
    /// By round: the cost per instance from 2N to 4N iterations, minus that from N to 2N.
    pub bend: Vec<f64>,
    /// By round: the cost by the longest call alone, less an empty call. It includes the slow start
    /// of the loop. Infinite if both shorter calls cost less per instance: then buffers may have taken
    /// a part.
    pub whole: Vec<f64>,
    /// By round: the least cost that the longest call allows.
    pub floor: Vec<f64>,
    /// Like `cycles`, in rounds with a busy sibling.
    pub shared: Vec<f64>,
    /// Like `bend`, in rounds with a busy sibling.
    pub shared_bend: Vec<f64>,
    /// Like `whole`, in rounds with a busy sibling.
    pub shared_whole: Vec<f64>,
    /// Like `floor`, in rounds with a busy sibling.
    pub shared_floor: Vec<f64>,
}

/// Reads rounds, with what it learns from all of them.
#[derive(Debug, Clone)]
pub(super) struct RoundReader {
    /// Latency in core cycles of the ruler's links, `imul r64, r64` or `imul r32, r32`.
    imul_latency: f64,
    /// Widths of the core, learnt with an idle sibling.
    widths: RefCell<WidthLearner>,
    /// The least width of an unshared core, from micro-architecture data.
    least_width: Option<LeastWidth>,
    /// Overhead of the ruler's short loop. It seems lower if the long loop is slow. On Golden Cove,
    /// in one layout of several hundred, the long loop takes up to twice as long in every round.
    rest: RefCell<RunningMedian>,
    /// Overhead of a probe.
    probe: RefCell<RunningMedian>,
    /// Core cycles of the wake-up checks with awake units: 256 and 512 bits.
    awake: RefCell<[RunningMedian; 2]>,
}

/// Units are asleep if the wake-up check takes longer than usual by this share. Asleep, it takes
/// several times as long.
const ASLEEP_SHARE: f64 = 0.15;
/// Tolerance of the ruler's overhead, as a share of its links.
const REST_SHARE: f64 = 0.01;
/// Tolerance between the probes before and after a program, as a share.
const MOVED_SHARE: f64 = 0.01;
/// Upper limit of core cycles that the first iterations of a loop take longer than later ones, and of
/// the instrument's error as a share, for the floor of a program's cost. Zen 5: some 60 cycles and
/// 0.5 % (`cyclescope instr --explain`).
const START_CYCLES: f64 = 100.0;
const FLOOR_SHARE: f64 = 0.01;

impl RoundReader {
    /// A reader that has learnt nothing, of a ruler with this latency.
    pub(super) fn new(imul_latency: f64) -> RoundReader {
        RoundReader {
            imul_latency,
            widths: RefCell::default(),
            least_width: None,
            rest: RefCell::default(),
            probe: RefCell::default(),
            awake: RefCell::default(),
        }
    }

    /// The same reader, on a core whose sentinel has at least this width if the sibling is idle.
    pub(super) fn with_least_width(self, least_width: Option<LeastWidth>) -> RoundReader {
        RoundReader { least_width, ..self }
    }

    /// The timings of the programs of a layout.
    pub(super) fn read_samples(
        &self,
        samples: &LayoutSamples,
        programs: &[LoopedProgram],
        calls: RoundCalls,
    ) -> Vec<ProgramTiming> {
        let RoundCalls { loops, step, wake_up, emptied } = calls;
        let mut timings = vec![ProgramTiming::default(); programs.len()];
        let gauge = Gauge::brief_ruler(loops, sentinel_loops(step), self.imul_latency);
        for ticks in samples.rounds() {
            let scale = gauge.read(ticks);
            let RulerScale { rate, overhead: rest, .. } = scale;
            if !rest.is_finite() {
                continue;
            }
            let mut known = self.rest.borrow_mut();
            known.learn(rest);
            if !known.is_near(rest, REST_SHARE * gauge.short_chain_cycles() + step / rate) {
                continue;
            }
            let overhead = known.median_figure().unwrap_or(rest);
            let first = RULER_CALLS + if wake_up.is_some() { WAKE_UP_LOOPS.len() } else { 0 };
            let each = count_program_calls(emptied);
            let sentinels = (0..=programs.len()).map(|index| ticks[first + 1 + each * index]);
            let busy = self.find_busy(&gauge, step, ticks, &sentinels.collect::<Vec<f64>>());
            if let Some(size) = wake_up {
                let checked = ticks[first - 1] / rate;
                let awake = &mut self.awake.borrow_mut()[size];
                awake.learn(checked);
                let asleep = awake.median_figure().is_some_and(|usual| checked > (1.0 + ASLEEP_SHARE) * usual);
                if asleep && !busy[0] {
                    continue;
                }
            }
            // The exit of a loop may be predicted in long calls only, so the probe has an overhead
            // of its own.
            let mut known = self.probe.borrow_mut();
            let links = gauge.long_chain_cycles(count_probe_loops(loops));
            // After the wake-up check, the clock may have changed since the ruler.
            if wake_up.is_none() {
                known.learn(ticks[first] / rate - links);
            }
            let probe = links + known.median_figure().unwrap_or(rest);
            let rates: Vec<f64> = (0..=programs.len()).map(|index| ticks[first + each * index] / probe).collect();
            for (timing, (index, timed)) in timings.iter_mut().zip(programs.iter().enumerate()) {
                let at = first + each * index;
                let Some(moment) = find_moment_rate(&rates, index, MOVED_SHARE + step / ticks[at]) else {
                    continue;
                };
                let copies = timed.copies as f64 * timed.loops as f64 * moment;
                let shared = busy[index] || busy[index + 1];
                let [short, middle, long] = [at + 3, at + 4, at + 5];
                let cycles = Contrast::slope_between([short, long], 3.0 * copies).evaluate(ticks);
                let bend = Contrast::slope_between([middle, long], 2.0 * copies)
                    .minus(&Contrast::slope_between([short, middle], copies))
                    .evaluate(ticks);
                if !(cycles.is_finite() && bend.is_finite()) {
                    // A call was interrupted.
                    continue;
                }
                let [first, second, whole] = [0, 1, 2]
                    .map(|call| (ticks[short + call] - overhead * moment) / (CALL_LENGTHS[call] as f64 * copies));
                let start = START_CYCLES * moment / (CALL_LENGTHS[2] as f64 * copies);
                let (all, bends, wholes, floors) = match shared {
                    true => (
                        &mut timing.shared,
                        &mut timing.shared_bend,
                        &mut timing.shared_whole,
                        &mut timing.shared_floor,
                    ),
                    false => (&mut timing.cycles, &mut timing.bend, &mut timing.whole, &mut timing.floor),
                };
                all.push(cycles);
                bends.push(bend);
                wholes.push(if whole <= first.max(second) { whole } else { f64::INFINITY });
                floors.push((1.0 - FLOOR_SHARE) * whole - start);
            }
        }
        timings
    }

    /// Whether the sibling was busy, at each of these sentinels of a round. The first and the last also show
    /// how wide the core is.
    fn find_busy(&self, gauge: &Gauge, step: f64, ticks: &[f64], sentinels: &[f64]) -> Vec<bool> {
        let mut widths = self.widths.borrow_mut();
        let last = sentinels.len() - 1;
        let is_busy = |(place, sentinel): (usize, &f64)| {
            let scale = gauge.read(&[ticks[column::IMUL_SHORT], ticks[column::IMUL_LONG], *sentinel]);
            if place == 0 || place == last {
                widths.learn(scale.width);
            }
            let error = gauge.width_error(&scale, step, 1);
            let known = UnsharedWidth::from_widths([], self.least_width);
            let quiet = widths.unshared_width().unwrap_or_default().or_earlier(known);
            !quiet.is_alone(scale.width, error)
        };
        sentinels.iter().enumerate().map(is_busy).collect()
    }
}

/// Ticks per core cycle at the program with this index, by the probes around it. `None` if the two
/// next to it differ by more than a share: the clock moved. If two more do not, they count too,
/// because the clock's step is most of a probe's error.
fn find_moment_rate(rates: &[f64], index: usize, share: f64) -> Option<f64> {
    let mean_alike = |range: Range<usize>| {
        let near = &rates[range];
        let least = near.iter().copied().fold(f64::INFINITY, f64::min);
        near.iter().all(|rate| rate / least - 1.0 <= share).then(|| mean(near))
    };
    let next = mean_alike(index..index + 2)?;
    Some(mean_alike(index.saturating_sub(1)..(index + 3).min(rates.len())).unwrap_or(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::clock::Clock;
    use cyclescope_code::program::ProgramRecipe;
    use cyclescope_exec::Sample;

    #[test]
    fn the_rate_at_a_program_comes_from_up_to_four_alike_probes() {
        let rate = |rates: &[f64], index| find_moment_rate(rates, index, 0.01);
        let near = |found: Option<f64>, truth: f64| found.is_some_and(|found| (found - truth).abs() < 1e-9);
        assert!(near(rate(&[0.6, 0.604, 0.602, 0.606], 1), 0.603));
        assert!(near(rate(&[0.6, 0.604, 0.602], 0), 0.602) && near(rate(&[0.6, 0.604], 0), 0.602));
        assert!(near(rate(&[0.7, 0.604, 0.602, 0.606], 1), 0.603), "the clock moved before");
        assert_eq!(rate(&[0.6, 0.604, 0.62, 0.62], 1), None, "the clock moved meanwhile");
        assert_eq!(rate(&[0.6, f64::NAN, 0.6, 0.6], 1), None);
    }

    #[test]
    fn programs_next_to_a_busy_sentinel_are_shared_and_others_of_the_round_are_not() {
        const OVERHEAD: f64 = 60.0;
        let reader = RoundReader::new(3.0);
        let clock = Clock::find_named("rdtscp-lfence").unwrap();
        let program = ProgramRecipe::with_loop(clock, &[0x90], 10).build();
        let program = LoopedProgram { program, copies: 10, loops: 50 };
        let programs = vec![program; 3];
        let calls = RoundCalls { loops: 100, step: 2.0, wake_up: None, emptied: false };
        let gauge = Gauge::brief_ruler(calls.loops, sentinel_loops(calls.step), reader.imul_latency);
        // A reading of one tick has all additions of the sentinel in a cycle.
        let chains = [gauge.short_chain_cycles(), gauge.long_chain_cycles(calls.loops)];
        let additions = gauge.read(&[chains[0], chains[1], 1.0]).width;
        let sentinel = |width: f64| additions / width;
        let probe = gauge.long_chain_cycles(count_probe_loops(calls.loops));
        // A tick is a core cycle, and an instance takes two.
        let round = |widths: [f64; 4]| {
            let mut ticks = vec![gauge.short_chain_cycles(), gauge.long_chain_cycles(calls.loops), sentinel(4.6)];
            ticks.extend([probe, sentinel(widths[0])]);
            for width in &widths[1..] {
                ticks.extend([1.0, 1.0, 2.0, 4.0].map(|length| 2.0 * 10.0 * 50.0 * length));
                ticks.extend([probe, sentinel(*width)]);
            }
            ticks
        };
        let quiet = [round([4.6; 4])].into_iter().cycle().take(40);
        let disturbed = [round([4.6, 2.4, 4.6, 4.6])].into_iter().cycle().take(8);
        let mut now = 0;
        let sample = |ticks: f64| {
            let start = now;
            now += (ticks + OVERHEAD).round() as u64;
            Sample { start, end: now }
        };
        let samples: Vec<Sample> = quiet.chain(disturbed).flatten().map(sample).collect();
        let columns: Vec<usize> = (0..calls.list(&programs, programs.len()).len()).collect();
        let timings = reader.read_samples(&LayoutSamples::new(&samples, &columns), &programs, calls);
        let counts: Vec<[usize; 2]> = timings.iter().map(|timing| [timing.cycles.len(), timing.shared.len()]).collect();
        assert_eq!(counts, [[40, 8], [40, 8], [48, 0]]);
        assert!(timings.iter().flat_map(|timing| &timing.cycles).all(|cycles| (cycles - 2.0).abs() < 0.01));
    }
}
