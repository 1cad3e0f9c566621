//! What a measurement asks: snippets that take turns in every round, and costs that are weighted
//! sums over them.
//!
//! A function call minus an empty call is such a cost, and so is the difference of two variants.
//! Their snippets run in the same rounds and layouts, so common disturbances cancel.

use cyclescope_code::snippet::Snippet;

/// A cost as a weighted sum of the costs of a question's snippets. Its indices count snippets.
/// Those of a [`Contrast`](super::contrast::Contrast) count columns of a round, three for each
/// snippet. The estimate turns a formula into contrasts.
#[derive(Debug, Clone, PartialEq)]
pub struct CostFormula(Vec<(usize, f64)>);

impl CostFormula {
    /// The cost of the snippet with this index.
    pub fn from_snippet(snippet: usize) -> CostFormula {
        CostFormula::new([(snippet, 1.0)])
    }

    /// The sum of the costs of these snippets, each multiplied by its weight.
    pub fn new(weights: impl IntoIterator<Item = (usize, f64)>) -> CostFormula {
        CostFormula(weights.into_iter().collect())
    }

    /// The difference of this cost and `other`.
    pub fn minus(self, other: &CostFormula) -> CostFormula {
        self.plus_weighted(-1.0, other)
    }

    /// The sum of this cost and `factor` times `other`.
    pub fn plus_weighted(mut self, factor: f64, other: &CostFormula) -> CostFormula {
        self.0.extend(other.weights().map(|(snippet, weight)| (snippet, factor * weight)));
        self
    }

    /// The snippets, each with its weight.
    pub fn weights(&self) -> impl Iterator<Item = (usize, f64)> {
        self.0.iter().copied()
    }
}

/// Snippets, and the requested costs.
#[derive(Debug, Clone, PartialEq)]
pub struct CostQuestion {
    /// The instances of each snippet.
    snippets: Vec<Vec<Snippet>>,
    costs: Vec<CostFormula>,
    summed: bool,
}

impl CostQuestion {
    /// The cost of one snippet, less that of its setup.
    pub fn from_snippet(snippet: Snippet) -> CostQuestion {
        let mut snippets = vec![vec![snippet.join_setup()]];
        let mut cost = CostFormula::from_snippet(0);
        if let Some(setup) = snippet.isolate_setup() {
            snippets.push(vec![setup]);
            cost = cost.minus(&CostFormula::from_snippet(1));
        }
        CostQuestion::new(snippets, vec![cost])
    }

    /// Costs that are weighted sums of the costs of these snippets. A snippet may have several
    /// instances, such as calls of one function at several addresses. Each layout takes the next
    /// instance.
    ///
    /// # Panics
    ///
    /// Without snippets, instances or costs, or if a cost refers to a missing snippet.
    pub fn new(snippets: Vec<Vec<Snippet>>, costs: Vec<CostFormula>) -> CostQuestion {
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
    pub fn costs(&self) -> &[CostFormula] {
        &self.costs
    }
}
