//! Watches the core clock over time by repeated readings of the ruler.

use super::clock_step;
use cyclescope_code::clock::Clock;
use cyclescope_core::machine::core_series::{CoreClockSample, CoreSeries, has_clock_changed};
use cyclescope_core::machine::core_study::CoreStudy;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::step_at_clocks::StepAtClocks;
use cyclescope_core::machine::tsc::TscFacts;
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::random::Random;
use cyclescope_core::unit::{Hertz, Unit};
use cyclescope_exec::Executor;
use cyclescope_measure::rounds::{LayoutRounds, RulerRounds};
use std::time::Duration;

/// Rounds per look, about a tenth of a millisecond. A step of 38 ticks is then noise of 0.2 %.
const ROUNDS: u32 = 16;
/// Looks per batch: some milliseconds, so that the start of a batch does not matter.
const LOOKS: usize = 32;

/// If the clock has not changed, nothing shows whether the step depends on it. Then it is watched
/// this many times as long. A boost usually moves it by 1 % within 200 ms, but not always (0.9 to
/// 8.5 % in ten watches; Zen 5, family 26, model 2).
const PATIENCE: u32 = 5;

/// Parameters for watching the core clock.
#[derive(Debug, Clone)]
pub struct ClockWatch {
    /// The timing method.
    pub clock: &'static Clock,
    /// The step of its readings in raw units; 1 if unknown.
    pub step: f64,
    /// The rate of the TSC, if known.
    pub rate: Option<Hertz>,
    /// Latency of `imul r64, r64` in core cycles. Without it, the chain of additions is used.
    pub imul: Option<u32>,
    /// Duration of the watch; several times as long if the core clock hardly moves.
    pub time: Duration,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Facts about the machine, found before its core clock is watched.
#[derive(Debug, Clone, Copy)]
pub struct WatchFacts<'a> {
    /// Its TSC.
    pub tsc: &'a TscFacts,
    /// Results of experiments on the TSC.
    pub study: Option<&'a TscStudy>,
    /// Results of experiments on the core.
    pub core: Option<&'a CoreStudy>,
}

impl ClockWatch {
    /// Takes its parameters from the known facts of the machine.
    pub fn new(clock: &'static Clock, known: WatchFacts, time: Duration, seed: u64) -> ClockWatch {
        let calibrated = known.study.map(|study| study.calibration.hertz);
        ClockWatch {
            clock,
            step: clock_step(clock, known.tsc, known.study),
            rate: calibrated.or_else(|| known.tsc.given.map(|given| given.rate)),
            imul: known.core.and_then(|core| core.imul_used),
            time,
            seed,
        }
    }

    fn raw_per_cycle(&self, readings: &LayoutRounds) -> Option<f64> {
        let reading = readings.read()?;
        let raw_per_cycle = self.imul.map_or(reading.add, |latency| reading.imul / f64::from(latency));
        (raw_per_cycle.is_finite() && raw_per_cycle > 0.0).then_some(raw_per_cycle)
    }

    /// Converts readings to looks, with times at this number of raw units per second.
    fn to_looks<'a>(&self, taken: &'a [LayoutRounds], a_second: f64) -> Vec<(CoreClockSample, &'a LayoutRounds)> {
        let origin = taken.first().map_or(0, LayoutRounds::middle_time);
        let look = |readings: &LayoutRounds| {
            let at_s = readings.middle_time().saturating_sub(origin) as f64 / a_second;
            Some(CoreClockSample { at_s, raw_per_cycle: self.raw_per_cycle(readings)? })
        };
        taken.iter().filter_map(|readings| Some((look(readings)?, readings))).collect()
    }

    /// Whether the step could be tested at two core clocks, but the clock has not changed yet.
    fn waits_for_change(&self, looks: &[CoreClockSample]) -> bool {
        self.clock.counts == Unit::TscTicks
            && StepAtClocks::check_testable(self.step).is_ok()
            && !has_clock_changed(looks)
    }

    /// Finds the step at the slowest and the fastest clock of a series, or says why it was not
    /// tested.
    fn find_step(
        &self,
        series: &CoreSeries,
        read: &[(CoreClockSample, &LayoutRounds)],
    ) -> Result<StepAtClocks, String> {
        if self.clock.counts != Unit::TscTicks {
            return Err("the timing method doesn't read the TSC".to_string());
        }
        StepAtClocks::check_testable(self.step)?;
        if !series.has_changed() {
            let least = 100.0 * series.least_change;
            return Err(format!("the core clock was not seen to change by {least:.1} %"));
        }
        let [fastest, _, slowest] = series.raw_per_cycle;
        let durations = read.iter().map(|(look, readings)| (look.raw_per_cycle, readings.durations().collect()));
        StepAtClocks::from_samples(&durations.collect::<Vec<_>>(), self.step, [fastest, slowest])
    }
}

