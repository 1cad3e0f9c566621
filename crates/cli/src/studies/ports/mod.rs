//! `cyclescope ports`: measures which ports instructions use and share.

mod forms_text;
mod names_text;
mod pair_text;
mod session;
mod sharing_graph;

use crate::args::repro;
use crate::args::{CommonArgs, PortsArgs};
use crate::input::mix_source::pick_form;
use crate::input::slot_table::SlotTable;
use crate::output::report::{Drawing, Picture};
use crate::output::{Failure, Output};
use crate::session::driver::{StudyOrder, StudyView, drive_study};
use crate::session::evidence::evidence_failure;
use crate::session::executor::{self, CodeOrigin};
use crate::session::replay_study;
use crate::session::result_file::ResultFile;
use crate::session::resume::refuse_evidence;
use crate::studies::instr::form_selection::refuse_selection;
use cyclescope::asm::CodeMode;
use cyclescope::input::{self, InputKind};
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::result::container::{EvidenceContainer, to_json_value};
use cyclescope::run::RunRequest;
use cyclescope::study::instr::forms::target_form::TargetForm;
use cyclescope::study::instr::selection::{FormCriteria, full_name, list_forms};
use cyclescope::study::ports::ports_plan::{PortsPlan, PortsQuestion};
use cyclescope::study::ports::published_map::PublishedMap;
use cyclescope::study::ports::study_part::KnownSlots;
use cyclescope::study::ports::{PortsStudy, ResumedPorts};
use cyclescope::study::{GenericSession, TextTable};
use sharing_graph::draw_sharing;
use std::path::Path;

pub use cyclescope::study::ports::NAME;
pub use forms_text::describe_mix;

/// Runs the command and returns the exit code.
pub fn run_ports(common: &CommonArgs, args: &PortsArgs, output: &mut Output) -> Result<u8, Failure> {
    let parts = [("--resume", args.resume.is_some())];
    refuse_evidence(common, &parts, "a survey")?;
    let clock = common.one_clock()?;
    let (mut file, mut resumed, mut kept, mut head_bytes) = (None, None, ResumedPorts::default(), 0);
    if let Some(path) = &args.resume {
        let opened = ResultFile::resume(path, NAME, |content| session::read_resumed(path, content))?;
        (file, (resumed, kept, head_bytes)) = (Some(opened.0), opened.1);
    }
    let adopted = match (&resumed, &args.resume) {
        (Some(resumed), Some(path)) => Some(session::adopt_options(&resumed.session, common, args, path)?),
        (None, Some(path)) if args.filters.is_empty() => return Err(session::refuse_headless(path)),
        _ => None,
    };
    let (common, args) = adopted.as_ref().map_or((common, args), |(common, args)| (common, args));
    let question = if args.pair.is_empty() { PortsQuestion::Forms } else { PortsQuestion::Pair };
    let forms = match question {
        PortsQuestion::Pair => args.pair.iter().map(|name| find_form(name)).collect::<Result<_, _>>()?,
        PortsQuestion::Forms => select_forms(&args.filters)?,
    };
    let names = args.names.as_deref().map(read_published_map).transpose()?;
    let machine = common.detect_machine()?;
    machine.tsc.require()?;
    let slots = args.instr.as_deref().map(|path| read_slots(path, &machine, &forms)).transpose()?;
    let seed = common.chosen_seed();
    let request = RunRequest { clock, seed, quick: common.quick, ..RunRequest::default() };
    let plan = request.make_plan(&common.capabilities(&machine), &machine)?;
    let session = GenericSession {
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed,
        quick: common.quick,
        clock: plan.clock.name.to_string(),
        executor: common.offer().name.to_string(),
        cpu: machine.target_cpu(),
        subjects: forms.iter().map(full_name).collect(),
        counters: None,
    };
    let open = executor::executor_opener(common, &machine, plan.clock.reads_counter(), CodeOrigin::Own);
    let repro = repro::format_repro(NAME, args, common, seed);
    let options = repro::format_repro_options(NAME, &PortsArgs { filters: Vec::new(), ..args.clone() }, common, seed);
    let facts = to_json_value(&machine).map_err(evidence_failure)?;
    if let Some(resumed) = &resumed {
        resumed.require_same_session(&session, &facts, "on the same machine")?;
    }
    if let Some(path) = &args.out {
        file = Some(ResultFile::create(path, NAME, true)?);
    }
    if let Some(file) = &mut file {
        file.set_session(to_json_value(&session).map_err(evidence_failure)?);
        if !common.offer().is_default() {
            file.set_resume_command(&["cyclescope", NAME, "--executor", common.offer().name]);
        }
        if resumed.is_some() && !kept.is_complete(forms.len()) {
            // Rows without the rest of their study are measured again.
            file.truncate_to(head_bytes)?;
            let parts = file.read_journal()?.into_iter();
            kept.parts = parts.filter_map(|part| serde_json::from_value(part).ok()).collect();
        }
    }
    let plan = PortsPlan::new(plan, question, session, options, &machine).explaining(args.explain);
    let plan = plan.with_names(names).with_known_slots(slots);
    let mut study = PortsStudy::new(plan, forms, facts, repro.clone(), open, kept);
    let order = StudyOrder {
        file,
        exports: args.exports.clone(),
        ..StudyOrder::new(common, CodeMode::Bits64, &machine, &repro)?
    };
    drive_study(&PortsView, &mut study, order, output)
}

