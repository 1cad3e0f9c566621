//! The study `ports`.

use crate::class_survey::read_ports;
use crate::classes_record::ClassesRecord;
use crate::deciding_mix::FormNames;
use crate::executor_mixes::ExecutorMixes;
use crate::forms_survey::{SurveyedForm, SurveyedPorts, survey_forms};
use crate::mix_source::{MixSource, time_singles};
use crate::pair_record::{PairFormRecord, PairMixRecord, PairRecord};
use crate::pair_share::{PairForm, PairMix, PairShare, PairVerdict, build_pair_mix, judge_pair, plan_pair_counts};
use crate::port_aliases::PortAliases;
use crate::port_labels::{find_unit, is_compound, reads_memory};
use crate::ports_plan::{PortsPlan, PortsQuestion};
use crate::ports_row::{PortsRow, RowStart, most_are_untimed};
use crate::reference_forms::{is_reference, list_reference_forms};
use crate::study_part::{MeasuredSlots, StudyPart};
use cyclescope_code::asm::CodeMode;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::random::{Random, mix_seeds};
use cyclescope_core::unit::Unit;
use cyclescope_exec::{Executor, ExecutorOpener, LockState, failing_opener};
use cyclescope_instr::experiments::slot_judgement::SlotVerdict;
use cyclescope_instr::forms::target_form::TargetForm;
use cyclescope_instr::mixes::mix_form::MixForm;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTime, MixTimer};
use cyclescope_instr::rows::instr_row::InstrRow;
use cyclescope_instr::selection::full_name;
use cyclescope_instr::survey::{FormSurvey, SurveyEvent, SurveyState};
use cyclescope_instr::survey_settings::{SurveySettings, SurveyTiming};
use cyclescope_measure::resolve_imul_latency;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::container::{ContainerError, EvidenceContainer, to_json_value};
use cyclescope_measure::result::record::Quantity;
use cyclescope_measure::study::{
    GenericHead, RecordRole, ResultRecord, StopReason, Study, StudyFollower, StudyInfo, StudyProgress, check_stop,
};
use serde_json::Value;
use std::io;
use std::ops::ControlFlow;

/// The study's name on the command line and in result files.
pub const NAME: &str = "ports";
/// The kind of a pair's line.
pub const PAIR_KIND: &str = "ports.pair";
/// The kind of the last line, with all classes.
pub const CLASSES_KIND: &str = "ports.classes";

/// The study's entry in the list of studies.
pub const INFO: StudyInfo = StudyInfo {
    name: NAME,
    about: "µops, ports and what instructions share, from time alone",
    restore: |container| Ok(Box::new(PortsStudy::restore(container)?)),
    generic: None,
};

/// A study of some forms.
pub struct PortsStudy {
    plan: PortsPlan,
    forms: Vec<TargetForm>,
    /// Facts about the machine, as `doctor` prints them.
    machine: Value,
    repro: String,
    open: ExecutorOpener,
    resumed: ResumedPorts,
    /// What the pair shares, once known.
    pub pair: Option<PairRecord>,
    /// The rows of the forms, once known.
    pub rows: Vec<PortsRow>,
    /// The classes, once known.
    pub classes: Option<ClassesRecord>,
    lock: Option<LockState>,
}

/// What a result file contains of an interrupted study.
#[derive(Default)]
pub struct ResumedPorts {
    /// The first line.
    pub head: Option<Value>,
    /// Rows. They count only if all are there, and the classes.
    pub rows: Vec<PortsRow>,
    /// The last line.
    pub classes: Option<ClassesRecord>,
    /// Slots and times of mixes.
    pub parts: Vec<StudyPart>,
}

impl ResumedPorts {
    /// Whether a file has everything about this number of forms.
    pub fn is_complete(&self, forms: usize) -> bool {
        self.rows.len() == forms && self.classes.is_some()
    }
}

/// Tries of the slots per core cycle: on a busy machine some have no number.
const WIDTH_TRIES: usize = 5;

/// Make the seeds of slots, mixes and latencies differ.
const SLOTS_SEED: u64 = 1;
const MIXES_SEED: u64 = 2;
const LATENCIES_SEED: u64 = 3;

