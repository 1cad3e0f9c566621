//! What a measurement asks: snippets that take turns in every round, and costs that are weighted
//! sums over them.
//!
//! A function call minus an empty call is such a cost, and so is the difference of two variants.
//! Their snippets run in the same rounds and layouts, so common disturbances cancel.

use super::contrast::Contrast;
use cyclescope_code::snippet::Snippet;

/// Snippets, and the requested costs.
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

    /// Costs that are weighted sums of the costs of these snippets. A snippet may have several
    /// instances, such as calls of one function at several addresses. Each layout takes the next
    /// instance.
    ///
    /// # Panics
    ///
    /// Without snippets, instances or costs, or if a cost refers to a missing snippet.
    pub fn new(snippets: Vec<Vec<Snippet>>, costs: Vec<Contrast>) -> CostQuestion {
        assert!(!snippets.is_empty() && !costs.is_empty() && snippets.iter().all(|instances| !instances.is_empty()));
        assert!(costs.iter().all(|cost| cost.weights().all(|(snippet, _)| snippet < snippets.len())));
        CostQuestion { snippets, costs, summed: false }
    }

    /// Makes the costs additive: each is the mean over all layouts, not only over the largest mode.
    pub fn with_summed_costs(self) -> CostQuestion {
        CostQuestion { summed: true, ..self }
    }

    /// Whether the costs are additive.
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
