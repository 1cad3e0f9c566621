//! One row of an instruction table: what was found out about one form of an instruction.
//!
//! Rows are plain data that are written as JSON lines of kind `instr` and read back. The key of a row is
//! (`code`, `operands`, `encoding`).

use cyclescope_exec::DEFAULT_OFFER;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
use serde::{Deserialize, Serialize};

/// What became of a form. The three sum to the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowStatus {
    /// It was measured.
    Measured,
    /// It was not tried; the reason is a code of a closed list.
    Skipped,
    /// It was tried, and no number came of it; the reason says what happened.
    Failed,
}

/// What a latency is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyBound {
    /// A closed chain of this form alone, or with links whose cost has one certain value.
    Exact,
    /// From a cycle over several classes of registers, of which only the sum is physical; how much of it falls to this
    /// form is a stated convention.
    Sum,
    /// An upper bound.
    Upper,
}

/// The latency from one input to one output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperandLatency {
    /// The input: `op1` to `op5`, `flags`, `mask`, `mem_addr`, `mem_data`, or an implicit register's name.
    pub from: String,
    /// The output, in the same terms.
    pub to: String,
    /// Core cycles.
    pub cost: Quantity,
    /// What the number is.
    pub bound: LatencyBound,
    /// What was special about operands, such as `same register`; null for the headline.
    pub variant: Option<String>,
    /// The immediate, where the variant is that it has another one than the headline.
    #[serde(default)]
    pub immediate: Option<String>,
    /// One turn of the chain as assembly, statements separated by `; `, and what was subtracted.
    pub chain: String,
    /// Where short chains in an empty scheduler have another latency than `cost`; null where they have the same, and where
    /// nobody looked.
    #[serde(default)]
    pub regimes: Option<LatencyRegimes>,
}

impl OperandLatency {
    /// Whether both are between the same ends, in the same variant.
    pub(super) fn is_same_pair(&self, other: &OperandLatency) -> bool {
        (&self.from, &self.to, &self.variant) == (&other.from, &other.to, &other.variant)
    }

    /// Widens the interval where passes say different things, from the least to the most; a bound holds whichever is true.
    pub(super) fn widen_to(&mut self, [least, most]: [f64; 2]) {
        if self.bound == LatencyBound::Upper {
            return self.make_upper_bound(most);
        }
        let cost = &mut self.cost;
        cost.low = cost.low.map(|low| low.min(least));
        cost.high = cost.high.map(|high| high.max(most));
    }

    /// Makes it a bound that holds whichever figure up to this one is true.
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
    /// Core cycles in a long chain, of which a scheduler's worth of instructions waits.
    pub saturated: Quantity,
    /// Instructions of the chain, links among them, from which on the second holds.
    pub knee: Quantity,
}

/// A reciprocal throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReciprocalThroughput {
    /// Core cycles an instruction, at the best sustained rate that was found.
    pub cost: Quantity,
    /// The program that reached it, in words.
    pub recipe: String,
    /// The fraction that is the only simple one in the interval, such as `1/3`; null where there is none or several.
    #[serde(default)]
    pub fraction: Option<String>,
    /// Core cycles an instruction from the decoders, where that differs.
    #[serde(default)]
    pub decoders: Option<Quantity>,
    /// The other rates at which programs ran, in core cycles an instruction.
    #[serde(default)]
    pub modes: Vec<f64>,
    /// With other operands, such as `slow operands` or `subnormal`.
    #[serde(default)]
    pub variants: Vec<ThroughputVariant>,
}

/// A reciprocal throughput with other operands than the headline's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThroughputVariant {
    /// What is special about it.
    pub variant: String,
    /// The immediate, where it is that.
    #[serde(default)]
    pub immediate: Option<String>,
    /// Core cycles an instruction.
    pub cost: Quantity,
    /// The program that reached it, in words.
    #[serde(default)]
    pub recipe: String,
}

fn default_executor() -> String {
    DEFAULT_OFFER.name.to_string()
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InstrRow {
    /// The instruction, by its name in the instruction database (iced's `Code`); a sequence as assembly.
    pub code: String,
    /// The mnemonic in lower case; a sequence as assembly.
    pub mnemonic: String,
    /// The explicit operands, as published tables write them; an immediate where it was asked for. None of a sequence.
    pub operands: String,
    /// `legacy`, `vex`, `evex`, `xop` or `3dnow`; `sequence` for several instructions.
    pub encoding: String,
    /// The name of the executor that ran the code. Rows of before there was a choice are of the default.
    #[serde(default = "default_executor")]
    pub executor: String,
    /// The CPUID features that it needs, in lower case, joined by `+`.
    pub isa: String,
    /// Registers that it reads or writes without naming them.
    pub implicit: Vec<String>,
    /// The machine code of one instance, in hexadecimal.
    pub bytes: String,
    /// The immediate of the headline; null where the form has none.
    #[serde(default)]
    pub immediate: Option<String>,
    /// The other immediates, scales or displacements that it was tried with, by their names as variants. Those that are
    /// no variant of the row cost the same as the headline.
    #[serde(default)]
    pub tried: Vec<String>,
    /// What became of it.
    pub status: RowStatus,
    /// Why it was skipped or failed; null where it was measured.
    pub reason: Option<String>,
    /// Latencies.
    pub latency: Vec<OperandLatency>,
    /// Reciprocal throughput; null where there is none.
    pub throughput: Option<ReciprocalThroughput>,
    /// What was found by experiment, from a closed list such as `eliminated`, `zero_idiom`, `false_dependency`.
    pub tags: Vec<String>,
    /// What to know before believing it.
    pub caveats: Vec<Caveat>,
    /// The command that measures this row again.
    pub repro: String,
}