/// Watches the core clock, or says why it can't be watched.
pub fn watch_core_clock(executor: &mut dyn Executor, watch: &ClockWatch) -> Result<CoreSeries, String> {
    let rate = match watch.clock.counts {
        Unit::TscTicks => watch.rate,
        Unit::Nanos => Some(Hertz(1e9)),
        _ => return Err("the timing method counts core cycles itself".to_string()),
    };
    let rounds = RulerRounds::new(watch.clock, watch.step);
    let mut random = Random::new(watch.seed);
    let started = executor.now();
    let mut taken: Vec<LayoutRounds> = Vec::new();
    loop {
        let more = rounds.run(executor, LOOKS, ROUNDS, &mut random).map_err(|error| error.to_string())?;
        taken.extend(more);
        let elapsed = executor.now().saturating_sub(started);
        let lasts = |time: Duration| elapsed < time;
        let looks = || strip_readings(&watch.to_looks(&taken, 1.0));
        if !(lasts(watch.time) || lasts(PATIENCE * watch.time) && watch.waits_for_change(&looks())) {
            break;
        }
    }
    // Precise enough for the time of a change, but not for a frequency.
    let a_second =
        rate.map_or_else(|| raw_span(&taken) / executor.now().saturating_sub(started).as_secs_f64(), |rate| rate.0);
    let read = watch.to_looks(&taken, a_second);
    let lost = taken.len() - read.len();
    let series = CoreSeries::from_samples(&strip_readings(&read), lost, watch.clock.name, watch.clock.counts, rate)?;
    let step = Fact::from(watch.find_step(&series, &read));
    Ok(CoreSeries { step, ..series })
}

/// Returns the looks without their readings.
fn strip_readings(read: &[(CoreClockSample, &LayoutRounds)]) -> Vec<CoreClockSample> {
    read.iter().map(|(look, _)| *look).collect()
}

