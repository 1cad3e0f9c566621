//! Core cycles in users' programs: regions of the crate `clock`, the loop and the pairs of the
//! header, and pytest-benchmark. Each program also times its functions by a loop of its own with
//! the system's clock and the core clock, and prints both numbers.

use crate::lab::{Lab, LoadCondition, SectionResult};
use cyclescope::statistics::{mean, median, sample_variance};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs of each program in each condition, without and with `--full`.
const RUNS: [usize; 2] = [5, 20];
/// Seconds of a benchmark of pytest-benchmark.
const PYTHON_SECONDS: &str = "0.2";

/// A way of counting core cycles, and the largest accepted error: as a share, and in cycles.
struct CountingWay {
    name: &'static str,
    share: f64,
    cycles: f64,
}

const WAYS: [CountingWay; 7] = [
    CountingWay { name: "loop", share: 0.01, cycles: 3.0 },
    CountingWay { name: "pairs", share: 0.01, cycles: 3.0 },
    CountingWay { name: "region", share: 0.01, cycles: 3.0 },
    CountingWay { name: "nested", share: 0.01, cycles: 3.0 },
    CountingWay { name: "parts", share: 0.01, cycles: 3.0 },
    CountingWay { name: "cost", share: 0.1, cycles: 0.0 },
    CountingWay { name: "pytest-benchmark", share: 0.03, cycles: 3.0 },
];

/// A reading of a function, and its true core cycles.
struct FunctionReading {
    truth: f64,
    read: f64,
    /// Whether the stated interval contains the truth, if one is stated.
    is_covered: Option<bool>,
}

/// Readings by way and function.
type Readings = BTreeMap<(String, String), Vec<FunctionReading>>;

/// Runs the section.
pub fn check_programs(lab: &mut Lab) -> SectionResult {
    let folder = std::env::current_exe()?.with_file_name("programs");
    std::fs::create_dir_all(&folder)?;
    let programs = [region_program()?, build_c(&folder, "functions", include_str!("programs/functions.c"), &[])?];
    let python = prepare_python(&folder)?;
    if python.is_none() {
        println!("pytest-benchmark is left out: run `frameworks/test python` first");
    }
    for load in LoadCondition::BOTH {
        let busy = lab.start_load(load)?;
        let mut readings = Readings::new();
        let mut times = Readings::new();
        for _ in 0..lab.options.runs.unwrap_or(RUNS[usize::from(lab.options.full)]) {
            for program in &programs {
                add_readings(&mut readings, &run_program(lab, Command::new(program))?)?;
            }
            if let Some(python) = &python {
                add_readings(&mut readings, &python.measure(lab, "cyclescope.core_cycles")?)?;
                add_readings(&mut times, &python.measure(lab, "time.perf_counter")?)?;
            }
        }
        drop(busy);
        print_readings(load, &readings);
        for way in &WAYS {
            demand_accuracy(lab, load, way, &readings);
        }
        if load == LoadCondition::Idle && python.is_some() {
            demand_steadiness(lab, &readings, &times);
        }
    }
    Ok(())
}

/// The example of the crate `clock`, found near this program.
fn region_program() -> SectionResult<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("examples").join("truth");
    if !path.exists() {
        return Err(
            format!("{} is missing: build the examples of cyclescope-clock in the same way", path.display()).into()
        );
    }
    Ok(path)
}

/// Compiles a C file.
fn build_c(folder: &Path, name: &str, text: &str, options: &[&str]) -> SectionResult<PathBuf> {
    let (source, program) = (folder.join(name).with_extension("c"), folder.join(name));
    std::fs::write(&source, text)?;
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-O2", "-I", header]).args(options).arg("-o").args([&program, &source]).status()?;
    if built.success() { Ok(program) } else { Err(format!("cc failed: {built}").into()) }
}

/// Runs a program on the lab's CPU; returns what it prints.
fn run_program(lab: &Lab, program: Command) -> SectionResult<String> {
    let mut command = Command::new("taskset");
    command.args(["-c", &lab.cpu.to_string()]).arg(program.get_program()).args(program.get_args());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output()?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(printed) } else { Err(format!("{program:?} failed: {printed}").into()) }
}

/// pytest with the timer, and the functions.
struct PythonProgram {
    pytest: PathBuf,
    functions: PathBuf,
    ruler: PathBuf,
    readings: PathBuf,
}

/// The environment that `frameworks/test python` leaves; `None` if there is none.
fn prepare_python(folder: &Path) -> SectionResult<Option<PythonProgram>> {
    let pytest = folder.join("../../frameworks/venv/bin/pytest");
    if !pytest.exists() {
        return Ok(None);
    }
    let functions = folder.join("functions.py");
    std::fs::write(&functions, include_str!("programs/functions.py"))?;
    let ruler = build_c(folder, "ruler.so", include_str!("programs/ruler.c"), &["-shared", "-fPIC"])?;
    Ok(Some(PythonProgram { pytest, functions, ruler, readings: folder.join("readings.jsonl") }))
}

