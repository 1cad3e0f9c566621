//! Files of recorded runs, which `--out` writes and `--against` reads.

use super::record::{
    AbFailureRecord, AbRow, AbRunRecord, AbSessionRecord, FAILURE_KIND, RESULT_KIND, RUN_KIND, SESSION_KIND,
};
use crate::output::Failure;
use crate::session::result_file::ResultFile;
use cyclescope::input::{self, InputKind};
use cyclescope::record::SchemaLine;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Recorded runs of a program.
pub struct RecordedRuns {
    /// The recorded session.
    pub session: AbSessionRecord,
    /// The runs of its last program.
    pub runs: Vec<AbRunRecord>,
}

/// A file that is being written.
pub struct RunsFile {
    file: ResultFile,
    /// Number of failed runs in it.
    failures: usize,
}

impl RunsFile {
    /// Creates the file.
    pub fn create(path: &Path, session: &AbSessionRecord) -> Result<RunsFile, Failure> {
        let mut file = ResultFile::create(path, "ab", false)?;
        file.write_first_line(&to_json_line(SESSION_KIND, session))?;
        Ok(RunsFile { file, failures: 0 })
    }

    /// Appends a run.
    pub fn append_run(&mut self, run: &AbRunRecord) -> Result<(), Failure> {
        self.file.append_line(&to_json_line(RUN_KIND, run))
    }

    /// Appends those of all failed runs that it does not have yet.
    pub fn append_failures(&mut self, all: &[AbFailureRecord]) -> Result<(), Failure> {
        for failed in all.iter().skip(self.failures) {
            self.file.append_line(&to_json_line(FAILURE_KIND, failed))?;
            self.failures += 1;
        }
        Ok(())
    }

    /// Appends the results and completes the file.
    pub fn finish(mut self, rows: &[AbRow]) -> Result<(), Failure> {
        rows.iter().try_for_each(|row| self.file.append_line(&to_json_line(RESULT_KIND, row)))?;
        self.file.remove_journal()?;
        Ok(())
    }
}

fn to_json_line(kind: &'static str, content: &impl Serialize) -> String {
    serde_json::to_string(&SchemaLine::new(kind, content)).expect("records are plain data")
}

/// Reads a file that [`RunsFile`] wrote; it may have been changed since.
pub fn read_runs(path: &Path) -> Result<RecordedRuns, Failure> {
    let remedy = "name a file that `cyclescope ab --out` wrote";
    let text = input::read_input(path, InputKind::Results).map_err(|bad| Failure::from_input(&bad, remedy))?;
    parse_runs(&text).map_err(|why| Failure::usage(format!("{}: {why}", path.display()), Some(remedy)))
}

fn parse_runs(text: &[u8]) -> Result<RecordedRuns, String> {
    let (mut session, mut runs) = (None::<AbSessionRecord>, Vec::new());
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let bad = |error: serde_json::Error| format!("line {}: {error}", number + 1);
        let value: Value = serde_json::from_slice(line).map_err(bad)?;
        match value["kind"].as_str() {
            Some(SESSION_KIND) if session.is_some() => {
                return Err(format!("line {}: a file has one session", number + 1));
            }
            Some(SESSION_KIND) => session = Some(serde_json::from_value(value).map_err(bad)?),
            Some(RUN_KIND) => {
                let run = serde_json::from_value::<AbRunRecord>(value).map_err(bad)?;
                let programs = session.as_ref().map_or(0, |session| session.programs.len());
                let contradiction = run.find_contradiction(programs);
                contradiction.map_or(Ok(()), |why| Err(format!("line {}: {why}", number + 1)))?;
                runs.push(run);
            }
            _ => {}
        }
    }
    let session = session.ok_or("the file has no runs of programs")?;
    let last = session.programs.len().saturating_sub(1);
    runs.retain(|run| run.program == last);
    Ok(RecordedRuns { session, runs })
}

#[cfg(test)]
mod tests {
    use super::super::record::WHOLE_PROGRAM;
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};

    #[test]
    fn reads_runs_of_the_last_program_and_rejects_nonsense() {
        let session = r#"{"schema":"cyclescope/1","kind":"ab.session","programs":["a","b"],"core":"c","cpu":1,"kernel":"k","seed":1}"#;
        let run = |program: usize| {
            let cycles = [("program".to_string(), 5.0)].into();
            let run = AbRunRecord { program, build: 0, user_us: 1, system_us: 2, rulers: [1.0, 1.0], cycles };
            to_json_line(RUN_KIND, &run)
        };
        let text = [session.to_string(), run(0), run(1), run(1)].join("\n");
        let recorded = parse_runs(text.as_bytes()).unwrap();
        assert_eq!((recorded.runs.len(), recorded.session.cpu), (2, 1));
        for bad in ["", "x", "{}", &run(0), &format!("{session}\n{{\"kind\":\"ab.run\"}}")] {
            assert!(parse_runs(bad.as_bytes()).is_err(), "{bad}");
        }
        for (from, to) in [
            (r#""program":1"#, r#""program":2"#),
            (r#"[1.0,1.0]"#, r#"[1.0,-1.0]"#),
            (r#"{"program":5.0}"#, r#"{"program":-5.0}"#),
            (r#"{"program":5.0}"#, r#"{"program":1e12}"#),
            (r#"{"program":5.0}"#, r#"{"":5.0}"#),
        ] {
            let changed = run(1).replacen(from, to, 1);
            assert!(changed != run(1) && parse_runs(format!("{session}\n{changed}").as_bytes()).is_err(), "{to}");
        }
        assert!(parse_runs([&text[..], session].join("\n").as_bytes()).is_err(), "two sessions");
    }

    /// The runs of two programs that `ab --out` wrote.
    const RECORDED: &[u8] = include_bytes!("recorded_runs.jsonl");

    #[test]
    fn any_recorded_runs_are_compared_or_refused() {
        use cyclescope::study::ab::compare_with_recorded;
        assert!(parse_runs(RECORDED).is_ok_and(|recorded| recorded.runs.len() > 8));
        for (name, shape) in [("recorded_runs", InputShape::JsonLines), ("fields_of_recorded_runs", InputShape::Fields)]
        {
            fuzz_reader(name, shape, &[RECORDED.to_vec()], |bytes| {
                let Ok(RecordedRuns { session, runs }) = parse_runs(bytes) else { return };
                assert!(runs.iter().all(|run| run.program < session.programs.len()));
                let old: Vec<f64> = runs.iter().filter_map(|run| run.cycles.get(WHOLE_PROGRAM).copied()).collect();
                let change = compare_with_recorded(&old, [&[1e6; 10]; 2], 0.01).change;
                assert!(change.is_none_or(|change| change.low <= change.value && change.value <= change.high));
            });
        }
    }
}
