//! Selects the markers of a survey: designs by globs, states and contexts by name. A word without a
//! match is an error, because it is misspelt.

use super::bench::MarkerCase;
use super::source::context::{self, LoopContext};
use super::source::design::SiteDesign;
use super::state::MarkerState;
use cyclescope_code::asm::nearest_words;
use cyclescope_measure::study::glob::matches_glob;

/// The requested markers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkerSelection {
    /// Globs of design names, ignoring case; empty for all.
    pub designs: Vec<String>,
    /// Names of states; empty for all.
    pub states: Vec<String>,
    /// Names of contexts; empty for the usual ones.
    pub contexts: Vec<String>,
    /// Whether to select all contexts.
    pub all: bool,
}

/// A word without a match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedMarkerWord {
    /// The kind of name: a design, a state or a context.
    pub what: &'static str,
    /// The word.
    pub word: String,
    /// Similar names.
    pub near: Vec<&'static str>,
    /// All known names.
    pub known: Vec<&'static str>,
}

impl MarkerSelection {
    /// The selected designs, in the order of `all`.
    pub fn select_designs(&self, all: &'static [SiteDesign]) -> Result<Vec<&'static SiteDesign>, UnmatchedMarkerWord> {
        let matches = |word: &String, design: &SiteDesign| matches_glob(&word.to_lowercase(), design.name);
        let names = || all.iter().map(|design| design.name).collect();
        let has_match = |word: &&String| all.iter().any(|design| matches(word, design));
        require_matches("design", &self.designs, has_match, names)?;
        let is_selected =
            |design: &&SiteDesign| self.designs.is_empty() || self.designs.iter().any(|word| matches(word, design));
        Ok(all.iter().filter(is_selected).collect())
    }

    /// The selected contexts, in their order.
    pub fn select_contexts(&self) -> Result<Vec<&'static LoopContext<'static>>, UnmatchedMarkerWord> {
        let named = |word: &String, context: &LoopContext| word.eq_ignore_ascii_case(context.name);
        let names = || context::ALL.iter().map(|context| context.name).collect();
        let has_match = |word: &&String| context::ALL.iter().any(|context| named(word, context));
        require_matches("context", &self.contexts, has_match, names)?;
        let is_selected = |context: &&LoopContext| match self.contexts.as_slice() {
            [] => self.all || context.usual,
            words => words.iter().any(|word| named(word, context)),
        };
        Ok(context::ALL.iter().filter(is_selected).collect())
    }

    /// Fails if no design has a selected state.
    pub fn require_states(
        &self,
        designs: &[&SiteDesign],
        states: fn(&SiteDesign) -> Vec<MarkerState>,
    ) -> Result<(), UnmatchedMarkerWord> {
        let known = || {
            let mut names = Vec::new();
            for state in designs.iter().flat_map(|design| states(design)) {
                if !names.contains(&state.name) {
                    names.push(state.name);
                }
            }
            names
        };
        let hit = |word: &&String| known().iter().any(|name| word.eq_ignore_ascii_case(name));
        require_matches("state", &self.states, hit, known)
    }

    /// Whether a case's state is selected.
    pub fn includes_case(&self, case: &MarkerCase) -> bool {
        let named = |word: &String| word.eq_ignore_ascii_case(case.state.name);
        self.states.is_empty() || self.states.iter().any(named)
    }
}

fn require_matches(
    what: &'static str,
    words: &[String],
    hit: impl Fn(&&String) -> bool,
    known: impl Fn() -> Vec<&'static str>,
) -> Result<(), UnmatchedMarkerWord> {
    match words.iter().find(|word| !hit(word)) {
        None => Ok(()),
        Some(word) => {
            let known = known();
            let near = nearest_words(&word.to_lowercase(), known.iter().copied());
            Err(UnmatchedMarkerWord { what, word: word.clone(), near, known })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::design;
    use crate::state::list_states;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    #[test]
    fn globs_select_designs() {
        let names = |globs: &[&str]| {
            let criteria = MarkerSelection { designs: words(globs), ..MarkerSelection::default() };
            criteria.select_designs(design::ALL).map(|found| found.iter().map(|design| design.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap().len(), design::ALL.len());
        assert_eq!(names(&["usdt*", "FLAG"]).unwrap(), ["flag", "usdt", "usdt-semaphore"]);
        let missed = names(&["flag", "imediate"]).unwrap_err();
        assert_eq!((missed.what, missed.word.as_str()), ("design", "imediate"));
        assert_eq!((missed.near.as_slice(), missed.known.len()), (&["immediate"][..], design::ALL.len()));
    }

    #[test]
    fn the_usual_contexts_match_the_document() {
        let names = |contexts: &[&str], all| {
            let criteria = MarkerSelection { contexts: words(contexts), all, ..MarkerSelection::default() };
            criteria.select_contexts().map(|found| found.iter().map(|context| context.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[], false).unwrap(), ["empty", "memcpy"]);
        assert_eq!(names(&[], true).unwrap().len(), context::ALL.len());
        assert_eq!(names(&["l1", "empty"], false).unwrap(), ["empty", "l1"]);
        assert_eq!(names(&["memcopy"], false).unwrap_err().near, ["memcpy"]);
    }

    #[test]
    fn an_unknown_state_is_rejected() {
        let require = |names: &[&str], designs: &[&str]| {
            let criteria =
                MarkerSelection { designs: words(designs), states: words(names), ..MarkerSelection::default() };
            criteria.require_states(&criteria.select_designs(design::ALL).unwrap(), list_states)
        };
        assert_eq!(require(&["dormant", "sink"], &[]), Ok(()));
        assert_eq!(require(&["sink"], &["flag"]).unwrap_err().what, "state");
        assert_eq!(require(&["guarded-emty"], &["flag"]).unwrap_err().near, ["guarded-empty"]);
    }
}
