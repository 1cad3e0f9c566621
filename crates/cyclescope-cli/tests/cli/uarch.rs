//! `uarch`: what it prints, that a replay comes to the same, and what it says of names that it does not have.

use crate::support::{answer, cyclescope, folder, json};

#[test]
fn a_structure_has_a_verdict_and_its_replay_the_same() {
    let files = folder();
    let path = files.path().join("evidence");
    let path = path.to_str().expect("text");
    let plots = files.path().join("plots");
    let pictures = plots.to_str().expect("text");
    let arguments = ["uarch", "stores_in_flight", "--quick", "--evidence", path, "--plots", pictures];
    let line = json(&arguments, &[0]);
    assert_eq!((&line["kind"], &line["test"]), (&"uarch".into(), &"stores_in_flight".into()));
    let verdict = line["verdict"].as_str().expect("a verdict");
    assert!(["found", "limited", "none", "unclear"].contains(&verdict), "{line}");
    assert_eq!(line["value"]["value"].is_number(), verdict == "found", "{line}");
    assert_eq!(line["value"]["unit"], "count");
    let fillers = line["fillers"].as_array().expect("fillers");
    assert!(fillers.len() >= 2 && fillers.iter().all(|filler| !filler["curve"][0].is_null()), "{line}");
    assert_eq!(json(&["replay", path], &[0]), line);
    let core = std::fs::read_to_string(plots.join("core.svg")).expect("the diagram");
    assert!(core.contains("stores in flight") && core.contains("not measured"), "{core}");
    let picture = std::fs::read_to_string(plots.join("uarch-stores_in_flight.svg")).expect("a picture");
    for text in
        ["How many stores", "instructions between the chains", "overlap: 1 at once", "movups m128, xmm"]
    {
        assert!(picture.contains(text), "no {text} in {picture}");
    }
}

#[test]
fn the_page_fits_a_terminal_and_says_why_where_there_is_no_number() {
    let text = answer(cyclescope(&["uarch", "branches_in_flight", "--quick"]).env("NO_COLOR", "1"));
    assert_eq!(text.code, Some(0), "{text:?}");
    let wide = text.stdout.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text:?}");
    let (title, rest) = text.stdout.split_once('\n').expect("lines");
    assert!(title == "In flight" && rest.starts_with("  branches in flight  "), "{text:?}");
    let row = rest.lines().next().expect("a row");
    assert!(row.contains(" entries") != text.stdout.contains("Why there is no number"), "{text:?}");
}

#[test]
fn tests_are_listed_and_misspelt_ones_refused() {
    let list = answer(&mut cyclescope(&["uarch", "--list"]));
    assert!(list.stdout.contains("vector_registers_xmm\n") && list.code == Some(0), "{list:?}");
    let wrong = answer(&mut cyclescope(&["uarch", "stores"]));
    assert!(wrong.code == Some(2) && wrong.stderr.contains("did you mean stores_in_flight"), "{wrong:?}");
    let nothing = answer(&mut cyclescope(&["uarch", "--list", "--plots", "x"]));
    assert!(nothing.code == Some(2) && nothing.stderr.contains("cannot be used"), "{nothing:?}");
}
