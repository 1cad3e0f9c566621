//! What a measurement asks: snippets that take turns in every round, and costs that are weighted sums of theirs.
//!
//! A call of a function less a call of an empty one, and the difference of two variants, are costs of snippets that ran
//! in the same rounds and layouts: what disturbs both alike cancels.

use super::contrast::Contrast;
use cyclescope_code::snippet::Snippet;

/// Snippets, and the costs that are asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct CostQuestion {
    /// The instances of each snippet.
    snippets: Vec<Vec<Snippet>>,
    costs: Vec<Contrast>,
    summed: bool,
}

impl CostQuestion {
    /// The cost of one snippet.
    pub fn from_snippet(snippet: Snippet) -> CostQuestion {
        CostQuestion::new(vec![vec![snippet]], vec![Contrast::new([(0, 1.0)])])
    }

    /// Costs that are sums of the costs of these snippets, each multiplied by its weight. A snippet may have several
    /// instances, such as calls of one function at several addresses: each layout takes the next one.
    ///
    /// # Panics
    ///
    /// Without snippets, instances or costs, or where a cost is of a snippet that is not there.
    pub fn new(snippets: Vec<Vec<Snippet>>, costs: Vec<Contrast>) -> CostQuestion {
        assert!(!snippets.is_empty() && !costs.is_empty() && snippets.iter().all(|of| !of.is_empty()));
        assert!(costs.iter().all(|cost| cost.weights().all(|(snippet, _)| snippet < snippets.len())));
        CostQuestion { snippets, costs, summed: false }
    }

    /// The same with costs that add up: each is the mean over all layouts, and not over those of its largest mode.
    pub fn with_summed_costs(self) -> CostQuestion {
        CostQuestion { summed: true, ..self }
    }

    /// Whether the costs add up.
    pub(super) fn is_summed(&self) -> bool {
        self.summed
    }

    /// The instances of each snippet.
    pub fn snippets(&self) -> &[Vec<Snippet>] {
        &self.snippets
    }

    /// The largest number of instances of a snippet.
    pub(super) fn instances(&self) -> usize {
        self.snippets.iter().map(Vec::len).max().unwrap_or(1)
    }

    /// The costs, as sums over the snippets.
    pub fn costs(&self) -> &[Contrast] {
        &self.costs
    }
}
