//! `evaluate`: the paper's figures to the last digit, evidence, names and errors.

use crate::support::{Answer, answer, cyclescope, folder, forged, of_kind, parse_lines, write_forged};
use cyclescope::executor::Sample;
use cyclescope::result::container::EvidenceContainer;
use flate2::read::GzDecoder;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Two quick methods that every x86-64 has, with few samples.
const SMALL: [&str; 7] = ["--quick", "--clock", "rdtsc,lfence-rdtsc-lfence", "--ensembles", "6", "--samples", "1500"];

/// A difference from here on is no duration.
const BACKWARDS: u128 = 1 << 48;

/// Runs the program with these arguments.
fn run_program(arguments: &[&str]) -> Answer {
    answer(&mut cyclescope(arguments))
}

/// Runs with JSON, and returns all lines.
fn lines(arguments: &[&str], code: i32) -> Vec<Value> {
    let output = run_program(&[&["evaluate", "--json"], arguments].concat());
    assert_eq!(output.code, Some(code), "{}", output.stderr);
    parse_lines(&output.stdout)
}

/// The paper's `var_calc`, in 128 bits.
fn var_calc(values: &[u128]) -> u128 {
    let count = values.len() as u128;
    let sum: u128 = values.iter().sum();
    let squares: u128 = values.iter().map(|value| value * value).sum();
    (squares * count - sum * sum) / (count * count)
}

fn integer(value: &Value) -> u128 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no integer")).into()
}

#[test]
fn every_method_has_all_its_lines() {
    let lines = lines(&SMALL, 0);
    assert!(lines.iter().all(|line| line["schema"] == "cyclescope/1"));
    let methods = of_kind(&lines, "evaluate");
    let names: Vec<&Value> = methods.iter().map(|method| &method["clock"]).collect();
    assert_eq!(names, ["rdtsc", "lfence-rdtsc-lfence"]);
    for method in methods {
        for field in ["overhead_min", "total_variance", "max_deviation", "spurious_minima", "ensembles"] {
            assert!(method[field].is_u64(), "{field} in {method}");
        }
        // Under background load there may be fewer, which a field reports.
        let [ensembles, samples] = ["ensembles", "samples_per_ensemble"].map(|field| integer(&method[field]));
        let whole = (ensembles, samples) == (6, 1500);
        assert!(ensembles <= 6 && samples <= 1500 && whole == method["scaled"].is_null(), "{method}");
        // Six ensembles of 1 500 samples are few if the counter has a coarse step.
        let verdict = method["ergodic_verdict"].as_str().expect("a word");
        assert_eq!(method["ergodic"].is_null(), verdict == "not_comparable", "{method}");
        assert!(method["variance_of_variances_chance"].is_number(), "{method}");
        // The verdict is missing if background load left too few samples.
        let verdict = method["ergodic_trimmed_verdict"].as_str();
        let shown = verdict.is_some_and(|verdict| verdict != "depends_on_share");
        assert_eq!(method["ergodic_trimmed"].is_boolean(), shown, "{method}");
        assert_ne!(method["ergodic_trimmed_why"], "", "{method}");
        assert!(method["tsc_step"].as_f64().expect("a number") >= 1.0);
        assert_eq!(method["overhead"]["unit"], "core_cycles");
        assert!(method["repro"].as_str().expect("text").starts_with("cyclescope evaluate"));
    }
    let contamination = of_kind(&lines, "evaluate.contamination");
    assert_eq!(contamination.len(), 10);
    for row in contamination {
        assert!(row["promised"].is_boolean() && row["cost"]["unit"] == "core_cycles", "{row}");
    }
    assert_eq!(of_kind(&lines, "evaluate.resolution").len(), 2);
    assert_eq!(of_kind(&lines, "evaluate.tsc").len(), 1);
    assert_eq!(of_kind(&lines, "evaluate.verdict").len(), 1);
    assert!(of_kind(&lines, "evaluate.ensemble").is_empty());
}

