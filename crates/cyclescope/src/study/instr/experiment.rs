//! The experiments that a form takes: programs, and what the time of each means.

use super::chain::{Chain, Registers};
use super::links::Link;
use super::operands::{Anatomy, Bank, Place, Port, Slot, encode};
use super::route::routes;
use super::throughput::{Addresses, Body, Breaking, Hazards, RECIPES, Recipe};
use super::survey::Subject;
use super::{settings, x87};
use crate::asm;
use crate::context::Element;
use crate::machine::features::Features;
use crate::program::World;
use crate::snippet::Snippet;
use iced_x86::Instruction;

/// Instances in the body of a chain, about.
const CHAIN_COPIES: usize = 96;
/// Instances in a body where each takes long.
const FEW: usize = 8;

/// What the time of a program means.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// A candidate for the reciprocal throughput.
    Throughput {
        /// The program in words.
        recipe: String,
        /// Whether something was added that takes room of its own.
        burdened: bool,
    },
    /// A candidate for a latency, with links.
    Latency {
        /// The input.
        from: String,
        /// The output.
        to: String,
        /// What is special about it.
        variant: Option<String>,
        /// What is subtracted.
        links: Vec<Link>,
        /// One turn of the chain.
        turn: Vec<u8>,
    },
    /// All instances write one register that none of them reads: a false dependency shows.
    SameDestination {
        /// The output.
        to: String,
    },
}

/// A program and its meaning.
#[derive(Debug, Clone)]
pub struct Experiment {
    /// What its time means.
    pub meaning: Meaning,
    /// Machine code of one period.
    pub period: Vec<u8>,
    /// Instances in a period.
    pub copies: usize,
    /// Instances in the body, about.
    pub body: usize,
    /// Machine code that runs once before.
    pub init: Vec<u8>,
    /// The processor state that it needs.
    pub world: World,
}

/// All experiments of a form.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The form, taken apart.
    pub anatomy: Anatomy,
    /// Its experiments.
    pub experiments: Vec<Experiment>,
    /// What memory holds.
    pub element: Element,
    /// Whether memory is touched.
    pub touches_memory: bool,
    /// What runs before each program's own init code.
    init: Vec<u8>,
}

impl Experiment {
    /// How often the period is repeated in the body.
    pub fn repeats(&self, few: bool) -> usize {
        ((if few { FEW } else { self.body }) / self.copies).max(1)
    }
}

impl Plan {
    /// The experiments of a form on a CPU with these features.
    pub fn new(anatomy: Anatomy, features: &Features, subject: &Subject) -> Plan {
        let mut plan = Plan {
            anatomy,
            experiments: Vec::new(),
            element: Element::default(),
            touches_memory: false,
            init: subject.init.clone(),
        };
        plan.throughput();
        if subject.latency {
            plan.latency(features);
            plan.same_destination();
        }
        plan
    }

    fn add(&mut self, meaning: Meaning, period: &[Instruction], copies: usize, body: usize, init: &[Instruction]) {
        let (Some(period), Some(init)) = (encode(period), self.init(init)) else { return };
        let outline = Snippet::new(period.clone(), init.clone(), "").outline(true);
        // Instances say what the numbers are; links may be of another type.
        if self.experiments.is_empty() {
            let full = settings::of(self.anatomy.code().mnemonic()).full;
            self.element = if full { outline.world.element.full() } else { outline.world.element };
        }
        self.touches_memory |= outline.touches_memory;
        let world = World { element: self.element, ..outline.world };
        self.experiments.push(Experiment { meaning, period, copies, body, init, world });
    }

    fn init(&self, more: &[Instruction]) -> Option<Vec<u8>> {
        let text = settings::of(self.anatomy.code().mnemonic()).init;
        let mut init = self.init.clone();
        init.extend(asm::parse(text).expect("settings are valid assembly").bytes());
        if x87::uses(&self.anatomy.sample) {
            init.extend(encode(&x87::fill())?);
        }
        init.extend(encode(more)?);
        Some(init)
    }

