//! `cyclescope instr`: measures latency and reciprocal throughput of instructions.

mod explain;
pub mod form_selection;
mod listing;
mod session;
pub mod tables;

use crate::args::repro;
use crate::args::{CommonArgs, InstrArgs};
use crate::input::event_request::read_request;
use crate::output::{Failure, Output};
use crate::session::driver::{StudyOrder, StudyView, drive_study};
use crate::session::executor::{self, CodeOrigin};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::session::resume::{ResumedFile, refuse_evidence};
use cyclescope::events::CounterRequest;
use cyclescope::executor::ExecutorOpener;
use cyclescope::machine::Machine;
use cyclescope::measure::Plan;
use cyclescope::record::exit;
use cyclescope::result::container::{EvidenceContainer, to_json_value};
use cyclescope::run::RunRequest;
use cyclescope::study::TextTable;
use cyclescope::study::instr::experiments::survey_effort::SurveyEffort;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::plan::{InstrOptions, InstrPlan};
use cyclescope::study::instr::rows::instr_row::InstrRow;
use cyclescope::study::instr::selection;
use cyclescope::study::instr::session::InstrSession;
use cyclescope::study::instr::tables::export;
use cyclescope::study::instr::tables::summary::SurveySummary;
use cyclescope::study::instr::{InstrStudy, ResumedSurvey};

pub use cyclescope::study::instr::NAME;

/// Runs the command and returns the exit code. A completed table succeeds even with failed forms,
/// unless no form was measured.
pub fn run_instr(common: &CommonArgs, args: &InstrArgs, output: &mut Output) -> Result<u8, Failure> {
    let parts = [("--resume", args.resume.is_some()), ("--explain", args.explain.is_some()), ("--list", args.list)];
    refuse_evidence(common, &parts, "a survey")?;
    common.one_clock()?;
    let (mut file, mut resumed, mut kept) = (None, None, ResumedSurvey::default());
    if let Some(path) = &args.resume {
        let opened = ResultFile::resume(path, NAME, |content| session::read_resumed(path, content))?;
        (file, (resumed, kept)) = (Some(opened.0), opened.1);
    }
    if let (Some(path), None) = (&args.resume, &resumed)
        && form_selection::is_selection_empty(args)
    {
        let text = format!("{} has no complete first line, so it names no forms", path.display());
        return Err(Failure::usage(text, Some("name the forms again, or start a new file with --out")));
    }
    let asked_events = args.events.clone();
    let adopt = |(resumed, path): (&ResumedFile<_>, _)| session::adopt_options(&resumed.session, common, args, path);
    let adopted = resumed.as_ref().zip(args.resume.as_deref()).map(adopt).transpose()?;
    let named_by_user = args.from.is_some();
    let (common, args) = adopted.as_ref().map_or((common, args), |(common, args)| (common, args));
    let forms = form_selection::select_forms(args).map_err(|failure| match &args.from {
        Some(list) if !named_by_user => session::hide_list(list),
        _ => failure,
    })?;
    if args.list {
        let machine = common.detect_machine()?;
        listing::list_forms(&forms, &machine, common.capabilities(&machine).ring, output)?;
        return Ok(exit::DONE);
    }
    args.exports.check_paths()?;
    let machine = common.detect_machine()?;
    // The events of a resumed file are known, also those that came from a file of names.
    let known = resumed.as_ref().and_then(|resumed| resumed.session.counters.clone());
    let counters = read_request(&asked_events, &machine)?.or(known.filter(|known| known.is_sound()));
    let bench = SurveyRunner { counters, ..SurveyRunner::new(common, args, &machine)? };
    if args.explain.is_some() {
        return bench.explain_forms(forms, output);
    }
    if let Some(path) = &args.out {
        file = Some(ResultFile::create(path, NAME, true)?);
    }
    bench.run_survey(forms, file, (resumed, kept), output)
}

/// How `instr` presents its result.
struct InstrView;

impl StudyView for InstrView {
    type Study = InstrStudy;

    fn print_text(&self, study: &InstrStudy, output: &mut Output) -> Result<(), Failure> {
        tables::print_rows(&study.rows.present_rows().collect::<Vec<_>>(), output)?;
        match &study.summary {
            Some((summary, seconds)) => tables::print_summary(summary, *seconds, output),
            None => Ok(()),
        }
    }

    fn table(&self, study: &InstrStudy) -> Option<TextTable> {
        Some(export::build_latency_table(study.rows.present_rows()))
    }

    fn summary(&self, study: &InstrStudy) -> Option<TextTable> {
        Some(export::build_summary_table(study.rows.present_rows()))
    }

    fn exit_code(&self, study: &InstrStudy) -> u8 {
        let Some((SurveySummary { all, .. }, _)) = &study.summary else { return exit::DONE };
        match all.measured {
            0 if all.failed > 0 => exit::FAULT,
            0 if all.skipped > 0 => exit::UNAVAILABLE,
            _ => exit::DONE,
        }
    }
}

/// Recomputes a survey from its evidence.
pub fn replay_instr(container: &EvidenceContainer, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay_study(&InstrView, container, output)
}

/// Everything that a survey needs to measure.
struct SurveyRunner<'a> {
    common: &'a CommonArgs,
    args: &'a InstrArgs,
    machine: &'a Machine,
    plan: Plan,
    effort: SurveyEffort,
    counters: Option<CounterRequest>,
}

