//! Reads the simulated clock before and after a call, with everything that disturbs a reading or a call.

use super::scenario::{Noise, Scenario};
use super::timeline::{self, Kind, Timeline};
use cyclescope_core::random::{Random, mix};
use cyclescope_exec::Sample;
use std::time::Duration;

/// Ticks between two calls at least: return, store of the sample, next call.
const GAP: f64 = 60.0;

/// A machine's time, and what reads it.
#[derive(Debug, Clone)]
pub(super) struct Instrument {
    scenario: Scenario,
    timeline: Timeline,
    random: Random,
    /// The next of the replayed residuals.
    replay: usize,
}

impl Instrument {
    pub(super) fn new(scenario: Scenario, seed: u64) -> Instrument {
        let mut random = Random::new(mix(seed, 0));
        let replay = match &scenario.noise {
            Noise::Replayed(residuals) if !residuals.is_empty() => random.bits() as usize % residuals.len(),
            _ => 0,
        };
        let timeline = Timeline::new(&scenario, Random::new(mix(seed, 1)));
        Instrument { scenario, timeline, random, replay }
    }

    pub(super) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    pub(super) fn now(&self) -> f64 {
        self.timeline.now()
    }

    /// Simulated time since the machine's start.
    pub(super) fn time(&self) -> Duration {
        Duration::from_secs_f64(self.now() / self.scenario.hertz)
    }

    /// Lets time pass in which nothing runs.
    pub(super) fn pause(&mut self, time: Duration) {
        self.timeline.wait(time.as_secs_f64() * self.scenario.hertz, &self.scenario);
    }

    /// One call: `fixed` core cycles that no neighbour slows, then those of the body.
    pub(super) fn sample(&mut self, fixed: f64, body: f64, kind: Kind, delays: &mut Random) -> Sample {
        let scenario = &self.scenario;
        self.timeline.wait(GAP + scenario.delay * delays.unit(), scenario);
        let start = self.read();
        let fixed = fixed + self.noise(kind) * self.timeline.speed();
        let scenario = &self.scenario;
        self.timeline.work(fixed.max(0.0), Kind::Fixed, scenario);
        self.timeline.work(body, kind, scenario);
        let end = self.read().max(start);
        self.timeline.wait(self.scenario.jitter, &self.scenario);
        Sample { start, end }
    }

    /// Reads the TSC.
    fn read(&mut self) -> u64 {
        let jitter = self.scenario.jitter;
        let late = if jitter > 0.0 { jitter * self.random.unit() } else { 0.0 };
        let instant = (self.timeline.now() + late) as u64;
        instant - instant % self.scenario.step
    }

    /// Ticks that this call takes longer.
    fn noise(&mut self, kind: Kind) -> f64 {
        let random = &mut self.random;
        let mut ticks = match &self.scenario.noise {
            Noise::None => 0.0,
            Noise::LogNormal { probability, median, sigma } => {
                if random.happens(*probability) {
                    median * (sigma * random.normal()).exp()
                } else {
                    0.0
                }
            }
            Noise::Replayed(residuals) => match residuals.get(self.replay) {
                Some(residual) => {
                    self.replay = (self.replay + 1) % residuals.len();
                    *residual
                }
                None => 0.0,
            },
        };
        let hits = self.scenario.ruler_hits;
        if kind != Kind::Snippet && random.happens(hits.probability) {
            ticks += timeline::length(hits.ticks, random);
        }
        ticks
    }
}
