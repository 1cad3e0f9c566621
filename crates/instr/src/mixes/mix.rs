//! A mix: forms, and the number of copies of each.

use serde::{Deserialize, Serialize};

/// Copies of several forms.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mix {
    /// The forms, each once.
    pub parts: Vec<MixPart>,
}

/// Copies of one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MixPart {
    /// The index of the form in a list of forms.
    pub form: usize,
    /// The number of copies.
    pub count: usize,
}

impl Mix {
    /// The mix of these numbers of copies, each with the index of its form.
    pub fn new(parts: impl IntoIterator<Item = (usize, usize)>) -> Mix {
        Mix { parts: parts.into_iter().map(|(form, count)| MixPart { form, count }).collect() }
    }

    /// Number of copies of each form.
    pub fn counts(&self) -> Vec<usize> {
        self.parts.iter().map(|part| part.count).collect()
    }
}
