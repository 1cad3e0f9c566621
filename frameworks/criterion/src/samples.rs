//! Passes the samples that Criterion stored to `cyclescope ab`.
//!
//! A measurement knows neither the name of a benchmark nor its iterations. Criterion's files have
//! both.

use cyclescope_clock::CoreCycles;
use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of Criterion's files, and the time of the newest file before the benchmarks.
#[derive(Debug)]
pub(crate) struct Stored {
    folder: PathBuf,
    before: SystemTime,
}

/// Receives each sample: the name of its benchmark, its iterations, and their core cycles together.
/// `None` if nothing is known about any sample.
type ReportSample<'a> = &'a dyn Fn(&str, Option<(u64, CoreCycles)>) -> io::Result<()>;

impl Stored {
    /// Remembers the state before benchmarks run.
    pub(crate) fn new(folder: PathBuf) -> Stored {
        let before = samples_in(&folder).into_iter().map(|(_, written)| written).max();
        Stored { folder, before: before.unwrap_or(SystemTime::UNIX_EPOCH) }
    }

    /// Reports the samples that Criterion has stored since then.
    pub(crate) fn report_new(&self, report: ReportSample) -> io::Result<()> {
        for (path, written) in samples_in(&self.folder) {
            if written > self.before {
                report_file(&path, report)?;
            }
        }
        Ok(())
    }
}

fn report_file(path: &Path, report: ReportSample) -> io::Result<()> {
    let unknown = || {
        let message = format!("{} is not as Criterion 0.8 writes it", path.display());
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    let benchmark: Value = serde_json::from_slice(&fs::read(path.with_file_name("benchmark.json"))?)?;
    let sample: Value = serde_json::from_slice(&fs::read(path)?)?;
    let name = benchmark.get("full_id").and_then(Value::as_str).ok_or_else(unknown)?;
    let numbers = |field: &str| sample.get(field).and_then(Value::as_array).ok_or_else(unknown);
    let mut reported = false;
    for (iterations, cycles) in numbers("iters")?.iter().zip(numbers("times")?) {
        let iterations = iterations.as_f64().ok_or_else(unknown)?;
        let cycles = cycles.as_f64().ok_or_else(unknown)?;
        // If an iteration takes no longer than the readings, nothing is known about it.
        if cycles > 0.0 {
            report(name, Some((iterations as u64, CoreCycles(cycles))))?;
            reported = true;
        }
    }
    if reported { Ok(()) } else { report(name, None) }
}

/// The files `new/sample.json` in a folder, and when they were written.
fn samples_in(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(facts) = entry.metadata() else { continue };
        if facts.is_dir() {
            found.extend(samples_in(&path));
        } else if path.ends_with("new/sample.json")
            && let Ok(written) = facts.modified()
        {
            found.push((path, written));
        }
    }
    found
}

#[cfg(test)]
#[expect(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::time::Duration;

    #[test]
    fn only_samples_stored_since_the_beginning_are_reported() {
        let folder = std::env::temp_dir().join(format!("cyclescope-criterion-{}", std::process::id()));
        let store = |name: &str, sample: &str, written: u64| {
            let place = folder.join(name).join("new");
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("benchmark.json"), format!(r#"{{"full_id":"{name}"}}"#)).unwrap();
            fs::write(place.join("sample.json"), sample).unwrap();
            let file = fs::File::options().append(true).open(place.join("sample.json")).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(written)).unwrap();
        };
        store("group/before", r#"{"iters":[1.0],"times":[2.0]}"#, 7);
        let stored = Stored::new(folder.clone());
        store("group/now", r#"{"iters":[10.0,20.0,30.0],"times":[1500.5,3001.0,0.0]}"#, 8);
        store("group/short", r#"{"iters":[10.0],"times":[0.0]}"#, 8);
        let lines = RefCell::new(Vec::new());
        let report = |name: &str, sample: Option<(u64, CoreCycles)>| {
            lines.borrow_mut().push((name.to_string(), sample.map(|(iterations, cycles)| (iterations, cycles.0))));
            Ok(())
        };
        stored.report_new(&report).unwrap();
        let [now, short] = ["group/now", "group/short"].map(str::to_string);
        lines.borrow_mut().sort_by(|one, other| one.0.cmp(&other.0));
        let expected = [(now.clone(), Some((10, 1500.5))), (now, Some((20, 3001.0))), (short.clone(), None)];
        assert_eq!(*lines.borrow(), expected);
        store("group/other", "{}", 9);
        let error = stored.report_new(&report).unwrap_err().to_string();
        fs::remove_dir_all(&folder).unwrap();
        assert!(lines.borrow().iter().all(|(name, _)| name == "group/now" || *name == short), "{lines:?}");
        assert!(error.contains("not as Criterion 0.8 writes it"), "{error}");
    }
}
