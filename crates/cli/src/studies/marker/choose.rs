//! From the command line to the markers that are meant.

use crate::args::MarkerArgs;
use crate::output::Failure;
use cyclescope::study::marker::catalog::Catalog;
use cyclescope::study::marker::selection::{Criteria, Unmatched};
use cyclescope::study::marker::source::context::Context;
use cyclescope::study::marker::source::design::Design;

/// What was asked for.
pub struct Choice {
    /// The markers that the executor can run.
    pub catalog: &'static Catalog,
    /// Designs.
    pub designs: Vec<&'static Design>,
    /// Loops that they are in.
    pub contexts: Vec<&'static Context<'static>>,
    /// Whether they are in a loop of the user's instead.
    pub around: bool,
    /// Which of their states.
    pub criteria: Criteria,
}

impl Choice {
    /// The choice of some options.
    pub fn new(args: &MarkerArgs, catalog: &'static Catalog) -> Result<Choice, Failure> {
        let criteria = Criteria {
            designs: args.designs.clone(),
            states: args.state.clone(),
            contexts: args.context.clone(),
            all: args.all,
        };
        let designs = criteria.designs(catalog.designs).map_err(refused)?;
        let contexts = criteria.contexts().map_err(refused)?;
        criteria.require_states(&designs, catalog.states).map_err(refused)?;
        let around = args.around.is_some() || args.around_snippet.is_some();
        Ok(Choice { catalog, designs, contexts, around, criteria })
    }
}

fn refused(unmatched: Unmatched) -> Failure {
    let Unmatched { what, word, near, known } = unmatched;
    let all = format!("there are {}; `cyclescope marker --list` describes them", known.join(", "));
    let remedy = match near.as_slice() {
        [] => all,
        near => format!("did you mean {}? {all}", near.join(", ")),
    };
    Failure::usage(format!("there is no {what} `{word}`"), Some(&remedy))
}
