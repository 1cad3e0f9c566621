//! The main path: a snippet, programs, samples, an estimate, until the interval is narrow enough.
//!
//! The unit u is grown until the cost is proportional to the number of copies, the warm-up until the cost has
//! stopped moving; then layouts are added until the interval that was asked for is reached or the budget is
//! spent.

use crate::clock::Clock;
use crate::error::RunError;
use crate::estimate::{Estimate, LayoutData, Shape, call, estimate};
use crate::executor::{Batch, Call, Executor, Layout, Place, Sample};
use crate::placement;
use crate::program::{Cold, Frame, Program, Recipe};
use crate::random::Random;
use crate::ruler::Ruler;
use crate::samples::LayoutSamples;
use crate::snippet::{Outline, Snippet};
use crate::statistics::{Interval, mean, normal_quantile};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// How narrow an interval has to be: its half width, absolute or relative, whichever is wider.
///
/// Long snippets can do better than a share that suits short ones: the share can be capped in cycles, down to a
/// ten-thousandth of the cost, which is as well as the core clock is followed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half width in core cycles a copy.
    pub cycles: f64,
    /// Half width as a share of the cost.
    pub share: f64,
    /// Core cycles above which the share does not count, if any.
    pub cap: Option<f64>,
}

/// The share of the cost below which no cap goes.
const CAP_LEAST: f64 = 0.0001;

impl Precision {
    /// Whether an interval is at least this narrow.
    pub fn met_by(self, interval: &Interval) -> bool {
        let cost = interval.value.abs();
        let share = match self.cap {
            Some(cap) => (self.share * cost).min(cap.max(CAP_LEAST * cost)),
            None => self.share * cost,
        };
        interval.half_width() <= self.cycles.max(share)
    }
}

/// What is asked of a measurement.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The timing method.
    pub clock: &'static Clock,
    /// The step of its readings, in its raw units.
    pub step: f64,
    /// Latency of `imul r32, r32` in core cycles, where data for the micro-architecture tell it; else the whole
    /// number next to the ratio of the two rulers, whose disagreement would show in the estimate.
    pub imul_latency: Option<f64>,
    /// Units of the core that add integers, where data tell it.
    pub adders: Option<u32>,
    /// Whether the CPU has AVX.
    pub avx: bool,
    /// u, where it is fixed.
    pub unit: Option<usize>,
    /// Iterations of the loop around the copies; none without a loop.
    pub loop_count: Option<u64>,
    /// What is cold when a body begins. If anything is, one copy is measured against none.
    pub cold: Cold,
    /// Untimed rounds at the start of each layout, where they are fixed.
    pub warm_up: Option<u32>,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Layouts of the first batch; more follow until the precision is reached.
    pub layouts: usize,
    /// Layouts at most.
    pub layouts_most: usize,
    /// The precision at which to stop.
    pub precision: Precision,
    /// The level of the intervals.
    pub confidence: f64,
    /// Time after which no further batch is begun.
    pub budget: Duration,
    /// Seeds everything that is random.
    pub seed: u64,
    /// Whether batches and raw readings are kept.
    pub keep_evidence: bool,
}

/// The samples of one unit and warm-up, and where they come from.
#[derive(Debug, Clone)]
pub struct Acquisition {
    /// u.
    pub unit: usize,
    /// Untimed rounds at the start of each layout.
    pub warm_up: u32,
    /// Iterations of the ruler's loops, about.
    pub ruler_loops: u64,
    /// How to read the rounds.
    pub shape: Shape,
    /// How many placements each layout's samples come from.
    pub runs_per_layout: usize,
    /// What each layout's calls took.
    pub layouts: Vec<LayoutData>,
    /// What ran and what was read, where the plan asks to keep it.
    pub evidence: Vec<(Batch, Vec<Sample>)>,
    /// Seconds that a round should take, with a margin.
    pub round_s: f64,
}

