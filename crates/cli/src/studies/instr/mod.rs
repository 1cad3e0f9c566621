//! `cyclescope instr`: latency and reciprocal throughput of instructions.

mod choose;
mod explain;
mod listing;
mod session;
pub mod tables;

use crate::args::repro;
use crate::args::{Common, InstrArgs};
use crate::output::{Failure, Output};
use crate::session::driver::{Order, StudyView, drive};
use crate::session::executor::{self, Code};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::session::resume::{Resumed, refuse_evidence};
use cyclescope::executor::Open;
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::record::exit;
use cyclescope::result::container::{Container, plain};
use cyclescope::run::Request;
use cyclescope::study::TextTable;
use cyclescope::study::instr::experiments::effort::Effort;
use cyclescope::study::instr::forms::wanted::WantedForm;
use cyclescope::study::instr::plan::{How, InstrPlan};
use cyclescope::study::instr::rows::row::Row;
use cyclescope::study::instr::selection;
use cyclescope::study::instr::session::InstrSession;
use cyclescope::study::instr::tables::export;
use cyclescope::study::instr::tables::summary::Summary;
use cyclescope::study::instr::{InstrStudy, Kept};

pub use cyclescope::study::instr::NAME;

/// Runs the command and returns the exit code: a table that completes is done, failed forms included, unless none was
/// measured.
pub fn instr(common: &Common, args: &InstrArgs, output: &mut Output) -> Result<u8, Failure> {
    let parts =
        [("--resume", args.resume.is_some()), ("--explain", args.explain.is_some()), ("--list", args.list)];
    refuse_evidence(common, &parts, "a survey")?;
    common.one_clock()?;
    let (mut file, mut resumed, mut kept) = (None, None, Kept::default());
    if let Some(path) = &args.resume {
        let opened = ResultFile::resume(path, NAME, |content| session::resumed(path, content))?;
        (file, (resumed, kept)) = (Some(opened.0), opened.1);
    }
    if let (Some(path), None) = (&args.resume, &resumed)
        && choose::names_nothing(args)
    {
        let text = format!("{} has no complete first line, so it names no forms", path.display());
        return Err(Failure::usage(text, Some("name the forms again, or begin a new file with --out")));
    }
    let adopt = |(resumed, path): (&Resumed<_>, _)| session::adopt(&resumed.session, common, args, path);
    let adopted = resumed.as_ref().zip(args.resume.as_deref()).map(adopt).transpose()?;
    let (common, args) = adopted.as_ref().map_or((common, args), |(common, args)| (common, args));
    let forms = choose::forms(args)?;
    if args.list {
        let machine = common.machine()?;
        listing::list(&forms, &machine, common.capabilities(&machine).ring, output)?;
        return Ok(exit::DONE);
    }
    args.exports.check()?;
    let machine = common.machine()?;
    let bench = Bench::new(common, args, &machine)?;
    if args.explain.is_some() {
        return bench.explain(forms, output);
    }
    if let Some(path) = &args.out {
        file = Some(ResultFile::create(path, NAME, true)?);
    }
    bench.survey(forms, file, (resumed, kept), output)
}

/// How `instr` looks.
struct Instr;

impl StudyView for Instr {
    type Study = InstrStudy;

    fn text(&self, study: &InstrStudy, output: &mut Output) -> Result<(), Failure> {
        tables::rows(&study.rows.all().collect::<Vec<_>>(), output)?;
        match &study.found {
            Some((summary, seconds)) => tables::summary(summary, *seconds, output),
            None => Ok(()),
        }
    }

    fn table(&self, study: &InstrStudy) -> Option<TextTable> {
        Some(export::table(study.rows.all()))
    }

    fn summary(&self, study: &InstrStudy) -> Option<TextTable> {
        Some(export::summary(study.rows.all()))
    }

    fn exit(&self, study: &InstrStudy) -> u8 {
        let Some((Summary { all, .. }, _)) = &study.found else { return exit::DONE };
        match all.measured {
            0 if all.failed > 0 => exit::FAULT,
            0 if all.skipped > 0 => exit::UNAVAILABLE,
            _ => exit::DONE,
        }
    }
}

/// Computes a survey again from its evidence.
pub fn replay(container: &Container, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay(&Instr, container, output)
}

/// What measurements are made with.
struct Bench<'a> {
    common: &'a Common,
    args: &'a InstrArgs,
    machine: &'a Machine,
    plan: Plan,
    effort: Effort,
}

