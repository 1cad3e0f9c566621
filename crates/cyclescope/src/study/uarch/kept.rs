//! What a result file has of a study that was interrupted: tests with all of their lines, and the knees in them.

use super::knee::Knee;
use super::test::Test;
use super::verdict::Filled;
use serde::Deserialize;
use serde_json::Value;

/// Fields of a line that decide what is kept.
#[derive(Deserialize)]
struct Line {
    test: String,
    records: usize,
}

/// The curve of a filler, of which its knee is enough.
#[derive(Deserialize)]
struct Curve {
    name: String,
    knee: Option<Knee>,
}

/// How many of these lines are of tests that have all of theirs.
pub(super) fn whole(lines: &[Value]) -> usize {
    let mut whole = 0;
    while let Some(first) = lines.get(whole) {
        let Ok(Line { test, records }) = Line::deserialize(first) else { break };
        let end = whole.saturating_add(records.max(1));
        let Some(all) = lines.get(whole..end) else { break };
        if all.iter().any(|line| line["test"] != *test) {
            break;
        }
        whole = end;
    }
    whole
}

/// A test's fillers with the knees that its lines have.
pub(super) fn filled(test: &'static Test, lines: &[Value]) -> Vec<Filled> {
    let curves = lines.iter().filter_map(|line| Vec::<Curve>::deserialize(&line["fillers"]).ok()).flatten();
    let filled = curves.filter_map(|Curve { name, knee }| {
        let filler = test.fillers().iter().find(|filler| filler.name == name)?;
        Some(Filled::new(filler, Ok(knee?)))
    });
    filled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::uarch::list::TESTS;
    use crate::study::uarch::trial::{Knees, learn};
    use serde_json::json;

    fn lines(counts: &[(&str, usize, usize)]) -> Vec<Value> {
        let line = |(test, records, number): &(&str, usize, usize)| {
            std::iter::repeat_n(json!({ "test": test, "records": records }), *number)
        };
        counts.iter().flat_map(line).collect()
    }

    #[test]
    fn a_test_is_kept_with_all_of_its_lines_or_not_at_all() {
        assert_eq!(whole(&[]), 0);
        assert_eq!(whole(&lines(&[("rob", 1, 1), ("data_caches", 3, 3), ("data_tlb", 2, 2)])), 6);
        assert_eq!(whole(&lines(&[("rob", 1, 1), ("data_caches", 3, 2)])), 1);
        assert_eq!(whole(&lines(&[("data_caches", 3, 2), ("data_tlb", 2, 2)])), 0);
        assert_eq!(whole(&lines(&[("rob", 0, 2), ("masks", usize::MAX, 1)])), 2);
        assert_eq!(whole(&[json!({ "test": "rob" })]), 0);
    }

    #[test]
    fn a_kept_line_tells_the_knee_that_its_test_found() {
        let rob = TESTS.iter().find(|test| test.name == "rob").unwrap();
        let [one, other, ..] = rob.fillers() else { panic!("it has fillers") };
        let curve = |name: &str, end: usize| json!({ "name": name, "knee": { "low": end, "high": end } });
        let curves = json!([curve(one.name, 393), curve(other.name, 392), { "name": "none", "knee": null }]);
        let filled = filled(rob, &[json!({ "fillers": curves })]);
        let mut knees = Knees::new();
        learn(&mut knees, rob, &filled);
        assert_eq!(knees.get("rob"), Some(&392));
    }
}