#[test]
fn totals_match_the_series() {
    let lines = lines(&[&SMALL[..], &["--series"]].concat(), 0);
    for method in of_kind(&lines, "evaluate") {
        let ensembles: Vec<&Value> = of_kind(&lines, "evaluate.ensemble")
            .into_iter()
            .filter(|ensemble| ensemble["clock"] == method["clock"])
            .collect();
        assert_eq!(method["ensembles"], ensembles.len());
        let of = |field: &str| ensembles.iter().map(|line| integer(&line[field])).collect::<Vec<u128>>();
        let (minima, variances) = (of("minimum"), of("variance"));
        assert_eq!(integer(&method["overhead_min"]), *minima.iter().min().expect("six"));
        assert_eq!(integer(&method["total_variance"]), variances.iter().sum::<u128>() / ensembles.len() as u128);
        assert_eq!(integer(&method["variance_of_minima"]), var_calc(&minima));
        assert_eq!(integer(&method["max_deviation"]), *of("max_deviation").iter().max().expect("six"));
    }
}

#[test]
fn every_line_of_a_method_names_its_executor() {
    let lines = lines(&["--quick", "--clock", "rdtsc", "--ensembles", "4", "--samples", "100", "--series"], 0);
    for of in ["evaluate", "evaluate.ensemble", "evaluate.resolution", "evaluate.contamination", "evaluate.verdict"] {
        let lines = of_kind(&lines, of);
        assert!(!lines.is_empty() && lines.iter().all(|line| line["executor"] == "user"), "{of}");
    }
}

#[test]
fn ring_0_needs_the_module() {
    if Path::new("/dev/cyclescope").exists() {
        cyclescope_skipped::report_skipped("the module is loaded");
        return;
    }
    let folder = folder();
    let directory = folder.path().join("graphs");
    let arguments = ["evaluate", "--executor", "kernel", "--clock", "paper-alternative", "--plots"];
    let arguments = [&arguments[..], &[directory.to_str().expect("text")]].concat();
    let words = run_program(&arguments);
    assert_eq!((words.code, words.stdout.as_str()), (Some(3), ""), "{}", words.stderr);
    assert!(words.stderr.contains("kernel module") && words.stderr.contains("help"), "{}", words.stderr);
    assert!(!directory.exists(), "nothing was begun");
    let line = run_program(&[&arguments[..], &["--json"]].concat());
    let error: Value = serde_json::from_str(line.stdout.trim()).expect("a line of JSON");
    assert_eq!((&error["kind"], &error["exit"]), (&"error".into(), &3.into()));
    assert!(error["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{error}");
    // A method that must run there but can't is reported before measuring.
    let refused = run_program(&["evaluate", "--executor", "kernel", "--clock", "rdtsc,clock-gettime"]);
    assert!(refused.code == Some(3) && refused.stderr.contains("ring 0"), "{}", refused.stderr);
}

/// Reads a number in pieces of 7 bits, lowest first.
fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            return number;
        }
    }
}

/// A batch of one layout, read from evidence independently of the library.
struct Batch {
    programs: Value,
    rounds: usize,
    durations: Vec<u128>,
}

impl Batch {
    /// The samples of its blocks, each of which has three ruler calls after it; `None` if the batch
    /// isn't an ensemble of this size.
    fn ensemble(&self, samples: usize) -> Option<Vec<u128>> {
        let round = self.durations.len() / self.rounds;
        let own = self.durations.chunks_exact(round).flat_map(|round| round[..round.len() - 3].to_vec());
        (self.rounds == samples.div_ceil(round - 3)).then(|| own.take(samples).collect())
    }
}

/// The batches of one layout, grouped by program. Each method has its own programs, in the order of
/// the methods.
fn batches(directory: &Path) -> Vec<Vec<Batch>> {
    let file = std::fs::File::open(directory.join("readings.gz")).expect("readings");
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("a whole file");
    let (mut bytes, mut methods) = (&bytes[..], Vec::<Vec<Batch>>::new());
    while !bytes.is_empty() {
        let length = varint(&mut bytes) as usize;
        let (head, rest) = bytes.split_at(length);
        bytes = rest;
        let event: Value = serde_json::from_slice(head).expect("JSON");
        let count = varint(&mut bytes);
        let durations: Vec<u128> = (0..count).map(|_| varint(&mut bytes).into()).collect();
        for _ in 0..count {
            varint(&mut bytes);
        }
        if event["layouts"] == 1 {
            let rounds = event["how"]["rounds"].as_u64().expect("a number") as usize;
            let batch = Batch { programs: event["programs"].clone(), rounds, durations };
            match methods.iter_mut().find(|batches| batches[0].programs == batch.programs) {
                Some(batches) => batches.push(batch),
                None => methods.push(vec![batch]),
            }
        }
    }
    methods
}

