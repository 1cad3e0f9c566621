//! Reads the samples that a program with benchmarks wrote in one run: the protocol of
//! `CYCLESCOPE_AB`, version 1.
//!
//! Each line of JSON is a sample of a benchmark. The file comes from another program, so it is read
//! up to limits and each field is checked.

use cyclescope_core::input::{self, BadInput, InputKind};
use cyclescope_core::statistics::{mean, quantiles};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Most samples of one run, and most bytes of a line.
const LINES_MOST: usize = 100_000;
const LINE_BYTES_MOST: usize = 8 << 10;
/// Most characters of a name, and most rulers of a sample.
const NAME_MOST: usize = 200;
const RULERS_MOST: usize = 64;

/// Quantile of a run's samples taken as its figure. Disturbances lengthen samples, with a busy
/// program on the same CPU up to half of them. In that case the lower quartile of 12 samples varied
/// by 0.1 to 0.4 % between runs of most of 20 kinds of code, and the median by 0.2 to 1.5 % (Zen
/// 4). The minimum is not used, since a disturbed ruler shortens a sample.
const RUN_QUANTILE: f64 = 0.25;

/// Ratio of the upper and the lower quartile of a run's samples above which they are mixed.
const MIXED_RATIO: f64 = 2.0;

/// Core cycles per iteration of each benchmark, in one run.
pub type BenchmarkFigures = BTreeMap<String, f64>;

/// What a program wrote in one run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunSamples {
    /// The figures: the lower quartile over the samples of each benchmark.
    pub figures: BenchmarkFigures,
    /// Benchmarks that the program could not measure, with its reason.
    pub unmeasured: BTreeMap<String, String>,
    /// Benchmarks whose samples differ so much that there may be several of this name.
    pub mixed: BTreeSet<String>,
    /// Whether the program wrote anything, at least an empty line.
    pub announced: bool,
}

/// Why the samples of a run can't be read.
#[derive(Debug)]
pub enum BadSamples {
    /// The file can't be read.
    File(BadInput),
    /// A line of the file is not a sample.
    Line {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for BadSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSamples::File(bad) => bad.fmt(f),
            BadSamples::Line { line, why } => write!(f, "line {line} is not a sample: {why}"),
        }
    }
}

impl std::error::Error for BadSamples {}

/// A line of the file. Other fields are ignored.
#[derive(Debug, Deserialize)]
struct SampleLine {
    name: String,
    #[serde(default)]
    iterations: u64,
    ticks: Option<u64>,
    rulers: Option<Vec<f64>>,
    cycles: Option<f64>,
    error: Option<String>,
}

/// Most core cycles per second of any core; processors are sold with up to 6.2 GHz.
const RATE_MOST: f64 = 8e9;

/// Reads the samples of a run that took this time.
///
/// # Errors
///
/// If the file can't be read, or if a line is not a sample of this run.
pub fn read_samples(path: &Path, elapsed: Duration) -> Result<RunSamples, BadSamples> {
    parse_samples(&input::read_input(path, InputKind::Samples).map_err(BadSamples::File)?, elapsed)
}

/// Parses the text of such a file.
///
/// # Errors
///
/// If a line is not a sample of a run that took this time.
pub fn parse_samples(text: &[u8], elapsed: Duration) -> Result<RunSamples, BadSamples> {
    let (mut samples, mut unmeasured) = (BTreeMap::<String, Vec<f64>>::new(), BTreeMap::new());
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let bad = |why: String| BadSamples::Line { line: number + 1, why };
        if number >= LINES_MOST || line.len() > LINE_BYTES_MOST {
            return Err(bad(format!("a run has at most {LINES_MOST} lines of at most {LINE_BYTES_MOST} bytes")));
        }
        let mut sample: SampleLine = serde_json::from_slice(line).map_err(|error| bad(error.to_string()))?;
        sample.check_name().map_err(|why| bad(why.to_string()))?;
        if let Some(error) = sample.error.take() {
            unmeasured.insert(sample.name, error);
            continue;
        }
        let cycles = sample.core_cycles().map_err(|why| bad(why.to_string()))?;
        if cycles > RATE_MOST * elapsed.as_secs_f64() {
            return Err(bad(format!("it has {cycles:e} core cycles, and the whole run took {elapsed:?}")));
        }
        let each = cycles / sample.iterations as f64;
        if each <= 0.0 {
            return Err(bad("it took no core cycles".to_string()));
        }
        samples.entry(sample.name).or_default().push(each);
    }
    let mut run = RunSamples { unmeasured, announced: !text.is_empty(), ..RunSamples::default() };
    for (name, mut samples) in samples {
        let [figure, upper] = quantiles(&mut samples, [RUN_QUANTILE, 1.0 - RUN_QUANTILE]);
        if upper > MIXED_RATIO * figure {
            run.mixed.insert(name.clone());
        }
        run.figures.insert(name, figure);
    }
    Ok(run)
}

