//! One row of an instruction table: the result for one form or sequence.
//!
//! Rows are plain data, written as JSON lines of kind `instr` and read back. The key of a row is
//! (`code`, `operands`, `encoding`).

use super::dispatch_slots::DispatchSlots;
use crate::experiments::port_usage::PortUsage;
use crate::forms::encoded_constant::EncodedConstant;
use cyclescope_code::asm::CodeMode;
use cyclescope_core::unit::Unit;
use cyclescope_exec::DEFAULT_OFFER;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::counter_record::CounterRecord;
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// The outcome of a form. Every form has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowStatus {
    /// It was measured.
    Measured,
    /// It was not tried. The reason is a code from a closed list.
    Skipped,
    /// It was tried without a figure. The reason says what happened.
    Failed,
}

/// The kind of a latency figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyBound {
    /// From a closed chain of this form alone, or with links of certain cost.
    Exact,
    /// From a chain through several classes of registers. Only the sum is physical. A stated
    /// convention decides this form's part of it.
    Sum,
    /// An upper bound.
    Upper,
}

/// The latency from one input to one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperandLatency {
    /// The input: `op1` to `op5`, `flags`, `mask`, `mem_addr`, `mem_data`, or an implicit
    /// register's name.
    pub from: String,
    /// The output, in the same terms.
    pub to: String,
    /// Core cycles.
    pub cost: Quantity,
    /// The kind of the figure.
    pub bound: LatencyBound,
    /// The variant, such as `same register`. Null for the headline.
    pub variant: Option<String>,
    /// The immediate, if the variant differs from the headline by it.
    #[serde(default)]
    pub immediate: Option<String>,
    /// One turn of the chain as assembly, statements separated by `; `, then the subtracted links.
    pub chain: String,
    /// The latencies of short and long chains, if short chains in an empty scheduler have another
    /// latency than `cost`. Null if they are the same or were not compared.
    #[serde(default)]
    pub regimes: Option<LatencyRegimes>,
}

impl OperandLatency {
    /// Whether both have the same ends and variant.
    pub(super) fn is_same_pair(&self, other: &OperandLatency) -> bool {
        (&self.from, &self.to, &self.variant) == (&other.from, &other.to, &other.variant)
    }

    /// Widens the interval to cover all passes. An upper bound rises to the highest pass.
    pub(super) fn widen_to(&mut self, [least, most]: [f64; 2]) {
        if self.bound == LatencyBound::Upper {
            return self.make_upper_bound(most);
        }
        let cost = &mut self.cost;
        cost.low = cost.low.map(|low| low.min(least));
        cost.high = cost.high.map(|high| high.max(most));
    }

    /// Makes it an upper bound of at least `most`.
    pub(super) fn make_upper_bound(&mut self, most: f64) {
        let high = self.cost.high.map(|high| high.max(most));
        self.cost = Quantity { value: self.cost.value.map(|value| value.max(most)), high, ..self.cost };
        self.bound = LatencyBound::Upper;
        self.regimes = None;
    }
}

/// The two latencies of a chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyRegimes {
    /// Core cycles in a short chain, which finds the scheduler empty.
    pub fresh: Quantity,
    /// Core cycles in a long chain, whose waiting instructions fill the scheduler.
    pub saturated: Quantity,
    /// Number of instructions in the chain, including links, at which the second latency begins.
    pub knee: Quantity,
}

/// A reciprocal throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReciprocalThroughput {
    /// Core cycles per instruction, at the best sustained rate found.
    pub cost: Quantity,
    /// The recipe of the program that reached it.
    pub recipe: String,
    /// The only simple fraction in the interval, such as `1/3`. Null unless there is exactly one.
    #[serde(default)]
    pub fraction: Option<String>,
    /// Core cycles per instruction from the decoders, if different.
    #[serde(default)]
    pub decoders: Option<Quantity>,
    /// Other rates of the programs, in core cycles per instruction.
    #[serde(default)]
    pub modes: Vec<f64>,
    /// The rate of ordinary code in core cycles per instruction: the median over all rounds of the
    /// programs without steering.
    #[serde(default)]
    pub typical: Option<f64>,
    /// The modes of these rounds, the best first.
    #[serde(default)]
    pub typical_modes: Vec<RateMode>,
    /// With other operands, such as `slow operands` or `subnormal`.
    #[serde(default)]
    pub variants: Vec<ThroughputVariant>,
}

