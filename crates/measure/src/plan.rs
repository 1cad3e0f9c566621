//! Parameters of a measurement, and the width of the interval at which it stops.

use cyclescope_code::clock::Clock;
use cyclescope_code::program::ColdStart;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_core::statistics::Interval;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Requested half width of an interval, absolute or relative, whichever is wider.
///
/// A share that suits short snippets is too wide for long ones, so it can be capped in cycles. The
/// cap has no effect below a ten-thousandth of the cost, the precision of the ruler.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Half width in core cycles per copy.
    pub cycles: f64,
    /// Half width as a share of the cost.
    pub share: f64,
    /// Largest half width in core cycles that the share may give; `None` for no cap.
    pub cap: Option<f64>,
}

/// Precision that copies without a loop are long enough for, whatever a run requests. Longer code
/// may come from other places: a NOP costs 0.12 cycles while the cache of decoded instructions holds
/// its copies, and 0.25 in 64 KiB of them (Zen 5). So a narrower interval takes more layouts, never
/// longer code. Most snippets reach this precision with 16 layouts.
pub const COPIES_PRECISION: Precision = Precision { cycles: 0.002, share: 0.0025, cap: Some(0.5) };

/// The smallest cap, as a share of the cost.
const CAP_SHARE_LEAST: f64 = 0.0001;

impl Precision {
    /// Whether an interval is at least this narrow.
    pub fn is_met_by(self, interval: &Interval) -> bool {
        let cost = interval.value.abs();
        let share = match self.cap {
            Some(cap) => (self.share * cost).min(cap.max(CAP_SHARE_LEAST * cost)),
            None => self.share * cost,
        };
        interval.half_width() <= self.cycles.max(share)
    }
}

/// How the bodies of u, 2u and 4u repeats differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthenBy {
    /// Copies of the snippet, one after the other. Each runs once a sample: it costs what code costs
    /// that the decoders deliver.
    #[default]
    Copies,
    /// Copies in a loop: the cost in a hot loop, whose instructions come from the cache for decoded
    /// ones. A snippet that has no loop ([`LoopObstacle`](cyclescope_code::program::LoopObstacle))
    /// is measured like [`Copies`](LengthenBy::Copies).
    LoopedCopies,
    /// Iterations of a loop around one copy: the same code at the same address makes all three
    /// bodies. A function called from one place has one branch history. Called from many copies it
    /// has many histories, which compete for the predictors' memory.
    Iterations,
}

/// Parameters of a measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// The timing method.
    #[serde(with = "cyclescope_code::clock::by_name")]
    pub clock: &'static Clock,
    /// The step of the method's readings, in its raw units.
    pub step: f64,
    /// Latency of `imul r64, r64` in core cycles, from data of the micro-architecture. `None` means
    /// the whole number next to the ratio of the ruler's two chains. The estimate shows whether the
    /// chains disagree.
    pub imul_latency: Option<f64>,
    /// Integer adders of the core, from data of the micro-architecture.
    pub adders: Option<IntegerAdders>,
    /// Whether the CPU has AVX.
    pub avx: bool,
    /// The unit u; `None` if the measurement chooses it.
    pub unit: Option<usize>,
    /// Iterations of the loop around the copies. With `None` the measurement chooses them for
    /// [`LengthenBy::LoopedCopies`] and for rings of pointers. Otherwise there is no loop.
    pub loop_count: Option<u64>,
    /// How the three bodies differ.
    #[serde(default)]
    pub lengthen: LengthenBy,
    /// The memory of the programs; `None` means [`ProgramMemory::standard`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ProgramMemory>,
    /// What is cold when a body begins. If anything is, bodies with one copy and with none are
    /// compared.
    pub cold: ColdStart,
    /// Untimed rounds at the start of each layout; `None` if the measurement chooses their number.
    pub warm_up: Option<u32>,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Fewest timed rounds in each layout, if `rounds` of them would exceed the budget.
    pub rounds_least: u32,
    /// Initial layouts, each in its own worker process. More follow until the precision is reached.
    pub layouts: usize,
    /// Largest number of layouts.
    pub layouts_most: usize,
    /// Precision at which the measurement stops. It may be narrower than what a result must reach,
    /// which [`find_caveats`](crate::result::caveat::find_caveats) checks.
    pub precision: Precision,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// No batch begins after this time.
    pub budget: Duration,
    /// Seed of all random choices.
    pub seed: u64,
}

impl Plan {
    /// Eight layouts of twelve rounds, for simulated machines of `cyclescope_sim`. Their noise is
    /// chosen, and no micro-architecture data apply to them.
    ///
    /// # Panics
    ///
    /// Never: its timing method exists.
    pub fn simulated() -> Plan {
        Plan {
            clock: Clock::find_named("rdtscp-lfence").expect("it is a timing method"),
            step: 1.0,
            imul_latency: None,
            adders: None,
            avx: false,
            unit: None,
            loop_count: None,
            lengthen: LengthenBy::default(),
            memory: None,
            cold: ColdStart::default(),
            warm_up: None,
            rounds: 12,
            rounds_least: 4,
            layouts: 8,
            layouts_most: 8,
            precision: Precision { cycles: 1.0, share: 1.0, cap: None },
            confidence: 0.95,
            budget: Duration::from_secs(1),
            seed: 3,
        }
    }
}
