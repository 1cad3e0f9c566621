//! The parameters of a simulated machine: every disturbance observed on real machines, as plain
//! data.
//!
//! A field at zero (or `None`) switches its disturbance off; [`Scenario::default`] is a machine
//! without any.

use cyclescope_core::error::RunError;

/// A simulated machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Readings of the TSC are multiples of this many ticks.
    pub step: u64,
    /// Nominal core cycles per TSC tick.
    pub ratio: f64,
    /// Ticks of the TSC in one second, used by deadlines and budgets.
    pub hertz: f64,
    /// Largest delay of a reading in ticks, uniformly distributed.
    pub jitter: f64,
    /// Largest random time before each call, in ticks.
    pub delay: f64,
    /// Cost of the empty pair of readings in core cycles.
    pub overhead: f64,
    /// Cost of entry and exit of a body in core cycles, the same for all programs.
    pub boundary: f64,
    /// Largest deviation of the boundary of each length of a snippet, in core cycles, up or down,
    /// new in each layout.
    pub boundary_spread: f64,
    /// Core cycles by which the long `imul` ruler differs from its chain, equally in every layout:
    /// an error of the instrument that no number of layouts reveals.
    pub ruler_boundary: f64,
    /// Core cycles of one copy of any snippet that is neither the ruler's nor in `costs`.
    pub cost: f64,
    /// Core cycles of one copy of particular snippets.
    pub costs: Vec<(Vec<u8>, f64)>,
    /// Core cycles of `imul r64, r64`.
    pub imul_latency: u32,
    /// Independent additions that the core starts in one cycle.
    pub adds_per_cycle: f64,
    /// Core cycles of each body that overlap with the empty pair's overhead.
    pub slack: f64,
    /// Smallest duration of a loop's iteration in core cycles; shorter bodies cost no more.
    pub loop_floor: f64,
    /// Additional core cycles of a copy in the first iteration of each call, while its instructions
    /// come from the decoders.
    pub decoding: f64,
    /// A buffer that takes the first copies of a snippet at a lower cost.
    pub buffer: Option<SimulatedBuffer>,
    /// Effect of code placement on a snippet's cost.
    pub layout: SimulatedLayoutEffects,
    /// Slower first calls of each program in each layout.
    pub training: SimulatedTraining,
    /// Predictors that learn a snippet late, and forget it with the worker's process.
    pub learning: Option<SimulatedLearning>,
    /// Standard deviation of a factor around 1 on the snippet's cost, different on each simulated
    /// machine.
    pub machine_spread: f64,
    /// Changes of the core's frequency.
    pub frequency: SimulatedFrequency,
    /// Interrupts.
    pub interrupts: SimulatedGaps,
    /// Time that the hypervisor gives to other machines.
    pub steal: SimulatedGaps,
    /// Turns of other programs on the same CPU, which the thread's processor time tells.
    pub preemption: SimulatedGaps,
    /// Disturbances of ruler calls alone.
    pub ruler_hits: SimulatedHits,
    /// A busy sibling on the same core.
    pub sibling: Option<SimulatedSibling>,
    /// Ticks added to each call.
    pub noise: SimulatedNoise,
    /// A batch that fails.
    pub fault: Option<SimulatedFault>,
}

/// Copies that a buffer takes at a lower cost, such as non-temporal stores: `movnti` costs 1.87
/// cycles up to 40 copies, then 41.8. The buffer is empty again at the next call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedBuffer {
    /// Copies that fit.
    pub copies: f64,
    /// Core cycles of a copy that fits.
    pub cost: f64,
}

/// Effects of code placement. The effect of a layout is the same each time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulatedLayoutEffects {
    /// Standard deviation of a factor around 1 on the snippet's cost.
    pub relative: f64,
    /// Standard deviation of the change of each copy's cost, in core cycles.
    pub absolute: f64,
    /// A second scheduling mode.
    pub mode: Option<SimulatedMode>,
}

