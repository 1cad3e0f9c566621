//! The commands of studies whose only arguments are the names of their subjects. Everything else
//! comes from the library's description of the study.

mod catalog;
mod session;
mod study_with_lines;

use crate::args::repro;
use crate::args::{CommonArgs, GenericArgs};
use crate::input::event_request::read_request;
use crate::output::page::{TextPage, new_table, print_table};
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::process::interrupt;
use crate::session::driver::{StudyOrder, StudyView, drive_study};
use crate::session::evidence::evidence_failure;
use crate::session::executor::{self, CodeOrigin};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::session::resume::refuse_evidence;
use crate::studies::line_view::{LineView, TextDetail};
use crate::studies::uarch;
use cyclescope::asm::CodeMode;
use cyclescope::machine::Machine;
use cyclescope::machine::fact::SystemFiles;
use cyclescope::machine::free_memory;
use cyclescope::record::exit;
use cyclescope::result::container::{self, EvidenceContainer};
use cyclescope::run::RunRequest;
use cyclescope::study::{GenericHead, GenericSession, GenericStudy, ResultRecord, Study, StudyInfo, StudySelection};
use serde::Serialize;
use serde_json::Value;
use session::ResumedLines;
use study_with_lines::StudyWithLines;

/// Share of the free memory that a measurement may use, and the assumed free memory if it is
/// unknown.
const FREE_DIVISOR: u64 = 4;
const FREE_BYTES_ASSUMED: u64 = 256 << 20;

/// Studies whose result is more than a table of its lines.
const LINE_VIEWS: &[LineView] = &[uarch::UARCH_VIEW];

fn find_line_view(study: &str) -> Option<&'static LineView> {
    LINE_VIEWS.iter().find(|look| look.study == study)
}

/// A subject that can be measured, kind `subject`.
#[derive(Serialize)]
struct SubjectRecord {
    name: &'static str,
    about: &'static str,
}

/// Runs the command and returns the exit code.
pub fn run_generic_study(
    info: &StudyInfo,
    common: &CommonArgs,
    args: &GenericArgs,
    output: &mut Output,
) -> Result<u8, Failure> {
    let Some(plain) = info.generic else { unreachable!("the command belongs to a generic study") };
    refuse_evidence(common, &[("--resume", args.resume.is_some())], "a study")?;
    let (file, resumed) = open_resumed_file(info.name, args)?.unzip();
    let adopted = resumed.as_ref().map(|resumed| resumed.adopt_options(common, &args.subjects)).transpose()?;
    let (common, names) = adopted.as_ref().map_or((common, &args.subjects), |(common, names)| (common, names));
    if let (true, Some(catalog)) = (args.list, catalog::find_catalog(&plain, names)) {
        catalog::list_catalog(catalog, output)?;
        return Ok(exit::DONE);
    }
    let subjects = choose_subjects(&plain, info.name, names)?;
    if args.list {
        list_subjects(&plain, &subjects, output)?;
        return Ok(exit::DONE);
    }
    let request = RunRequest {
        clock: common.one_clock()?,
        seed: common.chosen_seed(),
        quick: common.quick,
        ..RunRequest::default()
    };
    let machine = common.detect_machine()?;
    machine.tsc.require()?;
    let plan = request.make_plan(&common.capabilities(&machine), &machine)?;
    let open = executor::executor_opener(common, &machine, plan.clock.reads_counter(), CodeOrigin::Own);
    // The events of a resumed file are known, also those that came from a file of names.
    let known = resumed.as_ref().and_then(ResumedLines::counters);
    let counters = read_request(&args.events, &machine)?.or(known);
    let named =
        GenericArgs { subjects: names.clone(), events: args.events.with_names(counters.as_ref()), ..args.clone() };
    let repro = repro::format_repro(info.name, &named, common, plan.seed);
    // If the free memory is unknown, assume that of a small machine.
    let free = free_memory::read_free_bytes(&SystemFiles::system()).known().copied().unwrap_or(FREE_BYTES_ASSUMED);
    let memory = free / FREE_DIVISOR;
    let order = StudyOrder::new(common, CodeMode::Bits64, &machine, &repro)?;
    let session = session::build_session(common, &subjects, &plan, machine.target_cpu(), counters.clone());
    let (mut file, kept) = match file.zip(resumed) {
        Some((file, resumed)) => continue_file(file, resumed, &plain, &session, &machine)?,
        None => (begin_file(info.name, &session, &machine, args)?, Vec::new()),
    };
    if let Some(file) = &mut file {
        if !common.offer().is_default() {
            file.set_resume_command(&["cyclescope", info.name, "--executor", common.offer().name]);
        }
        interrupt::set_interrupt_text(file.announce_resume());
    }
    let study = (plain.select)(StudySelection {
        subjects,
        plan,
        open,
        machine: &machine,
        memory,
        counters,
        complete_lines: kept,
    });
    let order = StudyOrder { file, exports: args.exports.clone(), ..order };
    let view = GenericView { plain, line_view: find_line_view(info.name), detail: chosen_detail(args) };
    drive_study(&view, &mut StudyWithLines::new(study), order, output)
}

