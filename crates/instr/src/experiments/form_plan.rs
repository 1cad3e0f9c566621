//! The plan of one form: its experiments.

use super::branch;
use super::experiment::{ChainVariation, ExperimentMeaning, FormExperiment};
use super::program_reading::ProgramReading;
use super::sequence_experiments;
use super::timing::TimingSurroundings;
use crate::bodies::balance::balance_instance;
use crate::bodies::chain::{ChainEnds, ChainFillers, ChainRegisters, LatencyChain};
use crate::bodies::control_variants;
use crate::bodies::links::{self, Link};
use crate::bodies::operand_values::{self, ValueCandidate};
use crate::bodies::route::{find_routes, pad_route};
use crate::bodies::slot_body::SlotShape;
use crate::bodies::throughput_body::{
    AddressPattern, DependencyBreaking, DependencyHazards, RECIPES, RENEWAL_USES, STEERED_RECIPES, ThroughputBody,
    ThroughputRecipe,
};
use crate::bodies::x87;
use crate::forms::encoded_constant::EncodedConstant;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, OperandPort, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use crate::forms::setting_code;
use crate::forms::target_form::TargetForm;
use cyclescope_code::asm::access::is_non_temporal_store;
use cyclescope_code::asm::forms::FormPrefix;
use cyclescope_code::program::EntryState;
use cyclescope_code::snippet::{Snippet, SnippetOutline};
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_core::statistics::median;
use iced_x86::{EncodingKind, Instruction};

/// Approximate number of instances in the body of a chain.
const CHAIN_COPIES: usize = 96;
/// Bytes of a body that must be decoded in each iteration. First-level code caches hold 32 KiB or
/// more. Buffers of decoded instructions hold fewer, even at four or five bytes each (Golden Cove
/// 4096, Zen 4 6912).
const DECODED_BYTES: usize = 28 << 10;
/// Number of cache lines that are written whole, in order: more than any core has buffers for.
const LINES_WALKED: usize = 256;
/// The filler instruction of chains.
const FILLER_LINK: Link = links::FROM_VECTOR_VEX;

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
    init: Vec<u8>,
    /// Whether chains can have fillers.
    fillers: bool,
    /// Inputs of the plan, kept to repeat it with another constant.
    features: CpuFeatures,
    latency: bool,
    /// Whether the plan is for a sequence, which needs no setting.
    sequence: bool,
}

impl FormPlan {
    /// Plans the experiments of a form on a CPU with these features.
    pub fn new(anatomy: FormAnatomy, features: &CpuFeatures, target: &TargetForm) -> FormPlan {
        // Legacy and VEX code must not mix.
        let legacy = anatomy.sample.op_code().encoding() == EncodingKind::Legacy;
        let mut plan = FormPlan {
            fillers: !legacy && FILLER_LINK.is_available(anatomy.mode(), features),
            anatomy,
            experiments: Vec::new(),
            surroundings: TimingSurroundings::default(),
            init: target.init.clone(),
            features: features.clone(),
            latency: target.latency,
            sequence: target.sequence.is_some(),
        };
        if let Some(sequence) = &target.sequence {
            if sequence.instructions().iter().any(x87::uses_stack) {
                let fill = plan.anatomy.encode(&x87::fill_stack()).expect("loads of constants");
                plan.init = [fill, plan.init].concat();
            }
            let experiments = sequence_experiments::plan_sequence(sequence, &target.init, target.latency);
            experiments.into_iter().for_each(|experiment| plan.add_experiment(experiment));
            return plan;
        }
        if let Some(experiments) = branch::plan_branch(&plan.anatomy) {
            let asked =
                |one: &FormExperiment| target.latency || !matches!(one.meaning, ExperimentMeaning::Latency { .. });
            experiments.into_iter().filter(asked).for_each(|experiment| plan.add_experiment(experiment));
            return plan;
        }
        plan.plan_ordinary_operands();
        plan.plan_other_operands(features, target.latency);
        plan
    }

    /// The plan with another constant, without special operands. `None` if the form's code can't
    /// hold the constant. Experiments keep their indices.
    pub(crate) fn with_constant(&self, constant: EncodedConstant) -> Option<FormPlan> {
        let anatomy = self.anatomy.with_constant(constant)?;
        let mut plan = FormPlan { anatomy, experiments: Vec::new(), ..self.clone() };
        plan.plan_ordinary_operands();
        plan.is_like(self).then_some(plan)
    }

    /// Whether all experiments measure the same quantities as those at the same indices of another
    /// plan.
    fn is_like(&self, other: &FormPlan) -> bool {
        let alike = |(one, other): (&FormExperiment, &FormExperiment)| one.meaning.is_like(&other.meaning);
        self.experiments.len() <= other.experiments.len() && self.experiments.iter().zip(&other.experiments).all(alike)
    }

