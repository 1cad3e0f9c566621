//! What a program with benchmarks wrote of one run: the protocol of `CYCLESCOPE_AB`, version 1.
//!
//! A line of JSON is a sample of a benchmark. The file is another program's: it is read up to limits, and each field is checked.

use cyclescope_core::input::{self, BadInput, InputKind};
use cyclescope_core::statistics::{mean, quantiles};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

/// Samples of one run at most, and bytes of a line.
const LINES_MOST: usize = 100_000;
const LINE_BYTES_MOST: usize = 8 << 10;
/// Characters of a name, and rulers of a sample, at most.
const NAME_MOST: usize = 200;
const RULERS_MOST: usize = 64;

/// The quantile of a run's samples that counts. What disturbs a sample makes it longer, and beside a busy program on the same CPU that may be
/// half of them: there the lower quartile of 12 samples varied by 0.1 to 0.4 % between runs of most of 20 kinds of code, and the median by 0.2 to
/// 1.5 % (Zen 4). The least one is not taken: a ruler that was disturbed makes a sample shorter.
const RUN_QUANTILE: f64 = 0.25;

/// Core cycles an iteration of each benchmark, in one run.
pub type BenchmarkFigures = BTreeMap<String, f64>;

/// Why the file of a run is not read.
#[derive(Debug)]
pub enum BadSamples {
    /// It can't be read as a file.
    File(BadInput),
    /// A line of it is no sample.
    Line {
        /// Its number, from 1.
        line: usize,
        /// Why.
        why: String,
    },
}

impl fmt::Display for BadSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSamples::File(bad) => bad.fmt(f),
            BadSamples::Line { line, why } => write!(f, "line {line} is no sample: {why}"),
        }
    }
}

impl std::error::Error for BadSamples {}

/// A line. Other fields are ignored.
#[derive(Debug, Deserialize)]
struct SampleLine {
    name: String,
    iterations: u64,
    ticks: Option<u64>,
    rulers: Option<Vec<f64>>,
    cycles: Option<f64>,
}

/// The figures of a run: the lower quartile over the samples of each benchmark.
///
/// # Errors
///
/// If the file can't be read, or has a line that is no sample.
pub fn read_figures(path: &Path) -> Result<BenchmarkFigures, BadSamples> {
    parse_figures(&input::read_input(path, InputKind::Samples).map_err(BadSamples::File)?)
}

/// The figures in the text of such a file.
///
/// # Errors
///
/// If a line of it is no sample.
pub fn parse_figures(text: &[u8]) -> Result<BenchmarkFigures, BadSamples> {
    let mut samples: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let lines = text.split(|byte| *byte == b'\n').enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let bad = |why: String| BadSamples::Line { line: number + 1, why };
        if number >= LINES_MOST || line.len() > LINE_BYTES_MOST {
            return Err(bad(format!("a run has at most {LINES_MOST} lines of at most {LINE_BYTES_MOST} bytes")));
        }
        let sample: SampleLine = serde_json::from_slice(line).map_err(|error| bad(error.to_string()))?;
        let cycles = sample.cycles_per_iteration().map_err(|why| bad(why.to_string()))?;
        samples.entry(sample.name).or_default().push(cycles);
    }
    let figure = |mut samples: Vec<f64>| quantiles(&mut samples, [RUN_QUANTILE])[0];
    Ok(samples.into_iter().map(|(name, samples)| (name, figure(samples))).collect())
}

impl SampleLine {
    /// Core cycles an iteration.
    fn cycles_per_iteration(&self) -> Result<f64, &'static str> {
        let length = self.name.chars().count();
        if !(1..=NAME_MOST).contains(&length) || self.name.chars().any(char::is_control) {
            return Err("its name has 1 to 200 characters, and none that controls a terminal");
        }
        if self.iterations == 0 {
            return Err("it has no iterations");
        }
        let cycles = match (self.ticks, &self.rulers, self.cycles) {
            (Some(ticks), Some(rulers), None) => {
                let good = |ruler: &f64| *ruler > 0.0 && ruler.is_finite();
                if rulers.is_empty() || rulers.len() > RULERS_MOST || !rulers.iter().all(good) {
                    return Err("its rulers are 1 to 64 numbers above 0");
                }
                ticks as f64 * mean(rulers)
            }
            (None, None, Some(cycles)) => cycles,
            _ => return Err("it has either ticks and rulers, or cycles"),
        };
        let each = cycles / self.iterations as f64;
        if each > 0.0 && each.is_finite() { Ok(each) } else { Err("it took no core cycles") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<BenchmarkFigures, String> {
        parse_figures(text.as_bytes()).map_err(|bad| bad.to_string())
    }

    #[test]
    fn a_run_is_the_lower_quartile_of_its_samples() {
        let text = r#"{"name":"a","iterations":10,"ticks":100,"rulers":[1.4,1.6],"more":null}
{"name":"b c/µ","iterations":1,"cycles":7.5}

{"name":"a","iterations":10,"ticks":9000,"rulers":[2]}
{"name":"a","iterations":10,"cycles":160}"#;
        let expected = BenchmarkFigures::from([("a".to_string(), 15.5), ("b c/µ".to_string(), 7.5)]);
        assert_eq!(of(text), Ok(expected));
        assert_eq!(of(""), Ok(BenchmarkFigures::new()));
    }

    #[test]
    fn what_is_no_sample_is_refused_by_its_line() {
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
            r#"{"name":"a","iterations":1,"cycles":1,"ticks":1,"rulers":[1]}"#,
            r#"{"name":"a","iterations":1,"ticks":1}"#,
            r#"{"name":"a","iterations":1,"ticks":1,"rulers":[]}"#,
            r#"{"name":"a","iterations":1,"ticks":1,"rulers":[0]}"#,
            r#"{"name":"","iterations":1,"cycles":1}"#,
            r#"{"name":"a\u001b[2J","iterations":1,"cycles":1}"#,
            &format!(r#"{{"name":"{long}","iterations":1,"cycles":1}}"#),
            &format!(r#"{{"name":"a","iterations":1,"cycles":1,"x":"{}"}}"#, "y".repeat(LINE_BYTES_MOST)),
        ] {
            let refused = of(&format!("{{\"name\":\"a\",\"iterations\":1,\"cycles\":1}}\n{bad}"));
            assert!(refused.as_ref().is_err_and(|why| why.starts_with("line 2")), "{bad}: {refused:?}");
        }
        let many = "{\"name\":\"a\",\"iterations\":1,\"cycles\":1}\n".repeat(LINES_MOST + 1);
        assert!(of(&many).is_err());
    }
}