impl PythonProgram {
    /// Measures all functions with this timer.
    fn measure(&self, lab: &Lab, timer: &str) -> SectionResult<String> {
        std::fs::write(&self.readings, "")?;
        let mut command = Command::new(&self.pytest);
        command.args(["-q", "-p", "no:cacheprovider"]).arg(format!("--benchmark-timer={timer}"));
        command.arg(format!("--benchmark-max-time={PYTHON_SECONDS}")).arg(&self.functions);
        command.env("RULER", &self.ruler).env("READINGS", &self.readings);
        run_program(lab, command)?;
        Ok(std::fs::read_to_string(&self.readings)?)
    }
}

/// Adds the lines that a program printed.
fn add_readings(readings: &mut Readings, printed: &str) -> SectionResult {
    for line in printed.lines() {
        let line: Value = serde_json::from_str(line)?;
        let text = |field: &str| line[field].as_str().map(String::from).ok_or(format!("a line without {field}"));
        let number = |field: &str| line[field].as_f64();
        let truth = number("truth").ok_or("a line without a truth")?;
        let read = number("read").ok_or("a line without a reading")?;
        let interval = number("low").zip(number("high")).filter(|(low, high)| low < high);
        let is_covered = interval.map(|(low, high)| (low..=high).contains(&truth));
        let of_function = readings.entry((text("way")?, text("name")?)).or_default();
        of_function.push(FunctionReading { truth, read, is_covered });
    }
    Ok(())
}

/// Coefficient of variation of the readings.
fn variation(readings: &[FunctionReading]) -> f64 {
    let read: Vec<f64> = readings.iter().map(|reading| reading.read).collect();
    sample_variance(&read).sqrt() / mean(&read)
}

fn print_readings(load: LoadCondition, readings: &Readings) {
    println!("{:<8}{:<18}{:<30}{:>12}{:>26}{:>8}", "", "way", "function", "truth", "error, % (range)", "CV, %");
    for ((way, name), of_function) in readings {
        let mut errors: Vec<f64> = of_function.iter().map(|one| 100.0 * (one.read / one.truth - 1.0)).collect();
        errors.sort_unstable_by(f64::total_cmp);
        let mut truths: Vec<f64> = of_function.iter().map(|one| one.truth).collect();
        let (middle, truth) = (median(&mut errors), median(&mut truths));
        let range = match errors[..] {
            [least, .., most] => format!("{middle:.2} ({least:.2} to {most:.2})"),
            _ => format!("{middle:.2}"),
        };
        let varies = 100.0 * variation(of_function);
        println!("{:<8}{way:<18}{name:<30}{truth:>12.1}{range:>26}{varies:>8.2}", load.name());
    }
}

/// Records whether all readings of a way are near the truth, and how many intervals contain it.
fn demand_accuracy(lab: &mut Lab, load: LoadCondition, way: &CountingWay, readings: &Readings) {
    let of_way = || readings.iter().filter(|((name, _), _)| name == way.name).flat_map(|(_, readings)| readings);
    let all = of_way().count();
    let is_near = |one: &&FunctionReading| (one.read - one.truth).abs() <= way.cycles.max(way.share * one.truth);
    let near = of_way().filter(is_near).count();
    let stated = of_way().filter_map(|one| one.is_covered).count();
    let covered = of_way().filter(|one| one.is_covered == Some(true)).count();
    let text = format!("{} {}: within {} % or {} cycles", load.name(), way.name, 100.0 * way.share, way.cycles);
    let intervals =
        if stated > 0 { format!("; {covered} of {stated} intervals contain the truth") } else { String::new() };
    lab.record_demand(&text, (all > 0).then_some(near == all), format!("{near} of {all}{intervals}"));
}

/// Records whether the readings scatter less than those of the framework's own timer.
fn demand_steadiness(lab: &mut Lab, readings: &Readings, times: &Readings) {
    let typical = |readings: &Readings| {
        let mut variations: Vec<f64> =
            readings.iter().filter(|((way, _), _)| way == "pytest-benchmark").map(|(_, one)| variation(one)).collect();
        median(&mut variations)
    };
    let [ours, theirs] = [typical(readings), typical(times)];
    let figure = format!("median {:.2} % for {:.2} %", 100.0 * ours, 100.0 * theirs);
    lab.record_demand("pytest-benchmark scatters no more than with its own timer", Some(ours <= theirs), figure);
}