/// What is known of each form before it is mixed.
struct FormFacts {
    /// Its row of `instr`, with its slots.
    row: Option<InstrRow>,
    /// Its index among the forms that can be mixed, or why it can't be.
    place: Result<usize, String>,
}

impl FormFacts {
    /// Slots of a copy, if they are certain.
    fn count_slots(&self) -> Option<f64> {
        let slots = self.row.as_ref()?.slots.as_ref()?;
        slots.whole.filter(|_| slots.verdict == SlotVerdict::Exact).map(|whole| whole as f64)
    }

    fn describe_slots(&self) -> String {
        let slots = self.row.as_ref().and_then(|row| row.slots.as_ref());
        slots.map_or("-".to_string(), |slots| slots.summarize())
    }
}

impl PortsStudy {
    /// A study of these forms on the machine with these facts. `repro` is the command that repeats
    /// it, `resumed` what a file already has of it.
    pub fn new(
        plan: PortsPlan,
        forms: Vec<TargetForm>,
        machine: Value,
        repro: String,
        open: ExecutorOpener,
        resumed: ResumedPorts,
    ) -> PortsStudy {
        PortsStudy {
            plan,
            forms,
            machine,
            repro,
            open,
            resumed,
            pair: None,
            rows: Vec::new(),
            classes: None,
            lock: None,
        }
    }

    /// Whether the machine was too busy for the question: most forms have no time, or no mix of a pair.
    pub fn fell_short(&self) -> bool {
        if let Some(pair) = &self.pair {
            return pair.mixes.is_empty();
        }
        most_are_untimed(&self.rows)
    }

    /// Forms that could be timed on a quiet machine, and have no time.
    pub fn count_untimed(&self) -> usize {
        self.rows.iter().filter(|row| row.is_untimed()).count()
    }

    /// Whether rows list the mixes that decided them.
    pub fn explains(&self) -> bool {
        self.plan.explain
    }

    /// Finds the slots of all forms: those that are known, and measures the others.
    fn find_slots(
        &self,
        executor: &mut dyn Executor,
        timing: SurveyTiming,
        forms: &[TargetForm],
        follow: &mut dyn StudyFollower,
    ) -> Result<MeasuredSlots, StopReason> {
        let Some(known) = &self.plan.known_slots else { return self.measure_slots(executor, timing, forms, follow) };
        let mut rows = known.find_rows(forms);
        let missing: Vec<TargetForm> =
            forms.iter().zip(&rows).filter(|(_, row)| row.is_none()).map(|(target, _)| target.clone()).collect();
        if !missing.is_empty() {
            let measured = self.measure_slots(executor, timing, &missing, follow)?;
            rows.iter_mut().filter(|row| row.is_none()).zip(measured.rows).for_each(|(row, own)| *row = own);
        }
        Ok(MeasuredSlots { rows, width: Some(known.width) })
    }

    /// Measures the slots of all forms. Returns their rows, and the slots per core cycle.
    fn measure_slots(
        &self,
        executor: &mut dyn Executor,
        timing: SurveyTiming,
        forms: &[TargetForm],
        follow: &mut dyn StudyFollower,
    ) -> Result<MeasuredSlots, StopReason> {
        let features = self.plan.features();
        let seed = mix_seeds(self.plan.plan.seed, SLOTS_SEED);
        let settings = SurveySettings { effort: self.plan.slot_effort, seed, confidence: self.plan.plan.confidence };
        // Latencies say nothing about ports.
        let targets: Vec<TargetForm> =
            forms.iter().map(|target| TargetForm { latency: false, ..target.clone() }).collect();
        let names: Vec<(String, String)> = targets.iter().map(|target| (target.code(), target.operands())).collect();
        let survey = FormSurvey::new(timing, executor, &features, targets, settings)?;
        let width = survey.filler_curves.width();
        let mut rows: Vec<Option<InstrRow>> = vec![None; names.len()];
        let mut flow = ControlFlow::Continue(());
        survey.run(executor, SurveyState::default(), &mut |event, progress| {
            if let SurveyEvent::Row(row) = event {
                // A pair may be a form with itself.
                let own = names.iter().zip(&mut rows);
                own.filter(|((code, operands), _)| (code, operands) == (&row.code, &row.operands))
                    .for_each(|(_, place)| *place = Some(row.as_ref().clone()));
            }
            let (done, total) = (progress.done as u64, progress.total as u64);
            flow = follow.report_progress(StudyProgress { done, total, message: "slots".to_string() });
            flow
        })?;
        check_stop(flow)?;
        Ok(MeasuredSlots { rows, width })
    }

