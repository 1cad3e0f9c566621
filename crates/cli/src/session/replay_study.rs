//! Recomputes a study's result from its evidence and compares it with the printed one.

use crate::output::report_words::format_count;
use crate::output::{Failure, Output, print_warning};
use crate::session::driver::StudyView;
use cyclescope::error::{Error, RunError};
use cyclescope::result::answers::MachineAnswers;
use cyclescope::result::container::{ContainerError, ContainerLines, EvidenceContainer};
use cyclescope::study::{ResultRecord, StopReason, Study, StudyFollower};
use serde_json::Value;
use std::ops::ControlFlow;

/// Runs a study again on its evidence, prints its findings, and fails if they differ from the
/// printed ones. For a study that ended early, only the complete part is compared.
pub fn replay_study<V: StudyView>(view: &V, container: &EvidenceContainer, output: &mut Output) -> Result<u8, Failure> {
    let mut study = V::Study::restore(container)?;
    let answers = MachineAnswers::from_container(container)?;
    let finished = container.manifest.finished;
    let mut again = ReplayComparison {
        written: container.records()?,
        compared: 0,
        differing: Vec::new(),
        finished,
        failure: None,
        answers: &answers,
        output,
    };
    let ended = study.measure(&answers, &mut again);
    let ReplayComparison { mut written, compared: told, mut differing, failure, output, .. } = again;
    if let Some(failure) = failure {
        return Err(failure);
    }
    match ended {
        Err(StopReason::Failed(Error::Run(RunError::Replay { .. }))) if !finished && answers.is_exhausted() => {
            if told == 0 {
                return Err(ContainerError::Unfinished.into());
            }
            let lines = format_count(told as u64, "line");
            print_warning(&format!("the study was not finished; {lines} of its result are complete"));
        }
        Err(StopReason::Failed(error)) => return Err(error.into()),
        Err(StopReason::Requested) | Ok(()) => {}
    }
    if finished && written.next().transpose()?.is_some() {
        differing.push("the stored result has more lines".to_string());
    }
    if finished || answers.is_exhausted() {
        differing.extend(answers.find_differences().into_iter().map(str::to_string));
    }
    match output.is_json() {
        true => view.print_replay_lines(&study, output)?,
        false => view.print_text(&study, output)?,
    }
    if differing.is_empty() {
        if !output.is_json() {
            output.write_line("\nThe result matches the one stored with the readings.")?;
        }
        output.flush()?;
        return Ok(view.exit_code(&study));
    }
    output.flush()?;
    let text = format!("the replayed result differs from the stored one: {}", differing.join(", "));
    Err(Failure::internal(text).with_remedy("use unchanged files and the version that wrote them"))
}

/// Compares each line of a result with the stored one.
struct ReplayComparison<'a> {
    /// The stored lines.
    written: ContainerLines,
    /// Number of lines compared so far.
    compared: usize,
    /// Differences found.
    differing: Vec<String>,
    /// Whether the study is complete.
    finished: bool,
    failure: Option<Failure>,
    answers: &'a MachineAnswers,
    output: &'a mut Output,
}

impl ReplayComparison<'_> {
    fn compare_record(&mut self, record: &ResultRecord) -> Result<(), Failure> {
        let now: Value = serde_json::from_str(&record.line).expect("records are JSON");
        match self.written.next().transpose()? {
            Some(written) => self.differing.extend(describe_difference(&now, &written)),
            // The study found this after the last stored line.
            None if !self.finished => return Ok(()),
            None => self.differing.push(format!("{} is not in the stored result", name_line(&now))),
        }
        self.compared += 1;
        if self.output.is_json() { self.output.write_json(&record.line) } else { Ok(()) }
    }
}

impl StudyFollower for ReplayComparison<'_> {
    fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()> {
        match self.compare_record(&record.with_caveat_of(self.answers)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}

/// Names the first field that differs from the stored line, and what the line is about.
fn describe_difference(now: &Value, written: &Value) -> Option<String> {
    let empty = serde_json::Map::new();
    let fields = |value: &Value| value.as_object().unwrap_or(&empty).keys().cloned().collect::<Vec<_>>();
    let field = fields(now).into_iter().chain(fields(written)).find(|field| now.get(field) != written.get(field))?;
    Some(format!(
        "{field} of {} is {}, stored {}",
        name_line(now),
        shorten_value(&now[&field]),
        shorten_value(&written[&field])
    ))
}

/// A short form of a value for a message; for a quantity, its number.
fn shorten_value(value: &Value) -> String {
    const MOST: usize = 40;
    let text = value.get("value").unwrap_or(value).to_string();
    if text.chars().count() <= MOST { text } else { text.chars().take(MOST).chain("...".chars()).collect() }
}

/// What a line is about, from the fields that name it.
fn name_line(line: &Value) -> String {
    const NAMING: [&str; 8] = ["snippet", "code", "operands", "clock", "executor", "design", "state", "context"];
    let kind = line["kind"].as_str().unwrap_or_default();
    let words = NAMING.iter().filter_map(|field| line[*field].as_str()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    if words.is_empty() { format!("the line of kind {kind}") } else { words.join(" ") }
}
