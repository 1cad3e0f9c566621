//! The commands of studies that take nothing but the names of their subjects: everything comes from what the library
//! knows of them.

mod catalog;
mod session;
mod told;

use crate::args::repro;
use crate::args::{Common, GenericArgs};
use crate::output::page::{Page, print, table};
use crate::output::report::Picture;
use crate::output::{Failure, Output};
use crate::process::interrupt;
use crate::session::driver::{Order, StudyView, drive};
use crate::session::evidence::unwritten;
use crate::session::executor::{self, Code};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::session::resume::refuse_evidence;
use crate::studies::look::Look;
use crate::studies::uarch;
use cyclescope::machine::Machine;
use cyclescope::machine::fact::Files;
use cyclescope::machine::memory;
use cyclescope::record::exit;
use cyclescope::result::container::{self, Container};
use cyclescope::run::Request;
use cyclescope::study::{GenericSession, Head, Plain, Record, Selected, Study, StudyInfo};
use serde::Serialize;
use serde_json::Value;
use session::ResumedLines;
use told::Told;

/// The part of the free memory that a measurement may use, and what is taken to be free where that is unknown.
const FREE_PART: u64 = 4;
const FREE_UNKNOWN: u64 = 256 << 20;

/// The studies whose result looks like something else than a table of its lines alone.
const LOOKS: &[Look] = &[uarch::LOOK];

fn look(study: &str) -> Option<&'static Look> {
    LOOKS.iter().find(|look| look.study == study)
}

/// Something that can be measured, kind `subject`.
#[derive(Serialize)]
struct SubjectRecord {
    name: &'static str,
    about: &'static str,
}

/// Runs the command and returns the exit code.
pub fn generic_study(
    info: &StudyInfo,
    common: &Common,
    args: &GenericArgs,
    output: &mut Output,
) -> Result<u8, Failure> {
    let Some(plain) = info.plain else { unreachable!("the command is of a study without a front") };
    refuse_evidence(common, &[("--resume", args.resume.is_some())], "a study")?;
    let (file, resumed) = resumed(info.name, args)?.unzip();
    let adopted = resumed.as_ref().map(|resumed| resumed.adopt(common, &args.subjects)).transpose()?;
    let (common, names) =
        adopted.as_ref().map_or((common, &args.subjects), |(common, names)| (common, names));
    if let (true, Some(catalog)) = (args.list, catalog::named(&plain, names)) {
        catalog::list(catalog, output)?;
        return Ok(exit::DONE);
    }
    let subjects = subjects(&plain, info.name, names)?;
    if args.list {
        list(&plain, &subjects, output)?;
        return Ok(exit::DONE);
    }
    let request = Request {
        clock: common.one_clock()?,
        seed: common.chosen_seed(),
        quick: common.quick,
        ..Request::default()
    };
    let machine = common.machine()?;
    machine.tsc.require()?;
    let plan = request.plan(&common.capabilities(&machine), &machine)?;
    let open = executor::opening(common, &machine, plan.clock.reads_counter(), Code::Own);
    let named = GenericArgs { subjects: names.clone(), ..args.clone() };
    let repro = repro::command(info.name, &named, common, plan.seed);
    // Where nothing says how much is free, what a small machine has.
    let free = memory::free(&Files::system()).known().copied().unwrap_or(FREE_UNKNOWN);
    let memory = free / FREE_PART;
    let order = Order::new(common, &machine, &repro)?;
    let session = session::session(common, &subjects, &plan, machine.target_cpu());
    let (mut file, kept) = match file.zip(resumed) {
        Some((file, resumed)) => going_on(file, resumed, &plain, &session, &machine)?,
        None => (begun(info.name, &session, &machine, args)?, Vec::new()),
    };
    if let Some(file) = &mut file {
        if !common.offer().is_default() {
            file.resumes_with(&["cyclescope", info.name, "--executor", common.offer().name]);
        }
        interrupt::farewell(file.announce());
    }
    let study = (plain.select)(Selected { subjects, plan, open, machine: &machine, memory, kept });
    let order = Order { file, exports: args.exports.clone(), ..order };
    let view = Table { plain, look: look(info.name) };
    drive(&view, &mut Told::new(study), order, output)
}

/// The file to resume, and what it has.
fn resumed(command: &'static str, args: &GenericArgs) -> Result<Option<(ResultFile, ResumedLines)>, Failure> {
    let Some(path) = &args.resume else { return Ok(None) };
    ResultFile::resume(path, command, |content| ResumedLines::read(path, command, content)).map(Some)
}

