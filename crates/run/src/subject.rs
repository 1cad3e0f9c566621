//! Subjects of a run: snippets, or function calls compared with empty calls. As a question and in
//! the form for manifests.

use cyclescope_code::asm::parse_hex as bytes;
use cyclescope_code::asm::{CodeMode, to_hex};
use cyclescope_code::snippet::{Snippet, SnippetSetup};
use cyclescope_measure::result::container::ContainerError;
use cyclescope_measure::{CODE_MOST, CostFormula, CostQuestion};
use serde::{Deserialize, Serialize};

/// The measured subject: a snippet, or a function call minus an empty call.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSubject {
    /// The snippet, or calls of the function at each of its addresses.
    pub instances: Vec<Snippet>,
    /// Calls of an empty function for each instance; empty for a snippet.
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
    pub(super) subjects: Vec<CostFormula>,
    /// Index of the snippet that is the empty call of the first subject.
    pub(super) empty_call: Option<usize>,
    /// Index of the snippet that is the setup of the first subject.
    pub(super) setup: Option<usize>,
}

impl SubjectCosts {
    pub(super) fn from_subjects(subjects: impl IntoIterator<Item = RunSubject>) -> SubjectCosts {
        let mut costs = SubjectCosts { snippets: Vec::new(), subjects: Vec::new(), empty_call: None, setup: None };
        for RunSubject { instances, empty_calls } in subjects {
            let mut cost = CostFormula::from_snippet(costs.snippets.len());
            costs.snippets.push(instances.iter().map(Snippet::join_setup).collect());
            let setups: Vec<Snippet> = instances.iter().filter_map(Snippet::isolate_setup).collect();
            if !setups.is_empty() {
                let number = costs.snippets.len();
                costs.snippets.push(setups);
                costs.setup.get_or_insert(number);
                cost = cost.minus(&CostFormula::from_snippet(number));
            }
            if !empty_calls.is_empty() {
                let number = costs.snippets.len();
                costs.snippets.push(empty_calls);
                costs.empty_call.get_or_insert(number);
                cost = cost.minus(&CostFormula::from_snippet(number));
            }
            costs.subjects.push(cost);
        }
        costs
    }

    /// The cost of one of several equal parts of each subject.
    pub(super) fn of_equal_parts(mut self, parts: impl IntoIterator<Item = usize>) -> SubjectCosts {
        for (cost, parts) in self.subjects.iter_mut().zip(parts) {
            *cost = CostFormula::new(cost.weights().map(|(snippet, weight)| (snippet, weight / parts as f64)));
        }
        self
    }

    /// Asks for the cost of each subject.
    pub(super) fn to_question(&self) -> CostQuestion {
        CostQuestion::new(self.snippets.clone(), self.subjects.clone())
    }

    /// Asks for the costs of all subjects, and for the difference of each of their
    /// [pairs](variant_pairs). These costs add up.
    pub(super) fn to_comparison_question(&self) -> CostQuestion {
        let all = &self.subjects;
        let difference = |[one, other]: [usize; 2]| all[other].clone().minus(&all[one]);
        let costs = all.iter().cloned().chain(variant_pairs(all.len()).map(difference));
        CostQuestion::new(self.snippets.clone(), costs.collect()).with_summed_costs()
    }
}

/// All pairs of this number of variants, the smaller number first.
pub(super) fn variant_pairs(variants: usize) -> impl Iterator<Item = [usize; 2]> {
    (0..variants).flat_map(move |one| (one + 1..variants).map(move |other| [one, other]))
}

/// A snippet, in the form for manifests.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedSnippet {
    /// The mode that the code runs in.
    #[serde(default, skip_serializing_if = "CodeMode::is_default")]
    bits: CodeMode,
    /// Text for reports.
    text: String,
    /// The machine code of one copy, in hexadecimal.
    code: String,
    /// The init code, in hexadecimal.
    init: String,
    /// The code before each copy, whose cost is subtracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    setup: Option<SavedSetup>,
}

/// A snippet's setup, in the form for manifests.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedSetup {
    /// Text for reports.
    text: String,
    /// The machine code, in hexadecimal.
    code: String,
}

/// A subject, in the form for manifests.
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
        let setup =
            snippet.setup().map(|SnippetSetup { code, text }| SavedSetup { text: text.clone(), code: to_hex(code) });
        SavedSnippet { bits: snippet.mode(), text, code: to_hex(snippet.code()), init: to_hex(snippet.init()), setup }
    }
}

impl SavedSubject {
    /// Whether it is a call of a function.
    pub(super) fn is_function_call(&self) -> bool {
        !self.empty_calls.is_empty()
    }

    /// Rotates the addresses, so that the first layouts get those of the last ones.
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
        let setup = self.setup.as_ref().map(|SavedSetup { text, code }| {
            Ok::<_, ContainerError>(SnippetSetup { code: decode("setup", code)?, text: text.clone() })
        });
        let snippet = Snippet::new(decode("code", &self.code)?, decode("init", &self.init)?, self.text.clone());
        Ok(snippet.with_mode(self.bits).with_setup(setup.transpose()?))
    }
}
