//! `cyclescope ab` on twenty kinds of code: programs compared with themselves, with builds that only move the code, and with builds that do one
//! or two per cent more.
//!
//! Ten thousand live comparisons would take a day. So runs of one program are recorded, and compared as pairs of neighbours of which chance says
//! which one is the old program: the noise is the machine's, and the decision is that of the command. Some comparisons are live beside it.

use crate::lab::{Lab, Load, Outcome};
use cyclescope::random::Random;
use cyclescope::study::ab::{Comparison, Verdict, WITHIN};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Comparisons of recorded runs, under each load, and runs that are recorded.
const COMPARISONS: usize = 10_000;
const RUNS: usize = 200;
/// Live comparisons of twenty benchmarks with each build, and with `--full`.
const LIVE: [usize; 2] = [1, 10];

/// Builds of the program: a name, the flags of the compiler, and the direction in which they differ from the first.
const BUILDS: &[(&str, &[&str])] =
    &[("first", &[]), ("again", &[]), ("1 % more", &["-DPLANTED=10"]), ("2 % more", &["-DPLANTED=20"])];

/// Bytes of padding of the builds that only move the code: of the old program and of the new one.
const PADDINGS: [[usize; 6]; 2] = [[0, 48, 112, 208, 1040, 4128], [16, 80, 304, 560, 2064, 4240]];

/// How many rows have which verdict: slower, faster, the same, unclear.
type Counts = [usize; 4];

/// Runs the section.
pub fn run(lab: &mut Lab) -> Outcome {
    let folder = std::env::current_exe()?.with_file_name("ab");
    std::fs::create_dir_all(&folder)?;
    let programs = BUILDS
        .iter()
        .enumerate()
        .map(|(number, (_, flags))| build(&folder, &format!("kinds-{number}"), flags));
    let programs = programs.collect::<Outcome<Vec<PathBuf>>>()?;
    let [old, new] =
        [("old", PADDINGS[0]), ("new", PADDINGS[1])].map(|(name, paddings)| moved(&folder, name, &paddings));
    let moved = [old?, new?];
    let mut place = Counts::default();
    let mut live = vec![Counts::default(); BUILDS.len()];
    let mut by_label = Counts::default();
    for load in Load::BOTH {
        let busy = lab.load(load)?;
        let labelled = labelled(lab, &folder, &programs[0])?;
        println!("{:<8}{:<28}{}", load.name(), "recorded, chance labels", told(&labelled));
        add(&mut by_label, &labelled);
        for (number, (name, _)) in BUILDS.iter().enumerate().skip(1) {
            let mut counts = Counts::default();
            for _ in 0..LIVE[usize::from(lab.options.full)] {
                add(&mut counts, &compared(lab, [&programs[0], &programs[number]], &[])?);
            }
            println!("{:<8}{name:<28}{}", load.name(), told(&counts));
            add(&mut live[number], &counts);
        }
        let counts = compared(lab, [&moved[0], &moved[1]], &["--builds", "6"])?;
        println!("{:<8}{:<28}{}", load.name(), "moved, six builds of each", told(&counts));
        add(&mut place, &counts);
        drop(busy);
    }
    let changed = |counts: &Counts| [counts[0] + counts[1], counts.iter().sum()];
    let mut itself = by_label;
    add(&mut itself, &live[1]);
    most(lab, "a program compared with itself changes in at most 1 row of 1000", changed(&itself), 0.001);
    most(lab, "code that is only moved changes in at most 1 row of 100", changed(&place), 0.01);
    for (number, least) in [(2, 0.95), (3, 0.999)] {
        let (found, all) = (live[number][0], live[number].iter().sum::<usize>());
        let text = format!("{} is found in {} % of the rows", BUILDS[number].0, 100.0 * least);
        lab.demand(&text, Some(found as f64 >= least * all as f64), format!("{found} of {all}"));
    }
    Ok(())
}

/// Whether at most this share of the rows changed.
fn most(lab: &mut Lab, text: &str, [changed, all]: [usize; 2], share: f64) {
    lab.demand(text, Some(changed as f64 <= share * all as f64), format!("{changed} of {all}"));
}

fn add(to: &mut Counts, counts: &Counts) {
    to.iter_mut().zip(counts).for_each(|(to, count)| *to += count);
}