/// A rate that some rounds sustain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateMode {
    /// Core cycles per instruction.
    pub cycles: f64,
    /// Share of the rounds.
    pub share: f64,
}

/// A reciprocal throughput with other operands than the headline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThroughputVariant {
    /// The name of the variant.
    pub variant: String,
    /// The immediate, if the variant differs by it.
    #[serde(default)]
    pub immediate: Option<String>,
    /// Core cycles per instruction.
    pub cost: Quantity,
    /// The recipe of the program that reached it.
    #[serde(default)]
    pub recipe: String,
}

fn default_executor() -> String {
    DEFAULT_OFFER.name.to_string()
}

/// The result for one form or sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstrRow {
    /// The mode of the code.
    #[serde(default, skip_serializing_if = "CodeMode::is_default")]
    pub bits: CodeMode,
    /// The name in the instruction database (iced's `Code`). For a sequence: its assembly.
    pub code: String,
    /// The mnemonic in lower case. For a sequence: its assembly.
    pub mnemonic: String,
    /// The explicit operands, as published tables write them. A requested immediate is written out.
    /// Empty for a sequence.
    pub operands: String,
    /// `legacy`, `vex`, `evex`, `xop` or `3dnow`; `sequence` for several instructions.
    pub encoding: String,
    /// The name of the executor that ran the code. Old rows without it used the default.
    #[serde(default = "default_executor")]
    pub executor: String,
    /// The CPUID features that it needs, in lower case, joined by `+`.
    pub isa: String,
    /// Registers that it reads or writes implicitly.
    pub implicit: Vec<String>,
    /// The machine code of one instance, in hexadecimal.
    pub bytes: String,
    /// The immediate of the headline. Null if the form has none.
    #[serde(default)]
    pub immediate: Option<String>,
    /// The other immediates, scales or displacements tried, by their names as variants. If they are
    /// not variants of the row, they cost the same as the headline.
    #[serde(default)]
    pub tried: Vec<String>,
    /// The outcome.
    pub status: RowStatus,
    /// Why it was skipped or failed. Null if measured.
    pub reason: Option<String>,
    /// Latencies.
    pub latency: Vec<OperandLatency>,
    /// The reciprocal throughput. Null if it was not determined.
    pub throughput: Option<ReciprocalThroughput>,
    /// The dispatch slots of an instance. Null if they were not counted.
    #[serde(default)]
    pub slots: Option<DispatchSlots>,
    /// The events that an instance causes, as requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CounterRecord>,
    /// Number of passes that counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_passes: Option<usize>,
    /// The ports of its µops, if ports were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortUsage>,
    /// Experimental findings from a closed list, such as `eliminated`, `zero_idiom`,
    /// `false_dependency`.
    pub tags: Vec<String>,
    /// Reservations about the figures.
    pub caveats: Vec<Caveat>,
    /// The command that repeats this measurement.
    pub repro: String,
}

/// The value of a simple fraction such as `1/3` or `2`.
fn parse_fraction(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    let [above, below] = [above, below].map(|part| part.parse::<u32>().ok());
    Some(f64::from(above?) / f64::from(below.filter(|below| *below > 0)?))
}