/// A finished measurement.
#[derive(Debug, Clone)]
pub struct Measurement {
    /// The estimate; none where too few rounds were undisturbed.
    pub estimate: Option<Estimate>,
    /// Whether the cost was proportional to the number of copies.
    pub linear: bool,
    /// Whether the cost had stopped moving after the warm-up.
    pub settled: bool,
    /// The samples of the last unit and warm-up that were tried.
    pub acquisition: Acquisition,
    /// Time spent.
    pub elapsed: Duration,
}

/// Untimed rounds at first: two runs fill the caches and, on cores that need it, wake the wide vector units.
const WARM_UP: u32 = 3;
/// Untimed rounds at most. Predictors of store forwarding took some fifteen runs of each load to settle.
const WARM_UP_MOST: u32 = 96;
/// Instructions in the shortest body at least: more than any scheduler holds (97 entries on Golden Cove, 192 in
/// all of Zen 4's). A body that the scheduler holds as a whole ends otherwise than a longer one: with 100, chains of
/// `popcnt`, `bswap` and `cmov` read 1.9, 0.6 and 1.8 cycles too little over 300 copies, with 200 and more no chain
/// was off by more than 0.4.
const INSTRUCTIONS: usize = 200;
/// Memory accesses in the shortest body at least: more than any store buffer holds (Intel and AMD
/// optimisation manuals: at most 112 entries), else a whole sample hides in it.
const MEMORY_ACCESSES: usize = 128;
/// Bytes of the longest body at first, inside every op cache and half of a level 1 instruction cache.
const BODY_BYTES: usize = 12 << 10;
/// Bytes of the longest body when the unit was grown.
const BODY_BYTES_MOST: usize = 128 << 10;
/// Core cycles of the longest body at first and when the unit was grown: well below a scheduler's time slice.
const BODY_CYCLES: f64 = 400_000.0;
const BODY_CYCLES_MOST: f64 = 4_000_000.0;
/// Core cycles that a cold start is taken to cost before it is measured.
const COLD_GUESS: f64 = 1000.0;
/// Iterations of the ruler's loops.
const RULER_LOOPS: std::ops::RangeInclusive<f64> = 16.0..=4000.0;
/// A slope that bends, or a cost that moves, by less than this share or this many core cycles is accepted.
const BEND_SHARE: f64 = 0.01;
const BEND_CYCLES: f64 = 0.003;
/// How long to leave a shared core alone before the layouts are taken anew, how often, and for how many budgets at
/// most: a neighbour's spells of work lasted tens of milliseconds, and what is measured in one is wrong by up to a
/// third.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSES_MOST: u32 = 50;
const BUDGETS_BESIDE_SIBLING: u32 = 4;
/// How long any batch may take before its snippet counts as hung, beside the time that it should take and the
/// budget.
const PATIENCE: Duration = Duration::from_secs(1);
/// Taken for granted where the time of a batch is foreseen: no core is slower than 1 GHz, a call of a program
/// takes its surroundings 2 µs, and one whose caches are emptied first a millisecond (measured: 0.1 ms).
const SECONDS_A_CYCLE: f64 = 1e-9;
const SECONDS_A_CALL: f64 = 2e-6;
const SECONDS_A_COLD_CALL: f64 = 1e-3;
/// No deadline is longer than a week.
const LONGEST_S: f64 = 7.0 * 86_400.0;
/// Iterations of the loop around the copies in the pilot.
const PILOT_LOOPS: u64 = 1000;
/// Bytes of programs that are held in memory for one call of the executor, about.
const BATCH_BYTES: usize = 64 << 20;
/// Bytes of the arena that the ruler, the clock readings and the spaces between programs may take.
const ARENA_RESERVE: usize = 64 << 10;

/// How many copies of a snippet the shortest body can hold: three bodies of u, 2u and 4u stand in the arena.
pub fn most_copies(arena_len: usize, snippet: &Snippet) -> usize {
    let room = arena_len.saturating_sub(ARENA_RESERVE + 3 * snippet.init().len());
    room / (7 * snippet.code().len().max(1))
}