    /// Reports the rows of a complete file.
    fn report_resumed(&mut self, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        (self.rows, self.classes) = (std::mem::take(&mut self.resumed.rows), self.resumed.classes.take());
        self.name_ports();
        let rows = self.rows.iter().map(|row| ResultRecord::new(NAME, row));
        let classes = self.classes.iter().map(|classes| ResultRecord::new(CLASSES_KIND, classes));
        for record in rows.chain(classes) {
            check_stop(follow.accept_record(ResultRecord { role: RecordRole::Resumed, ..record }))?;
        }
        Ok(())
    }

    /// Enters the published names of ports, if a published map was given.
    fn name_ports(&mut self) {
        let (Some(published), Some(classes)) = (self.plan.published_map(), &mut self.classes) else { return };
        let aliases = PortAliases::find(classes, &self.rows, &published);
        self.rows.iter_mut().for_each(|row| aliases.name_row(row));
        aliases.name_classes(classes);
    }

    /// The key of a form's row, and the command that repeats it.
    fn start_row(&self, target: &TargetForm, facts: &FormFacts) -> RowStart {
        let name = full_name(target);
        let quoted = shlex::try_quote(&name).unwrap_or_default();
        let repro = format!("cyclescope {NAME} {quoted} {}", self.plan.repro_options).trim_end().to_string();
        RowStart {
            code: target.code(),
            mnemonic: target.mnemonic(),
            operands: target.operands(),
            encoding: target.encoding().to_string(),
            executor: self.plan.session.executor.clone(),
            cycles: None,
            slots: facts.row.as_ref().and_then(|row| row.slots.clone()),
            repro,
        }
    }

    /// Measures what both forms share.
    fn measure_pair(
        &self,
        source: &mut dyn MixSource,
        facts: &[FormFacts],
        width: Option<f64>,
    ) -> Result<PairRecord, StopReason> {
        let alone = measure_alone(source, facts)?;
        let form = |at: usize| -> Option<PairForm> {
            let slots = facts[at].count_slots();
            let cycles = alone[at].as_ref()?.cycles;
            let ports = width.filter(|_| slots == Some(1.0)).and_then(|width| read_ports(cycles, width));
            Some(PairForm { cycles, slots, ports })
        };
        let forms = [form(0), form(1)];
        let record = |at: usize| {
            let reason = match (&facts[at].place, &alone[at]) {
                (Err(why), _) => Some(why.clone()),
                (Ok(_), None) => Some("alone, it has no time".to_string()),
                (Ok(_), Some(_)) => None,
            };
            let cycles = alone[at].as_ref().map_or(Quantity::refused(Unit::CoreCycles), MixTime::to_quantity);
            let ports = forms[at].and_then(|form| form.ports);
            PairFormRecord::new(&self.forms[at], cycles, facts[at].describe_slots(), ports, reason)
        };
        let records = [record(0), record(1)];
        let repro = self.repro.clone();
        let ([Some(one), Some(other)], [Ok(first), Ok(second)]) = (forms, [0, 1].map(|at| facts[at].place.clone()))
        else {
            let why = "a form can't be mixed".to_string();
            let verdict = PairVerdict { share: PairShare::Untold, union: None, why };
            return Ok(PairRecord::new(records, verdict, Vec::new(), width, repro));
        };
        let pair = [one, other];
        let counts = plan_pair_counts(pair);
        let mixes: Vec<_> = counts.iter().map(|counts| build_pair_mix([first, second], *counts)).collect();
        let (mut timed, mut refusal) = (Vec::new(), None);
        for (outcome, counts) in source.time_mixes(&mixes)?.into_iter().zip(counts) {
            match outcome {
                MixOutcome::Timed(time) => timed.push(PairMix { counts, time }),
                MixOutcome::Refused(why) => refusal = Some(why),
            }
        }
        let names = [records[0].name(), records[1].name()];
        let verdict = match refusal {
            Some(why) if timed.is_empty() => {
                PairVerdict { share: PairShare::Untold, union: None, why: format!("no mix of both has a time: {why}") }
            }
            _ => judge_pair(pair, [&names[0], &names[1]], &timed, width.unwrap_or(f64::INFINITY)),
        };
        let mixes = timed.iter().map(|mix| PairMixRecord::new(mix, pair, width)).collect();
        Ok(PairRecord::new(records, verdict, mixes, width, repro))
    }
}

