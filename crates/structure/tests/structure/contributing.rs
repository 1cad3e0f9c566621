//! CONTRIBUTING.md is true: the paths that it names exist, and its samples are lines of the source.

use super::crates;
use std::path::PathBuf;

const TEXT: &str = include_str!("../../../../CONTRIBUTING.md");

/// The fence that begins a sample. The first line is a comment that names the file.
const SAMPLE_FENCE: &str = "```rust,ignore";
/// A line of a sample that leaves out lines of the source.
const GAP: &str = "// …";
/// Fewer samples or paths mean that the page is no longer read as it is written.
const FEWEST_SAMPLES: usize = 4;
const FEWEST_PATHS: usize = 30;

fn root() -> PathBuf {
    crates().parent().expect("the crates are in the workspace").to_path_buf()
}

fn squeeze_blanks(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Splits a sample at its gaps.
fn split_at_gaps(sample: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for line in sample.lines() {
        if line.trim() == GAP {
            pieces.push(String::new());
        } else {
            let last = pieces.last_mut().expect("there is a first one");
            last.push_str(line);
            last.push('\n');
        }
    }
    pieces.iter().map(|piece| squeeze_blanks(piece)).collect()
}

/// The first piece of a sample that the source does not have, in this order; none if it has all.
fn find_foreign_piece(sample: &str, source: &str) -> Option<String> {
    let source = squeeze_blanks(source);
    let mut rest = source.as_str();
    for piece in split_at_gaps(sample) {
        match rest.find(&piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return Some(piece),
        }
    }
    None
}

/// Code spans outside of fences.
fn code_spans() -> impl Iterator<Item = &'static str> {
    let prose = TEXT.split("```").step_by(2);
    prose.flat_map(|text| text.split('`').skip(1).step_by(2))
}

/// Whether a code span names a file or folder of the repository, and not a pattern.
fn is_path(span: &str) -> bool {
    const FOLDERS: &[&str] =
        &["crates/", "kernel/", "docs/", "frameworks/", "include/", "fuzz/", "uapi/", ".ci/", ".github/"];
    FOLDERS.iter().any(|folder| span.starts_with(folder)) && !span.contains(['*', ' ']) && !span.contains("NAME")
}

#[test]
fn samples_are_lines_of_the_files_that_they_name() {
    let mut samples = 0;
    for text in TEXT.split(SAMPLE_FENCE).skip(1) {
        let (sample, _) = text.split_once("```").expect("the fence ends");
        let (first, sample) = sample.trim_start().split_once('\n').expect("a line and a sample");
        let file = first.strip_prefix("// ").unwrap_or_else(|| panic!("`{first}` names no file"));
        let source = std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let foreign = find_foreign_piece(sample, &source);
        assert!(foreign.is_none(), "CONTRIBUTING.md shows lines that {file} does not have:\n{}", foreign.unwrap());
        samples += 1;
    }
    assert!(samples >= FEWEST_SAMPLES, "{samples} samples are few");
    assert_eq!(TEXT.matches("```rust").count(), samples, "each sample of Rust begins with {SAMPLE_FENCE}");
}

#[test]
fn paths_exist() {
    let paths: Vec<&str> = code_spans().filter(|span| is_path(span)).collect();
    let missing: Vec<&&str> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "CONTRIBUTING.md names {missing:?}");
    assert!(paths.len() >= FEWEST_PATHS, "{} paths are few", paths.len());
}

#[test]
fn a_foreign_line_or_another_order_is_found() {
    let source = "const A: u8 = 1;\n\nconst B: u8 =\n    2;\nconst C: u8 = 3;\n";
    assert_eq!(find_foreign_piece("const A: u8 = 1;\n// …\nconst C: u8 = 3;", source), None);
    assert_eq!(find_foreign_piece("const B: u8 = 2;", source), None);
    assert!(find_foreign_piece("const B: u8 = 1;", source).is_some());
    assert!(find_foreign_piece("const C: u8 = 3;\n// …\nconst A: u8 = 1;", source).is_some());
}
