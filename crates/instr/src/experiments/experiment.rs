//! An experiment: a program, and the quantity that its time measures.

use crate::bodies::chain_registers::ChainRegisters;
use crate::bodies::links::Link;
use crate::bodies::throughput_recipe::ThroughputRecipe;
use crate::forms::form_anatomy::{OperandPlace, OperandPort};
use cyclescope_code::program::EntryState;

/// A chain may be limited by throughput if its cost exceeds the reciprocal throughput by no more
/// than this share.
pub(crate) const BOUND_SHARE: f64 = 0.03;

/// An input, an output, and the registers of a chain between them.
pub type ChainPorts = (OperandPort, OperandPort, ChainRegisters);

/// The quantity that a program's time measures.
#[derive(Debug, Clone, PartialEq)]
pub enum ExperimentMeaning {
    /// A candidate for the reciprocal throughput.
    Throughput {
        /// The recipe as text.
        recipe: String,
        /// Whether each instance needs extra instructions that add to its cost: pushes and pops of
        /// the x87 stack.
        burdened: bool,
        /// The recipe of its body, unless the form needs a special one.
        program: Option<ThroughputRecipe>,
        /// The name of a special variant. `None` for a candidate for the headline.
        variant: Option<String>,
    },
    /// A candidate for a latency, including links.
    Latency {
        /// The input.
        from: String,
        /// The output.
        to: String,
        /// The name of a special variant.
        variant: Option<String>,
        /// The links to subtract.
        links: Vec<Link>,
        /// Ports and registers of the chain, if it can be measured with variations.
        ports: Option<Box<ChainPorts>>,
        /// Machine code of one turn.
        turn: Vec<u8>,
    },
    /// All instances write one register that none of them reads. This reveals a false dependency.
    SameDestination {
        /// The output.
        to: String,
    },
    /// A candidate for the fast or the slow operands.
    Operands {
        /// The values as text.
        values: String,
        /// The throughput or latency measured with them.
        of: Box<ExperimentMeaning>,
    },
}

impl ExperimentMeaning {
    /// The recipe of a candidate for the reciprocal throughput.
    pub(crate) fn recipe(&self) -> Option<&ThroughputRecipe> {
        match self {
            ExperimentMeaning::Throughput { program, .. } => program.as_ref(),
            _ => None,
        }
    }

    /// Whether it measures a reciprocal throughput, not a chain.
    pub(crate) fn is_throughput(&self) -> bool {
        match self {
            ExperimentMeaning::Throughput { .. } => true,
            ExperimentMeaning::Latency { .. } | ExperimentMeaning::SameDestination { .. } => false,
            ExperimentMeaning::Operands { of, .. } => of.is_throughput(),
        }
    }

    /// Whether both measure the same quantity of a form. Only constants may differ.
    pub(crate) fn is_like(&self, other: &ExperimentMeaning) -> bool {
        match (self, other) {
            (
                ExperimentMeaning::Latency { from, to, variant, links, .. },
                ExperimentMeaning::Latency {
                    from: other_from,
                    to: other_to,
                    variant: other_variant,
                    links: others,
                    ..
                },
            ) => (from, to, variant, links) == (other_from, other_to, other_variant, others),
            _ => self == other,
        }
    }

    /// Whether it is a chain through memory that stores each value at two places.
    pub fn is_alternating(&self) -> bool {
        matches!(self, ExperimentMeaning::Latency { ports: Some(ports), .. } if ports.2 == ChainRegisters::Alternating)
    }

    /// Whether each turn of an alternating chain has two instances, one for each place.
    pub fn has_pairs(&self) -> bool {
        let in_memory = matches!(
            self,
            ExperimentMeaning::Latency { ports: Some(ports), .. } if ports.1.place == OperandPlace::Memory
        );
        in_memory && self.is_alternating()
    }

    /// Whether a form's headline figures don't need it.
    pub(crate) fn is_extra(&self) -> bool {
        matches!(self, ExperimentMeaning::Throughput { variant: Some(_), .. } | ExperimentMeaning::Operands { .. })
    }
}

/// A variation of a chain that may be slow for another reason than its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainVariation {
    /// This many more links: instances come less often.
    Longer(usize),
    /// This many moves from a vector to a general register next to each instance. Few units do
    /// that, and they push instances to others. On Golden Cove, chains of 512-bit instructions
    /// alone alternate between units of different latency.
    Beside(usize),
    /// The other operands that an instance reads and writes are zeroed before it. Some schedulers
    /// are late if an instruction waits for two results: op2 to op1 of `vpternlogd` takes a cycle
    /// more on Zen 5, and at times on Zen 4.
    Cleared,
}

/// A program and the quantity that it measures.
#[derive(Debug, Clone)]
pub struct FormExperiment {
    /// The quantity that its time measures.
    pub meaning: ExperimentMeaning,
    /// Machine code of one period.
    pub period: Vec<u8>,
    /// Instances in a period.
    pub copies: usize,
    /// Approximate number of instances in the body.
    pub body_copies: usize,
    /// Machine code that runs once before the body.
    pub init: Vec<u8>,
    /// The entry state that it needs.
    pub world: EntryState,
}

impl FormExperiment {
    /// Number of periods in a body of at most `most` instances.
    pub fn count_repeats(&self, most: usize) -> usize {
        (self.body_copies.min(most) / self.copies).max(1)
    }
}
