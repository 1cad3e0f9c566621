//! `ports`: forms, pairs, explanations, and what becomes of their files.
//!
//! Cores differ in all numbers. So these tests expect only what holds on each of them: a form shares
//! all ports with itself, and no mix is faster than its parts alone.

use crate::support::{Answer, answer, cyclescope, folder, of_kind, parse_lines, until_not_too_busy};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Forms that every x86-64 has.
const FORMS: [&str; 2] = ["imul r64, r64", "paddd xmm, xmm"];

fn measured(arguments: &[&str], format: &[&str]) -> Answer {
    let measure = || answer(cyclescope(&["ports", "--quick"]).args(format).args(arguments).env("NO_COLOR", "1"));
    // A file or a folder is written once.
    let is_kept = arguments.iter().any(|argument| ["--out", "--evidence"].contains(argument));
    let answer = if is_kept { measure() } else { until_not_too_busy(measure) };
    assert!(matches!(answer.code, Some(0 | 5)), "{arguments:?}: {answer:?}");
    answer
}

fn lines(arguments: &[&str]) -> Vec<Value> {
    parse_lines(&measured(arguments, &["--json"]).stdout)
}

fn text(arguments: &[&str]) -> String {
    let answer = measured(arguments, &[]);
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{answer:?}");
    answer.stdout
}

/// Requires that no mix is faster than the slowest of its parts alone, beyond errors. On a busy machine
/// a time may have no interval.
fn require_slow_enough(mixes: &Value) {
    for mix in mixes.as_array().expect("a list") {
        let alone = mix["alone"].as_f64().expect("a number");
        assert!(mix["cycles"]["high"].is_null() || mix["cycles"]["high"].as_f64() >= Some(0.9 * alone), "{mix}");
        assert!(mix["worst"].as_f64() >= mix["cycles"]["value"].as_f64(), "{mix}");
    }
}

#[test]
fn a_form_shares_all_its_ports_with_itself() {
    for form in FORMS {
        // A busy machine may leave times that say less.
        let share = || {
            let lines = lines(&["--pair", form, form]);
            let pair = of_kind(&lines, "ports.pair")[0];
            require_slow_enough(&pair["mixes"]);
            pair.clone()
        };
        let is_right = |pair: &Value| pair["share"] == "equal" || pair["share"] == "untold";
        let mut shares: Vec<Value> = std::iter::repeat_with(share).take(3).collect();
        while shares.len() < 12 && !shares.iter().any(is_right) {
            shares.push(share());
        }
        let slots = |pair: &Value| [0, 1].map(|at| pair["forms"][at]["slots"].clone());
        let agree = |[one, other]: [Value; 2]| one == other || [one, other].contains(&"-".into());
        assert!(shares.iter().all(|pair| agree(slots(pair))), "{shares:?}");
        assert!(shares.iter().any(is_right), "{shares:?}");
        assert!(shares.iter().all(|pair| pair["share"] != "disjoint"), "{shares:?}");
    }
}

#[test]
fn a_pair_is_one_line_and_one_page() {
    let [one, other] = FORMS;
    let lines = lines(&["--pair", one, other]);
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds, ["machine", "ports.pair"]);
    let pair = &lines[1];
    assert_eq!(pair["forms"][0]["mnemonic"], "imul", "{pair}");
    assert!(pair["why"].as_str().is_some_and(|why| !why.is_empty()), "{pair}");
    assert!(pair["repro"].as_str().is_some_and(|repro| repro.starts_with("cyclescope ports --pair ")), "{pair}");
    require_slow_enough(&pair["mixes"]);
    let text = text(&["--pair", one, other]);
    assert!(text.contains("Ports that both use: ") && text.contains(other), "{text}");
}