    /// Plans the experiments with ordinary operands.
    fn plan_ordinary_operands(&mut self) {
        self.plan_throughput();
        if self.latency {
            self.plan_latencies(&self.features.clone());
            self.plan_same_destination();
        }
    }

    fn add_program(
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
    fn add_experiment(&mut self, experiment: FormExperiment) {
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

    fn build_init(&self) -> Option<Vec<u8>> {
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

    fn outline_code(&self, period: &[u8], init: &[u8]) -> SnippetOutline {
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

    fn plan_throughput(&mut self) {
        let anatomy = self.anatomy.clone();
        if is_non_temporal_store(&anatomy.sample) {
            return self.plan_non_temporal_stores();
        }
        let hazards = DependencyHazards::from_anatomy(&anatomy);
        let kept = instruction_setting::find_setting(anatomy.code()).restores_values;
        let mut recipes: Vec<ThroughputRecipe> = RECIPES.to_vec();
        if hazards.has_any() && matches!(anatomy.form.prefix, FormPrefix::None | FormPrefix::Lock) {
            // An address that stays constant needs no breaking. A value that must be kept needs
            // restoring.
            let more: &[DependencyBreaking] = match (hazards.has_addresses(), kept) {
                (true, _) => &[DependencyBreaking::Once],
                (false, true) => &[],
                (false, false) => &[DependencyBreaking::Zero, DependencyBreaking::None],
            };
            for breaking in more {
                recipes.extend([0, 1, 3].map(|index| ThroughputRecipe { breaking: *breaking, ..RECIPES[index] }));
            }
        }
        if matches!(anatomy.form.prefix, FormPrefix::None) {
            let renewing = RENEWAL_USES.into_iter().flat_map(|uses| {
                [0, 1].map(|index| ThroughputRecipe { breaking: DependencyBreaking::Renew(uses), ..RECIPES[index] })
            });
            recipes.extend(renewing);
            recipes.extend(STEERED_RECIPES);
        }
        let on_memory = anatomy.slots().contains(&RegisterSlot::Base);
        for recipe in recipes {
            let Some(body) = ThroughputBody::new(&anatomy, recipe) else { continue };
            let instances = (recipe.copies / body.copies).max(1) * body.copies;
            let balance = balance_instance(&anatomy.sample);
            let burdened = !balance.0.is_empty() || !balance.1.is_empty();
            let meaning = ExperimentMeaning::Throughput {
                recipe: body.describe(instances, on_memory),
                burdened,
                program: Some(recipe),
                variant: None,
            };
            self.add_program(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }

    /// Non-temporal stores: whole lines, and as a variant all to one line.
    fn plan_non_temporal_stores(&mut self) {
        let anatomy = self.anatomy.clone();
        for (addresses, variant) in
            [(AddressPattern::Walk(LINES_WALKED), None), (AddressPattern::One, Some("one line"))]
        {
            let recipe = ThroughputRecipe { addresses, ..RECIPES[1] };
            let Some(body) = ThroughputBody::new(&anatomy, recipe) else { continue };
            let instances = (recipe.copies / body.copies).max(1) * body.copies;
            let variant = variant.map(str::to_string);
            let meaning = ExperimentMeaning::Throughput {
                recipe: body.describe(instances, true),
                burdened: false,
                program: None,
                variant,
            };
            self.add_program(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }

    fn plan_latencies(&mut self, features: &CpuFeatures) {
        let anatomy = self.anatomy.clone();
        let has = |links: &[Link]| links.iter().all(|link| link.is_available(anatomy.mode(), features));
        for from in &anatomy.inputs {
            for to in &anatomy.outputs {
                if gather::is_mask(&anatomy, from.place) || gather::is_mask(&anatomy, to.place) {
                    continue;
                }
                let through_memory = from.place == OperandPlace::Memory || to.place == OperandPlace::Memory;
                for links in find_routes(&anatomy, from.place, to.place) {
                    if !has(&links) {
                        continue;
                    }
                    let own = from.variant.map(str::to_string);
                    self.plan_chain(from, to, &links, ChainRegisters::Distinct, own.clone());
                    if through_memory && !links.is_empty() {
                        self.plan_chain(from, to, &links, ChainRegisters::Alternating, own.clone());
                    }
                    if anatomy.keeps_flags() && !through_memory {
                        self.plan_chain(from, to, &links, ChainRegisters::FlagsKept, own);
                    }
                }
            }
        }
        self.plan_same_register();
    }

    fn plan_chain(
        &mut self,
        from: &OperandPort,
        to: &OperandPort,
        links: &[Link],
        registers: ChainRegisters,
        variant: Option<String>,
    ) {
        let Some(chain) = LatencyChain::new(&self.anatomy, ChainEnds { from, to }, links, registers) else {
            return;
        };
        let Some(turn) = self.anatomy.encode(&chain.period[..chain.turn]) else { return };
        let meaning = ExperimentMeaning::Latency {
            from: from.name.clone(),
            to: to.name.clone(),
            variant,
            links: chain.links.clone(),
            ports: Some(Box::new((from.clone(), to.clone(), registers))),
            turn,
        };
        let mut body = CHAIN_COPIES / (1 + chain.links.len() / 3);
        if registers == ChainRegisters::Alternating {
            body = chain.copies * ((body / chain.copies).max(1) | 1);
        }
        self.add_program(meaning, &chain.period, chain.copies, body, &chain.init);
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

    /// Whether an experiment is a chain through memory.
    pub(crate) fn is_through_memory(&self, index: usize) -> bool {
        self.has_end(index, |place| place == OperandPlace::Memory)
    }

    /// Whether an experiment is a chain from or to flags or a fixed register.
    pub(crate) fn is_implied(&self, index: usize) -> bool {
        self.has_end(index, |place| matches!(place, OperandPlace::Fixed(_) | OperandPlace::Flags(_)))
    }

    fn has_end(&self, index: usize, is: impl Fn(OperandPlace) -> bool) -> bool {
        match &self.experiments[index].meaning {
            ExperimentMeaning::Latency { ports: Some(ports), .. } => is(ports.0.place) || is(ports.1.place),
            _ => false,
        }
    }

    /// A variation of a latency's chain.
    pub fn vary_chain(&self, index: usize, variation: ChainVariation) -> Option<FormExperiment> {
        let experiment = &self.experiments[index];
        let ExperimentMeaning::Latency { links, ports: Some(ports), variant, .. } = &experiment.meaning else {
            return None;
        };
        let (from, to, registers) = &**ports;
        let mut registers = *registers;
        let (links, fillers) = match variation {
            // Links need distinct registers.
            ChainVariation::Longer(_) if matches!(registers, ChainRegisters::Same | ChainRegisters::Alternating) => {
                return None;
            }
            ChainVariation::Longer(more) => (pad_route(&self.anatomy, from.place, to.place, links, more)?, None),
            ChainVariation::Beside(count) => {
                let banks = [self.anatomy.place_bank(from.place), self.anatomy.place_bank(to.place)];
                if banks != [RegisterBank::Vector; 2] || !self.fillers {
                    return None;
                }
                (links.clone(), Some(ChainFillers { link: FILLER_LINK, count }))
            }
            ChainVariation::Cleared => {
                if registers != ChainRegisters::Distinct || !links.is_empty() {
                    return None;
                }
                registers = ChainRegisters::Cleared;
                (links.clone(), None)
            }
        };
        let chain = LatencyChain::with_fillers(&self.anatomy, ChainEnds { from, to }, &links, registers, fillers)?;
        let (period, mut init) = (self.anatomy.encode(&chain.period)?, self.build_init()?);
        init.extend(self.anatomy.encode(&chain.init)?);
        let world = self.outline_code(&period, &init).world;
        let world = EntryState { element: self.surroundings.element, ..world };
        let body = CHAIN_COPIES / (1 + links.len() / 3);
        let meaning = ExperimentMeaning::Latency {
            from: from.name.clone(),
            to: to.name.clone(),
            variant: variant.clone(),
            links,
            ports: None,
            turn: self.anatomy.encode(&chain.period[..chain.turn])?,
        };
        Some(FormExperiment { meaning, period, copies: chain.copies, body_copies: body, init, world })
    }

    /// Plans a chain in which inputs and output are one register.
    fn plan_same_register(&mut self) {
        let anatomy = self.anatomy.clone();
        let explicit = |port: &&OperandPort| matches!(port.place, OperandPlace::Slot(RegisterSlot::Operand(_)));
        let Some(to) = anatomy.outputs.iter().find(explicit) else { return };
        let bank = anatomy.place_bank(to.place);
        if !matches!(bank, RegisterBank::General | RegisterBank::Vector | RegisterBank::Mask | RegisterBank::Mmx) {
            return;
        }
        let inputs: Vec<&OperandPort> =
            anatomy.inputs.iter().filter(explicit).filter(|port| anatomy.place_bank(port.place) == bank).collect();
        let slots = anatomy.slots();
        let memory = slots.contains(&RegisterSlot::Base);
        let distinct: Vec<&&OperandPort> = inputs.iter().filter(|port| port.place != to.place).collect();
        let info = anatomy.sample.op_code();
        let apart = info.requires_unique_dest_reg_num() || info.requires_unique_reg_nums();
        // With one register for two results, neither latency can be measured.
        let results = anatomy.outputs.iter().filter(explicit).filter(|port| anatomy.place_bank(port.place) == bank);
        if memory || distinct.is_empty() || apart || results.count() > 1 {
            return;
        }
        let from = inputs.last().copied().expect("there is one");
        self.plan_chain(from, to, &[], ChainRegisters::Same, Some("same register".to_string()));
    }

    /// Plans a test for false dependencies, with an output that is not an input in the instruction
    /// database.
    fn plan_same_destination(&mut self) {
        let anatomy = self.anatomy.clone();
        let writes_only = |port: &&OperandPort| {
            matches!(port.place, OperandPlace::Slot(RegisterSlot::Operand(_)))
                && !anatomy.reads_place(port.place)
                && matches!(
                    anatomy.place_bank(port.place),
                    RegisterBank::General | RegisterBank::HighByte | RegisterBank::Vector | RegisterBank::Mask
                )
        };
        let Some(to) = anatomy.outputs.iter().find(writes_only) else { return };
        let recipe = ThroughputRecipe {
            destinations: 1,
            copies: 96,
            nop_after: None,
            companions: None,
            lead: 0,
            addresses: AddressPattern::One,
            breaking: DependencyBreaking::Copy,
        };
        if let Some(body) = ThroughputBody::new(&anatomy, recipe) {
            let meaning = ExperimentMeaning::SameDestination { to: to.name.clone() };
            self.add_program(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }

    /// Plans gathers and scatters with indices that are not all zero.
    fn plan_index_patterns(&mut self) {
        let anatomy = self.anatomy.clone();
        let Some(body) = ThroughputBody::new(&anatomy, RECIPES[0]).filter(|body| body.masks) else { return };
        let Some(instance) = body.period.iter().find(|one| one.is_vsib()) else { return };
        let instances = (RECIPES[0].copies / body.copies).max(1) * body.copies;
        for name in gather::INDEX_PATTERNS {
            let Some(pattern) = gather::write_indices(&anatomy, instance, name) else { continue };
            let init = [body.init.as_slice(), &pattern].concat();
            let (recipe, variant) = (body.describe(instances, true), Some(name.to_string()));
            let meaning = ExperimentMeaning::Throughput { recipe, burdened: false, program: None, variant };
            self.add_program(meaning, &body.period, body.copies, RECIPES[0].copies, &init);
        }
        if let Some(period) = gather::leave_masks(&anatomy, &body.period) {
            let recipe = ThroughputBody { masks: false, ..body.clone() }.describe(instances, true);
            let variant = Some(gather::CLEARED_MASKS.to_string());
            let meaning = ExperimentMeaning::Throughput { recipe, burdened: false, program: None, variant };
            self.add_program(meaning, &period, body.copies, RECIPES[0].copies, &body.init);
        }
    }

    /// Plans other control and debug registers, and other types of invalidation.
    fn plan_control_variants(&mut self) {
        let Some(body) = ThroughputBody::new(&self.anatomy, RECIPES[0]) else { return };
        let instances = (RECIPES[0].copies / body.copies).max(1) * body.copies;
        for other in control_variants::build_variants(self.anatomy.code(), &body.period) {
            let recipe = body.describe(instances, false);
            let meaning =
                ExperimentMeaning::Throughput { recipe, burdened: false, program: None, variant: Some(other.name) };
            let init = [body.init.as_slice(), &other.init].concat();
            self.add_program(meaning, &other.period, body.copies, RECIPES[0].copies, &init);
        }
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

    /// Plans programs with other operands.
    fn plan_other_operands(&mut self, features: &CpuFeatures, latency: bool) {
        let anatomy = self.anatomy.clone();
        self.plan_index_patterns();
        self.plan_control_variants();
        if let Some(ValueCandidate { recipe, period, copies, body_copies: body, init, .. }) =
            operand_values::build_subnormal(&anatomy)
        {
            let variant = Some(operand_values::SUBNORMAL.to_string());
            self.add_program(
                ExperimentMeaning::Throughput { recipe, burdened: false, program: None, variant },
                &period,
                copies,
                body,
                &init,
            );
        }
        for candidate in operand_values::build_candidates(&anatomy, features, latency) {
            let ValueCandidate { chain, recipe, values, period, copies, body_copies: body, init } = candidate;
            let quantity = match chain {
                None => ExperimentMeaning::Throughput { recipe, burdened: false, program: None, variant: None },
                Some((from, to, chain)) => {
                    let Some(turn) = self.anatomy.encode(&period[..chain.turn]) else { continue };
                    let (from, to) = (from.name, to.name);
                    ExperimentMeaning::Latency { from, to, variant: None, links: chain.links, ports: None, turn }
                }
            };
            self.add_program(
                ExperimentMeaning::Operands { values, of: Box::new(quantity) },
                &period,
                copies,
                body,
                &init,
            );
        }
    }
}
