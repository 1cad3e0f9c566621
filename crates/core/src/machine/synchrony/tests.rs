//! Simulated counters with known offset and drift, and the CPUs of this machine.

use proptest::prelude::*;

use super::bounds::{TscComparison, TscExchange, compare_exchanges};
use super::*;
use crate::random::Random;

/// Two counters and the path between them, in ticks of A.
#[derive(Debug, Clone, Copy)]
struct Counters {
    /// B's lead at A's time 0.
    offset: f64,
    /// B's rate minus A's, as a share.
    drift: f64,
    /// The step of both.
    step: f64,
    /// Ticks from the start of A's step to that of B's.
    phase: f64,
    /// Shortest time of a message, and of its answer.
    path_times: [f64; 2],
    /// Share of readings that are one tick too high.
    off_by_one: f64,
}

const ALIKE: Counters =
    Counters { offset: 0.0, drift: 0.0, step: 1.0, phase: 0.0, path_times: [80.0, 80.0], off_by_one: 0.0 };
/// Ticks between the starts of two blocks.
const PAUSE: f64 = 1e8;

impl Counters {
    /// B's counter when A's has this value.
    fn counter_of_b(&self, time: f64) -> f64 {
        time * (1.0 + self.drift) + self.offset
    }

    fn read(&self, counter: f64, phase: f64, random: &mut Random) -> u64 {
        let floored = (((counter - phase) / self.step).floor() * self.step + phase).floor();
        floored as u64 + u64::from(random.happens(self.off_by_one))
    }

    /// Blocks of exchanges from A's time `start` on. Some messages are delayed by a millisecond.
    fn blocks(&self, start: f64, count: usize, seed: u64) -> Vec<Vec<TscExchange>> {
        let mut random = Random::new(seed);
        let mut message_time = |least: f64| {
            let lost = if random.happens(0.002) { 2e6 } else { 0.0 };
            least + 10.0 * random.exponential() + lost
        };
        let mut disturbance = Random::new(!seed);
        (0..count)
            .map(|block| {
                let mut time = start + PAUSE * block as f64;
                let mut exchange = || {
                    let sent = time + message_time(5.0);
                    let reflected = sent + message_time(self.path_times[0]);
                    let returned = reflected + message_time(self.path_times[1]);
                    time = returned;
                    TscExchange {
                        sent: self.read(sent, 0.0, &mut disturbance),
                        reflected: self.read(self.counter_of_b(reflected), self.phase, &mut disturbance),
                        returned: self.read(returned, 0.0, &mut disturbance),
                    }
                };
                (0..300).map(|_| exchange()).collect()
            })
            .collect()
    }

    fn compare(&self, seed: u64) -> TscComparison {
        compare_exchanges(&self.blocks(1e12, 8, seed), self.step).known().unwrap().clone()
    }
}

#[test]
fn a_simulated_offset_is_bounded_as_tightly_as_the_path_allows() {
    for (seed, offset) in [0.0, 1.0, -37.0, 5e3, -4e9].into_iter().enumerate() {
        let found = Counters { offset, ..ALIKE }.compare(seed as u64);
        let bound = found.offset_ticks.known().unwrap();
        assert!(bound.contains(offset) && bound.half_width() <= 90.0, "{offset}: {bound:?}");
        assert!(found.drift_ppm.known().unwrap().contains(0.0) && found.moved_ticks == 0.0, "{found:?}");
        assert!(found.round_trip_ticks.least >= 159 && found.round_trip_ticks.median < 250, "{found:?}");
        assert_eq!((found.exchanges, found.blocks.len()), (2400, 8));
        assert!(found.blocks.iter().all(|block| block.low <= offset && offset <= block.high));
    }
}

#[test]
fn a_simulated_drift_is_bounded_and_no_offset_is_claimed() {
    for drift in [1e-6, -20e-6, 5e-4, 0.3] {
        let found = Counters { drift, offset: 12.0, ..ALIKE }.compare(1);
        let bound = found.drift_ppm.known().unwrap();
        assert!(bound.contains(drift * 1e6) && bound.half_width() < 1.0, "{drift}: {bound:?}");
        assert!(found.offset_ticks.why().unwrap().contains("moved against each other"), "{found:?}");
        // The result claims no more movement than there was.
        let truth = drift.abs() * found.span_ticks as f64;
        assert!(found.moved_ticks > truth - 250.0 && found.moved_ticks <= truth + 1.0, "{found:?} for {truth}");
    }
}