#[test]
fn rows_have_the_key_of_instr_and_an_explanation_their_mixes() {
    let plain = lines(&FORMS);
    let rows = of_kind(&plain, "ports");
    assert_eq!(rows.len(), FORMS.len());
    assert!(rows.iter().all(|row| row.get("mixes").is_none()), "{rows:?}");
    let last = plain.last().expect("a line");
    assert_eq!(last["kind"], "ports.classes");
    let classes = last["classes"].as_array().expect("a list");
    let pairs = ["shares", "free"].map(|list| last[list].as_array().expect("a list").len());
    assert_eq!(pairs[0] + pairs[1], classes.len() * classes.len().saturating_sub(1) / 2, "{last}");
    let explained = lines(&["--explain", FORMS[0], FORMS[1]]);
    for row in of_kind(&explained, "ports") {
        assert!(["code", "operands", "encoding"].iter().all(|field| row[*field].is_string()), "{row}");
        let words = shlex::split(row["repro"].as_str().expect("text")).expect("words of a shell");
        assert!(words.contains(&"--explain".to_string()), "{row}");
        let Some(mixes) = row.get("mixes") else { continue };
        require_slow_enough(mixes);
        for mix in mixes.as_array().expect("a list") {
            let parts = mix["parts"].as_array().expect("a list");
            assert!(parts.iter().any(|part| part["code"] == row["code"]) || row["class"].is_string(), "{mix}");
            assert!(["proves", "suggests", "untold"].contains(&mix["evidence"].as_str().expect("a word")), "{mix}");
        }
        // The command of a mix runs.
        let command = mixes[0]["repro"].as_str().expect("a command");
        let words = shlex::split(command).expect("words of a shell");
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let again = answer(cyclescope(&words).args(["--quick", "--json"]));
        assert!(matches!(again.code, Some(0 | 5)), "{command}: {again:?}");
        let count = |mix: &Value, at: usize| mix["parts"][at]["count"].clone();
        let run = &parse_lines(&again.stdout)[0]["mix"];
        assert_eq!([count(run, 0), count(run, 1)], [count(&mixes[0], 0), count(&mixes[0], 1)], "{run}");
    }
    let page = text(&["--explain", FORMS[0]]);
    assert!(page.contains("Imul_r64_rm64") && page.contains("Classes of one"), "{page}");
}

#[test]
fn wrong_names_are_refused_with_the_nearest() {
    for arguments in [&["--pair", "imull r64, r64", "nop"][..], &["imull"], &["--pair", "nop", "imull"]] {
        let answer = answer(cyclescope(&["ports"]).args(arguments));
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains("imul") && answer.stderr.contains("help: "), "{arguments:?}: {answer:?}");
    }
    for (arguments, words) in [
        (&["--pair", "nop"][..], "2 values"),
        (&["--pair", "nop", "nop", "--out", "x"], "cannot be used with"),
        (&["--explain", "--pair", "nop", "nop"], "cannot be used with"),
        (&["--explain", "nop", "--out", "x"], "cannot be used with"),
        (&[], "required"),
    ] {
        let answer = answer(cyclescope(&["ports"]).args(arguments));
        assert!(answer.code == Some(2) && answer.stderr.contains(words), "{arguments:?}: {answer:?}");
    }
}

#[test]
fn a_cut_file_is_completed() {
    let folder = folder();
    let path = folder.path().join("a.jsonl").to_str().expect("text").to_string();
    lines(&[&FORMS[..], &["--seed", "5", "--out", &path]].concat());
    let whole = std::fs::read_to_string(&path).expect("a file");
    let kinds = |text: &str| parse_lines(text).iter().map(|line| line["kind"].clone()).collect::<Vec<Value>>();
    let expected = ["machine", "ports", "ports", "ports.classes"];
    assert_eq!(kinds(&whole), expected);
    let ends: Vec<usize> = whole.match_indices('\n').map(|(end, _)| end + 1).collect();
    for cut in [ends[0], ends[1] + 9, whole.len() - 1, whole.len()] {
        std::fs::write(&path, &whole[..cut]).expect("a file");
        let resumed = answer(&mut cyclescope(&["ports", "--json", "--resume", &path]));
        assert!(matches!(resumed.code, Some(0 | 5)), "{cut}: {resumed:?}");
        assert_eq!(kinds(&resumed.stdout), expected, "{cut}");
        let content = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(kinds(&content), expected, "{cut}");
        assert!(cut < whole.len() || content == whole, "a complete file stays as it is");
    }
    std::fs::write(&path, &whole[..9]).expect("a file");
    let headless = answer(&mut cyclescope(&["ports", "--resume", &path]));
    assert!(headless.code == Some(2) && headless.stderr.contains("name the forms again"), "{headless:?}");
    std::fs::write(&path, &whole).expect("a file");
    let other = answer(&mut cyclescope(&["ports", "--resume", &path, "--seed", "6"]));
    assert!(other.code == Some(2) && other.stderr.contains("seed was 5"), "{other:?}");
}