/// Opens the file to resume and reads its lines.
fn open_resumed_file(command: &'static str, args: &GenericArgs) -> Result<Option<(ResultFile, ResumedLines)>, Failure> {
    let Some(path) = &args.resume else { return Ok(None) };
    ResultFile::resume(path, command, |content| ResumedLines::from_content(path, command, content)).map(Some)
}

/// Removes incomplete results from the file, and returns the complete lines.
fn continue_file(
    mut file: ResultFile,
    resumed: ResumedLines,
    plain: &GenericStudy,
    session: &GenericSession,
    machine: &Machine,
) -> Result<(Option<ResultFile>, Vec<Value>), Failure> {
    let facts = container::to_json_value(machine).map_err(evidence_failure)?;
    let (kept, end) = resumed.take_complete(session, &facts, plain.count_complete)?;
    file.truncate_to(end)?;
    Ok((Some(file), kept))
}

/// Creates a file with its first line, if requested.
fn begin_file(
    command: &'static str,
    session: &GenericSession,
    machine: &Machine,
    args: &GenericArgs,
) -> Result<Option<ResultFile>, Failure> {
    let Some(path) = &args.out else { return Ok(None) };
    let mut file = ResultFile::create(path, command, true)?;
    let facts = container::to_json_value(machine).map_err(evidence_failure)?;
    file.write_first_line(&ResultRecord::new("machine", &GenericHead { machine: &facts, session }).line)?;
    Ok(Some(file))
}

/// Recomputes the result of a generic study; `None` if the study is unknown.
pub fn replay_generic_study(container: &EvidenceContainer, output: &mut Output) -> Option<Result<u8, Failure>> {
    let study = cyclescope::study::find_study(&container.manifest.origin.study)?;
    let view = GenericView { plain: study.generic?, line_view: find_line_view(study.name), detail: None };
    Some(replay_study::replay_study(&view, container, output))
}

/// The subjects of these names in the study's order; all if there are no names.
fn choose_subjects(plain: &GenericStudy, study: &str, names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let known = || plain.subjects.iter().map(|(name, _)| *name);
    for name in names {
        if !known().any(|known| known == name) {
            let list = format!("`cyclescope {study} --list` shows all");
            let remedy = match cyclescope::asm::nearest_words(&name.to_lowercase(), known()).first() {
                Some(nearest) => format!("did you mean {nearest}? {list}"),
                None => list,
            };
            return Err(Failure::usage(format!("{study} has no test `{name}`"), Some(&remedy)));
        }
    }
    Ok(known().filter(|known| names.is_empty() || names.iter().any(|name| name == known)).collect())
}

