//! Files that somebody else made: every reader answers whatever it gets. See `cyclescope_fuzz` for longer runs.

mod dossier;
mod readers;
mod seeds;

use cyclescope_fuzz::fuzz;
use readers::READERS;

fn check(name: &str) {
    let reader = READERS.iter().find(|reader| reader.name == name).expect("a reader");
    let seeds = seeds::of(name);
    if seeds.is_empty() {
        return cyclescope_skipped::skipped(format_args!("there are no good inputs for {name} here"));
    }
    fuzz(name, reader.shape, &seeds, reader.read);
}

#[test]
fn any_assembly_is_answered() {
    check("assembly");
}

#[test]
fn any_evidence_of_an_evaluation_is_answered() {
    check("evidence_evaluate");
}

#[test]
fn any_evidence_of_a_survey_is_answered() {
    check("evidence_instr");
}

#[test]
fn any_evidence_of_markers_is_answered() {
    check("evidence_marker");
}

#[test]
fn any_evidence_of_points_is_answered() {
    check("evidence_points");
}

#[test]
fn any_evidence_of_a_run_is_answered() {
    check("evidence_run");
}

#[test]
fn any_list_of_instructions_is_answered() {
    check("forms");
}

#[test]
fn any_manifest_is_answered() {
    check("manifest");
}

#[test]
fn any_published_table_is_answered() {
    check("published");
}

#[test]
fn any_readings_are_answered() {
    check("readings");
}

#[test]
fn any_results_are_answered() {
    check("results");
}

#[test]
fn any_first_line_is_answered() {
    check("session");
}

#[test]
fn any_list_of_snippets_is_answered() {
    check("snippets");
}