/// A scheduling mode of some layouts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedMode {
    /// The share of layouts.
    pub probability: f64,
    /// The cost in this mode, divided by the usual cost.
    pub factor: f64,
    /// Whether each program of a layout is in the mode independently, instead of all together.
    pub by_program: bool,
}

/// Slower first calls, as predictors and caches train.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulatedTraining {
    /// Number of slower calls.
    pub calls: u32,
    /// Additional core cycles of the first call; they decrease in equal steps.
    pub extra: f64,
}

/// Predictors that learn a snippet's branches at a random time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedLearning {
    /// Mean number of repeats before they have learnt, with an exponential distribution.
    pub repeats: f64,
    /// The saved share of the cost.
    pub saving: f64,
}

/// Movements of the core's frequency around its nominal value.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulatedFrequency {
    /// Standard deviation of the relative change within a million ticks: a random walk, held within
    /// 10 %.
    pub drift: f64,
    /// Jumps per tick. Each leads to a frequency 5 to 15 % above or below the nominal one.
    pub jump_rate: f64,
}

/// Gaps in execution at random times.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulatedGaps {
    /// Gaps per tick.
    pub rate: f64,
    /// Mean length in ticks; lengths are uniform from a half to one and a half of it.
    pub ticks: f64,
}

/// Calls that take longer with some probability.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulatedHits {
    /// The probability of each call.
    pub probability: f64,
    /// Mean length in ticks; lengths are uniform from a half to one and a half of it.
    pub ticks: f64,
}

/// A sibling on the same core that is busy for periods. During these a chain of `add` takes 1 %
/// longer, one of `imul` 0.4 %, and the width sentinel 50 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedSibling {
    /// Mean length of a busy period, in ticks.
    pub busy: f64,
    /// Mean time between two busy periods, in ticks.
    pub idle: f64,
    /// Share by which the snippet takes longer in a busy period.
    pub snippet: f64,
}

/// Ticks added to each call.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum SimulatedNoise {
    /// None.
    #[default]
    None,
    /// A log-normal number of ticks, added to some calls.
    LogNormal {
        /// The share of calls.
        probability: f64,
        /// The median number of ticks.
        median: f64,
        /// Standard deviation of its logarithm.
        sigma: f64,
    },
    /// Recorded residuals of real samples in their order, from a random start, repeated. Negative
    /// ones shorten a call by at most its overhead.
    Replayed(Vec<f64>),
}

/// A failing batch.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedFault {
    /// Number of successful batches before it.
    pub after: u32,
    /// Batches fail only if a call has more repeats of a snippet than this; with 0 all fail.
    pub beyond_repeats: f64,
    /// The error that later batches return.
    pub error: RunError,
}

impl Default for Scenario {
    /// A machine without disturbances: TSC in steps of one tick, core at 3.7 GHz with a TSC of
    /// 2.596 GHz.
    fn default() -> Scenario {
        Scenario {
            step: 1,
            ratio: 1.425_031,
            hertz: 2.596e9,
            jitter: 0.0,
            delay: 400.0,
            overhead: 105.3,
            boundary: 14.6,
            boundary_spread: 0.0,
            ruler_boundary: 0.0,
            cost: 3.07,
            costs: Vec::new(),
            imul_latency: 3,
            adds_per_cycle: 5.0,
            slack: 0.0,
            loop_floor: 0.0,
            decoding: 0.0,
            buffer: None,
            layout: SimulatedLayoutEffects::default(),
            training: SimulatedTraining::default(),
            learning: None,
            machine_spread: 0.0,
            frequency: SimulatedFrequency::default(),
            interrupts: SimulatedGaps::default(),
            steal: SimulatedGaps::default(),
            preemption: SimulatedGaps::default(),
            ruler_hits: SimulatedHits::default(),
            sibling: None,
            noise: SimulatedNoise::None,
            fault: None,
        }
    }
}