fn list_subjects(plain: &GenericStudy, subjects: &[&'static str], output: &mut Output) -> Result<(), Failure> {
    let chosen = plain.subjects.iter().filter(|(name, _)| subjects.contains(name));
    if output.is_json() {
        return chosen
            .map(|&(name, about)| SubjectRecord { name, about })
            .try_for_each(|subject| output.write_record("subject", &subject));
    }
    let mut page = TextPage::new(output);
    chosen.into_iter().try_for_each(|(name, about)| page.print_row(name, about))
}

/// Prints the lines as a table of the study's columns, with explanations below.
struct GenericView {
    plain: GenericStudy,
    line_view: Option<&'static LineView>,
    /// The detail that was asked for.
    detail: Option<TextDetail>,
}

/// The detail that the options ask for.
fn chosen_detail(args: &GenericArgs) -> Option<TextDetail> {
    match (args.why, args.all) {
        (true, _) => Some(TextDetail::Reasons),
        (false, true) => Some(TextDetail::Numbers),
        (false, false) => None,
    }
}

/// The detail of a result whose options do not name one: few subjects are explained, many are summed up.
fn usual_detail(plain: &GenericStudy, lines: &[Value]) -> TextDetail {
    let is_measured = |subject: &str| lines.iter().any(|line| line["test"] == subject);
    let measured = plain.subjects.iter().filter(|(subject, _)| is_measured(subject)).count();
    if 2 * measured > plain.subjects.len() { TextDetail::Summary } else { TextDetail::Reasons }
}

impl StudyView for GenericView {
    type Study = StudyWithLines;

    fn print_text(&self, study: &StudyWithLines, output: &mut Output) -> Result<(), Failure> {
        if let Some(look) = self.line_view {
            let detail = self.detail.unwrap_or_else(|| usual_detail(&self.plain, &study.lines));
            return (look.text)(&study.lines, detail, output);
        }
        let GenericStudy { columns, explanation, .. } = self.plain;
        let mut rows = new_table(columns);
        let lines = || study.lines.iter().filter(|line| line["kind"] == study.name());
        for line in lines() {
            rows.add_row(columns.iter().map(|column| format_cell(&line[*column])));
        }
        let mut page = TextPage::new(output);
        print_table(&mut page, &rows)?;
        let Some(explanation) = explanation else { return Ok(()) };
        page.output.write_line("")?;
        page.begin_section("Why")?;
        lines().try_for_each(|line| page.print_row(&format_cell(&line[columns[0]]), &format_cell(&line[explanation])))
    }

    fn pictures(&self, study: &StudyWithLines, machine: &str) -> Vec<Picture> {
        self.line_view.map_or(Vec::new(), |look| (look.pictures)(&study.lines, machine))
    }
}

/// Formats a field as a cell: a quantity with its interval.
fn format_cell(field: &Value) -> String {
    let number = |name: &str| field[name].as_f64();
    match (field, number("value"), number("low"), number("high")) {
        (Value::String(text), ..) => text.clone(),
        // Counts are whole numbers.
        (_, Some(value), Some(low), Some(high)) if field["unit"] == "count" => match low == high {
            true => format!("{value}"),
            false => format!("{value}, {low} to {high}"),
        },
        (_, Some(value), Some(low), Some(high)) => {
            format!("{value:.3} ± {:.3}", (high - value).max(value - low))
        }
        (Value::Null | Value::Object(_), ..) => "-".to_string(),
        _ => field.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, add_study_commands, parse_generic_study};
    use clap::CommandFactory;
    use cyclescope::executor::ExecutorOpener;
    use cyclescope::result::answers::MachineAnswers;
    use cyclescope::result::container::ContainerError;
    use cyclescope::study::{StopReason, StudyFollower};
    use std::io;

    /// The cost of an empty batch.
    struct Fruit {
        subjects: Vec<&'static str>,
        open: ExecutorOpener,
    }

    #[derive(Serialize)]
    struct FruitRecord {
        name: &'static str,
        arena: usize,
    }

    impl Study for Fruit {
        fn name(&self) -> &'static str {
            FRUIT.name
        }

        fn plan(&self) -> io::Result<Value> {
            Ok(self.subjects.clone().into())
        }

        fn restore(_: &EvidenceContainer) -> Result<Fruit, ContainerError> {
            Err(ContainerError::Unfinished)
        }

        fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
            let executor = answers.open_executor(|| (self.open)())?;
            for &name in &self.subjects {
                let record = FruitRecord { name, arena: executor.arena_len() };
                assert!(follow.accept_record(ResultRecord::new(FRUIT.name, &record)).is_continue());
            }
            Ok(())
        }
    }

    const FRUIT: StudyInfo = StudyInfo {
        name: "fruit",
        about: "what fruit costs",
        restore: |container| Ok(Box::new(Fruit::restore(container)?)),
        generic: Some(GenericStudy {
            subjects: &[("apple", "round"), ("pear", "not round")],
            catalogs: &[],
            columns: &["name", "arena"],
            explanation: None,
            count_complete: <[Value]>::len,
            select: |StudySelection { subjects, open, .. }| Box::new(Fruit { subjects, open }),
        }),
    };

    fn parsed(arguments: &[&str]) -> Result<Option<(StudyInfo, CommonArgs, GenericArgs)>, clap::Error> {
        let command = add_study_commands(Cli::command(), &[FRUIT]);
        parse_generic_study(&command.try_get_matches_from([&["cyclescope"], arguments].concat())?, &[FRUIT])
    }

    #[test]
    fn study_gets_a_command_from_its_list_entry() {
        let (info, common, args) = parsed(&["fruit", "pear", "--quick", "--seed", "7"]).unwrap().unwrap();
        assert_eq!((info.name, common.quick, common.seed), ("fruit", true, Some(7)));
        assert_eq!(choose_subjects(&FRUIT.generic.unwrap(), "fruit", &args.subjects).unwrap(), ["pear"]);
        assert_eq!(choose_subjects(&FRUIT.generic.unwrap(), "fruit", &[]).unwrap(), ["apple", "pear"]);
        assert!(parsed(&["doctor"]).unwrap().is_none() && parsed(&["fruit", "--nothing"]).is_err());
        let refused = choose_subjects(&FRUIT.generic.unwrap(), "fruit", &["pera".to_string()]).unwrap_err();
        assert!(refused.text().contains("`pera`"), "{refused:?}");
        let plain =
            |look: &LineView| cyclescope::study::find_study(look.study).is_some_and(|study| study.generic.is_some());
        assert!(LINE_VIEWS.iter().all(plain));
    }

    #[test]
    fn generic_study_is_measured_printed_and_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let arguments = ["fruit", "pear", "--quick", "--out", &path("out"), "--evidence", &path("evidence")];
        let (info, common, args) = parsed(&arguments).unwrap().unwrap();
        if let Err(refused) = (common.offer().check)(&common.detect_machine().unwrap()) {
            return cyclescope_skipped::report_skipped(refused);
        }
        let code = run_generic_study(&info, &common, &args, &mut Output::new(false)).unwrap();
        let file = std::fs::read_to_string(path("out")).unwrap();
        let lines: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [head, line] = &lines[..] else { panic!("{file}") };
        assert_eq!((code, &line["kind"], &line["name"]), (exit::DONE, &"fruit".into(), &"pear".into()));
        assert_eq!((&head["kind"], &head["session"]["subjects"][0]), (&"machine".into(), &"pear".into()));
        let container = EvidenceContainer::open(path("evidence").as_ref()).unwrap();
        assert!(container.manifest.finished && container.manifest.facts == serde_json::json!(["pear"]));
        assert_eq!(container.records().unwrap().next().unwrap().unwrap(), *line);
        let (_, common, again) = parsed(&["fruit", "--out", &path("out")]).unwrap().unwrap();
        let refused = run_generic_study(&info, &common, &again, &mut Output::new(false)).unwrap_err();
        assert!(refused.text().contains("already exists"), "{refused:?}");
    }

    #[test]
    fn cells_show_quantities_with_intervals() {
        let quantity = serde_json::json!({"value": 3.0, "low": 2.9, "high": 3.2, "unit": "core_cycles"});
        assert_eq!(format_cell(&quantity), "3.000 ± 0.200");
        let count = |low| serde_json::json!({"value": 192.0, "low": low, "high": 192.0, "unit": "count"});
        assert_eq!(
            (format_cell(&count(192.0)), format_cell(&count(190.0))),
            ("192".to_string(), "192, 190 to 192".to_string())
        );
        assert_eq!(format_cell(&serde_json::json!({"value": null, "unit": "core_cycles"})), "-");
        assert_eq!(format_cell(&Value::from("text")), "text");
        assert_eq!(format_cell(&Value::from(3)), "3");
    }
}