impl SampleLine {
    fn check_name(&self) -> Result<(), &'static str> {
        let length = self.name.chars().count();
        if !(1..=NAME_MOST).contains(&length) || self.name.chars().any(char::is_control) {
            return Err("its name must have 1 to 200 characters, and no control characters");
        }
        Ok(())
    }

    /// Core cycles of all iterations.
    fn core_cycles(&self) -> Result<f64, &'static str> {
        if self.iterations == 0 {
            return Err("it has no iterations");
        }
        let cycles = match (self.ticks, &self.rulers, self.cycles) {
            (Some(ticks), Some(rulers), None) => {
                let good = |ruler: &f64| *ruler > 0.0 && ruler.is_finite();
                if rulers.is_empty() || rulers.len() > RULERS_MOST || !rulers.iter().all(good) {
                    return Err("its rulers must be 1 to 64 numbers above 0");
                }
                ticks as f64 * mean(rulers)
            }
            (None, None, Some(cycles)) => cycles,
            _ => return Err("it must have either ticks and rulers, or cycles"),
        };
        if cycles > 0.0 && cycles.is_finite() { Ok(cycles) } else { Err("it took no core cycles") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RunSamples, String> {
        parse_samples(text.as_bytes(), Duration::from_secs(1)).map_err(|bad| bad.to_string())
    }

    #[test]
    fn a_run_is_the_lower_quartile_of_its_samples() {
        let text = r#"{"name":"a","iterations":10,"ticks":100,"rulers":[1.4,1.6],"more":null}
{"name":"b c/µ","iterations":1,"cycles":7.5}

{"name":"a","iterations":10,"ticks":9000,"rulers":[2]}
{"name":"a","iterations":10,"cycles":160}"#;
        let expected = BenchmarkFigures::from([("a".to_string(), 15.5), ("b c/µ".to_string(), 7.5)]);
        assert_eq!(parse(text).map(|run| run.figures), Ok(expected));
        assert_eq!(parse(""), Ok(RunSamples::default()));
        assert_eq!(parse("\n"), Ok(RunSamples { announced: true, ..RunSamples::default() }));
    }

    #[test]
    fn two_benchmarks_of_one_name_are_noticed() {
        let mixed = |cycles: [f64; 8]| {
            let line = |cycles: f64| format!("{{\"name\":\"a\",\"iterations\":1,\"cycles\":{cycles}}}\n");
            !parse(&cycles.map(line).concat()).expect("it is valid").mixed.is_empty()
        };
        assert!(mixed([10.0, 11.0, 10.0, 11.0, 51.0, 50.0, 51.0, 50.0]));
        assert!(!mixed([10.0, 11.0, 10.0, 11.0, 10.0, 11.0, 19.0, 5000.0]));
    }

    #[test]
    fn benchmarks_that_were_not_measured_have_a_reason() {
        let run = parse(r#"{"name":"a","error":"two threads"}"#).expect("it is valid");
        assert_eq!(run.unmeasured, [("a".to_string(), "two threads".to_string())].into());
        assert!(run.figures.is_empty() && run.announced, "{run:?}");
        assert!(parse(r#"{"name":"","error":"why"}"#).is_err());
    }

    #[test]
    fn an_invalid_sample_is_refused_by_its_line() {
        let long = "x".repeat(NAME_MOST + 1);
        for bad in [
            "nonsense",
            "[]",
            "{}",
            r#"{"name":"a","iterations":0,"cycles":1}"#,
            r#"{"name":"a","iterations":1.5,"cycles":1}"#,
            r#"{"name":"a","iterations":-1,"cycles":1}"#,
            r#"{"name":"a","iterations":1,"cycles":0}"#,
            r#"{"name":"a","iterations":1,"cycles":1e999}"#,
            // More than a core has in the second of this run.
            r#"{"name":"a","iterations":1000,"cycles":1e15}"#,
            r#"{"name":"a","iterations":1000,"ticks":8000000000,"rulers":[1.1]}"#,
            r#"{"name":"a","iterations":1,"cycles":1,"ticks":1,"rulers":[1]}"#,
            r#"{"name":"a","iterations":1,"ticks":1}"#,
            r#"{"name":"a","iterations":1,"ticks":1,"rulers":[]}"#,
            r#"{"name":"a","iterations":1,"ticks":1,"rulers":[0]}"#,
            r#"{"name":"","iterations":1,"cycles":1}"#,
            r#"{"name":"a\u001b[2J","iterations":1,"cycles":1}"#,
            &format!(r#"{{"name":"{long}","iterations":1,"cycles":1}}"#),
            &format!(r#"{{"name":"a","iterations":1,"cycles":1,"x":"{}"}}"#, "y".repeat(LINE_BYTES_MOST)),
        ] {
            let refused = parse(&format!("{{\"name\":\"a\",\"iterations\":1,\"cycles\":1}}\n{bad}"));
            assert!(refused.as_ref().is_err_and(|why| why.starts_with("line 2")), "{bad}: {refused:?}");
        }
        let many = "{\"name\":\"a\",\"iterations\":1,\"cycles\":1}\n".repeat(LINES_MOST + 1);
        assert!(parse(&many).is_err());
    }
}
