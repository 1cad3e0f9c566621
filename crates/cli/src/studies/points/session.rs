//! The session of a result file: the command that wrote it, and its points.

use super::command_words::{add_random_choices, drop_result_options};
use super::prepared_point::{PreparedPoint, ReadyPoint};
use super::trusted_options::find_trusted_option;
use crate::args::parse_run_words;
use crate::args::template::fill_first_value;
use crate::args::{CommonArgs, PointsArgs, RunArgs};
use crate::input::elf;
use crate::input::mix_source::MixTarget;
use crate::input::target::{CalledFunctions, FunctionLibraries, RunTarget};
use crate::output::Failure;
use crate::session::resume::{ResumedFile, split_json_lines};
use crate::studies::run;
use cyclescope::random::mix_seeds;
use cyclescope::snippet::Snippet;
use cyclescope::study::points::{PointsSession, ResumedPoints};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// Builds the session of these points, whose functions are in these libraries.
pub fn build_session(
    command: Vec<String>,
    seed: u64,
    points: &[PreparedPoint],
    libraries: &FunctionLibraries,
) -> Result<PointsSession, Failure> {
    let version = env!("CARGO_PKG_VERSION").to_string();
    let (identity, method) = (points_identity(points, libraries), PointsSession::METHOD);
    Ok(PointsSession { version, command, seed, points: points.len(), identity, method })
}

/// A hash of the points: their commands, their machine code, and their named or compiled libraries.
/// A changed header or compiler therefore counts; a changed comment doesn't.
fn points_identity(points: &[PreparedPoint], libraries: &FunctionLibraries) -> String {
    let mut number = 0;
    let mut add = |bytes: &[u8]| {
        number = bytes.iter().fold(mix_seeds(number, 1), |number, byte| mix_seeds(number, u64::from(*byte)));
    };
    let mut called = BTreeSet::new();
    for point in points {
        let Ok(ReadyPoint { repro, target, .. }) = &point.ready else {
            add(b"refused");
            continue;
        };
        add(repro.as_bytes());
        match target {
            RunTarget::Snippets(snippets) | RunTarget::Mix(MixTarget { snippets, .. }) => {
                snippets.iter().for_each(|snippet: &Snippet| {
                    add(snippet.init());
                    add(snippet.code());
                    add(snippet.setup().map_or(&[][..], |setup| &setup.code));
                })
            }
            RunTarget::Calls(CalledFunctions { libraries, calling }) => {
                called.extend(libraries);
                add(calling.file_bytes());
            }
            // Its memory has other addresses in each run of the program.
            RunTarget::Region(region) => add(&elf::read_loaded_bytes(Path::new(&region.record.program))),
        }
    }
    called.into_iter().for_each(|library| add(&libraries.loaded_contents(library)));
    format!("{number:016x}")
}

/// Reads the complete lines that the study uses from a file to resume; none if the first line is
/// incomplete.
pub fn read_resumed(
    path: &Path,
    content: &[u8],
) -> Result<(Option<ResumedFile<PointsSession>>, ResumedPoints), Failure> {
    if content.is_empty() {
        return Ok((None, ResumedPoints::default()));
    }
    let ((head, _), lines) = split_json_lines(path, run::NAME, content)?;
    let resumed = ResumedFile::new(path, run::NAME, head)?;
    let lines = lines.into_iter().map(|(line, _)| line).collect();
    let kept = ResumedPoints { head: Some(resumed.head.clone()), lines };
    Ok((Some(resumed), kept))
}

/// The session's options and words. If the command has words other than `run` and result
/// destinations, they must match.
pub fn adopt_command(
    session: &PointsSession,
    common: &CommonArgs,
    args: &RunArgs,
    words: &[OsString],
) -> Result<(CommonArgs, RunArgs, Vec<OsString>), Failure> {
    let kept: Vec<OsString> = session.command.iter().map(OsString::from).collect();
    let is_alone = words.iter().skip(1).all(|word| word == "run");
    if !is_alone && args.points.sweep.is_none() && args.from.is_none() {
        let remedy = "use --resume alone, or after the whole command";
        return Err(Failure::usage("--resume reads the command from the file", Some(remedy)));
    }
    let words = match is_alone {
        true => {
            require_untrusted(session, &parse_run_words(fill_first_value(kept.clone())?)?)?;
            kept
        }
        false => {
            let (then, _) = parse_run_words(fill_first_value(kept)?)?;
            let cpu = common.cpu.or(then.cpu).unwrap_or_default();
            let all = add_random_choices(words, session.seed, cpu);
            all.into_iter().map(OsString::from).collect()
        }
    };
    let (then, asked) = parse_run_words(fill_first_value(words.clone())?)?;
    let PointsArgs { sweep, .. } = asked.points;
    let points = PointsArgs { sweep, ..args.points.clone() };
    let common = CommonArgs { json: common.json, ..then };
    Ok((common, RunArgs { points, ..asked }, drop_result_options(&words)))
}

