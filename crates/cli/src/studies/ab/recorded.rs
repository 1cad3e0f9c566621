//! Files of runs: written by `--out`, read by `--against`.

use super::record::{RESULT, RUN, Row, RunRecord, SESSION, SessionRecord};
use crate::output::Failure;
use crate::session::result_file::ResultFile;
use cyclescope::input::{self, Kind};
use cyclescope::record::Line;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Runs of a program that were recorded.
pub struct Recorded {
    /// What was run then, and where.
    pub session: SessionRecord,
    /// The runs of its last program.
    pub runs: Vec<RunRecord>,
}

/// A file under way.
pub struct Recording(ResultFile);

impl Recording {
    /// A new file.
    pub fn begin(path: &Path, session: &SessionRecord) -> Result<Recording, Failure> {
        let mut file = ResultFile::create(path, "ab", false)?;
        file.begin(&line(SESSION, session))?;
        Ok(Recording(file))
    }

    /// Keeps a run.
    pub fn run(&mut self, run: &RunRecord) -> Result<(), Failure> {
        self.0.append(&line(RUN, run))
    }

    /// Keeps the results, and ends the file.
    pub fn finish(mut self, rows: &[Row]) -> Result<(), Failure> {
        rows.iter().try_for_each(|row| self.0.append(&line(RESULT, row)))?;
        self.0.finish();
        Ok(())
    }
}

fn line(kind: &'static str, content: &impl Serialize) -> String {
    serde_json::to_string(&Line::new(kind, content)).expect("records are plain data")
}

/// Reads a file that [`Recording`] wrote; somebody may have changed it.
pub fn read(path: &Path) -> Result<Recorded, Failure> {
    let remedy = "name a file that `cyclescope ab --out` wrote";
    let text = input::read(path, Kind::Results).map_err(|bad| Failure::input(&bad, remedy))?;
    parse(&text).map_err(|why| Failure::usage(format!("{}: {why}", path.display()), Some(remedy)))
}

fn parse(text: &[u8]) -> Result<Recorded, String> {
    let (mut session, mut runs) = (None::<SessionRecord>, Vec::new());
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let bad = |error: serde_json::Error| format!("line {}: {error}", number + 1);
        let value: Value = serde_json::from_slice(line).map_err(bad)?;
        match value["kind"].as_str() {
            Some(SESSION) => session = Some(serde_json::from_value(value).map_err(bad)?),
            Some(RUN) => runs.push(serde_json::from_value::<RunRecord>(value).map_err(bad)?),
            _ => {}
        }
    }
    let session = session.ok_or("it has no runs of programs")?;
    let last = session.programs.len().saturating_sub(1);
    runs.retain(|run| run.program == last);
    Ok(Recorded { session, runs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{Shape, fuzz};

    #[test]
    fn the_runs_of_the_last_program_are_read_and_nonsense_is_refused() {
        let session = r#"{"schema":"cyclescope/1","kind":"ab.session","programs":["a","b"],"core":"c","cpu":1,"kernel":"k","seed":1}"#;
        let run = |program: usize| {
            let cycles = [("program".to_string(), 5.0)].into();
            let run = RunRecord { program, build: 0, user_us: 1, system_us: 2, rulers: [1.0, 1.0], cycles };
            line(RUN, &run)
        };
        let text = [session.to_string(), run(0), run(1), run(1)].join("\n");
        let recorded = parse(text.as_bytes()).unwrap();
        assert_eq!((recorded.runs.len(), recorded.session.cpu), (2, 1));
        for bad in ["", "x", "{}", &run(0), &format!("{session}\n{{\"kind\":\"ab.run\"}}")] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
        fuzz("ab", Shape::JsonLines, &[text.into_bytes()], |bytes| {
            let _ = parse(bytes);
        });
    }
}
