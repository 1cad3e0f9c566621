//! Checks that the generated page `docs/uarch-tests.md` lists all tests.

use super::controls::{ControlDifference, control_differences};
use crate::spec::TestSpec;
use crate::test_list::TESTS;
use std::path::PathBuf;

const HEAD: &str = "# Tests of `uarch`

`cyclescope uarch NAME` runs one of these tests. [How big is this core?](how-big-is-this-core.md)
explains the methods. The third column has the scripts of A. Fog's test programs that a test answers.
Some tests subtract the cost of a *control* program: the last column says in what programs differ
from their controls, and how many programs do so.

This page is generated: `CYCLESCOPE_WRITE=1 cargo test -p cyclescope-uarch the_page_of_tests`.

| test | question | scripts | control differs in |
|---|---|---|---|
";

impl ControlDifference {
    fn name(self) -> &'static str {
        match self {
            ControlDifference::Nothing => "nothing",
            ControlDifference::Memory => "memory",
            ControlDifference::Before => "what runs before",
            ControlDifference::Order => "order",
            ControlDifference::Operands => "operands",
            ControlDifference::OperandsAndOrder => "operands and order",
            ControlDifference::Instructions => "instructions",
            ControlDifference::Number => "number of instructions",
            ControlDifference::More => "instructions and memory or what runs before",
        }
    }
}

fn table_line(test: &'static TestSpec) -> String {
    let scripts = test.answers.iter().map(|script| format!("`{script}`")).collect::<Vec<_>>().join(", ");
    let differences =
        control_differences(test).into_iter().map(|(difference, count)| format!("{} ({count})", difference.name()));
    let differences = differences.collect::<Vec<_>>().join(", ");
    format!("| `{}` | {} | {scripts} | {differences} |\n", test.name, test.about)
}

#[test]
fn the_page_of_tests_is_up_to_date() {
    let page = HEAD.to_string() + &TESTS.iter().map(|test| table_line(test)).collect::<String>();
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/uarch-tests.md");
    if std::env::var_os("CYCLESCOPE_WRITE").is_some() {
        std::fs::write(&path, &page).expect("a file");
    }
    let there = std::fs::read_to_string(&path).expect("a file");
    let command = "CYCLESCOPE_WRITE=1 cargo test -p cyclescope-uarch the_page_of_tests";
    assert!(there == page, "docs/uarch-tests.md is out of date; generate it: {command}");
}

#[test]
fn no_control_is_the_program_itself_or_another_program() {
    for test in TESTS {
        let differences = control_differences(test);
        for wrong in [ControlDifference::Nothing, ControlDifference::More] {
            assert!(!differences.contains_key(&wrong), "{}: {}", test.name, wrong.name());
        }
    }
}
