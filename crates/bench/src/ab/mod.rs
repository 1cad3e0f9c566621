//! `cyclescope ab` on twenty kinds of code: programs compared with themselves, with builds that
//! only move the code, and with builds that do one or two per cent more.
//!
//! Ten thousand live comparisons would take a day, so runs of one program are recorded. They are
//! compared as pairs of consecutive runs, and chance decides which one counts as the old program:
//! the noise is the machine's, the decision is the command's. Some comparisons are live in
//! addition.

use crate::lab::{Lab, LoadCondition, SectionResult};
use cyclescope::random::Random;
use cyclescope::study::ab::{ChangeVerdict, PairedComparison, SAME_WITHIN};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of comparisons of recorded runs under each load, and number of recorded runs.
const COMPARISONS: usize = 10_000;
const RECORDED_RUNS: usize = 200;
/// Live comparisons of twenty benchmarks with each build, without and with `--full`.
const LIVE_COMPARISONS: [usize; 2] = [1, 10];

/// Builds of the program: a name, and the flags of the compiler.
const BUILDS: &[(&str, &[&str])] =
    &[("first", &[]), ("again", &[]), ("1 % more", &["-DADDED_UNITS=10"]), ("2 % more", &["-DADDED_UNITS=20"])];

/// Bytes of padding of the builds that only move the code, for the old and the new program.
const PADDINGS: [[usize; 6]; 2] = [[0, 48, 112, 208, 1040, 4128], [16, 80, 304, 560, 2064, 4240]];

/// Number of rows with each verdict: slower, faster, the same, unclear.
type RowVerdictCounts = [usize; 4];

/// Runs the section.
pub fn check_comparisons(lab: &mut Lab) -> SectionResult {
    let folder = std::env::current_exe()?.with_file_name("ab");
    std::fs::create_dir_all(&folder)?;
    let programs =
        BUILDS.iter().enumerate().map(|(number, (_, flags))| build_program(&folder, &format!("kinds-{number}"), flags));
    let programs = programs.collect::<SectionResult<Vec<PathBuf>>>()?;
    let [old, new] =
        [("old", PADDINGS[0]), ("new", PADDINGS[1])].map(|(name, paddings)| build_moved(&folder, name, &paddings));
    let moved = [old?, new?];
    let mut place = RowVerdictCounts::default();
    let mut live = vec![RowVerdictCounts::default(); BUILDS.len()];
    let mut by_label = RowVerdictCounts::default();
    for load in LoadCondition::BOTH {
        let busy = lab.start_load(load)?;
        let labelled = compare_recorded(lab, &folder, &programs[0])?;
        println!("{:<8}{:<28}{}", load.name(), "recorded, chance labels", format_counts(&labelled));
        add_counts(&mut by_label, &labelled);
        for (number, (name, _)) in BUILDS.iter().enumerate().skip(1) {
            let mut counts = RowVerdictCounts::default();
            for _ in 0..LIVE_COMPARISONS[usize::from(lab.options.full)] {
                add_counts(&mut counts, &compare_live(lab, [&programs[0], &programs[number]], &[])?);
            }
            println!("{:<8}{name:<28}{}", load.name(), format_counts(&counts));
            add_counts(&mut live[number], &counts);
        }
        let counts = compare_live(lab, [&moved[0], &moved[1]], &["--builds", "6"])?;
        println!("{:<8}{:<28}{}", load.name(), "moved, six builds of each", format_counts(&counts));
        add_counts(&mut place, &counts);
        drop(busy);
    }
    let changed = |counts: &RowVerdictCounts| [counts[0] + counts[1], counts.iter().sum()];
    let mut itself = by_label;
    add_counts(&mut itself, &live[1]);
    demand_at_most(lab, "a program compared with itself changes in at most 1 row of 1000", changed(&itself), 0.001);
    demand_at_most(lab, "code that only moved changes in at most 1 row of 100", changed(&place), 0.01);
    for (number, least) in [(2, 0.95), (3, 0.999)] {
        let (found, all) = (live[number][0], live[number].iter().sum::<usize>());
        let text = format!("{} is found in {} % of the rows", BUILDS[number].0, 100.0 * least);
        lab.record_demand(&text, Some(found as f64 >= least * all as f64), format!("{found} of {all}"));
    }
    Ok(())
}

/// Records whether at most this share of the rows changed.
fn demand_at_most(lab: &mut Lab, text: &str, [changed, all]: [usize; 2], share: f64) {
    lab.record_demand(text, Some(changed as f64 <= share * all as f64), format!("{changed} of {all}"));
}