#[test]
fn replay_gives_the_same_lines() {
    let folder = folder();
    let cases: [(&str, &[&str]); 2] =
        [("pair", &["--pair", FORMS[0], FORMS[1]]), ("explained", &["--explain", FORMS[0], FORMS[1]])];
    for (name, arguments) in cases {
        let path = folder.path().join(name).to_str().expect("text").to_string();
        let measured = lines(&[arguments, &["--evidence", &path]].concat());
        let replayed = answer(&mut cyclescope(&["replay", "--json", &path]));
        assert!(matches!(replayed.code, Some(0 | 5)), "{name}: {replayed:?}");
        assert_eq!(parse_lines(&replayed.stdout), measured, "{name}");
        let page = answer(cyclescope(&["replay", &path]).env("NO_COLOR", "1"));
        assert!(page.stdout.lines().all(|line| line.chars().count() <= 80), "{page:?}");
    }
}

#[test]
fn closed_pipe_is_not_an_error() {
    let cases: [&[&str]; 3] = [&[FORMS[0]], &["--json", FORMS[0]], &["--pair", FORMS[0], FORMS[1]]];
    for arguments in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.args(["ports", "--quick"]).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 5)) && !said.contains("error"), "{arguments:?}: {said}");
    }
}

#[test]
fn two_files_differ_where_one_proves_what_the_other_denies() {
    let folder = folder();
    let [a, b, cut] = ["a", "b", "cut"].map(|name| folder.path().join(name).to_str().expect("text").to_string());
    lines(&[&FORMS[..], &["popcnt r64, r64", "--out", &a]].concat());
    let compare = |arguments: &[&str]| answer(cyclescope(&["compare"]).args(arguments).env("NO_COLOR", "1"));
    let same = compare(&["--json", &a, &a]);
    assert_eq!(same.code, Some(0), "{same:?}");
    let summary = &parse_lines(&same.stdout)[0];
    assert_eq!((&summary["differ"], &summary["both"]), (&0.into(), &3.into()), "{summary}");
    assert_eq!(summary["a"]["holds"], "ports");
    // The other file denies each proof.
    let whole = std::fs::read_to_string(&a).expect("a file");
    let denied = whole.replace("\"standing\":\"free\"", "\"standing\":\"fits\"");
    std::fs::write(&b, &denied).expect("a file");
    let differ = compare(&["--json", "--fail-on-diff", &a, &b]);
    let found = parse_lines(&differ.stdout);
    let differences = found[0]["differ"].as_u64().expect("a number");
    let listed: u64 = found[1..].iter().map(|line| line["pairs"].as_u64().expect("a number")).sum();
    assert_eq!(listed, differences, "{differ:?}");
    for line in &found[1..] {
        assert_eq!(
            (&line["part"], &line["a"]["answer"], &line["b"]["answer"]),
            (&"pair".into(), &"apart".into(), &"share".into())
        );
        assert_eq!(line["a"]["mix"]["evidence"], "proves", "{line}");
    }
    let page = compare(&[&a, &b]);
    assert!(page.code == Some(0) && page.stdout.contains("pairs of these"), "{page:?}");
    assert!(page.stdout.lines().all(|line| line.chars().count() <= 80), "{page:?}");
    // Without the last line there are no classes.
    let ends: Vec<usize> = whole.match_indices('\n').map(|(end, _)| end + 1).collect();
    std::fs::write(&cut, &whole[..ends[2]]).expect("a file");
    let cut_answer = compare(&[&a, &cut]);
    assert!(cut_answer.code == Some(2) && cut_answer.stderr.contains("ports --resume"), "{cut_answer:?}");
    let refused = compare(&["--explain", &a, &b]);
    assert!(refused.code == Some(2) && refused.stderr.contains("--explain has no effect"), "{refused:?}");
}