    fn throughput(&mut self) {
        let anatomy = self.anatomy.clone();
        let hazards = Hazards::of(&anatomy);
        let kept = settings::of(anatomy.code().mnemonic()).kept;
        let mut recipes: Vec<Recipe> = RECIPES.to_vec();
        if hazards.any() {
            // What stands still needs no breaking; what must keep its value can't do without.
            let more: &[Breaking] = match kept || hazards.addresses() {
                true => &[Breaking::Once],
                false => &[Breaking::Zero, Breaking::None],
            };
            for breaking in more {
                recipes.extend([0, 1, 3].map(|index| Recipe { breaking: *breaking, ..RECIPES[index] }));
            }
        }
        let on_memory = anatomy.slots().contains(&Slot::Base);
        for recipe in recipes {
            let Some(body) = Body::new(&anatomy, recipe) else { continue };
            let burdened = !x87::balance(&anatomy.sample).0.is_empty() || !x87::balance(&anatomy.sample).1.is_empty();
            let meaning = Meaning::Throughput { recipe: recipe.text(&body, on_memory), burdened };
            self.add(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }

    fn latency(&mut self, features: &Features) {
        let anatomy = self.anatomy.clone();
        for from in &anatomy.inputs {
            for to in &anatomy.outputs {
                let through_memory = from.place == Place::Memory || to.place == Place::Memory;
                for links in routes(&anatomy, from.place, to.place) {
                    if links.iter().any(|link| !features.missing(link.features()).is_empty()) {
                        continue;
                    }
                    let own = from.variant.map(str::to_string);
                    if through_memory {
                        self.chain(from, to, &links, Registers::Distinct, Some("renamed".to_string()));
                        self.chain(from, to, &links, Registers::TwoBases, own);
                    } else {
                        self.chain(from, to, &links, Registers::Distinct, own);
                    }
                }
            }
        }
        self.same_register();
    }

    fn chain(&mut self, from: &Port, to: &Port, links: &[Link], registers: Registers, variant: Option<String>) {
        let Some(chain) = Chain::new(&self.anatomy, (from, to), links, registers) else { return };
        let Some(turn) = encode(&chain.period[..chain.turn]) else { return };
        let meaning = Meaning::Latency {
            from: from.name.clone(),
            to: to.name.clone(),
            variant,
            links: chain.links.clone(),
            turn,
        };
        self.add(meaning, &chain.period, chain.copies, CHAIN_COPIES, &chain.init);
    }

    /// Where two inputs and an output can be one register.
    fn same_register(&mut self) {
        let anatomy = self.anatomy.clone();
        let explicit = |port: &&Port| matches!(port.place, Place::Slot(Slot::Operand(_)));
        let Some(to) = anatomy.outputs.iter().find(explicit) else { return };
        let bank = anatomy.bank(to.place);
        if !matches!(bank, Bank::General | Bank::Vector | Bank::Mask | Bank::Mmx) {
            return;
        }
        let inputs: Vec<&Port> =
            anatomy.inputs.iter().filter(explicit).filter(|port| anatomy.bank(port.place) == bank).collect();
        let slots = anatomy.slots();
        let memory = slots.contains(&Slot::Base);
        let distinct: Vec<&&Port> = inputs.iter().filter(|port| port.place != to.place).collect();
        let info = anatomy.sample.op_code();
        let apart = info.requires_unique_dest_reg_num() || info.requires_unique_reg_nums();
        // One register for two results tells neither's latency.
        let results = anatomy.outputs.iter().filter(explicit).filter(|port| anatomy.bank(port.place) == bank);
        if memory || distinct.is_empty() || apart || results.count() > 1 {
            return;
        }
        let from = inputs.last().copied().expect("there is one");
        self.chain(from, to, &[], Registers::Same, Some("same register".to_string()));
    }

    /// Outputs that are no inputs, as far as the instruction database knows.
    fn same_destination(&mut self) {
        let anatomy = self.anatomy.clone();
        let writes_only = |port: &&Port| {
            matches!(port.place, Place::Slot(Slot::Operand(_)))
                && !anatomy.reads(port.place)
                && matches!(anatomy.bank(port.place), Bank::General | Bank::HighByte | Bank::Vector | Bank::Mask)
        };
        let Some(to) = anatomy.outputs.iter().find(writes_only) else { return };
        let recipe = Recipe { destinations: 1, copies: 96, nop_after: None, addresses: Addresses::One, breaking: Breaking::Copy };
        if let Some(body) = Body::new(&anatomy, recipe) {
            let meaning = Meaning::SameDestination { to: to.name.clone() };
            self.add(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }
}