/// The slots in a result file of `instr`.
fn read_slots(path: &Path, machine: &Machine, forms: &[TargetForm]) -> Result<KnownSlots, Failure> {
    let table = SlotTable::read(path)?;
    table.require_machine(machine)?;
    Ok(KnownSlots::new(table.rows, table.width, forms))
}

/// The text of a published map.
fn read_published_map(path: &Path) -> Result<String, Failure> {
    let remedy = "name a text file with a line for each form, such as: add r64, r64: 1*p0156";
    let bytes = input::read_input(path, InputKind::List).map_err(|bad| Failure::from_input(&bad, remedy))?;
    let name = path.display().to_string();
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{name} is no text"), Some(remedy)))?;
    PublishedMap::read(&text).map_err(|error| Failure::from_file(&name, error))?;
    Ok(text)
}

/// The forms that match any of these filters.
fn select_forms(filters: &[String]) -> Result<Vec<TargetForm>, Failure> {
    let criteria = FormCriteria { filters: filters.to_vec(), ..FormCriteria::default() };
    criteria.select(list_forms(CodeMode::Bits64)).map_err(|unmatched| refuse_selection(&unmatched))
}

/// The form with this name: the first one, if several encodings have it.
fn find_form(name: &str) -> Result<TargetForm, Failure> {
    pick_form(name, select_forms(&[name.to_string()])?)
}

/// How the result is presented.
struct PortsView;

impl StudyView for PortsView {
    type Study = PortsStudy;

    fn print_text(&self, study: &PortsStudy, output: &mut Output) -> Result<(), Failure> {
        if let Some(pair) = &study.pair {
            return pair_text::print_pair(pair, output);
        }
        forms_text::print_rows(&study.rows, study.explains(), output)?;
        match study.count_untimed() {
            0 => {}
            untimed => forms_text::print_untimed(untimed, output)?,
        }
        let Some(classes) = &study.classes else { return Ok(()) };
        forms_text::print_classes(classes, output)?;
        classes.names.as_ref().map_or(Ok(()), |names| names_text::print_names(names, output))
    }

    fn table(&self, study: &PortsStudy) -> Option<TextTable> {
        study.pair.is_none().then(|| forms_text::tabulate_rows(&study.rows))
    }

    fn pictures(&self, study: &PortsStudy, machine: &str) -> Vec<Picture> {
        let graph = |classes| Picture::new("ports-sharing", Drawing::Linked(draw_sharing(classes, machine)));
        study.classes.as_ref().map(graph).into_iter().collect()
    }

    fn exit_code(&self, study: &PortsStudy) -> u8 {
        if study.fell_short() { exit::FELL_SHORT } else { exit::DONE }
    }
}

/// Recomputes a result from its evidence.
pub fn replay_ports(container: &EvidenceContainer, output: &mut Output) -> Result<u8, Failure> {
    replay_study::replay_study(&PortsView, container, output)
}