#[test]
fn a_coarse_step_widens_the_bound() {
    for step in [2.0, 26.0, 37.37, 38.0] {
        for off_by_one in [0.0, if step >= 4.0 { 0.1 } else { 0.0 }] {
            for phase in [0.0, 0.4 * step] {
                let simulated = Counters { step, off_by_one, phase, offset: 100.0 + phase, ..ALIKE };
                let found = simulated.compare(9);
                let bound = found.offset_ticks.known().unwrap();
                assert!(bound.contains(simulated.offset), "{simulated:?}: {bound:?}");
                assert!(bound.half_width() <= 90.0 + step + 2.0, "{simulated:?}: {bound:?}");
            }
        }
    }
}

#[test]
fn uneven_paths_shift_the_middle_but_the_bound_holds() {
    let found = Counters { path_times: [20.0, 400.0], offset: 70.0, ..ALIKE }.compare(3);
    let bound = found.offset_ticks.known().unwrap();
    assert!(bound.contains(70.0) && bound.value < -50.0, "{bound:?}");
    assert!(found.is_monotonic());
}

#[test]
fn an_offset_beyond_half_a_round_trip_shows_as_time_running_backwards() {
    let ahead = Counters { offset: 300.0, ..ALIKE }.compare(4);
    assert!(!ahead.is_monotonic() && !ahead.may_be_equal());
    assert!((200..=221).contains(&ahead.backwards.most_ticks), "{:?}", ahead.backwards);
    let behind = Counters { offset: -1e6, ..ALIKE }.compare(4);
    assert!(behind.backwards.exchanges > 2300, "{:?}", behind.backwards);
    // An offset of less than half a round trip is an offset too: the two results differ.
    let unseen = Counters { offset: 60.0, path_times: [70.0, 70.0], ..ALIKE }.compare(4);
    assert!(unseen.is_monotonic() && unseen.may_be_equal());
}

#[test]
fn a_counter_that_jumps_fits_no_line() {
    let mut blocks = ALIKE.blocks(1e12, 4, 5);
    blocks.extend(Counters { offset: 5000.0, ..ALIKE }.blocks(1e12 + 4.0 * PAUSE, 4, 6));
    let found = compare_exchanges(&blocks, 1.0).known().unwrap().clone();
    assert!(found.drift_ppm.why().unwrap().contains("jumped"), "{found:?}");
    assert!((4800.0..=5000.0).contains(&found.moved_ticks), "{found:?}");
    assert!(found.blocks[3].high < found.blocks[4].low);
}

#[test]
fn too_little_proves_little() {
    assert_eq!(compare_exchanges(&[Vec::new()], 1.0).why(), Some("no exchange was made"));
    let exchange = TscExchange { sent: 1000, reflected: 1100, returned: 1180 };
    let found = compare_exchanges(&[vec![exchange], Vec::new()], 1.0).known().unwrap().clone();
    assert_eq!(found.offset_ticks, Fact::Known(crate::statistics::Interval::with_margin(10.0, 91.0)));
    assert_eq!(found.drift_ppm.why(), Some("there were too few exchanges"));
    assert_eq!((found.blocks.len(), found.span_ticks), (1, 180));
}

#[test]
fn counters_that_wrap_are_compared_too() {
    let near = |ticks: u64| (u64::MAX - 100).wrapping_add(ticks);
    let exchange = |at: u64| TscExchange { sent: near(at), reflected: near(at + 60), returned: near(at + 100) };
    let found = compare_exchanges(&[vec![exchange(0), exchange(50), exchange(500)]], 1.0).known().unwrap().clone();
    assert!(found.offset_ticks.known().unwrap().contains(10.0));
}