#[test]
fn integers_match_a_plain_computation_on_saved_samples() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    let evidence = ["--evidence", directory.to_str().expect("text")];
    let lines = lines(&[&SMALL[..], &evidence].concat(), 0);
    let batches = batches(&directory);
    assert_eq!(batches.len(), 2);
    for (method, batches) in of_kind(&lines, "evaluate").into_iter().zip(batches) {
        let samples = integer(&method["samples_per_ensemble"]) as usize;
        let mut ensembles: Vec<_> = batches.iter().filter_map(|batch| batch.ensemble(samples)).collect();
        assert_eq!(ensembles.len(), 6);
        // The second reading of an unordered method may come first: its difference wraps around.
        ensembles.iter_mut().for_each(|samples| samples.retain(|sample| *sample < BACKWARDS));
        let variances: Vec<u128> = ensembles.iter().map(|samples| var_calc(samples)).collect();
        let minima: Vec<u128> = ensembles.iter().map(|samples| *samples.iter().min().expect("some")).collect();
        let spurious = minima.windows(2).filter(|pair| pair[1] < pair[0]).count() as u128;
        let deviation = |samples: &Vec<u128>| samples.iter().max().expect("some") - samples.iter().min().expect("some");
        assert_eq!(integer(&method["overhead_min"]), *minima.iter().min().expect("six"));
        assert_eq!(integer(&method["total_variance"]), variances.iter().sum::<u128>() / ensembles.len() as u128);
        assert_eq!(integer(&method["max_deviation"]), ensembles.iter().map(deviation).max().expect("six"));
        // An interrupt of milliseconds makes it exceed 64 bits, which this JSON reader rounds.
        if let Ok(small) = u64::try_from(var_calc(&variances)) {
            assert_eq!(integer(&method["variance_of_variances"]), small.into());
        }
        assert_eq!(integer(&method["variance_of_minima"]), var_calc(&minima));
        assert_eq!(integer(&method["spurious_minima"]), spurious);
        // The exact total variance: the sum of n Σx² - (Σx)² over all ensembles, divided by 6 n².
        let above = |samples: &Vec<u128>| {
            let sum: u128 = samples.iter().sum();
            samples.iter().map(|x| x * x).sum::<u128>() * samples.len() as u128 - sum * sum
        };
        let numerator: u128 = ensembles.iter().map(above).sum();
        let exact = method["total_variance_exact"].as_str().expect("a fraction");
        let (top, bottom) = exact.split_once('/').unwrap_or((exact, "1"));
        let (top, bottom): (u128, u128) = (top.parse().expect("digits"), bottom.parse().expect("digits"));
        // There are fewer samples than requested if background load leaves no time for them.
        let samples = ensembles[0].len() as u128;
        if ensembles.iter().any(|ensemble| ensemble.len() as u128 != samples) {
            cyclescope_skipped::report_left_out("ensembles of unequal numbers of samples");
            continue;
        }
        assert_eq!(top * (6 * samples * samples), numerator * bottom, "{exact}");
    }
}