/// The file without what is not complete in it, and the lines of what is.
fn going_on(
    mut file: ResultFile,
    resumed: ResumedLines,
    plain: &Plain,
    session: &GenericSession,
    machine: &Machine,
) -> Result<(Option<ResultFile>, Vec<Value>), Failure> {
    let facts = container::plain(machine).map_err(unwritten)?;
    let (kept, end) = resumed.whole(session, &facts, plain.whole)?;
    file.cut(end)?;
    Ok((Some(file), kept))
}

/// A new file with its first line, where one is asked for.
fn begun(
    command: &'static str,
    session: &GenericSession,
    machine: &Machine,
    args: &GenericArgs,
) -> Result<Option<ResultFile>, Failure> {
    let Some(path) = &args.out else { return Ok(None) };
    let mut file = ResultFile::create(path, command, true)?;
    let facts = container::plain(machine).map_err(unwritten)?;
    file.begin(&Record::new("machine", &Head { machine: &facts, session }).line)?;
    Ok(Some(file))
}

/// Computes the result of a study without a front again; `None` where there is no such study.
pub fn replay(container: &Container, output: &mut Output) -> Option<Result<u8, Failure>> {
    let study = cyclescope::study::named(&container.manifest.origin.study)?;
    let view = Table { plain: study.plain?, look: look(study.name) };
    Some(replay_study::replay(&view, container, output))
}

/// The subjects of these names in the study's order; without names all.
fn subjects(plain: &Plain, study: &str, names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let known = || plain.subjects.iter().map(|(name, _)| *name);
    for name in names {
        if !known().any(|known| known == name) {
            let list = format!("`cyclescope {study} --list` shows all");
            let remedy = match cyclescope::asm::nearest(&name.to_lowercase(), known()).first() {
                Some(nearest) => format!("did you mean {nearest}? {list}"),
                None => list,
            };
            return Err(Failure::usage(format!("there is no `{name}` in {study}"), Some(&remedy)));
        }
    }
    Ok(known().filter(|known| names.is_empty() || names.iter().any(|name| name == known)).collect())
}

