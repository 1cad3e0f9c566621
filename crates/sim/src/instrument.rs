//! Reads the simulated clock before and after a call, with everything that disturbs a reading or a
//! call.

use super::scenario::{Scenario, SimulatedNoise};
use super::timeline::{self, SimulatedWorkKind, Timeline};
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_exec::{Sample, is_interrupted};
use std::time::Duration;

/// Smallest number of ticks between two calls: return, store of the sample, next call.
const CALL_GAP: f64 = 60.0;

/// What a program's timing method reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedCounter {
    /// The TSC.
    Tsc,
    /// The counter of core cycles, in user mode.
    CoreCycles,
}

/// A machine's time, and the clock that reads it.
#[derive(Debug, Clone)]
pub(super) struct SimulatedInstrument {
    scenario: Scenario,
    timeline: Timeline,
    random: Random,
    /// Index of the next replayed residual.
    replay: usize,
}

impl SimulatedInstrument {
    pub(super) fn new(scenario: Scenario, seed: u64) -> SimulatedInstrument {
        let mut random = Random::new(mix_seeds(seed, 0));
        let replay = match &scenario.noise {
            SimulatedNoise::Replayed(residuals) if !residuals.is_empty() => {
                random.next_bits() as usize % residuals.len()
            }
            _ => 0,
        };
        let timeline = Timeline::new(&scenario, Random::new(mix_seeds(seed, 1)));
        SimulatedInstrument { scenario, timeline, random, replay }
    }

    pub(super) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub(super) fn ticks_now(&self) -> f64 {
        self.timeline.now()
    }

    /// Simulated time since the machine's start.
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.ticks_now() / self.scenario.hertz)
    }

    /// Lets time pass without work.
    pub(super) fn pause(&mut self, time: Duration) {
        self.timeline.pass_time(time.as_secs_f64() * self.scenario.hertz, &self.scenario);
    }

    /// One call: `fixed` core cycles that no sibling slows, then those of the body.
    pub(super) fn sample_call(
        &mut self,
        fixed: f64,
        body: f64,
        kind: SimulatedWorkKind,
        counter: SimulatedCounter,
        delays: &mut Random,
    ) -> Sample {
        let scenario = &self.scenario;
        self.timeline.pass_time(CALL_GAP + scenario.delay * delays.uniform(), scenario);
        let before = [self.timeline.now(), self.timeline.ticks_away()];
        let cycles = self.timeline.cycles_worked();
        let start = self.read_tsc();
        let fixed = fixed + self.draw_noise(kind) * self.timeline.speed();
        let scenario = &self.scenario;
        self.timeline.run_work(fixed.max(0.0), SimulatedWorkKind::Fixed, scenario);
        self.timeline.run_work(body, kind, scenario);
        let end = self.read_tsc().max(start);
        let [elapsed, away] = [self.timeline.now() - before[0], self.timeline.ticks_away() - before[1]];
        let in_ns = |ticks: f64| (1e9 * ticks / self.scenario.hertz) as u64;
        let interrupted = is_interrupted(elapsed as u64, in_ns(elapsed), in_ns(elapsed - away));
        self.timeline.pass_time(self.scenario.jitter, &self.scenario);
        let sample = match counter {
            SimulatedCounter::Tsc => Sample { start, end },
            SimulatedCounter::CoreCycles => Sample { start: cycles as u64, end: self.timeline.cycles_worked() as u64 },
        };
        if interrupted { sample.exchange() } else { sample }
    }

    /// Reads the TSC.
    fn read_tsc(&mut self) -> u64 {
        let jitter = self.scenario.jitter;
        let late = if jitter > 0.0 { jitter * self.random.uniform() } else { 0.0 };
        let instant = (self.timeline.now() + late) as u64;
        instant - instant % self.scenario.step
    }

    /// Additional ticks of this call.
    fn draw_noise(&mut self, kind: SimulatedWorkKind) -> f64 {
        let random = &mut self.random;
        let mut ticks = match &self.scenario.noise {
            SimulatedNoise::None => 0.0,
            SimulatedNoise::LogNormal { probability, median, sigma } => {
                if random.happens(*probability) {
                    median * (sigma * random.normal()).exp()
                } else {
                    0.0
                }
            }
            SimulatedNoise::Replayed(residuals) => match residuals.get(self.replay) {
                Some(residual) => {
                    self.replay = (self.replay + 1) % residuals.len();
                    *residual
                }
                None => 0.0,
            },
        };
        let hits = self.scenario.ruler_hits;
        if kind != SimulatedWorkKind::Snippet && random.happens(hits.probability) {
            ticks += timeline::draw_length(hits.ticks, random);
        }
        ticks
    }
}