#[test]
fn evidence_reproduces_the_same_figures() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    let path = directory.to_str().expect("text");
    let first = lines(&[&SMALL[..], &["--evidence", path]].concat(), 0);
    let output = run_program(&["replay", "--json", path]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let again = parse_lines(&output.stdout);
    assert!(again == first && of_kind(&again, "evaluate.contamination").len() == 10);
    let words = run_program(&["replay", path]);
    assert!(words.code == Some(0) && words.stdout.contains("lfence-rdtsc-lfence"));
    for section in ["Machine", "Resolution", "Contamination", "Verdict"] {
        assert!(words.stdout.contains(section), "{section}");
    }
    // The remedy names the command that measures again.
    assert_eq!(run_program(&["replay", "--measure", path]).code, Some(2));
    let container = EvidenceContainer::open(&directory).expect("whole evidence");
    let bad = folder.path().join("bad");
    for (field, value) in
        [("/size/samples", 0), ("/size/samples", 4_000_000_000), ("/size/ensembles", 0), ("/budget/secs", u64::MAX)]
    {
        let odd = |facts: &mut Value| {
            *facts.pointer_mut(&format!("/plan{field}")).expect("the field") = value.into();
        };
        write_forged(&container, &bad, odd, |_, _| (), |_| ());
        assert_eq!(run_program(&["replay", bad.to_str().expect("text")]).code, Some(2), "{field} {value}");
        std::fs::remove_dir_all(&bad).expect("a directory");
    }
    // One reading of the last ensemble.
    let mut lengths = Vec::new();
    let mut events = EvidenceContainer::open(&directory).expect("whole evidence").events().expect("events");
    while let Some((_, samples)) = events.take_event(usize::MAX).expect("an event") {
        lengths.push(samples.len());
    }
    let last = lengths.iter().rposition(|length| *length > 0).expect("readings") as u64;
    let change = |number, samples: &mut Vec<Sample>| {
        if number == last {
            samples[0].end += 1 << 40;
        }
    };
    forged(&directory, |_| (), change, |_| ());
    let noticed = run_program(&["replay", path]);
    assert!(noticed.code == Some(1) && noticed.stderr.contains("stored"), "{}", noticed.stderr);
    let readings = directory.join("readings.gz");
    let bytes = std::fs::read(&readings).expect("readings");
    std::fs::write(&readings, &bytes[..100]).expect("a file");
    assert_eq!(run_program(&["replay", path]).code, Some(2), "a cut file is noticed");
}

#[test]
fn graphs_are_drawn() {
    let folder = folder();
    let directory = folder.path().join("graphs");
    let output = run_program(&[&["evaluate"], &SMALL[..], &["--plots", directory.to_str().expect("text")]].concat());
    assert_eq!(output.code, Some(0));
    let text = output.stdout;
    assert!(text.contains("14 in the directory of --plots"), "{text}");
    for name in ["minimum", "variance", "minimum-by-adds", "variance-by-adds", "minimum-by-loop", "resolution"] {
        let svg = std::fs::read_to_string(directory.join(format!("{name}-rdtsc.svg"))).expect("a graph");
        assert!(svg.starts_with("<svg") && svg.contains("rdtsc"), "{name}");
    }
}

#[test]
fn text_fits_80_columns() {
    let output = run_program(&["evaluate", "--quick", "--budget", "3", "--why"]);
    assert!(output.code == Some(0) && output.stderr.is_empty());
    let text = output.stdout;
    for line in text.lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\x1b'), "{line}");
    }
    for section in ["Empty pairs", "Published rows", "Resolution", "Contamination", "Verdict"] {
        assert!(text.contains(section), "{section}");
    }
}

#[test]
fn the_verdict_comes_first_on_one_screen() {
    let output = run_program(&["evaluate", "--quick", "--budget", "3"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines.len() <= 24 && lines.iter().all(|line| line.chars().count() <= 80), "{}", output.stdout);
    assert!(lines[0].starts_with("Timing methods on ") && lines[1].trim_start().starts_with("short code"), "{lines:?}");
    let has_row = |name: &str| lines.iter().any(|line| line.split_whitespace().next() == Some(name));
    assert!(["method", "rdtsc", "lfence-rdtsc-lfence"].into_iter().all(has_row), "{}", output.stdout);
}

#[test]
fn impossible_requests_are_reported() {
    let folder = folder();
    let taken = folder.path().join("taken");
    std::fs::write(&taken, "").expect("a file");
    let taken = taken.to_str().expect("text");
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--clock", "rdtscp-lfense"], 2, "did you mean rdtscp-lfence"),
        (&["--clock", "paper-alternative"], 3, "ring 0"),
        (&["--samples", "1"], 2, "--samples"),
        (&["--ensembles", "0"], 2, "--ensembles"),
        (&["--budget", "0"], 2, "--budget"),
        (&["--resolution-samples", "100001"], 2, "100000"),
        (&["--plots", taken], 2, "can't write graphs"),
        (&["--evidence", taken], 2, "evidence"),
        (&["--executor", "kernel"], 3, "kernel"),
    ];
    for (arguments, code, says) in cases {
        let output = run_program(&[&["evaluate"], arguments].concat());
        let said = &output.stderr;
        assert_eq!(output.code, Some(code), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(run_program(&["run", "--clock", "rdtsc,rdtscp", "nop"]).code, Some(2));
}
