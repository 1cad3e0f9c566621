//! What a measurement asks: snippets that take turns in every round, and costs that are weighted sums of theirs.
//!
//! A call of a function less a call of an empty one, and the difference of two variants, are costs of snippets that ran
//! in the same rounds and layouts: what disturbs both alike cancels.

use super::contrast::Contrast;
use crate::snippet::Snippet;

/// Snippets, and the costs that are asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    instances: Vec<Vec<Snippet>>,
    costs: Vec<Contrast>,
}

impl Question {
    /// The cost of one snippet.
    pub fn of(snippet: Snippet) -> Question {
        Question { instances: vec![vec![snippet]], costs: vec![Contrast::new([(0, 1.0)])] }
    }

    /// Costs that are sums of the costs of these snippets, each multiplied by its weight.
    ///
    /// # Panics
    ///
    /// Without snippets or costs, or where a cost is of a snippet that is not there.
    pub fn new(snippets: Vec<Snippet>, costs: Vec<Contrast>) -> Question {
        Question::with_instances(vec![snippets], costs)
    }

    /// The same where the snippets exist several times, such as calls of one function at several addresses: each run takes
    /// the next instance of all snippets.
    ///
    /// # Panics
    ///
    /// As [`Question::new`], and where the instances have not the same number of snippets.
    pub fn with_instances(instances: Vec<Vec<Snippet>>, costs: Vec<Contrast>) -> Question {
        let count = instances.first().map_or(0, Vec::len);
        assert!(count > 0 && !costs.is_empty() && instances.iter().all(|snippets| snippets.len() == count));
        assert!(costs.iter().all(|cost| cost.weights().all(|(snippet, _)| snippet < count)));
        Question { instances, costs }
    }

    /// The snippets.
    pub fn snippets(&self) -> &[Snippet] {
        &self.instances[0]
    }

    /// All instances of the snippet of this index.
    pub fn instances(&self, snippet: usize) -> impl Iterator<Item = &Snippet> {
        self.instances.iter().map(move |snippets| &snippets[snippet])
    }

    /// The costs, as sums over the snippets.
    pub fn costs(&self) -> &[Contrast] {
        &self.costs
    }
}
