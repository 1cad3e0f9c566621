//! What a run measures: snippets, or calls of a function beside calls of an empty one, as a question and as a manifest has it.

use cyclescope_code::asm::parse_hex as bytes;
use cyclescope_code::asm::to_hex;
use cyclescope_code::snippet::Snippet;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::result::container::ContainerError;
use cyclescope_measure::{CODE_MOST, CostQuestion};
use serde::{Deserialize, Serialize};

/// What is measured: a snippet, or a call of a function less a call of an empty one.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSubject {
    /// The snippet, or calls of the function at the addresses at which it stands.
    pub instances: Vec<Snippet>,
    /// Calls of an empty function beside each; none of a snippet.
    pub empty_calls: Vec<Snippet>,
}

impl From<Snippet> for RunSubject {
    fn from(snippet: Snippet) -> RunSubject {
        RunSubject { instances: vec![snippet], empty_calls: Vec::new() }
    }
}

/// The snippets of a question, and the costs of its subjects.
pub(super) struct SubjectCosts {
    snippets: Vec<Vec<Snippet>>,
    /// The costs of the subjects.
    pub(super) subjects: Vec<Contrast>,
    /// The snippet that is the empty call of the first subject.
    pub(super) empty_call: Option<usize>,
}

impl SubjectCosts {
    pub(super) fn from_subjects(subjects: impl IntoIterator<Item = RunSubject>) -> SubjectCosts {
        let mut asked = SubjectCosts { snippets: Vec::new(), subjects: Vec::new(), empty_call: None };
        for RunSubject { instances, empty_calls } in subjects {
            let mut cost = Contrast::new([(asked.snippets.len(), 1.0)]);
            asked.snippets.push(instances);
            if !empty_calls.is_empty() {
                let number = asked.snippets.len();
                asked.snippets.push(empty_calls);
                asked.empty_call.get_or_insert(number);
                cost = cost.plus_weighted(-1.0, &Contrast::new([(number, 1.0)]));
            }
            asked.subjects.push(cost);
        }
        asked
    }

    /// What each subject costs.
    pub(super) fn to_question(&self) -> CostQuestion {
        CostQuestion::new(self.snippets.clone(), self.subjects.clone())
    }

    /// What the two subjects cost, and the difference of the second and the first: costs that add up.
    pub(super) fn to_comparison_question(&self) -> CostQuestion {
        let [one, other] = self.subjects.as_slice() else { panic!("two subjects are compared") };
        let costs = vec![one.clone(), other.clone(), other.clone().minus(one)];
        CostQuestion::new(self.snippets.clone(), costs).with_summed_costs()
    }
}

/// A snippet, as a manifest has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedSnippet {
    /// How reports show it.
    text: String,
    /// The machine code of one copy, in hexadecimal.
    code: String,
    /// The init code, in hexadecimal.
    init: String,
}

/// A subject, as a manifest has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SavedSubject {
    instances: Vec<SavedSnippet>,
    empty_calls: Vec<SavedSnippet>,
}

impl From<&RunSubject> for SavedSubject {
    fn from(subject: &RunSubject) -> SavedSubject {
        let saved = |snippets: &[Snippet]| snippets.iter().map(SavedSnippet::from).collect();
        SavedSubject { instances: saved(&subject.instances), empty_calls: saved(&subject.empty_calls) }
    }
}

impl From<&Snippet> for SavedSnippet {
    fn from(snippet: &Snippet) -> SavedSnippet {
        let text = snippet.text().to_string();
        SavedSnippet { text, code: to_hex(snippet.code()), init: to_hex(snippet.init()) }
    }
}

impl SavedSubject {
    /// Whether it is a call of a function.
    pub(super) fn is_function_call(&self) -> bool {
        !self.empty_calls.is_empty()
    }

    /// Lets the first layouts have the addresses that the last ones had.
    pub(super) fn rotate_addresses(&mut self) {
        for instances in [&mut self.instances, &mut self.empty_calls] {
            let middle = instances.len() / 2;
            instances.rotate_left(middle);
        }
    }

    pub(super) fn to_subject(&self) -> Result<RunSubject, ContainerError> {
        let restored =
            |saved: &[SavedSnippet]| saved.iter().map(SavedSnippet::to_snippet).collect::<Result<Vec<Snippet>, _>>();
        let subject = RunSubject { instances: restored(&self.instances)?, empty_calls: restored(&self.empty_calls)? };
        match subject.instances.is_empty() {
            true => Err(ContainerError::damaged_fact("subject.instances", "there are none")),
            false => Ok(subject),
        }
    }
}

impl SavedSnippet {
    fn to_snippet(&self) -> Result<Snippet, ContainerError> {
        let decode = |field: &str, text: &str| {
            let field = format!("instances.{field}");
            match bytes(text) {
                Ok(code) if code.len() <= CODE_MOST => Ok(code),
                _ => Err(ContainerError::damaged_fact(&field, "it is no machine code")),
            }
        };
        Ok(Snippet::new(decode("code", &self.code)?, decode("init", &self.init)?, self.text.clone()))
    }
}
