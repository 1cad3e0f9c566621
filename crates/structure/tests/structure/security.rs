//! SECURITY.md is true: each promise names its tests, and each of them is a test of the source.

use super::crates;
use std::collections::BTreeSet;
use std::path::Path;

const TEXT: &str = include_str!("../../../../SECURITY.md");

/// Fewer promises mean that the page is no longer read as it is written.
const FEWEST_PROMISES: usize = 30;

/// The tests of a source file: functions below `#[test]`.
fn list_tests(source: &str) -> Vec<String> {
    let (mut tests, mut is_test) = (Vec::new(), false);
    for line in source.lines().map(str::trim_start) {
        if line.starts_with("#[test]") {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap_or_default();
            tests.extend(is_test.then(|| name.to_string()));
            is_test = false;
        }
    }
    tests
}

fn collect_tests(folder: &Path, tests: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("it can be listed")) {
        let path = entry.path();
        if path.is_dir() {
            collect_tests(&path, tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            tests.extend(list_tests(&std::fs::read_to_string(&path).expect("source is text")));
        }
    }
}

/// The rows of the page's tables of tests without their headings, as cells. Such a table's last
/// heading is `test` or `tests`.
fn list_rows(page: &str) -> Vec<Vec<&str>> {
    let mut rows = Vec::new();
    let mut names_tests = false;
    let lines: Vec<&str> = page.lines().collect();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if lines.get(number + 1).is_some_and(|next| next.starts_with("|---")) {
            names_tests = cells.last().is_some_and(|heading| matches!(*heading, "test" | "tests"));
        } else if names_tests && !line.starts_with("|---") {
            rows.push(cells);
        }
    }
    rows
}

/// The code spans of the last cell of a row.
fn named_tests<'a>(row: &[&'a str]) -> Vec<&'a str> {
    row.last().map_or(Vec::new(), |cell| cell.split('`').skip(1).step_by(2).collect())
}

#[test]
fn every_promise_names_its_tests() {
    let rows = list_rows(TEXT);
    assert!(rows.len() >= FEWEST_PROMISES, "{} promises", rows.len());
    for row in rows {
        let refers = row.last().is_some_and(|cell| cell.contains("](#"));
        assert!(refers || !named_tests(&row).is_empty(), "no test is named for: {row:?}");
    }
}

#[test]
fn named_tests_exist() {
    let mut tests = BTreeSet::new();
    collect_tests(&crates(), &mut tests);
    let rows = list_rows(TEXT);
    let missing: Vec<&str> =
        rows.iter().flat_map(|row| named_tests(row)).filter(|name| !tests.contains(*name)).collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that do not exist: {missing:?}");
}

#[test]
fn only_functions_below_the_attribute_are_tests() {
    let source = "#[test]\n#[ignore = \"slow\"]\n    fn one() {}\nfn helper() {}\n#[test]\nfn two() {}\n";
    assert_eq!(list_tests(source), ["one", "two"]);
    let page = "| a | test |\n|---|---|\n| b `c` | `one`, `two` |\n";
    let rows = list_rows(page);
    assert_eq!((rows.len(), named_tests(&rows[0])), (1, vec!["one", "two"]));
}
