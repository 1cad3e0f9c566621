//! Experiments of a sequence: its rate, and the latency between repetitions through each carried
//! register and the carried flags.

use super::experiment::{ExperimentMeaning, FormExperiment};
use crate::bodies::sequence_body::{DependencyCarrier, build_sequence_body};
use crate::bodies::throughput_body::ThroughputBody;
use crate::bodies::throughput_recipe::{DependencyBreaking, RECIPES, ThroughputRecipe};
use crate::forms::form_anatomy::encode_instructions;
use crate::forms::instruction_sequence::InstructionSequence;
use cyclescope_code::asm::Listing;
use cyclescope_code::asm::registers::{RegisterSet, registers_written};
use cyclescope_code::program::EntryState;
use iced_x86::Instruction;

/// Approximate number of instructions in the body of a chain.
const CHAIN_INSTRUCTIONS: usize = 96;

/// The experiments of a sequence with this init code. Rates come first, then latencies if
/// requested.
pub(super) fn plan_sequence(sequence: &InstructionSequence, init: &[u8], latency: bool) -> Vec<FormExperiment> {
    let code = Listing::from_code(init, sequence.mode());
    let set = code.instructions().iter().map(registers_written).fold(RegisterSet::EMPTY, RegisterSet::union);
    let mut recipes = RECIPES.to_vec();
    if sequence.carried_registers().flags() != 0 {
        recipes
            .extend([0, 1, 3].map(|index| ThroughputRecipe { breaking: DependencyBreaking::Zero, ..RECIPES[index] }));
    }
    let mut found: Vec<FormExperiment> =
        recipes.into_iter().filter_map(|recipe| plan_rate(sequence, recipe, set)).collect();
    if latency {
        found.extend(
            DependencyCarrier::list_carriers(sequence)
                .into_iter()
                .filter_map(|carrier| plan_chain(sequence, carrier, set)),
        );
    }
    found
}

fn plan_rate(sequence: &InstructionSequence, recipe: ThroughputRecipe, set: RegisterSet) -> Option<FormExperiment> {
    let body = build_sequence_body(sequence, recipe, None, set)?;
    let repetitions = (recipe.copies / sequence.instructions().len()).max(1);
    let instances = (repetitions / body.copies).max(1) * body.copies;
    let meaning = ExperimentMeaning::Throughput {
        recipe: body.describe(instances, false),
        burdened: false,
        program: Some(recipe),
        variant: None,
    };
    build_experiment(sequence, meaning, &body, repetitions)
}

/// Repetitions that wait for each other through this carrier only. `None` if other dependencies
/// stay.
fn plan_chain(sequence: &InstructionSequence, carrier: DependencyCarrier, set: RegisterSet) -> Option<FormExperiment> {
    let recipe = ThroughputRecipe { nop_after: None, ..RECIPES[0] };
    let body = build_sequence_body(sequence, recipe, Some(carrier), set)?;
    if body.recipe.breaking == DependencyBreaking::None {
        return None;
    }
    let name = carrier.name(sequence);
    let meaning = ExperimentMeaning::Latency {
        from: name.clone(),
        to: name,
        variant: None,
        links: Vec::new(),
        ports: None,
        turn: sequence.bytes(),
    };
    build_experiment(sequence, meaning, &body, CHAIN_INSTRUCTIONS / sequence.instructions().len())
}

fn build_experiment(
    sequence: &InstructionSequence,
    meaning: ExperimentMeaning,
    body: &ThroughputBody,
    repetitions: usize,
) -> Option<FormExperiment> {
    let code = |instructions: &[Instruction]| encode_instructions(sequence.mode(), instructions);
    let (period, init) = (code(&body.period)?, code(&body.init)?);
    Some(FormExperiment {
        meaning,
        period,
        copies: body.copies,
        body_copies: repetitions,
        init,
        world: EntryState::default(),
    })
}