proptest! {
    #[test]
    fn bounds_always_contain_the_truth(
        offset in -1e6..1e6f64, ppm in -200.0..200.0f64, step in prop::sample::select(vec![1.0f64, 2.0, 25.96, 38.0]),
        phase in 0.0..1.0f64, there in 0.0..500.0f64, back in 0.0..500.0f64, seed in 0u64..1000,
    ) {
        // Whole steps begin at whole ticks.
        let phase = if step.fract() == 0.0 { (phase * step).floor() } else { phase * step };
        let steady = Counters { offset, step, phase, path_times: [there, back], ..ALIKE };
        let found = steady.compare(seed);
        prop_assert!(found.offset_ticks.known().unwrap().contains(offset));
        prop_assert!(found.drift_ppm.known().unwrap().contains(0.0));
        let drifting = Counters { drift: ppm / 1e6, ..steady };
        prop_assert!(drifting.compare(seed).drift_ppm.known().unwrap().contains(ppm));
    }
}

#[test]
fn the_cpus_of_this_machine_are_compared_or_give_a_reason() {
    let machine = Machine::detect();
    let time = Duration::from_millis(200);
    let before = rustix::thread::sched_getaffinity(None).unwrap();
    let found = measure_synchrony(&machine, None, time);
    assert!(before == rustix::thread::sched_getaffinity(None).unwrap());
    let found = match found {
        Fact::Known(found) => found,
        Fact::Unknown(why) => return cyclescope_skipped::report_skipped(why),
    };
    let text = serde_json::to_string(&found).unwrap();
    assert!(!text.contains("inf") && !text.contains("NaN"), "{text}");
    match found.numbers {
        // Linux writes each CPU's number.
        Some(CpuNumbers { cpus, right }) => assert_eq!((cpus, right), (1 + found.pairs.len(), cpus)),
        None => cyclescope_skipped::report_left_out("RDTSCP, or a CPU, does not answer"),
    }
    for pair in &found.pairs {
        match &pair.comparison {
            Fact::Unknown(why) => cyclescope_skipped::report_left_out(format_args!("CPU {}: {why}", pair.cpu)),
            Fact::Known(comparison) => {
                let trip = comparison.round_trip_ticks;
                assert!(trip.least > 0 && trip.least <= trip.median, "{text}");
                let Some(bound) = comparison.offset_ticks.known() else { continue };
                let widest = trip.least as f64 + 2.0 * (found.step_ticks + 2.0);
                assert!(bound.low <= bound.high && bound.high - bound.low <= widest, "{text}");
                assert_eq!(comparison.is_monotonic(), comparison.backwards.most_ticks == 0);
            }
        }
    }
}

#[test]
fn a_single_allowed_cpu_gives_a_reason() {
    let mut machine = Machine::detect();
    let Some(cpu) = machine.target.as_ref().map(|target| target.cpu) else {
        return cyclescope_skipped::report_skipped("the CPUs that this process may use are unknown");
    };
    if machine.tsc.require().is_err() || choose_reading(&machine).known().is_none() {
        return cyclescope_skipped::report_skipped("the TSC can't be read here");
    }
    machine.topology.allowed = Fact::Known(vec![cpu]);
    let found = measure_synchrony(&machine, None, Duration::from_millis(10));
    assert_eq!(found.why(), Some("this process may use one CPU only"));
}

#[test]
fn an_unreachable_cpu_gives_a_reason() {
    let mut machine = Machine::detect();
    let Some(cpu) = machine.target.as_ref().map(|target| target.cpu) else {
        return cyclescope_skipped::report_skipped("the CPUs that this process may use are unknown");
    };
    machine.topology.allowed = Fact::Known(vec![cpu, 1023, 1_000_000]);
    let found = match measure_synchrony(&machine, Some(1.0), Duration::from_millis(20)) {
        Fact::Known(found) => found,
        Fact::Unknown(why) => return cyclescope_skipped::report_skipped(why),
    };
    assert_eq!((found.pairs.len(), found.is_monotonic()), (2, None));
    assert!(found.pairs.iter().all(|pair| pair.comparison.why().is_some()), "{found:?}");
}
