//! The plan of one form: its experiments.
//!
//! `FormPlan::new` is in `experiment_choice`. Chains and their variations are in
//! `chain_experiments`.

use super::experiment::{ExperimentMeaning, FormExperiment};
use super::program_reading::ProgramReading;
use super::timing::TimingSurroundings;
use crate::bodies::slot_body::SlotShape;
use crate::bodies::x87;
use crate::forms::form_anatomy::{FormAnatomy, RegisterSlot};
use crate::forms::instruction_setting;
use crate::forms::setting_code;
use cyclescope_code::program::EntryState;
use cyclescope_code::snippet::{Snippet, SnippetOutline};
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_core::statistics::median;
use iced_x86::Instruction;

/// Bytes of a body that must be decoded in each iteration. First-level code caches hold 32 KiB or
/// more. Buffers of decoded instructions hold fewer, even at four or five bytes each (Golden Cove
/// 4096, Zen 4 6912).
const DECODED_BYTES: usize = 28 << 10;

/// The experiments of a form.
#[derive(Debug, Clone)]
pub struct FormPlan {
    /// The anatomy of the form.
    pub anatomy: FormAnatomy,
    /// The experiments, in a fixed order.
    pub experiments: Vec<FormExperiment>,
    /// Surroundings that the programs need.
    pub surroundings: TimingSurroundings,
    /// Code that runs before each program's own init code.
    pub(super) init: Vec<u8>,
    /// Whether chains can have fillers.
    pub(super) fillers: bool,
    /// Inputs of the plan, kept to repeat it with another constant.
    pub(super) features: CpuFeatures,
    pub(super) latency: bool,
    /// Whether the plan is for a sequence, which needs no setting.
    pub(super) sequence: bool,
}

impl FormPlan {
    pub(super) fn add_program(
        &mut self,
        meaning: ExperimentMeaning,
        period: &[Instruction],
        copies: usize,
        body: usize,
        init: &[Instruction],
    ) {
        let (Some(period), Some(init)) = (self.anatomy.encode(period), self.anatomy.encode(init)) else {
            return;
        };
        self.add_experiment(FormExperiment {
            meaning,
            period,
            copies,
            body_copies: body,
            init,
            world: EntryState::default(),
        });
    }

    /// Adds an experiment with the plan's init code and the entry state that its code needs.
    pub(super) fn add_experiment(&mut self, experiment: FormExperiment) {
        let Some(mut init) = self.build_init() else { return };
        init.extend(&experiment.init);
        let outline = self.outline_code(&experiment.period, &init);
        // Instances decide the element type; links may use another.
        if self.experiments.is_empty() {
            let full = instruction_setting::find_setting(self.anatomy.code()).full_mantissas;
            let element = outline.world.element;
            self.surroundings.element = if full { element.with_full_mantissa() } else { element };
        }
        // A prefetch for writing accesses nothing, but takes longer on a page that was never
        // written.
        let points = self.anatomy.slots().contains(&RegisterSlot::Base);
        self.surroundings.touches_memory |= outline.touches_memory || points;
        self.surroundings.vectors = self.surroundings.vectors.max(outline.world.vectors);
        self.surroundings.emptied = instruction_setting::find_setting(self.anatomy.code()).empties;
        let world = EntryState { element: self.surroundings.element, ..outline.world };
        self.experiments.push(FormExperiment { init, world, ..experiment });
    }

    pub(super) fn build_init(&self) -> Option<Vec<u8>> {
        if self.sequence {
            return Some(self.init.clone());
        }
        let mut init = self.init.clone();
        init.extend(setting_code::build_setting_code(&self.anatomy)?);
        if x87::uses_stack(&self.anatomy.sample) {
            init.extend(self.anatomy.encode(&x87::fill_stack())?);
        }
        Some(init)
    }

    pub(super) fn outline_code(&self, period: &[u8], init: &[u8]) -> SnippetOutline {
        Snippet::new(period.to_vec(), init.to_vec(), "").with_mode(self.anatomy.mode()).outline(true)
    }

    /// Whether the plan is for a sequence.
    pub(crate) fn is_sequence(&self) -> bool {
        self.sequence
    }

    /// The program of a body that counts dispatch slots.
    pub(crate) fn slot_experiment(
        &self,
        period: &[u8],
        init: &[Instruction],
        shape: SlotShape,
    ) -> Option<FormExperiment> {
        self.body_experiment(period, init, shape.describe())
    }

    /// The program of a body of instances and others.
    pub(crate) fn body_experiment(
        &self,
        period: &[u8],
        init: &[Instruction],
        recipe: String,
    ) -> Option<FormExperiment> {
        let init = [self.build_init()?, self.anatomy.encode(init)?].concat();
        let world = self.outline_code(period, &init).world;
        let world = EntryState { element: self.surroundings.element, ..world };
        let meaning = ExperimentMeaning::Throughput { recipe, burdened: false, program: None, variant: None };
        Some(FormExperiment { meaning, period: period.to_vec(), copies: 1, body_copies: 1, init, world })
    }

    /// The lowest reciprocal throughput among these readings, in core cycles per instance. Infinite
    /// without any.
    pub(crate) fn least_rthroughput(&self, readings: &[ProgramReading]) -> f64 {
        let measured = self.experiments.iter().zip(readings).filter(|(experiment, reading)| {
            matches!(experiment.meaning, ExperimentMeaning::Throughput { variant: None, .. })
                && !reading.cycles.is_empty()
        });
        measured.map(|(_, reading)| median(&mut reading.cycles.clone())).fold(f64::INFINITY, f64::min)
    }

    /// The first throughput program, enlarged to fit the first-level code cache but no buffer of
    /// decoded instructions.
    pub(crate) fn decoder_experiment(&self) -> Option<FormExperiment> {
        // An indirect jump takes its target from a register. Every period would jump to the first.
        if self.anatomy.sample.is_jmp_near_indirect() {
            return None;
        }
        let is_rate = |experiment: &&FormExperiment| matches!(experiment.meaning, ExperimentMeaning::Throughput { .. });
        let first = self.experiments.iter().find(is_rate)?;
        let repeats = DECODED_BYTES / first.period.len();
        Some(FormExperiment { body_copies: repeats * first.copies, ..first.clone() })
    }

    /// Drops programs that may not run. If none is left, returns the first reason.
    pub(crate) fn drop_refused<W>(&mut self, mut against: impl FnMut(&FormExperiment) -> Option<W>) -> Option<W> {
        let mut first = None;
        self.experiments.retain(|experiment| {
            let why = against(experiment);
            let kept = why.is_none();
            first = first.take().or(why);
            kept
        });
        first.filter(|_| self.experiments.is_empty())
    }
}
