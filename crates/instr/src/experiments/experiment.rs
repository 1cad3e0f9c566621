//! One experiment: a program, and what its time means.

use crate::bodies::chain::ChainRegisters;
use crate::bodies::links::Link;
use crate::forms::form_anatomy::{OperandPlace, OperandPort};
use cyclescope_code::program::EntryState;

/// A chain is no slower than what its instances would take anyhow, within this share.
pub(crate) const BOUND_SHARE: f64 = 0.03;

/// An input, an output, and the registers of a chain between them.
pub type ChainPorts = (OperandPort, OperandPort, ChainRegisters);

/// What the time of a program means.
#[derive(Debug, Clone, PartialEq)]
pub enum ExperimentMeaning {
    /// A candidate for the reciprocal throughput.
    Throughput {
        /// The program in words.
        recipe: String,
        /// Whether each instance needs others beside it that are counted: pushes and pops of the x87 stack.
        burdened: bool,
        /// What is special about it; none for a candidate for the headline.
        variant: Option<String>,
    },
    /// A candidate for a latency, with links.
    Latency {
        /// The input.
        from: String,
        /// The output.
        to: String,
        /// What is special about it.
        variant: Option<String>,
        /// What is subtracted.
        links: Vec<Link>,
        /// Between which ports and with which registers, where the chain can be measured in other ways.
        ports: Option<Box<ChainPorts>>,
        /// One turn of the chain.
        turn: Vec<u8>,
    },
    /// All instances write one register that none of them reads: a false dependency shows.
    SameDestination {
        /// The output.
        to: String,
    },
    /// A candidate for the fast or the slow operands.
    Operands {
        /// The values in words.
        values: String,
        /// The throughput or the latency that has them.
        of: Box<ExperimentMeaning>,
    },
}

impl ExperimentMeaning {
    /// Whether it is about a rate, and not about a chain.
    pub(crate) fn is_rate(&self) -> bool {
        match self {
            ExperimentMeaning::Throughput { .. } => true,
            ExperimentMeaning::Latency { .. } | ExperimentMeaning::SameDestination { .. } => false,
            ExperimentMeaning::Operands { of, .. } => of.is_rate(),
        }
    }

    /// Whether it asks the same of a form as another, of which only constants may differ.
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

    /// Whether each turn of such a chain has two instances, one for each place.
    pub fn has_pairs(&self) -> bool {
        let in_memory = matches!(self, ExperimentMeaning::Latency { ports: Some(ports), .. } if ports.1.place == OperandPlace::Memory);
        in_memory && self.is_alternating()
    }

    /// Whether a form's headlines do without it.
    pub(crate) fn is_extra(&self) -> bool {
        matches!(self, ExperimentMeaning::Throughput { variant: Some(_), .. } | ExperimentMeaning::Operands { .. })
    }
}

/// Another way to measure a chain that may be slow for another reason than its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainVariation {
    /// With this many more links: instances come less often.
    Longer(usize),
    /// With this many moves from a vector to a general register beside each instance: few units do that, and instances go
    /// to others. On Golden Cove chains of 512-bit instructions alone change between units of different latency.
    Beside(usize),
}

/// A program and its meaning.
#[derive(Debug, Clone)]
pub struct FormExperiment {
    /// What its time means.
    pub meaning: ExperimentMeaning,
    /// Machine code of one period.
    pub period: Vec<u8>,
    /// Instances in a period.
    pub copies: usize,
    /// Instances in the body, about.
    pub body_copies: usize,
    /// Machine code that runs once before.
    pub init: Vec<u8>,
    /// The processor state that it needs.
    pub world: EntryState,
}

impl FormExperiment {
    /// How often the period is repeated in a body of at most `most` instances.
    pub fn count_repeats(&self, most: usize) -> usize {
        (self.body_copies.min(most) / self.copies).max(1)
    }
}
