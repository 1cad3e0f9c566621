//! Experiments of a sequence: its rate, and of each register that it carries, and of the flags, the latency from one
//! repetition to the next.

use super::experiment::{Experiment, Meaning};
use crate::bodies::sequence::{Carrier, body};
use crate::bodies::throughput::{Body, Breaking, RECIPES, Recipe};
use crate::forms::operands::encode;
use crate::forms::sequence::Sequence;
use cyclescope_code::asm::Listing;
use cyclescope_code::asm::registers::{RegisterSet, writes};
use cyclescope_code::program::World;
use iced_x86::Instruction;

/// Instructions in the body of a chain, about.
const CHAIN: usize = 96;

/// The experiments of a sequence with this init code, those of its rate first; its latencies where they are asked for.
pub(super) fn experiments(sequence: &Sequence, init: &[u8], latency: bool) -> Vec<Experiment> {
    let code = Listing::from_bytes(init);
    let set = code.instructions().iter().map(writes).fold(RegisterSet::EMPTY, RegisterSet::union);
    let mut recipes = RECIPES.to_vec();
    if sequence.carried().flags() != 0 {
        recipes.extend([0, 1, 3].map(|index| Recipe { breaking: Breaking::Zero, ..RECIPES[index] }));
    }
    let mut found: Vec<Experiment> =
        recipes.into_iter().filter_map(|recipe| rate(sequence, recipe, set)).collect();
    if latency {
        found.extend(Carrier::all(sequence).into_iter().filter_map(|carrier| chain(sequence, carrier, set)));
    }
    found
}

fn rate(sequence: &Sequence, recipe: Recipe, set: RegisterSet) -> Option<Experiment> {
    let body = body(sequence, recipe, None, set)?;
    let repetitions = (recipe.copies / sequence.instructions().len()).max(1);
    let instances = (repetitions / body.copies).max(1) * body.copies;
    let meaning = Meaning::Throughput { recipe: body.text(instances, false), burdened: false, variant: None };
    experiment(meaning, &body, repetitions)
}

/// Repetitions that wait for each other through one thing alone; `None` where they may through others too.
fn chain(sequence: &Sequence, carrier: Carrier, set: RegisterSet) -> Option<Experiment> {
    let recipe = Recipe { nop_after: None, ..RECIPES[0] };
    let body = body(sequence, recipe, Some(carrier), set)?;
    if body.recipe.breaking == Breaking::None {
        return None;
    }
    let name = carrier.name(sequence);
    let meaning = Meaning::Latency {
        from: name.clone(),
        to: name,
        variant: None,
        links: Vec::new(),
        ports: None,
        turn: encode(sequence.instructions())?,
    };
    experiment(meaning, &body, CHAIN / sequence.instructions().len())
}

fn experiment(meaning: Meaning, body: &Body, repetitions: usize) -> Option<Experiment> {
    let code = |instructions: &[Instruction]| encode(instructions);
    let (period, init) = (code(&body.period)?, code(&body.init)?);
    Some(Experiment {
        meaning,
        period,
        copies: body.copies,
        body: repetitions,
        init,
        world: World::default(),
    })
}