#[test]
fn published_names_and_the_graph_stand_beside_a_result() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let [file, map, plots] = ["a.jsonl", "map.txt", "plots"].map(path);
    lines(&[&FORMS[..], &["--seed", "5", "--out", &file]].concat());
    let whole = std::fs::read_to_string(&file).expect("a file");
    // A complete file gets names, too. A busy machine may leave no certain class, so one is made certain.
    let mut lines = parse_lines(&whole);
    let last = lines.last_mut().expect("a line");
    if last["classes"].as_array().is_none_or(Vec::is_empty) {
        return cyclescope_skipped::report_left_out("no form has a class here");
    }
    let class = &mut last["classes"][0];
    (class["ports"], class["count"], class["solutions"]) = ("X0".into(), 1.into(), 1.into());
    let (class, ports) = (class.clone(), "7");
    let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, &whole).expect("a file");
    let form = class["forms"][0].as_str().expect("text");
    let resume = ["ports", "--resume", &file, "--names", &map];
    let named = |text: String| {
        std::fs::write(&map, text).expect("a file");
        let said = answer(cyclescope(&resume).args(["--json", "--plots", &plots]));
        assert_eq!(said.code, Some(0), "{said:?}");
        parse_lines(&said.stdout).pop().expect("a line")
    };
    let last = named(format!("# a core\n{form}: 1*p{ports}\nnone r64: 1*p0\n"));
    let own = last["classes"].as_array().expect("a list").iter().find(|own| own["forms"][0] == form);
    assert_eq!(own.expect("the class")["alias"], format!("p{ports}"), "{last}");
    assert_eq!((&last["names"]["used"], &last["names"]["unused"]), (&1.into(), &1.into()), "{last}");
    let svg = std::fs::read_to_string(format!("{plots}/ports-sharing.svg")).expect("a picture");
    assert!(svg.contains(&format!("= p{ports}")) && svg.contains(form), "{svg}");
    let page = answer(cyclescope(&resume).env("NO_COLOR", "1"));
    assert!(
        page.stdout.contains("Published names of ports") && page.stdout.contains(&format!("= p{ports}")),
        "{page:?}"
    );
    // Another number of ports contradicts it, and leaves no name.
    let last = named(format!("{form}: 1*p{ports}z\n"));
    let contradictions = last["names"]["contradictions"].as_array().expect("a list");
    assert!(contradictions.len() == 1 && contradictions[0]["forms"][0] == form, "{last}");
    assert!(last["classes"].as_array().expect("a list").iter().all(|own| own.get("alias").is_none()), "{last}");
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), whole, "a complete file stays as it is");
    std::fs::write(&map, "add r64, r64\n").expect("a file");
    let bad = answer(&mut cyclescope(&resume));
    assert!(bad.code == Some(2) && bad.stderr.contains("line 1: it names no form with its ports"), "{bad:?}");
    let pair = answer(&mut cyclescope(&["ports", "--pair", FORMS[0], FORMS[1], "--names", &map]));
    assert!(pair.code == Some(2) && pair.stderr.contains("cannot be used with"), "{pair:?}");
}

#[test]
fn slots_of_an_earlier_survey_are_taken() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let [table, evidence] = ["instr.jsonl", "evidence"].map(path);
    let survey = answer(cyclescope(&["instr", "--quick", "--out", &table]).args(FORMS));
    assert!(matches!(survey.code, Some(0 | 5)), "{survey:?}");
    let content = std::fs::read_to_string(&table).expect("a file");
    let mut rows = parse_lines(&content);
    // A number that no survey finds shows where it comes from.
    let count = serde_json::json!({"unit": "slots", "value": 17.0, "low": 16.9, "high": 17.1});
    for row in &mut rows[1..] {
        row["slots"] = serde_json::json!({"count": count, "verdict": "exact", "whole": 17, "fillers": [], "why": null});
    }
    let write = |rows: &[Value]| {
        std::fs::write(&table, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).expect("a file");
    };
    write(&rows);
    let said =
        answer(cyclescope(&["ports", "--quick", "--json", "--instr", &table, "--evidence", &evidence]).args(FORMS));
    if said.code == Some(2) && said.stderr.contains("no dispatch width") {
        return cyclescope_skipped::report_left_out("the table has no dispatch width here");
    }
    assert!(matches!(said.code, Some(0 | 5)), "{said:?}");
    let measured = parse_lines(&said.stdout);
    assert!(of_kind(&measured, "ports").iter().all(|row| row["slots"]["whole"] == 17), "{measured:?}");
    let replayed = answer(&mut cyclescope(&["replay", "--json", &evidence]));
    assert_eq!(parse_lines(&replayed.stdout), measured);
    rows[0]["cpu"]["brand"]["value"] = "Another Processor".into();
    write(&rows);
    let other = answer(&mut cyclescope(&["ports", "--instr", &table, FORMS[0]]));
    assert!(other.code == Some(2) && other.stderr.contains("results of another machine"), "{other:?}");
}