impl<'a> Bench<'a> {
    fn new(common: &'a Common, args: &'a InstrArgs, machine: &'a Machine) -> Result<Bench<'a>, Failure> {
        let request = Request {
            clock: common.one_clock()?,
            seed: common.chosen_seed(),
            quick: common.quick,
            ..Request::default()
        };
        machine.tsc.require()?;
        let plan = request.plan(&common.capabilities(machine), machine)?;
        let effort = if common.quick { Effort::QUICK } else { Effort::FULL };
        Ok(Bench { common, args, machine, plan, effort })
    }

    fn plan(&self, forms: &[WantedForm]) -> InstrPlan {
        let cpu = self.machine.target_cpu();
        let session = session::session(self.common, self.args, forms, &self.plan, self.effort, cpu);
        let repro_options = self.form_options();
        let how = How { plan: self.plan.clone(), effort: self.effort, repro_options };
        InstrPlan::new(how, session, self.machine, forms)
    }

    /// What follows `cyclescope instr NAME` in the command that measures one form; the list that it comes from may have its
    /// init code.
    fn form_options(&self) -> String {
        let none = InstrArgs {
            filters: Vec::new(),
            mnemonic: Vec::new(),
            isa: Vec::new(),
            all: false,
            explain: None,
            ..self.args.clone()
        };
        repro::options(NAME, &none, self.common, self.plan.seed)
    }

    fn explain(&self, forms: Vec<WantedForm>, output: &mut Output) -> Result<u8, Failure> {
        if forms.len() > explain::MOST {
            let some: Vec<String> =
                forms.iter().take(3).map(|s| format!("'{}'", selection::full_name(s))).collect();
            let text = format!("{} forms are too many to explain at once", forms.len());
            let remedy = format!("name at most {}, such as {}", explain::MOST, some.join(", "));
            return Err(Failure::usage(text, Some(&remedy)));
        }
        let mut executor = self.opening()()?;
        let plan = self.plan(&forms);
        let survey = plan.begin(executor.as_mut(), &self.machine.features, forms)?;
        let repro = |row: &Row| {
            let name = format!("{} {}", row.code, row.operands);
            let args = InstrArgs {
                filters: Vec::new(),
                explain: Some(name.trim_end().to_string()),
                ..self.args.clone()
            };
            repro::command(NAME, &args, self.common, self.plan.seed)
        };
        explain::explain_all(&survey, executor.as_mut(), &repro, output)?;
        if let Some(lock) = executor.lock_state() {
            executor::warn_of_neighbours(lock, self.machine.target_cpu());
        }
        Ok(exit::DONE)
    }

    fn opening(&self) -> Open {
        executor::opening(self.common, self.machine, self.plan.clock.reads_counter(), Code::Own)
    }

    fn survey(
        &self,
        forms: Vec<WantedForm>,
        mut file: Option<ResultFile>,
        (resumed, mut kept): (Option<Resumed<InstrSession>>, Kept),
        output: &mut Output,
    ) -> Result<u8, Failure> {
        let (common, args) = (self.common, self.args);
        let plan = self.plan(&forms);
        let machine = plain(self.machine).map_err(crate::session::evidence::unwritten)?;
        if let Some(resumed) = &resumed {
            resumed.require(&plan.session, &machine, "on the same machine")?;
        }
        if let Some(file) = &mut file {
            file.belongs_to(plain(&plan.session).map_err(crate::session::evidence::unwritten)?);
            if !common.offer().is_default() {
                file.resumes_with(&["cyclescope", NAME, "--executor", common.offer().name]);
            }
            if resumed.is_some() && kept.rows.len() < forms.len() {
                kept.parts = file.journal()?;
            }
        }
        let repro = repro::command(NAME, args, common, self.plan.seed);
        let open = self.opening();
        let mut study = InstrStudy::new(plan, forms, machine, repro.clone(), open, kept);
        let exports = args.exports.clone();
        let order = Order { file, exports, ..Order::new(common, self.machine, &repro)? };
        drive(&Instr, &mut study, order, output)
    }
}

/// What a file to resume says, and the options that it stands for.
#[cfg(test)]
pub fn resumed_file(path: &std::path::Path, content: &[u8]) -> Result<(), Failure> {
    use crate::args::{Cli, Command};
    use clap::Parser;
    let (found, _) = session::resumed(path, content)?;
    let cli = Cli::try_parse_from(["cyclescope", "instr", "nop"]).expect("a command");
    let Some(Command::Instr(args)) = cli.command else { unreachable!("it is that of instr") };
    let Some(Resumed { session, .. }) = &found else { return Ok(()) };
    session::adopt(session, &cli.common, &args, path).map(drop)
}
