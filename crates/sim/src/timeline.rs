//! Simulated time: how long work takes while frequency, neighbour and interrupts change underneath it.
//!
//! Time is a real number of TSC ticks and only moves forward. Between two events the core runs at a constant
//! rate, so work is integrated piece by piece from event to event.

use super::scenario::{Gaps, Scenario};
use cyclescope_core::random::Random;

/// Kinds of work that a busy sibling slows differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Work that no sibling slows: a reading, a loop's exit.
    Fixed,
    /// The ruler's `add` chain.
    Add,
    /// The ruler's `imul` chain.
    Imul,
    /// The width sentinel.
    Sentinel,
    /// The snippet under test.
    Snippet,
}

/// Measured factors by which rulers take longer beside a busy sibling: every link of an `add` chain competes
/// for a port each cycle, those of `imul` every third.
const ADD_BESIDE_SIBLING: f64 = 1.01;
const IMUL_BESIDE_SIBLING: f64 = 1.004;
const SENTINEL_BESIDE_SIBLING: f64 = 1.5;

/// Ticks between two steps of the frequency's random walk.
const DRIFT_PERIOD: f64 = 65_536.0;

/// The random walk stays within this distance of the nominal frequency, relative.
const DRIFT_BOUND: f64 = 0.1;

/// Things that happen at random times.
#[derive(Debug, Clone, Copy)]
enum Event {
    Drift,
    Jump,
    Sibling,
    Interrupt,
    Steal,
}

const EVENTS: [Event; 5] = [Event::Drift, Event::Jump, Event::Sibling, Event::Interrupt, Event::Steal];

/// The simulated machine's time and its time-dependent state.
#[derive(Debug, Clone)]
pub(super) struct Timeline {
    now: f64,
    /// Time of the next of each of [`EVENTS`].
    due: [f64; EVENTS.len()],
    /// The earliest of these times.
    next: f64,
    drift: f64,
    jump: f64,
    sibling_busy: bool,
    /// Core cycles per tick now.
    speed: f64,
    random: Random,
}

impl Timeline {
    pub(super) fn new(scenario: &Scenario, mut random: Random) -> Timeline {
        // Some seconds after the machine's start, at any phase of the TSC's step.
        let now = 1e9 + 1e10 * random.unit();
        let mut timeline = Timeline {
            now,
            due: [f64::INFINITY; EVENTS.len()],
            next: f64::INFINITY,
            drift: 1.0,
            jump: 1.0,
            sibling_busy: false,
            speed: scenario.ratio,
            random,
        };
        if let Some(sibling) = scenario.sibling {
            timeline.sibling_busy = timeline.random.happens(sibling.busy / (sibling.busy + sibling.idle));
        }
        for event in EVENTS {
            timeline.due[event as usize] = now + timeline.pause_before(event, scenario);
        }
        timeline.find_next();
        timeline
    }

    pub(super) fn now(&self) -> f64 {
        self.now
    }

    /// Core cycles per tick now.
    pub(super) fn speed(&self) -> f64 {
        self.speed
    }

    /// Lets time pass without work.
    pub(super) fn wait(&mut self, ticks: f64, scenario: &Scenario) {
        let until = self.now + ticks;
        while self.next <= until {
            self.now = self.now.max(self.next);
            self.happen(scenario);
        }
        self.now = self.now.max(until);
    }

    /// Advances time by work of this number of core cycles.
    pub(super) fn work(&mut self, cycles: f64, kind: Kind, scenario: &Scenario) {
        let mut left = cycles;
        loop {
            let rate = self.speed / self.slowdown(kind, scenario);
            let end = self.now + left / rate;
            if end <= self.next {
                self.now = end;
                return;
            }
            let worked = (self.next - self.now).max(0.0);
            left -= worked * rate;
            self.now += worked;
            self.happen(scenario);
        }
    }

    fn slowdown(&self, kind: Kind, scenario: &Scenario) -> f64 {
        let Some(sibling) = scenario.sibling.filter(|_| self.sibling_busy) else { return 1.0 };
        match kind {
            Kind::Fixed => 1.0,
            Kind::Add => ADD_BESIDE_SIBLING,
            Kind::Imul => IMUL_BESIDE_SIBLING,
            Kind::Sentinel => SENTINEL_BESIDE_SIBLING,
            Kind::Snippet => 1.0 + sibling.snippet,
        }
    }

    /// Handles the event that is due.
    fn happen(&mut self, scenario: &Scenario) {
        let is_due = |event: &Event| self.due[*event as usize] <= self.next;
        let event = EVENTS.into_iter().find(is_due).expect("one event is the earliest");
        match event {
            Event::Drift => {
                let step = scenario.frequency.drift * (DRIFT_PERIOD / 1e6).sqrt() * self.random.normal();
                self.drift = (self.drift + step).clamp(1.0 - DRIFT_BOUND, 1.0 + DRIFT_BOUND);
            }
            Event::Jump => {
                let size = 0.05 + 0.1 * self.random.unit();
                self.jump = if self.random.happens(0.5) { 1.0 + size } else { 1.0 - size };
            }
            Event::Sibling => self.sibling_busy = !self.sibling_busy,
            Event::Interrupt => self.now += length(scenario.interrupts.ticks, &mut self.random),
            Event::Steal => self.now += length(scenario.steal.ticks, &mut self.random),
        }
        self.speed = scenario.ratio * self.drift * self.jump;
        self.due[event as usize] = self.now + self.pause_before(event, scenario);
        self.find_next();
    }

    /// How long it takes until the event happens, from now.
    fn pause_before(&mut self, event: Event, scenario: &Scenario) -> f64 {
        let mean = match event {
            Event::Drift if scenario.frequency.drift > 0.0 => return DRIFT_PERIOD,
            Event::Drift => f64::INFINITY,
            Event::Jump => 1.0 / scenario.frequency.jump_rate,
            Event::Interrupt => mean_pause(scenario.interrupts),
            Event::Steal => mean_pause(scenario.steal),
            Event::Sibling => match scenario.sibling {
                None => f64::INFINITY,
                Some(sibling) if self.sibling_busy => sibling.busy,
                Some(sibling) => sibling.idle,
            },
        };
        if mean.is_finite() { mean * self.random.exponential() } else { f64::INFINITY }
    }

    fn find_next(&mut self) {
        self.next = self.due.into_iter().fold(f64::INFINITY, f64::min);
    }
}

fn mean_pause(gaps: Gaps) -> f64 {
    1.0 / gaps.rate
}

/// A random length around `mean` ticks.
pub(super) fn length(mean: f64, random: &mut Random) -> f64 {
    mean * (0.5 + random.unit())
}