impl OperandLatency {
    /// What no survey writes about a latency.
    fn find_contradiction(&self) -> Option<&'static str> {
        let OperandLatency { cost, regimes, .. } = self;
        let costs = regimes.iter().flat_map(|regimes| [&regimes.fresh, &regimes.saturated]).chain([cost]);
        let knee = regimes.as_ref().is_none_or(|regimes| regimes.knee.is_cost_in(Unit::Instructions));
        let good = knee && costs.into_iter().all(|cost| cost.is_cost_in(Unit::CoreCycles));
        (!good).then_some("a latency is negative or in another unit")
    }
}

impl ReciprocalThroughput {
    /// A cost and the recipe of its program, and nothing else.
    pub(crate) fn new(cost: Quantity, recipe: &str) -> ReciprocalThroughput {
        ReciprocalThroughput {
            cost,
            recipe: recipe.to_string(),
            fraction: None,
            decoders: None,
            modes: Vec::new(),
            typical: None,
            typical_modes: Vec::new(),
            variants: Vec::new(),
        }
    }

    /// What no survey writes about a reciprocal throughput.
    fn find_contradiction(&self) -> Option<&'static str> {
        let others = self.variants.iter().map(|variant| &variant.cost).chain(&self.decoders);
        let is_rate = |cycles: f64| cycles >= 0.0;
        let is_mode = |mode: &RateMode| is_rate(mode.cycles) && (0.0..=1.0).contains(&mode.share);
        let named = self.fraction.as_deref().map(parse_fraction);
        let inside = |number: f64| {
            self.cost.low.is_none_or(|low| low <= number) && self.cost.high.is_none_or(|high| number <= high)
        };
        if !others.chain([&self.cost]).all(|cost| cost.is_cost_in(Unit::CoreCycles)) {
            Some("a throughput is negative or in another unit")
        } else if !self.modes.iter().copied().chain(self.typical).all(is_rate)
            || !self.typical_modes.iter().all(is_mode)
        {
            Some("a rate is negative, or a share of rounds is none")
        } else if named.is_some_and(|number| !number.is_some_and(inside)) {
            Some("its fraction is outside its interval")
        } else {
            None
        }
    }
}

impl InstrRow {
    /// What no survey writes: figures that contradict each other, or the outcome.
    pub(crate) fn find_contradiction(&self) -> Option<&'static str> {
        let InstrRow { status, reason, latency, throughput, slots, .. } = self;
        let has_figures = !latency.is_empty() || throughput.is_some() || slots.is_some() || !self.counters.is_empty();
        match status {
            RowStatus::Measured if reason.is_some() => Some("it is measured, with a reason why it is not"),
            RowStatus::Skipped | RowStatus::Failed if has_figures => Some("it has figures, and was not measured"),
            _ => {
                let latency = latency.iter().find_map(OperandLatency::find_contradiction);
                let figures = latency.or_else(|| throughput.as_ref()?.find_contradiction());
                figures.or_else(|| slots.as_ref()?.find_contradiction())
            }
        }
    }

    /// The row with this immediate's figures as headlines. `None` if it was not measured.
    pub(crate) fn with_immediate(&self, immediate: i64) -> Option<InstrRow> {
        let constant = EncodedConstant::Immediate(immediate);
        if self.immediate == constant.format_immediate() {
            return Some(self.clone());
        }
        let name = constant.to_string();
        if !self.tried.contains(&name) {
            return None;
        }
        let (own, others): (Vec<_>, Vec<_>) =
            self.latency.iter().cloned().partition(|latency| latency.variant.as_ref() == Some(&name));
        let own: Vec<OperandLatency> =
            own.into_iter().map(|latency| OperandLatency { variant: None, ..latency }).collect();
        let mut row = InstrRow { latency: own.clone(), ..self.clone() };
        row.latency.extend(others.into_iter().filter(|latency| !own.iter().any(|one| one.is_same_pair(latency))));
        if let Some(throughput) = &mut row.throughput
            && let Some(variant) = throughput.variants.iter().find(|variant| variant.variant == name)
        {
            throughput.cost = variant.cost;
        }
        Some(row)
    }
}
