//! Resolves the command line to the requested markers.

use crate::args::MarkerArgs;
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::study::marker::catalog::MarkerCatalog;
use cyclescope::study::marker::marker_selection::{MarkerSelection, UnmatchedMarkerWord};
use cyclescope::study::marker::source::context::LoopContext;
use cyclescope::study::marker::source::design::SiteDesign;

/// The requested markers.
pub struct MarkerChoice {
    /// Markers that the executor can run.
    pub catalog: &'static MarkerCatalog,
    /// Designs.
    pub designs: Vec<&'static SiteDesign>,
    /// Loops for the markers.
    pub contexts: Vec<&'static LoopContext<'static>>,
    /// The mode of the markers' code.
    pub mode: CodeMode,
    /// Whether the user's own loop replaces them.
    pub around: bool,
    /// The requested states.
    pub criteria: MarkerSelection,
}

impl MarkerChoice {
    /// Resolves these options.
    pub fn new(args: &MarkerArgs, catalog: &'static MarkerCatalog) -> Result<MarkerChoice, Failure> {
        let criteria = MarkerSelection {
            designs: args.designs.clone(),
            states: args.state.clone(),
            contexts: args.context.clone(),
            all: args.all,
        };
        let designs = criteria.select_designs(catalog.designs).map_err(refuse_selection)?;
        let contexts = criteria.select_contexts().map_err(refuse_selection)?;
        criteria.require_states(&designs, catalog.states).map_err(refuse_selection)?;
        let around = args.around.is_some() || args.around_snippet.is_some();
        Ok(MarkerChoice { catalog, designs, contexts, mode: args.code_mode.mode(), around, criteria })
    }
}

fn refuse_selection(unmatched: UnmatchedMarkerWord) -> Failure {
    let UnmatchedMarkerWord { what, word, near, known } = unmatched;
    let all = format!("choose from {}; `cyclescope marker --list` describes them", known.join(", "));
    let remedy = match near.as_slice() {
        [] => all,
        near => format!("did you mean {}? {all}", near.join(", ")),
    };
    Failure::usage(format!("unknown {what} `{word}`"), Some(&remedy))
}