fn add_counts(to: &mut RowVerdictCounts, counts: &RowVerdictCounts) {
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
}

fn format_counts([slower, faster, same, unclear]: &RowVerdictCounts) -> String {
    format!("{slower:>6} slower {faster:>6} faster {same:>6} the same {unclear:>6} unclear")
}

/// Builds the program at other addresses. Returns the common part of the builds' names.
fn build_moved(folder: &Path, name: &str, paddings: &[usize]) -> SectionResult<PathBuf> {
    for (number, padding) in paddings.iter().enumerate() {
        build_program(folder, &format!("{name}-{}", number + 1), &[&format!("-DPADDING={padding}")])?;
    }
    Ok(folder.join(format!("{name}-{{build}}")))
}

/// Builds the program with these flags.
fn build_program(folder: &Path, name: &str, flags: &[&str]) -> SectionResult<PathBuf> {
    let (source, program) = (folder.join("kinds.c"), folder.join(name));
    std::fs::write(&source, include_str!("kinds.c"))?;
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-O2", "-I", header]).args(flags).arg("-o").args([&program, &source]).status()?;
    if built.success() { Ok(program) } else { Err(format!("cc failed: {built}").into()) }
}

/// The command, found next to this program, on the lab's CPU.
fn ab_command(lab: &mut Lab) -> SectionResult<Command> {
    let path = std::env::current_exe()?.with_file_name("cyclescope");
    if !path.exists() {
        return Err(format!("{} is missing: build cyclescope-cli in the same way", path.display()).into());
    }
    let mut command = Command::new(path);
    command.args(["ab", "--json", "--cpu", &lab.cpu.to_string(), "--seed", &lab.next_seed().to_string()]);
    Ok(command)
}

/// Verdicts of a live comparison.
fn compare_live(lab: &mut Lab, programs: [&Path; 2], options: &[&str]) -> SectionResult<RowVerdictCounts> {
    let output = ab_command(lab)?.args(programs).args(options).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stdout).into());
    }
    let mut counts = RowVerdictCounts::default();
    for line in parse_lines(&output.stdout)? {
        let place = ["slower", "faster", "same", "unclear"].iter().position(|verdict| line["verdict"] == *verdict);
        counts[place.ok_or("a row without a verdict")?] += 1;
    }
    Ok(counts)
}

/// Verdicts of comparisons of recorded runs. Chance decides which of two consecutive runs is the
/// old program's.
fn compare_recorded(lab: &mut Lab, folder: &Path, program: &Path) -> SectionResult<RowVerdictCounts> {
    let file = folder.join("runs.jsonl");
    let _ = std::fs::remove_file(&file);
    let status = ab_command(lab)?.arg("--out").args([&file, program]).args(["--budget", "60"]).output()?.status;
    if !status.success() {
        return Err(format!("recording failed: {status}").into());
    }
    let runs: Vec<Value> = parse_lines(&std::fs::read(&file)?)?;
    let runs: Vec<&Value> = runs.iter().filter(|line| line["kind"] == "ab.run").map(|line| &line["cycles"]).collect();
    let names: Vec<&String> =
        runs.first().and_then(|run| run.as_object()).map(|run| run.keys().collect()).unwrap_or_default();
    if names.is_empty() || runs.len() < RECORDED_RUNS / 2 {
        return Err(format!("{} runs of {} benchmarks are too few", runs.len(), names.len()).into());
    }
    let (mut random, mut counts) = (Random::new(lab.next_seed()), RowVerdictCounts::default());
    for number in 0..COMPARISONS {
        let name = names[number % names.len()];
        let took = |run: usize| runs[run % runs.len()][name].as_f64().unwrap_or(f64::NAN);
        let (mut comparison, begin) = (PairedComparison::new(SAME_WITHIN), random.below(runs.len()));
        for pair in 0..runs.len() / 2 {
            let [one, other] = [0, 1].map(|part| took(begin + 2 * pair + part));
            let (old, new) = if random.happens(0.5) { (one, other) } else { (other, one) };
            comparison.add_pair(old, new);
        }
        let place = match comparison.outcome().verdict {
            ChangeVerdict::Slower => 0,
            ChangeVerdict::Faster => 1,
            ChangeVerdict::Same => 2,
            ChangeVerdict::Unclear => 3,
            ChangeVerdict::OnlyOld | ChangeVerdict::OnlyNew => unreachable!("both programs have each benchmark"),
        };
        counts[place] += 1;
    }
    Ok(counts)
}

fn parse_lines(text: &[u8]) -> SectionResult<Vec<Value>> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice).collect::<Result<_, _>>()?)
}