fn name_form(target: &TargetForm) -> FormNames {
    let evex = if target.encoding() == "evex" { " (evex)" } else { "" };
    let text = format!("{} {}{evex}", target.mnemonic(), target.operands()).trim_end().to_string();
    FormNames { code: target.code(), full: full_name(target), text }
}

/// The forms as they were mixed, and what the mixes say.
struct SurveyedStudy {
    forms: Vec<SurveyedForm>,
    ports: SurveyedPorts,
}

/// Measures the ports of all forms.
fn survey_all(
    source: &mut dyn MixSource,
    targets: &[TargetForm],
    facts: &[FormFacts],
    mix_forms: &[MixForm],
    width: f64,
) -> Result<SurveyedStudy, StopReason> {
    let form = |(target, facts): (&TargetForm, &FormFacts)| SurveyedForm {
        name: full_name(target),
        place: facts.place.clone(),
        slots: facts.row.as_ref().and_then(|row| row.slots.clone()),
        unit: find_unit(target),
        chains: facts.place.as_ref().map_or(Vec::new(), |place| mix_forms[*place].list_chains()),
        is_compound: is_compound(target),
        reads_memory: reads_memory(target),
        is_reference: is_reference(target),
        rthroughput: facts.row.as_ref().and_then(|row| row.throughput.as_ref()?.cost.value),
    };
    let forms: Vec<SurveyedForm> = targets.iter().zip(facts).map(form).collect();
    let ports = survey_forms(source, &forms, width)?;
    Ok(SurveyedStudy { forms, ports })
}

/// The times of all forms alone. `None` for those that can't be mixed or timed.
fn measure_alone(source: &mut dyn MixSource, facts: &[FormFacts]) -> Result<Vec<Option<MixTime>>, StopReason> {
    let places: Vec<usize> = facts.iter().filter_map(|facts| facts.place.as_ref().ok().copied()).collect();
    let mut times = time_singles(source, &places)?.into_iter();
    Ok(facts.iter().map(|facts| facts.place.as_ref().ok().and_then(|_| times.next().flatten())).collect())
}

