//! `--list`: prints designs, states and contexts.

use super::marker_choice::MarkerChoice;
use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use cyclescope::study::marker::source::context;
use cyclescope::study::marker::state::MarkerState;
use serde::Serialize;

/// A design, kind `marker.design`.
#[derive(Serialize)]
struct DesignRecord {
    design: &'static str,
    about: &'static str,
    source: &'static str,
    states: Vec<StateRecord>,
}

/// A state of a design.
#[derive(Serialize)]
struct StateRecord {
    state: &'static str,
    about: &'static str,
    guard: &'static str,
    enabled: bool,
    over: Option<&'static str>,
}

/// A context, kind `marker.context`.
#[derive(Serialize)]
struct ContextRecord {
    context: &'static str,
    about: &'static str,
    usual: bool,
}

/// Prints the chosen designs with their states, and all contexts.
pub fn list_markers(choice: &MarkerChoice, output: &mut Output) -> Result<(), Failure> {
    let designs: Vec<DesignRecord> = choice
        .designs
        .iter()
        .map(|design| DesignRecord {
            design: design.name,
            about: design.about,
            source: design.source,
            states: (choice.catalog.states)(design).iter().map(StateRecord::new).collect(),
        })
        .collect();
    let contexts: Vec<ContextRecord> = context::ALL
        .iter()
        .filter(|one| choice.catalog.has_context(one.name))
        .map(|one| ContextRecord { context: one.name, about: one.about, usual: one.usual })
        .collect();
    if output.is_json() {
        designs.iter().try_for_each(|design| output.write_record("marker.design", design))?;
        return contexts.iter().try_for_each(|context| output.write_record("marker.context", context));
    }
    let mut page = TextPage::new(output);
    page.begin_section("Designs")?;
    for design in &designs {
        page.print_row(design.design, design.about)?;
    }
    page.begin_section("States")?;
    let alike = |one: &StateRecord, other: &StateRecord| (one.state, one.about) == (other.state, other.about);
    let mut described: Vec<(&StateRecord, Vec<&str>)> = Vec::new();
    for design in &designs {
        for state in &design.states {
            match described.iter_mut().find(|(known, _)| alike(known, state)) {
                Some((_, names)) => names.push(design.design),
                None => described.push((state, vec![design.design])),
            }
        }
    }
    for (state, names) in &described {
        // Designs that share the name of a state may mean different things by it.
        let several = described.iter().filter(|(other, _)| other.state == state.state).count() > 1;
        let of = if several { format!(" ({})", names.join(", ")) } else { String::new() };
        page.print_row(state.state, &format!("{}{of}", state.about))?;
    }
    page.begin_section("Contexts")?;
    for context in &contexts {
        let usual = if context.usual { "" } else { " (with --all or --context)" };
        page.print_row(context.context, &format!("{}{usual}", context.about))?;
    }
    Ok(())
}

impl StateRecord {
    fn new(state: &MarkerState) -> StateRecord {
        let MarkerState { name, about, guard, enabled, over, .. } = *state;
        StateRecord { state: name, about, guard, enabled, over }
    }
}