/// Raw units from the first look to the last.
fn raw_span(taken: &[LayoutRounds]) -> f64 {
    match taken {
        [first, .., last] => last.middle_time().saturating_sub(first.middle_time()) as f64,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::error::RunError;
    use cyclescope_core::machine::Machine;
    use cyclescope_core::machine::core_series::{CHANGE_SHARE, MOST_POINTS};
    use cyclescope_exec::user::{UserExecutor, UserOptions, user_capabilities};
    use cyclescope_sim::{Scenario, SimulatedExecutor, SimulatedFault, SimulatedFrequency};

    fn watched(scenario: &Scenario, milliseconds: u64, seed: u64) -> CoreSeries {
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        let how = ClockWatch {
            clock,
            step: scenario.step as f64,
            rate: Some(Hertz(scenario.hertz)),
            imul: Some(3),
            time: Duration::from_millis(milliseconds),
            seed,
        };
        watch_core_clock(&mut SimulatedExecutor::new(scenario.clone(), seed), &how).unwrap()
    }

    /// Machines with every disturbance except a changing core clock.
    const STEADY: [&str; 11] = [
        "clean",
        "coarse_step_26",
        "coarse_step_38",
        "coarse_step_100",
        "half_rate",
        "interrupts",
        "steal",
        "sibling_spells",
        "ruler_hits",
        "replayed",
        "heavy_tail",
    ];

    #[test]
    fn a_steady_core_clock_is_reported_as_steady_under_any_disturbance() {
        for name in STEADY {
            let scenario = Scenario::find_preset(name).unwrap();
            for seed in 0..4 {
                let found = watched(&scenario, 20, seed);
                assert!(!found.has_changed(), "{name}, {seed}: {found:?}");
                let truth = scenario.hertz * scenario.ratio / 1e6;
                let [slow, middle, fast] = found.megahertz.unwrap();
                assert!((middle / truth - 1.0).abs() < 0.01, "{name}: {middle} for {truth}");
                assert!(slow > 0.95 * truth && fast < 1.05 * truth, "{name}: {slow} to {fast} for {truth}");
            }
        }
    }

    #[test]
    fn a_nearly_constant_clock_is_watched_longer_if_its_step_can_be_tested() {
        let jumps = SimulatedFrequency { jump_rate: 1e-6, ..SimulatedFrequency::default() };
        for (step, frequency, times) in
            [(26, SimulatedFrequency::default(), 5.0), (26, jumps, 1.0), (1, SimulatedFrequency::default(), 1.0)]
        {
            let found = watched(&Scenario { step, frequency, ..Scenario::default() }, 10, 1);
            let lasted = found.seconds / 0.01;
            assert!((times - 0.5..times + 2.0).contains(&lasted), "step {step}: {lasted} for {times}");
            assert_eq!(found.step.known().is_some(), step == 26 && times == 1.0, "{:?}", found.step);
        }
    }

    /// Looks scatter by several per cent here, but the clock never changes.
    #[test]
    fn scattered_looks_do_not_count_as_a_clock_change() {
        let scatters = Scenario { step: 26, jitter: 400.0, ..Scenario::default() };
        let found = watched(&scatters, 20, 1);
        let [lowest, _, highest] = found.raw_per_cycle;
        assert!(highest / lowest > 1.0 + CHANGE_SHARE, "{found:?}");
        assert!(found.step.why().is_some_and(|why| why.contains("not seen to change")), "{:?}", found.step);
        assert!(found.seconds / 0.02 > 4.5, "it is watched as long as a constant clock: {found:?}");
    }

    #[test]
    fn simulated_jumps_are_detected_about_as_often_as_they_happen() {
        let frequency = SimulatedFrequency { jump_rate: 2e-8, ..SimulatedFrequency::default() };
        for step in [1, 26] {
            let scenario = Scenario { frequency, step, ..Scenario::default() };
            let (seconds, seeds) = (0.1, 10);
            let mut count = 0;
            for seed in 0..seeds {
                let found = watched(&scenario, (1e3 * seconds) as u64, seed);
                count += found.change_count;
                let truth = 1.0 / scenario.ratio;
                let [lowest, _, highest] = found.raw_per_cycle;
                // Jumps lead to 5 to 15 % above or below.
                assert!(lowest > 0.86 * truth && highest < 1.19 * truth, "{found:?}");
                let share = |change: &cyclescope_core::machine::core_series::CoreClockChange| {
                    (change.to / change.from - 1.0).abs()
                };
                assert!(found.changes.iter().all(|change| share(change) > CHANGE_SHARE), "{found:?}");
                assert!(found.changes.is_sorted_by(|a, b| a.at_s < b.at_s) && found.points.len() <= MOST_POINTS);
            }
            // About a tenth of the jumps lead to nearly the same frequency, and some follow each
            // other too fast.
            let simulated = frequency.jump_rate * scenario.hertz * seconds * seeds as f64;
            assert!((0.6 * simulated..1.3 * simulated).contains(&(count as f64)), "{count} of {simulated} for {step}");
        }
    }

    #[test]
    fn a_drift_is_detected() {
        let found = watched(&Scenario::find_preset("drift").unwrap(), 100, 1);
        let [lowest, _, highest] = found.raw_per_cycle;
        assert!(found.has_changed() && highest / lowest > 1.02, "{found:?}");
    }

    #[test]
    fn an_unwatchable_clock_gives_a_reason() {
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        let time = Duration::from_millis(1);
        let how = ClockWatch { clock, step: 1.0, rate: None, imul: None, time, seed: 1 };
        let fault = Some(SimulatedFault { after: 0, beyond_repeats: 0.0, error: RunError::Hung { deadline_ms: 1 } });
        let mut broken = SimulatedExecutor::new(Scenario { fault, ..Scenario::default() }, 1);
        assert!(watch_core_clock(&mut broken, &how).unwrap_err().contains("did not end"));
        let counting = ClockWatch { clock: Clock::find_named("rdpmc").unwrap(), ..how.clone() };
        let mut machine = SimulatedExecutor::new(Scenario::default(), 1);
        assert!(watch_core_clock(&mut machine, &counting).unwrap_err().contains("core cycles"));
        // Neither rate nor latency is known: ticks by the chain of additions, and no frequency.
        let found = watch_core_clock(&mut machine, &how).unwrap();
        let truth = 1.0 / Scenario::default().ratio;
        assert!((found.raw_per_cycle[1] / truth - 1.0).abs() < 0.01 && found.megahertz.is_none());
    }

    #[test]
    fn this_core_is_watched_or_gives_a_reason() {
        let machine = Machine::detect();
        let clock = match user_capabilities(&machine).default_clock(&machine) {
            Ok(clock) => clock,
            Err(refused) => return cyclescope_skipped::report_skipped(refused),
        };
        let cpu = machine.target_cpu() as usize;
        let mut user = match UserExecutor::spawn(&UserOptions { cpu, ..UserOptions::default() }) {
            Ok(user) => user,
            Err(error) => return cyclescope_skipped::report_skipped(error),
        };
        let known = WatchFacts { tsc: &machine.tsc, study: None, core: None };
        let how = ClockWatch::new(clock, known, Duration::from_millis(50), 1);
        match watch_core_clock(&mut user, &how) {
            Err(why) => cyclescope_skipped::report_skipped(why),
            Ok(found) => {
                let [lowest, middle, highest] = found.raw_per_cycle;
                assert!(0.0 < lowest && lowest <= middle && middle <= highest, "{found:?}");
                assert!(found.noise.is_finite() && found.least_change >= CHANGE_SHARE, "{found:?}");
            }
        }
    }
}
