//! Writes samples for `cyclescope ab`, which runs a program many times and reads the times of its
//! benchmarks.
//!
//! `cyclescope ab` names a file in the variable `CYCLESCOPE_AB`; each line of JSON in it is a
//! sample. For the protocol see the section `ab` of docs/reference.md.

use crate::calibration::Scale;
use crate::report::report;
use crate::unit::CoreCycles;
use core::hint::black_box;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::string::String;
use std::sync::Once;
use std::time::Duration;
use std::{env, format};

/// The variables: the file, the milliseconds that each benchmark should take, and text of random
/// length (at most a page).
const FILE: &str = "CYCLESCOPE_AB";
const WISH: &str = "CYCLESCOPE_AB_MS";
const LAYOUT: &str = "CYCLESCOPE_AB_LAYOUT";
/// Milliseconds if the second variable is not set.
const WISHED: u64 = 10;

/// Why nothing is known about code that takes no longer than the readings around it.
pub const TOO_SHORT: &str = "it takes no longer than the readings around it";

/// The samples of this run.
#[derive(Debug)]
pub struct Samples {
    file: File,
    time: Duration,
}

/// Moves later allocations by a part of a page, which differs between runs of `cyclescope ab`. The
/// system moves the heap only by whole pages, but code can depend on the position of its data in a
/// page or line.
pub(crate) fn move_heap() {
    static MOVED: Once = Once::new();
    // The text itself is the block that moves the others.
    MOVED.call_once(|| std::mem::forget(black_box(env::var_os(LAYOUT))));
}

impl Samples {
    /// Opens the file if `cyclescope ab` has started this program; nothing else sets the variable.
    /// The first call moves the heap by a part of a page that differs between runs. So call it
    /// before the benchmarks allocate their data.
    ///
    /// An empty line in the file announces samples. If none follows, `cyclescope ab` reports that
    /// they are missing.
    pub fn from_environment() -> Option<Samples> {
        move_heap();
        let path = env::var_os(FILE).filter(|path| !path.is_empty())?;
        let wish = env::var(WISH).ok().and_then(|wish| wish.parse().ok()).unwrap_or(WISHED);
        let mut file = OpenOptions::new().append(true).open(path).ok()?;
        file.write_all(b"\n").ok()?;
        Some(Samples { file, time: Duration::from_millis(wish) })
    }

    /// How long each benchmark should be measured in this run, without warm-up.
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Writes a sample: the ticks of all its iterations together, and the rulers before and after
    /// it.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn ticks(&self, name: &str, iterations: u64, ticks: u64, rulers: &[Scale]) -> io::Result<()> {
        let mut scales = String::new();
        for (number, ruler) in rulers.iter().enumerate() {
            let comma = if number > 0 { "," } else { "" };
            scales.push_str(&format!("{comma}{}", ruler.cycles));
        }
        self.line(name, &format!(r#""iterations":{iterations},"ticks":{ticks},"rulers":[{scales}]"#))
    }

    /// Writes a sample: the core cycles of all its iterations together.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn cycles(&self, name: &str, iterations: u64, cycles: CoreCycles) -> io::Result<()> {
        self.line(name, &format!(r#""iterations":{iterations},"cycles":{}"#, cycles.0))
    }

    /// Tells why a benchmark is not measured, so that `cyclescope ab` can say so.
    ///
    /// # Errors
    ///
    /// If it can't be written.
    pub fn unmeasured(&self, name: &str, why: &str) -> io::Result<()> {
        self.line(name, &format!(r#""error":"{}""#, escaped(why)))
    }

    fn line(&self, name: &str, content: &str) -> io::Result<()> {
        let line = format!("{{\"name\":\"{}\",{content}}}\n", escaped(name));
        // One call per line, so that lines of several threads stay whole.
        (&self.file).write_all(line.as_bytes())
    }
}

/// Writes a sample of each region that has ended at least once, if `cyclescope ab` has started this
/// program. Returns whether it has. [`report_at_end`](crate::report_at_end) does this itself.
///
/// # Errors
///
/// If it can't be written.
pub fn write_report() -> io::Result<bool> {
    let Some(samples) = Samples::from_environment() else { return Ok(false) };
    for row in report().rows {
        let cycles = row.cycles.value.0 * row.count as f64;
        match cycles > 0.0 {
            true => samples.cycles(&row.name, row.count, CoreCycles(cycles))?,
            false => samples.unmeasured(&row.name, TOO_SHORT)?,
        }
    }
    Ok(true)
}

/// Escapes a text for JSON, without the quotation marks (RFC 8259, 7).
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c < ' ' => escaped.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
#[expect(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::unit::Ticks;

    #[test]
    fn samples_are_lines_of_json() {
        let path = env::temp_dir().join(format!("cyclescope-ab-{}", std::process::id()));
        let samples = Samples { file: File::create(&path).unwrap(), time: Duration::from_millis(WISHED) };
        let ruler = |cycles| Scale { cycles, pair: Ticks(0.0), spread: 0.0 };
        samples.ticks("a \"b\"\\\n", 10, 123, &[ruler(1.5), ruler(1.25)]).unwrap();
        samples.cycles("µ", 2, CoreCycles(7.5)).unwrap();
        samples.unmeasured("b", "\"why\"").unwrap();
        let written = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let expected = [
            r#"{"name":"a \"b\"\\\u000a","iterations":10,"ticks":123,"rulers":[1.5,1.25]}"#,
            r#"{"name":"µ","iterations":2,"cycles":7.5}"#,
            r#"{"name":"b","error":"\"why\""}"#,
            "",
        ];
        assert_eq!(written, expected.join("\n"));
    }
}