fn list(plain: &Plain, subjects: &[&'static str], output: &mut Output) -> Result<(), Failure> {
    let chosen = plain.subjects.iter().filter(|(name, _)| subjects.contains(name));
    if output.is_json() {
        return chosen
            .map(|&(name, about)| SubjectRecord { name, about })
            .try_for_each(|subject| output.record("subject", &subject));
    }
    let mut page = Page::new(output);
    chosen.into_iter().try_for_each(|(name, about)| page.row(name, about))
}

/// The lines as a table of the study's columns, and below it what explains them.
struct Table {
    plain: Plain,
    look: Option<&'static Look>,
}

impl StudyView for Table {
    type Study = Told;

    fn text(&self, study: &Told, output: &mut Output) -> Result<(), Failure> {
        if let Some(look) = self.look {
            return (look.text)(&study.lines, output);
        }
        let Plain { columns, explanation, .. } = self.plain;
        let mut rows = table(columns);
        let lines = || study.lines.iter().filter(|line| line["kind"] == study.name());
        for line in lines() {
            rows.add_row(columns.iter().map(|column| cell(&line[*column])));
        }
        let mut page = Page::new(output);
        print(&mut page, &rows)?;
        let Some(explanation) = explanation else { return Ok(()) };
        page.output.line("")?;
        page.section("Why")?;
        lines().try_for_each(|line| page.row(&cell(&line[columns[0]]), &cell(&line[explanation])))
    }

    fn pictures(&self, study: &Told, machine: &str) -> Vec<Picture> {
        self.look.map_or(Vec::new(), |look| (look.pictures)(&study.lines, machine))
    }
}

/// A field as a cell: a quantity with its interval.
fn cell(field: &Value) -> String {
    let number = |name: &str| field[name].as_f64();
    match (field, number("value"), number("low"), number("high")) {
        (Value::String(text), ..) => text.clone(),
        // Things are counted.
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
    use crate::args::{Cli, chosen, with_commands};
    use clap::CommandFactory;
    use cyclescope::executor::Open;
    use cyclescope::result::answers::Answers;
    use cyclescope::result::container::ContainerError;
    use cyclescope::study::{Follow, Stop};
    use std::io;

    /// What a batch of no programs costs.
    struct Fruit {
        subjects: Vec<&'static str>,
        open: Open,
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

        fn restore(_: &Container) -> Result<Fruit, ContainerError> {
            Err(ContainerError::Unfinished)
        }

        fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
            let executor = answers.executor(|| (self.open)())?;
            for &name in &self.subjects {
                let record = FruitRecord { name, arena: executor.arena_len() };
                assert!(follow.record(Record::new(FRUIT.name, &record)).is_continue());
            }
            Ok(())
        }
    }

    const FRUIT: StudyInfo = StudyInfo {
        name: "fruit",
        about: "what fruit costs",
        restore: |container| Ok(Box::new(Fruit::restore(container)?)),
        plain: Some(Plain {
            subjects: &[("apple", "round"), ("pear", "not round")],
            catalogs: &[],
            columns: &["name", "arena"],
            explanation: None,
            whole: <[Value]>::len,
            select: |Selected { subjects, open, .. }| Box::new(Fruit { subjects, open }),
        }),
    };

    fn parsed(arguments: &[&str]) -> Result<Option<(StudyInfo, Common, GenericArgs)>, clap::Error> {
        let command = with_commands(Cli::command(), &[FRUIT]);
        chosen(&command.try_get_matches_from([&["cyclescope"], arguments].concat())?, &[FRUIT])
    }

    #[test]
    fn a_study_has_a_command_by_its_line_in_the_list() {
        let (info, common, args) = parsed(&["fruit", "pear", "--quick", "--seed", "7"]).unwrap().unwrap();
        assert_eq!((info.name, common.quick, common.seed), ("fruit", true, Some(7)));
        assert_eq!(subjects(&FRUIT.plain.unwrap(), "fruit", &args.subjects).unwrap(), ["pear"]);
        assert_eq!(subjects(&FRUIT.plain.unwrap(), "fruit", &[]).unwrap(), ["apple", "pear"]);
        assert!(parsed(&["doctor"]).unwrap().is_none() && parsed(&["fruit", "--nothing"]).is_err());
        let refused = subjects(&FRUIT.plain.unwrap(), "fruit", &["pera".to_string()]).unwrap_err();
        assert!(refused.text().contains("`pera`"), "{refused:?}");
        let plain =
            |look: &Look| cyclescope::study::named(look.study).is_some_and(|study| study.plain.is_some());
        assert!(LOOKS.iter().all(plain));
    }

    #[test]
    fn a_study_without_a_front_is_measured_printed_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let arguments = ["fruit", "pear", "--quick", "--out", &path("out"), "--evidence", &path("evidence")];
        let (info, common, args) = parsed(&arguments).unwrap().unwrap();
        if let Err(refused) = (common.offer().check)(&common.machine().unwrap()) {
            return cyclescope_skipped::skipped(refused);
        }
        let code = generic_study(&info, &common, &args, &mut Output::new(false)).unwrap();
        let file = std::fs::read_to_string(path("out")).unwrap();
        let lines: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [head, line] = &lines[..] else { panic!("{file}") };
        assert_eq!((code, &line["kind"], &line["name"]), (exit::DONE, &"fruit".into(), &"pear".into()));
        assert_eq!((&head["kind"], &head["session"]["subjects"][0]), (&"machine".into(), &"pear".into()));
        let container = Container::open(path("evidence").as_ref()).unwrap();
        assert!(container.manifest.finished && container.manifest.facts == serde_json::json!(["pear"]));
        assert_eq!(container.records().unwrap().next().unwrap().unwrap(), *line);
        let (_, common, again) = parsed(&["fruit", "--out", &path("out")]).unwrap().unwrap();
        let refused = generic_study(&info, &common, &again, &mut Output::new(false)).unwrap_err();
        assert!(refused.text().contains("already exists"), "{refused:?}");
    }

    #[test]
    fn cells_show_quantities_with_their_intervals() {
        let quantity = serde_json::json!({"value": 3.0, "low": 2.9, "high": 3.2, "unit": "core_cycles"});
        assert_eq!(cell(&quantity), "3.000 ± 0.200");
        let count = |low| serde_json::json!({"value": 192.0, "low": low, "high": 192.0, "unit": "count"});
        assert_eq!(
            (cell(&count(192.0)), cell(&count(190.0))),
            ("192".to_string(), "192, 190 to 192".to_string())
        );
        assert_eq!(cell(&serde_json::json!({"value": null, "unit": "core_cycles"})), "-");
        assert_eq!(cell(&Value::from("text")), "text");
        assert_eq!(cell(&Value::from(3)), "3");
    }
}