impl<'a> SurveyRunner<'a> {
    fn new(common: &'a CommonArgs, args: &'a InstrArgs, machine: &'a Machine) -> Result<SurveyRunner<'a>, Failure> {
        let request = RunRequest {
            clock: common.one_clock()?,
            mode: args.code_mode.mode(),
            seed: common.chosen_seed(),
            quick: common.quick,
            ..RunRequest::default()
        };
        machine.tsc.require()?;
        let plan = request.make_plan(&common.capabilities(machine), machine)?;
        let effort = if common.quick { SurveyEffort::QUICK } else { SurveyEffort::FULL };
        Ok(SurveyRunner { common, args, machine, plan, effort, counters: None })
    }

    fn build_plan(&self, forms: &[TargetForm]) -> InstrPlan {
        let cpu = self.machine.target_cpu();
        let session =
            session::build_session(self.common, self.args, forms, &self.plan, self.effort, cpu, self.counters.clone());
        let repro_options = self.form_options();
        let how = InstrOptions {
            plan: self.plan.clone(),
            effort: self.effort,
            repro_options,
            counters: self.counters.clone(),
        };
        InstrPlan::new(how, session, self.machine, forms)
    }

    /// The options after `cyclescope instr NAME` in the command that measures one form. The list
    /// that it came from may have its init code.
    fn form_options(&self) -> String {
        let none = InstrArgs {
            filters: Vec::new(),
            mnemonic: Vec::new(),
            isa: Vec::new(),
            all: false,
            explain: None,
            ..self.args.clone()
        };
        repro::format_repro_options(NAME, &none, self.common, self.plan.seed)
    }

    fn explain_forms(&self, forms: Vec<TargetForm>, output: &mut Output) -> Result<u8, Failure> {
        if forms.len() > explain::EXPLAINED_MOST {
            let examples: Vec<String> =
                forms.iter().take(3).map(|s| format!("'{}'", selection::full_name(s))).collect();
            let text = format!("{} forms are too many to explain at once", forms.len());
            let remedy = format!("name at most {}, such as {}", explain::EXPLAINED_MOST, examples.join(", "));
            return Err(Failure::usage(text, Some(&remedy)));
        }
        let mut executor = self.executor_opener(&forms)()?;
        let plan = self.build_plan(&forms);
        let survey = plan.begin_survey(executor.as_mut(), &self.machine.features, forms)?;
        let repro = |row: &InstrRow| {
            let name = format!("{} {}", row.code, row.operands);
            let args =
                InstrArgs { filters: Vec::new(), explain: Some(name.trim_end().to_string()), ..self.args.clone() };
            repro::format_repro(NAME, &args, self.common, self.plan.seed)
        };
        explain::explain_all(&survey, executor.as_mut(), &repro, output)?;
        if let Some(lock) = executor.lock_state() {
            executor::warn_if_cpu_shared(lock, self.machine.target_cpu());
        }
        Ok(exit::DONE)
    }

    fn executor_opener(&self, forms: &[TargetForm]) -> ExecutorOpener {
        let code = CodeOrigin::of_generated_rows(forms.iter().any(TargetForm::has_foreign_code));
        executor::executor_opener(self.common, self.machine, self.plan.clock.reads_counter(), code)
    }

    fn run_survey(
        &self,
        forms: Vec<TargetForm>,
        mut file: Option<ResultFile>,
        (resumed, mut kept): (Option<ResumedFile<InstrSession>>, ResumedSurvey),
        output: &mut Output,
    ) -> Result<u8, Failure> {
        let (common, args) = (self.common, self.args);
        let plan = self.build_plan(&forms);
        let machine = to_json_value(self.machine).map_err(crate::session::evidence::evidence_failure)?;
        if let Some(resumed) = &resumed {
            resumed.require_same_session(&plan.session, &machine, "on the same machine")?;
        }
        if let Some(file) = &mut file {
            file.set_session(to_json_value(&plan.session).map_err(crate::session::evidence::evidence_failure)?);
            if !common.offer().is_default() {
                file.set_resume_command(&["cyclescope", NAME, "--executor", common.offer().name]);
            }
            if resumed.is_some() && kept.rows.len() < forms.len() {
                kept.parts = file.read_journal()?;
            }
        }
        let repro = repro::format_repro(NAME, args, common, self.plan.seed);
        let open = self.executor_opener(&forms);
        let mut study = InstrStudy::new(plan, forms, machine, repro.clone(), open, kept);
        let exports = args.exports.clone();
        let order =
            StudyOrder { file, exports, ..StudyOrder::new(common, self.args.code_mode.mode(), self.machine, &repro)? };
        drive_study(&InstrView, &mut study, order, output)
    }
}

/// Checks a file to resume and the options in it, for tests.
#[cfg(test)]
pub fn check_resumed_file(path: &std::path::Path, content: &[u8]) -> Result<(), Failure> {
    use crate::args::{Cli, CliCommand};
    use clap::Parser;
    let (found, _) = session::read_resumed(path, content)?;
    let cli = Cli::try_parse_from(["cyclescope", "instr", "nop"]).expect("a command");
    let Some(CliCommand::Instr(args)) = cli.command else { unreachable!("the command is instr") };
    let Some(ResumedFile { session, .. }) = &found else { return Ok(()) };
    session::adopt_options(session, &cli.common, &args, path).map(drop)
}
