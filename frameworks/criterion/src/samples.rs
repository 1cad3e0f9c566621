//! Samples for `cyclescope ab`, from the files in which Criterion keeps those of each benchmark, beside its name.

use crate::CoreCycles;
use criterion::Criterion;
use cyclescope_clock::ab::Samples;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The least number of samples that Criterion takes, and of resamples without a warning.
const SAMPLES: usize = 10;
const RESAMPLES: usize = 1001;
/// The share of the time of a benchmark that it runs before: caches and predictors are warm after a millisecond of ten (Zen 4).
const WARM_UP: f64 = 0.2;

/// A `Criterion` that measures core cycles. Where `cyclescope ab` runs the program it measures each benchmark shortly, and writes samples of it.
pub fn criterion() -> Criterion<CoreCycles> {
    let mut cycles = CoreCycles::new();
    let Some(samples) = Samples::from_environment() else {
        return Criterion::default().with_measurement(cycles);
    };
    let time = samples.time().max(Duration::from_millis(1));
    let kept = Kept::new(samples);
    let folder = kept.folder.clone();
    cycles.kept = Some(kept);
    let criterion = Criterion::default().without_plots().output_directory(&folder);
    let criterion = criterion.sample_size(SAMPLES).nresamples(RESAMPLES);
    criterion.measurement_time(time).warm_up_time(time.mul_f64(WARM_UP)).with_measurement(cycles)
}

/// The folder of this run.
#[derive(Debug)]
pub(crate) struct Kept {
    folder: PathBuf,
    samples: Samples,
}

/// Criterion's `benchmark.json`, and `sample.json` next to it. Other fields are for others.
#[derive(Debug, Deserialize)]
struct Benchmark {
    full_id: String,
}

#[derive(Debug, Deserialize)]
struct Sample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

impl Kept {
    fn new(samples: Samples) -> Kept {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("cyclescope-criterion-{}-{number}", std::process::id());
        Kept { folder: std::env::temp_dir().join(name), samples }
    }

    /// Writes the samples of all benchmarks, and removes the folder.
    pub(crate) fn write(self) -> io::Result<()> {
        let written = self.write_below(&self.folder);
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => written.and(Err(error)),
            _ => written,
        }
    }

    fn write_below(&self, folder: &Path) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            // No benchmark ran.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let path = entry?.path();
            // `base` next to it is a copy.
            if path.ends_with("new") && path.join("benchmark.json").exists() {
                self.write_one(&path)?;
            } else if path.is_dir() {
                self.write_below(&path)?;
            }
        }
        Ok(())
    }

    fn write_one(&self, folder: &Path) -> io::Result<()> {
        let Benchmark { full_id } = read(&folder.join("benchmark.json"))?;
        let Sample { iters, times } = read(&folder.join("sample.json"))?;
        // Of what takes no longer than the readings nothing is known.
        let mut known = iters.iter().zip(times).filter(|(_, cycles)| *cycles > 0.0);
        known.try_for_each(|(iterations, cycles)| {
            self.samples.cycles(&full_id, *iterations as u64, cyclescope_clock::CoreCycles(cycles))
        })
    }
}

fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_reader(io::BufReader::new(File::open(path)?))?)
}