impl Study for PortsStudy {
    fn name(&self) -> &'static str {
        NAME
    }

    fn plan(&self) -> io::Result<Value> {
        to_json_value(&self.plan)
    }

    fn restore(container: &EvidenceContainer) -> Result<PortsStudy, ContainerError> {
        let plan: PortsPlan = container.facts()?;
        let forms = plan.restore_forms()?;
        let (machine, repro) = (container.machine()?, container.manifest.origin.repro.clone());
        Ok(PortsStudy::new(plan, forms, machine, repro, failing_opener(), ResumedPorts::default()))
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        let head = match &self.resumed.head {
            Some(head) => ResultRecord::from_resumed_line("machine", head),
            None => ResultRecord::new("machine", &GenericHead { machine: &self.machine, session: &self.plan.session }),
        };
        if self.resumed.is_complete(self.forms.len()) {
            check_stop(follow.accept_record(head))?;
            return self.report_resumed(follow);
        }
        let mut executor = answers.open_executor(|| (self.open)())?;
        if executor.capabilities().is_emulated() {
            let why = "the machine is emulated: its clock is not a core's";
            let (what, remedy) = ("ports".to_string(), "measure on a real or a virtual machine".to_string());
            return Err(Unavailable { what, why: why.to_string(), remedy }.into());
        }
        check_stop(follow.accept_record(head))?;
        let settings = &self.plan.plan;
        let imul_latency = resolve_imul_latency(executor.as_mut(), settings)?;
        let timing = SurveyTiming {
            clock: settings.clock,
            step: settings.step,
            imul_latency,
            mode: CodeMode::Bits64,
            adders: settings.adders,
        };
        let mut forms = self.forms.clone();
        if self.plan.question == PortsQuestion::Forms {
            forms.extend(list_reference_forms(&self.forms));
        }
        let (mut known, mut timed) = (None, Vec::new());
        for part in std::mem::take(&mut self.resumed.parts) {
            match part {
                StudyPart::Slots(slots) => {
                    known = Some(slots).filter(|slots| slots.rows.len() == forms.len() && slots.width.is_some());
                }
                StudyPart::Mixes(mixes) => timed.push(mixes),
            }
        }
        let slots = match known {
            Some(slots) => slots,
            None => {
                let mut slots = self.find_slots(executor.as_mut(), timing, &forms, follow)?;
                for _ in 1..WIDTH_TRIES {
                    if slots.width.is_none() {
                        slots = self.find_slots(executor.as_mut(), timing, &forms, follow)?;
                    }
                }
                let part = StudyPart::Slots(slots);
                check_stop(follow.save_part(&|| serde_json::to_string(&part).expect("rows are plain data")))?;
                let StudyPart::Slots(slots) = part else { unreachable!("it is the slots") };
                slots
            }
        };
        let MeasuredSlots { rows, width } = slots;
        let (features, ring) = (self.plan.features(), executor.capabilities().ring);
        let mut mix_forms: Vec<MixForm> = Vec::new();
        let facts: Vec<FormFacts> = forms
            .iter()
            .zip(rows)
            .map(|(target, row)| {
                let place = MixForm::new(target, &features, ring).map(|form| {
                    mix_forms.push(form);
                    mix_forms.len() - 1
                });
                FormFacts { row, place }
            })
            .collect();
        let mut random = Random::new(mix_seeds(settings.seed, LATENCIES_SEED));
        MixTimer::measure_latencies(timing, executor.as_mut(), &mut mix_forms, &mut random)?;
        let timer = MixTimer::new(timing, &mix_forms, self.plan.effort, settings.confidence);
        let seed = mix_seeds(settings.seed, MIXES_SEED);
        let mut source = ExecutorMixes::new(timer, executor.as_mut(), seed, follow, timed);
        match self.plan.question {
            PortsQuestion::Pair => {
                let pair = self.measure_pair(&mut source, &facts, width)?;
                check_stop(source.accept_record(ResultRecord::new(PAIR_KIND, &pair)))?;
                self.pair = Some(pair);
            }
            PortsQuestion::Forms => {
                let too_busy = || RunError::TooBusy { what: "the slots per core cycle".to_string() };
                let width = width.ok_or_else(too_busy)?;
                let found = survey_all(&mut source, &forms, &facts, &mix_forms, width)?;
                let own = forms.iter().zip(&facts).filter(|(_, facts)| facts.place.is_ok());
                let full_names: Vec<FormNames> = own.map(|(target, _)| name_form(target)).collect();
                let names: Vec<String> = full_names.iter().map(|names| names.text.clone()).collect();
                for (form, target) in self.forms.iter().enumerate() {
                    let start = self.start_row(target, &facts[form]);
                    let mut row = found.ports.build_row(form, &found.forms[form], &names, start);
                    if let (true, Ok(place)) = (self.plan.explain, &facts[form].place) {
                        row.mixes = found.ports.list_row_mixes(form, *place, &full_names);
                    }
                    self.rows.push(row);
                }
                self.classes = Some(ClassesRecord::new(&found.ports, &full_names, width));
                self.name_ports();
                let rows = self.rows.iter().map(|row| ResultRecord::new(NAME, row));
                let classes = self.classes.iter().map(|classes| ResultRecord::new(CLASSES_KIND, classes));
                rows.chain(classes).try_for_each(|record| check_stop(source.accept_record(record)))?;
            }
        }
        self.lock = executor.lock_state().cloned();
        Ok(())
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.lock.as_ref()
    }
}