fn told([slower, faster, same, unclear]: &Counts) -> String {
    format!("{slower:>6} slower {faster:>6} faster {same:>6} the same {unclear:>6} unclear")
}

/// Builds the program at other places, and returns the name of all of its builds.
fn moved(folder: &Path, name: &str, paddings: &[usize]) -> Outcome<PathBuf> {
    for (number, padding) in paddings.iter().enumerate() {
        build(folder, &format!("{name}-{}", number + 1), &[&format!("-DPADDING={padding}")])?;
    }
    Ok(folder.join(format!("{name}-{{build}}")))
}

/// Builds the program with these flags.
fn build(folder: &Path, name: &str, flags: &[&str]) -> Outcome<PathBuf> {
    let (source, program) = (folder.join("kinds.c"), folder.join(name));
    std::fs::write(&source, include_str!("kinds.c"))?;
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    let mut compiler = Command::new("cc");
    let built =
        compiler.args(["-O2", "-I", header]).args(flags).arg("-o").args([&program, &source]).status()?;
    if built.success() { Ok(program) } else { Err(format!("cc failed: {built}").into()) }
}

/// The command, beside this program, on the lab's CPU.
fn command(lab: &mut Lab) -> Outcome<Command> {
    let path = std::env::current_exe()?.with_file_name("cyclescope");
    if !path.exists() {
        return Err(format!("{} is missing: build cyclescope-cli in the same way", path.display()).into());
    }
    let mut command = Command::new(path);
    command.args(["ab", "--json", "--cpu", &lab.cpu.to_string(), "--seed", &lab.seed().to_string()]);
    Ok(command)
}

/// Verdicts of a live comparison.
fn compared(lab: &mut Lab, programs: [&Path; 2], options: &[&str]) -> Outcome<Counts> {
    let output = command(lab)?.args(programs).args(options).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stdout).into());
    }
    let mut counts = Counts::default();
    for line in lines(&output.stdout)? {
        let place =
            ["slower", "faster", "same", "unclear"].iter().position(|verdict| line["verdict"] == *verdict);
        counts[place.ok_or("a row without a verdict")?] += 1;
    }
    Ok(counts)
}

/// Verdicts of comparisons of recorded runs, in which chance says which run of two neighbours is the old program's.
fn labelled(lab: &mut Lab, folder: &Path, program: &Path) -> Outcome<Counts> {
    let file = folder.join("runs.jsonl");
    let _ = std::fs::remove_file(&file);
    let status = command(lab)?.arg("--out").args([&file, program]).args(["--budget", "60"]).output()?.status;
    if !status.success() {
        return Err(format!("recording failed: {status}").into());
    }
    let runs: Vec<Value> = lines(&std::fs::read(&file)?)?;
    let runs: Vec<&Value> =
        runs.iter().filter(|line| line["kind"] == "ab.run").map(|line| &line["cycles"]).collect();
    let names: Vec<&String> =
        runs.first().and_then(|run| run.as_object()).map(|run| run.keys().collect()).unwrap_or_default();
    if names.is_empty() || runs.len() < RUNS / 2 {
        return Err(format!("{} runs of {} benchmarks are too few", runs.len(), names.len()).into());
    }
    let (mut random, mut counts) = (Random::new(lab.seed()), Counts::default());
    for number in 0..COMPARISONS {
        let name = names[number % names.len()];
        let took = |run: usize| runs[run % runs.len()][name].as_f64().unwrap_or(f64::NAN);
        let (mut comparison, begin) = (Comparison::new(WITHIN), random.below(runs.len()));
        for pair in 0..runs.len() / 2 {
            let [one, other] = [0, 1].map(|part| took(begin + 2 * pair + part));
            let (old, new) = if random.happens(0.5) { (one, other) } else { (other, one) };
            comparison.add(old, new);
        }
        let place = match comparison.outcome().verdict {
            Verdict::Slower => 0,
            Verdict::Faster => 1,
            Verdict::Same => 2,
            Verdict::Unclear => 3,
        };
        counts[place] += 1;
    }
    Ok(counts)
}

fn lines(text: &[u8]) -> Outcome<Vec<Value>> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice).collect::<Result<_, _>>()?)
}
