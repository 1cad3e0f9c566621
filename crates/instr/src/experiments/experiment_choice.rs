//! Chooses the experiments of a form: programs with ordinary operands, then those with other ones.

use super::branch;
use super::chain_experiments::FILLER_LINK;
use super::experiment::{ExperimentMeaning, FormExperiment};
use super::form_plan::FormPlan;
use super::sequence_experiments;
use super::timing::TimingSurroundings;
use crate::bodies::balance::balance_instance;
use crate::bodies::control_variants;
use crate::bodies::dependency_hazards::DependencyHazards;
use crate::bodies::operand_values::{self, ValueCandidate};
use crate::bodies::throughput_body::ThroughputBody;
use crate::bodies::throughput_recipe::{
    AddressPattern, DependencyBreaking, RECIPES, RENEWAL_USES, STEERED_RECIPES, ThroughputRecipe,
};
use crate::bodies::x87;
use crate::forms::encoded_constant::EncodedConstant;
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, OperandPort, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use crate::forms::target_form::TargetForm;
use cyclescope_code::asm::access::is_non_temporal_store;
use cyclescope_code::asm::forms::FormPrefix;
use cyclescope_core::machine::features::CpuFeatures;
use iced_x86::EncodingKind;

/// Number of cache lines that are written whole, in order: more than any core has buffers for.
const LINES_WALKED: usize = 256;

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