/// Fails if the file's command would do more than a file alone may decide.
fn require_untrusted(session: &PointsSession, kept: &(CommonArgs, RunArgs)) -> Result<(), Failure> {
    let Some(option) = find_trusted_option(kept) else { return Ok(()) };
    let command = shlex::try_join(session.command.iter().map(String::as_str)).unwrap_or_default();
    let text = format!("the file's command has {option}, which a file alone can't decide: {command}");
    let remedy = "if you trust it, type the whole command, then --resume FILE";
    Err(Failure::usage(text, Some(remedy)))
}

#[cfg(test)]
mod tests {
    use super::super::{plots, tables};
    use super::*;
    use crate::output::report::{GivenReport, require_harmless_lines, require_harmless_report};
    use cyclescope::error::Error;
    use cyclescope::executor::{DEFAULT_OFFER, failing_opener};
    use cyclescope::machine::Machine;
    use cyclescope::result::answers::MachineAnswers;
    use cyclescope::run::RunRequest;
    use cyclescope::study::Study;
    use cyclescope::study::points::{PointLabel, PointsStudy, tabulate_points};
    use cyclescope::study::run::RunStudy;
    use cyclescope_fuzz::{InputShape, fuzz_reader};
    use serde_json::Value;

    /// The study that a file resumes, on an executor that can't be opened.
    fn resume(machine: &Machine, bytes: &[u8], texts: &[String]) -> Option<PointsStudy> {
        let (resumed, kept) = read_resumed(Path::new("a.jsonl"), bytes).ok()?;
        let request = RunRequest { quick: true, seed: 1, ..RunRequest::default() };
        let plan = request.make_plan(&(DEFAULT_OFFER.capabilities)(machine), machine).ok()?;
        let run = |text: &String| {
            let snippet = Snippet::parse(text).expect("a snippet").into();
            let precision = request.required_precision();
            Box::new(RunStudy::new(&snippet, plan.clone(), precision, machine, String::new(), failing_opener()))
        };
        let label = |value| PointLabel::Value { variable: "N".to_string(), value };
        let points = (1..).zip(texts).map(|(value, text)| (label(value), Ok(run(text)))).collect();
        let explain = |_: &RunStudy, error: Error| (&error).into();
        Some(PointsStudy::new(resumed?.session, points, Value::Null, failing_opener(), explain, kept))
    }

    #[test]
    fn any_fields_of_resumed_points_are_presented_or_measured_again() {
        let machine = Machine::detect();
        for (name, seed) in [
            ("resumed_comparison", &include_bytes!("recorded_comparison.jsonl")[..]),
            ("resumed_ranking", include_bytes!("recorded_ranking.jsonl")),
        ] {
            let lines = seed.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
            let mut points: Vec<Value> = lines.skip(1).collect();
            points.sort_by_key(|line| line["point"]["number"].as_u64());
            let texts: Vec<String> =
                points.iter().map(|line| line["snippet"].as_str().expect("a snippet").to_string()).collect();
            let mut whole = resume(&machine, seed, &texts).expect("a plan for this machine");
            whole.measure(&MachineAnswers::live(), &mut Vec::new()).expect("all points are in the file");
            assert_eq!(whole.rows().count(), texts.len());
            fuzz_reader(name, InputShape::Fields, &[seed.to_vec()], |bytes| {
                let Some(mut study) = resume(&machine, bytes, &texts) else { return };
                let mut records = Vec::new();
                // The changed file may lack points of the study.
                let _ = study.measure(&MachineAnswers::live(), &mut records);
                let table = tabulate_points(study.rows());
                require_harmless_report(&GivenReport {
                    print: &|output| tables::print_points(&study, output),
                    summary: table.clone(),
                    table,
                    draw: &|| plots::draw_sweep(&study, "a machine", false),
                });
                require_harmless_lines(records.iter().map(|record| record.line.as_str()));
            });
        }
    }
}
