//! Simulated time: how long work takes while frequency, sibling and interrupts change.
//!
//! Time is a real number of TSC ticks and only moves forward. Between two events the core runs at a
//! constant rate, so work is integrated piece by piece from event to event.

use super::scenario::{Scenario, SimulatedGaps};
use cyclescope_core::random::Random;

/// Kinds of work that a busy sibling slows differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedWorkKind {
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

/// Measured slowdowns of rulers with a busy sibling: every link of an `add` chain competes for a
/// port each cycle, those of `imul` every third.
const ADD_SIBLING_SLOWDOWN: f64 = 1.01;
const IMUL_SIBLING_SLOWDOWN: f64 = 1.004;
const SENTINEL_SIBLING_SLOWDOWN: f64 = 1.5;

/// Ticks between two steps of the frequency's random walk.
const DRIFT_PERIOD: f64 = 65_536.0;

/// The random walk stays within this relative distance of the nominal frequency.
const DRIFT_BOUND: f64 = 0.1;

/// Events at random times.
#[derive(Debug, Clone, Copy)]
enum TimelineEvent {
    Drift,
    Jump,
    Sibling,
    Interrupt,
    Steal,
    Preemption,
}

const EVENTS: [TimelineEvent; 6] = [
    TimelineEvent::Drift,
    TimelineEvent::Jump,
    TimelineEvent::Sibling,
    TimelineEvent::Interrupt,
    TimelineEvent::Steal,
    TimelineEvent::Preemption,
];

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
    /// Ticks that other programs ran on this CPU.
    away: f64,
    /// Core cycles of work.
    cycles: f64,
    /// Core cycles per tick at this time.
    speed: f64,
    random: Random,
}

impl Timeline {
    pub(super) fn new(scenario: &Scenario, mut random: Random) -> Timeline {
        // Some seconds after the machine's start, at any phase of the TSC's step.
        let now = 1e9 + 1e10 * random.uniform();
        let mut timeline = Timeline {
            now,
            due: [f64::INFINITY; EVENTS.len()],
            next: f64::INFINITY,
            drift: 1.0,
            jump: 1.0,
            sibling_busy: false,
            away: 0.0,
            cycles: 0.0,
            speed: scenario.ratio,
            random,
        };
        if let Some(sibling) = scenario.sibling {
            timeline.sibling_busy = timeline.random.happens(sibling.busy / (sibling.busy + sibling.idle));
        }
        for event in EVENTS {
            timeline.due[event as usize] = now + timeline.pause_before(event, scenario);
        }
        timeline.find_next_event();
        timeline
    }

    pub(super) fn now(&self) -> f64 {
        self.now
    }

    /// Ticks that other programs ran on this CPU.
    pub(super) fn ticks_away(&self) -> f64 {
        self.away
    }

    /// Core cycles of all work, which no gap adds to.
    pub(super) fn cycles_worked(&self) -> f64 {
        self.cycles
    }

    /// Core cycles per tick at this time.
    pub(super) fn speed(&self) -> f64 {
        self.speed
    }

    /// Lets time pass without work.
    pub(super) fn pass_time(&mut self, ticks: f64, scenario: &Scenario) {
        let until = self.now + ticks;
        while self.next <= until {
            self.now = self.now.max(self.next);
            self.handle_event(scenario);
        }
        self.now = self.now.max(until);
    }

    /// Advances time by work of this number of core cycles.
    pub(super) fn run_work(&mut self, cycles: f64, kind: SimulatedWorkKind, scenario: &Scenario) {
        let mut left = cycles;
        loop {
            let rate = self.speed / self.slowdown(kind, scenario);
            let end = self.now + left / rate;
            if end <= self.next {
                self.cycles += (end - self.now) * self.speed;
                self.now = end;
                return;
            }
            let worked = (self.next - self.now).max(0.0);
            left -= worked * rate;
            self.cycles += worked * self.speed;
            self.now += worked;
            self.handle_event(scenario);
        }
    }

    fn slowdown(&self, kind: SimulatedWorkKind, scenario: &Scenario) -> f64 {
        let Some(sibling) = scenario.sibling.filter(|_| self.sibling_busy) else { return 1.0 };
        match kind {
            SimulatedWorkKind::Fixed => 1.0,
            SimulatedWorkKind::Add => ADD_SIBLING_SLOWDOWN,
            SimulatedWorkKind::Imul => IMUL_SIBLING_SLOWDOWN,
            SimulatedWorkKind::Sentinel => SENTINEL_SIBLING_SLOWDOWN,
            SimulatedWorkKind::Snippet => 1.0 + sibling.snippet,
        }
    }

    /// Handles the event that is due.
    fn handle_event(&mut self, scenario: &Scenario) {
        let is_due = |event: &TimelineEvent| self.due[*event as usize] <= self.next;
        let event = EVENTS.into_iter().find(is_due).expect("one event is the earliest");
        match event {
            TimelineEvent::Drift => {
                let step = scenario.frequency.drift * (DRIFT_PERIOD / 1e6).sqrt() * self.random.normal();
                self.drift = (self.drift + step).clamp(1.0 - DRIFT_BOUND, 1.0 + DRIFT_BOUND);
            }
            TimelineEvent::Jump => {
                let size = 0.05 + 0.1 * self.random.uniform();
                self.jump = if self.random.happens(0.5) { 1.0 + size } else { 1.0 - size };
            }
            TimelineEvent::Sibling => self.sibling_busy = !self.sibling_busy,
            TimelineEvent::Interrupt => self.now += draw_length(scenario.interrupts.ticks, &mut self.random),
            TimelineEvent::Steal => self.now += draw_length(scenario.steal.ticks, &mut self.random),
            TimelineEvent::Preemption => {
                let turn = draw_length(scenario.preemption.ticks, &mut self.random);
                self.now += turn;
                self.away += turn;
            }
        }
        self.speed = scenario.ratio * self.drift * self.jump;
        self.due[event as usize] = self.now + self.pause_before(event, scenario);
        self.find_next_event();
    }

    /// Time from now to the event.
    fn pause_before(&mut self, event: TimelineEvent, scenario: &Scenario) -> f64 {
        let mean = match event {
            TimelineEvent::Drift if scenario.frequency.drift > 0.0 => return DRIFT_PERIOD,
            TimelineEvent::Drift => f64::INFINITY,
            TimelineEvent::Jump => 1.0 / scenario.frequency.jump_rate,
            TimelineEvent::Interrupt => mean_pause(scenario.interrupts),
            TimelineEvent::Steal => mean_pause(scenario.steal),
            TimelineEvent::Preemption => mean_pause(scenario.preemption),
            TimelineEvent::Sibling => match scenario.sibling {
                None => f64::INFINITY,
                Some(sibling) if self.sibling_busy => sibling.busy,
                Some(sibling) => sibling.idle,
            },
        };
        if mean.is_finite() { mean * self.random.exponential() } else { f64::INFINITY }
    }

    fn find_next_event(&mut self) {
        self.next = self.due.into_iter().fold(f64::INFINITY, f64::min);
    }
}

fn mean_pause(gaps: SimulatedGaps) -> f64 {
    1.0 / gaps.rate
}

/// A random length around `mean` ticks.
pub(super) fn draw_length(mean: f64, random: &mut Random) -> f64 {
    mean * (0.5 + random.uniform())
}