/// Measures a snippet.
pub fn measure(executor: &mut dyn Executor, snippet: &Snippet, plan: &Plan) -> Result<Measurement, RunError> {
    Session::new(executor, snippet, plan).run()
}

/// One measurement under way.
struct Session<'a> {
    executor: &'a mut dyn Executor,
    snippet: &'a Snippet,
    plan: &'a Plan,
    outline: Outline,
    ruler: [Program; RULERS],
    /// What all programs of the snippet have in common.
    frame: Option<Frame>,
    imul_latency: f64,
    random: Random,
    /// How often the core was left alone because it was shared.
    pauses: u32,
    started: Instant,
}

impl<'a> Session<'a> {
    fn new(executor: &'a mut dyn Executor, snippet: &'a Snippet, plan: &'a Plan) -> Session<'a> {
        let outline = snippet.outline(plan.avx);
        Session {
            frame: (!plan.cold.is_any()).then(|| recipe(snippet, plan, outline, 0).frame()),
            executor,
            snippet,
            plan,
            outline,
            ruler: Ruler::new(plan.clock).programs(),
            imul_latency: plan.imul_latency.unwrap_or(1.0),
            random: Random::new(plan.seed),
            pauses: 0,
            started: Instant::now(),
        }
    }

    fn run(mut self) -> Result<Measurement, RunError> {
        let guess = if self.is_cold() { COLD_GUESS } else { self.pilot()? };
        let unit = if self.is_cold() { 1 } else { self.plan.unit.unwrap_or_else(|| self.first_unit(guess)) };
        let mut acquisition = self.acquisition(unit, self.plan.warm_up.unwrap_or(WARM_UP), guess);
        loop {
            let more = acquisition.layouts.len().max(self.plan.layouts);
            self.batch(&mut acquisition, more, self.plan.rounds)?;
            let result = self.estimate(&acquisition);
            let (linear, settled) = verdict(&result);
            let Acquisition { unit, warm_up, .. } = acquisition;
            if result.as_ref().is_some_and(|result| result.shared) && self.may_wait() {
                self.pauses += 1;
                std::thread::sleep(PAUSE);
                acquisition = self.acquisition(unit, warm_up, guess);
                continue;
            }
            let full = acquisition.layouts.len() >= self.plan.layouts_most || !self.has_time();
            if !settled && self.plan.warm_up.is_none() && warm_up < WARM_UP_MOST && self.has_time() {
                acquisition = self.acquisition(unit, 4 * warm_up, guess);
            } else if (!linear || self.is_blurred(&result)) && self.may_grow(unit, guess) && self.has_time() {
                acquisition = self.acquisition(2 * unit, warm_up, guess);
            } else if full || self.reached(&result) {
                let elapsed = self.started.elapsed();
                return Ok(Measurement { estimate: result, linear, settled, acquisition, elapsed });
            }
        }
    }

    /// Whether there is time to wait for a busy sibling to rest.
    fn may_wait(&self) -> bool {
        self.pauses < PAUSES_MOST && self.started.elapsed() < BUDGETS_BESIDE_SIBLING * self.plan.budget
    }

    fn reached(&self, result: &Option<Estimate>) -> bool {
        result.as_ref().is_some_and(|result| !result.shared && self.plan.precision.met_by(&result.cost))
    }

    fn is_cold(&self) -> bool {
        self.plan.cold.is_any()
    }

    /// Whether the instrument's own error leaves too little of the precision for the spread of the layouts, which
    /// more layouts make smaller: then only longer bodies help.
    fn is_blurred(&self, estimate: &Option<Estimate>) -> bool {
        let Some(estimate) = estimate else { return false };
        let errors: Vec<f64> = estimate.layouts.iter().map(|layout| layout.systematic).collect();
        let margin = normal_quantile(0.5 + self.plan.confidence / 2.0) * mean(&errors);
        let both = std::f64::consts::SQRT_2 * margin;
        !self.plan.precision.met_by(&Interval::around(estimate.cost.value, both))
    }

    fn has_time(&self) -> bool {
        self.started.elapsed() < self.plan.budget
    }

    fn estimate(&self, acquisition: &Acquisition) -> Option<Estimate> {
        estimate(&acquisition.layouts, &acquisition.shape, self.plan.confidence)
    }

    /// A rough cost in core cycles a copy, from a few copies.
    fn pilot(&mut self) -> Result<f64, RunError> {
        let mut acquisition = self.acquisition(1, 1, 0.0);
        acquisition.shape.loop_count = acquisition.shape.loop_count.min(PILOT_LOOPS);
        self.batch(&mut acquisition, 1, 2)?;
        let samples = &acquisition.layouts[0].samples;
        let least = |call: usize| samples.column(call).fold(f64::INFINITY, f64::min);
        let rate = (least(call::IMUL_LONG) - least(call::IMUL_SHORT)).max(1.0);
        if self.plan.imul_latency.is_none() {
            let add = (least(call::ADD_LONG) - least(call::ADD_SHORT)).max(1.0);
            self.imul_latency =
                (rate / add * crate::ruler::ADD_SPAN / crate::ruler::IMUL_SPAN).round().max(1.0);
        }
        let cycles = self.ruler_span() * acquisition.layouts[0].ruler_loops as f64;
        let copies = 3.0 * acquisition.shape.loop_count as f64;
        let guess = (least(call::FOUR) - least(call::ONE)) / copies * cycles / rate;
        Ok(if guess.is_finite() { guess.max(0.05) } else { 1.0 })
    }

    /// Core cycles by which the ruler's two lengths differ in each iteration.
    fn ruler_span(&self) -> f64 {
        crate::ruler::IMUL_SPAN * self.imul_latency
    }

    fn first_unit(&self, guess: f64) -> usize {
        let by_count = INSTRUCTIONS.div_ceil(self.outline.instructions.max(1));
        let by_memory = match self.outline.memory_accesses {
            0 => 1,
            accesses => MEMORY_ACCESSES.div_ceil(accesses),
        };
        let by_bytes = BODY_BYTES / 4 / self.snippet.code().len().max(1);
        let loops = self.plan.loop_count.unwrap_or(1) as f64;
        let by_time = BODY_CYCLES / 4.0 / (guess * loops);
        by_count.max(by_memory).min(by_bytes).min(by_time as usize).max(1)
    }

    fn may_grow(&self, unit: usize, guess: f64) -> bool {
        let loops = self.plan.loop_count.unwrap_or(1) as f64;
        self.plan.unit.is_none()
            && !self.is_cold()
            && 8 * unit * self.snippet.code().len() <= BODY_BYTES_MOST
            && 8.0 * unit as f64 * guess * loops <= BODY_CYCLES_MOST
    }

    /// The shape for one unit, without samples.
    fn acquisition(&self, unit: usize, warm_up: u32, guess: f64) -> Acquisition {
        let loop_count = self.plan.loop_count.unwrap_or(1);
        let span = 3.0 * unit as f64 * loop_count as f64 * guess;
        let ruler_loops = (span / self.ruler_span()).clamp(*RULER_LOOPS.start(), *RULER_LOOPS.end()) as u64;
        let width = self.plan.adders.map(crate::ruler::sentinel_width);
        let shape = Shape {
            loop_count,
            imul_latency: self.imul_latency,
            step: self.plan.step,
            width,
            pooled: self.is_cold(),
        };
        Acquisition {
            unit,
            warm_up,
            ruler_loops,
            shape,
            runs_per_layout: 1,
            layouts: Vec::new(),
            evidence: Vec::new(),
            round_s: SECONDS_A_CYCLE * (2.5 * span + 4.0 * self.ruler_span() * ruler_loops as f64)
                + call::COUNT as f64 * self.call_s(),
        }
    }

    /// What a call takes beside its program, in seconds at most.
    fn call_s(&self) -> f64 {
        if self.is_cold() { SECONDS_A_COLD_CALL } else { SECONDS_A_CALL }
    }

    /// Runs further layouts, no more at once than memory should hold.
    fn batch(&mut self, acquisition: &mut Acquisition, layouts: usize, rounds: u32) -> Result<(), RunError> {
        let code = 9 * acquisition.unit * self.snippet.code().len() * self.runs_per_layout(rounds);
        let at_once = (BATCH_BYTES / code.max(1)).max(1);
        for first in (0..layouts).step_by(at_once) {
            self.run_layouts(acquisition, at_once.min(layouts - first), rounds)?;
        }
        Ok(())
    }

    fn run_layouts(
        &mut self,
        acquisition: &mut Acquisition,
        layouts: usize,
        rounds: u32,
    ) -> Result<(), RunError> {
        let mut programs = self.ruler.to_vec();
        let mut lengths = Vec::new();
        let mut placed = Vec::new();
        let runs = self.runs_per_layout(rounds);
        for _ in 0..layouts {
            let copies = self.copies(acquisition.unit);
            let ruler_loops = self.about(acquisition.ruler_loops as usize) as u64;
            for _ in 0..runs {
                placed.push(self.layout(
                    &mut programs,
                    &copies,
                    acquisition.shape.loop_count,
                    ruler_loops,
                )?);
            }
            lengths.push((copies, ruler_loops));
        }
        let (warm_up, rounds) = if runs > 1 { (0, 1) } else { (acquisition.warm_up, rounds) };
        let all_rounds = placed.len() as f64 * (f64::from(warm_up) + f64::from(rounds));
        let foreseen = Duration::from_secs_f64((all_rounds * acquisition.round_s).min(LONGEST_S));
        let batch = Batch {
            programs,
            warm_up,
            rounds,
            layouts: placed,
            element: self.outline.world.element,
            touches_memory: self.outline.touches_memory,
            deadline: PATIENCE + 4 * (self.plan.budget + foreseen),
        };
        let samples = self.executor.run(&batch)?;
        acquisition.runs_per_layout = runs;
        let readings = samples.chunks_exact(runs * rounds as usize * call::COUNT);
        for ((layouts, (copies, ruler_loops)), readings) in
            batch.layouts.chunks_exact(runs).zip(lengths).zip(readings)
        {
            let samples = gather(layouts, readings);
            acquisition.layouts.push(LayoutData { copies, ruler_loops, samples });
        }
        if self.plan.keep_evidence {
            acquisition.evidence.push((batch, samples));
        }
        Ok(())
    }

    /// How many placements one layout's samples come from: one, or, where branches are cold, one for each round.
    fn runs_per_layout(&self, rounds: u32) -> usize {
        if self.plan.cold.branches { rounds as usize } else { 1 }
    }

    /// How many copies the three bodies of a layout hold: u, 2u, 4u, each moved by up to u/4 unless u is fixed.
    fn copies(&mut self, unit: usize) -> [usize; 3] {
        if self.is_cold() {
            return [0, 0, 1];
        }
        if self.plan.unit.is_some() {
            return [unit, 2 * unit, 4 * unit];
        }
        [0, 1, 3].map(|more| more * unit + self.about(unit))
    }

    /// A random number no further from `middle` than a quarter of it.
    fn about(&mut self, middle: usize) -> usize {
        let spread = middle / 4;
        middle - spread + self.random.below(2 * spread + 1)
    }

    /// The program with so many copies. Evictions of a cold start depend on that number.
    fn program(&self, copies: usize) -> Program {
        match &self.frame {
            Some(frame) => frame.program(self.snippet.code(), copies),
            None => recipe(self.snippet, self.plan, self.outline, copies).build(),
        }
    }

    /// The calls of a round in a random order, the snippet's own never more than two apart: where 256-bit floating
    /// point arithmetic had rested for the 2 µs of all rulers, it was slowed down for the next 2 000 cycles.
    fn order(&mut self) -> [usize; call::COUNT] {
        let (mut bodies, mut rulers) = ([call::ONE, call::TWO, call::FOUR], call::RULERS);
        self.random.shuffle(&mut bodies);
        self.random.shuffle(&mut rulers);
        let ([a, b, c], [r, s, t, u, v]) = (bodies, rulers);
        let mut order = [a, r, s, b, t, u, c, v];
        order.rotate_left(self.random.below(call::COUNT));
        order
    }

    /// Writes a layout's programs and places them and the ruler. Its places are in the order of [`call`].
    fn layout(
        &mut self,
        programs: &mut Vec<Program>,
        copies: &[usize; 3],
        loop_count: u64,
        ruler_loops: u64,
    ) -> Result<Layout, RunError> {
        let first = programs.len();
        for copies in copies {
            programs.push(self.program(*copies));
        }
        let (fixed, end) = placement::fixed(&programs[..RULERS]);
        let numbers = [first, first + 1, first + 2];
        let alignment = self.plan.cold.code.then_some(0);
        let arena_len = self.executor.arena_len();
        let bodies = placement::random(programs, &numbers, end, arena_len, alignment, &mut self.random)
            .ok_or(RunError::System { doing: "placing code in the arena", errno: libc::ENOMEM })?;
        let ruler = |program: usize| Place { program, offset: fixed[program] };
        let mut code = vec![Place { program: 0, offset: 0 }; call::COUNT];
        for (call, body) in [call::ONE, call::TWO, call::FOUR].into_iter().zip(bodies) {
            code[call] = body;
        }
        let rulers = [call::IMUL_SHORT, call::IMUL_LONG, call::ADD_SHORT, call::ADD_LONG, call::SENTINEL];
        for (program, call) in rulers.into_iter().enumerate() {
            code[call] = ruler(program);
        }
        let loop_count = |call: usize| match call {
            call::ONE | call::TWO | call::FOUR => loop_count,
            call::SENTINEL => crate::ruler::sentinel_loops(self.plan.step),
            _ => ruler_loops,
        };
        let round =
            self.order().into_iter().map(|place| Call { place, loop_count: loop_count(place) }).collect();
        Ok(Layout { code, round, data: placement::data(&mut self.random), seed: self.random.bits() })
    }
}

fn recipe<'a>(snippet: &'a Snippet, plan: &'a Plan, outline: Outline, copies: usize) -> Recipe<'a> {
    Recipe {
        clock: plan.clock,
        world: outline.world,
        init: snippet.init(),
        snippet: snippet.code(),
        copies,
        looped: plan.loop_count.is_some(),
        cold: plan.cold,
    }
}

/// The samples of some placements that count as one layout.
pub(crate) fn gather(layouts: &[Layout], readings: &[Sample]) -> LayoutSamples {
    let per_run = readings.len() / layouts.len();
    let mut runs = layouts.iter().zip(readings.chunks_exact(per_run)).map(|(layout, readings)| {
        let order: Vec<usize> = layout.round.iter().map(|call| call.place).collect();
        LayoutSamples::new(readings, &order)
    });
    let mut samples = runs.next().expect("a layout has at least one run");
    runs.for_each(|run| samples.append(run));
    samples
}

/// Programs of the ruler.
const RULERS: usize = 5;

/// Whether the cost is proportional to the number of copies, and whether it has stopped moving.
fn verdict(estimate: &Option<Estimate>) -> (bool, bool) {
    let Some(estimate) = estimate else { return (true, true) };
    let tolerance = (BEND_SHARE * estimate.cost.value.abs()).max(BEND_CYCLES);
    let small = |interval: &Interval| {
        interval.value.abs() <= tolerance || (interval.low <= 0.0 && interval.high >= 0.0)
    };
    (small(&estimate.bend), small(&estimate.trend))
}
