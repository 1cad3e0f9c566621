//! The plan of one form: its experiments.

use super::branch;
use super::experiment::{Experiment, Meaning, Way};
use super::program_reading::ProgramReading;
use super::sequence;
use super::timing::Surroundings;
use crate::bodies::balance::balance;
use crate::bodies::chain::{Chain, Ends, Fillers, Registers};
use crate::bodies::control;
use crate::bodies::links::{self, Link};
use crate::bodies::route::{padded, routes};
use crate::bodies::throughput::{Addresses, Body, Breaking, Hazards, RECIPES, Recipe};
use crate::bodies::values::{self, Candidate};
use crate::bodies::x87;
use crate::forms::constants::Constant;
use crate::forms::gather;
use crate::forms::operands::{Anatomy, Bank, Place, Port, Slot, encode};
use crate::forms::settings;
use crate::forms::wanted::WantedForm;
use cyclescope_code::asm;
use cyclescope_code::asm::access::is_non_temporal_store;
use cyclescope_code::asm::forms::Prefix;
use cyclescope_code::program::World;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::machine::features::Features;
use cyclescope_core::statistics::median;
use iced_x86::{EncodingKind, Instruction};

/// Instances in the body of a chain, about.
const CHAIN_COPIES: usize = 96;
/// Bytes of a body that has to be decoded each time: first-level code caches hold 32 KiB or more, and buffers of decoded
/// instructions fewer of four or five bytes each (Golden Cove 4096, Zen 4 6912).
const DECODED_BYTES: usize = 28 << 10;
/// Cache lines that are written whole one after another, more than any core has buffers for.
const LINES_WALKED: usize = 256;
/// Stands beside chains.
const FILLER: Link = links::FROM_VECTOR_VEX;

/// The plan of a form: all its experiments.
#[derive(Debug, Clone)]
pub struct FormPlan {
    /// The form, taken apart.
    pub anatomy: Anatomy,
    /// Its experiments.
    pub experiments: Vec<Experiment>,
    /// What the programs need around them.
    pub surroundings: Surroundings,
    /// What runs before each program's own init code.
    init: Vec<u8>,
    /// Whether fillers can stand beside chains.
    fillers: bool,
    /// What the plan was made for, to make one like it with another constant.
    features: Features,
    latency: bool,
    /// Whether it is of a sequence, which has no settings but its own.
    sequence: bool,
}

impl FormPlan {
    /// The experiments of a form on a CPU with these features.
    pub fn new(anatomy: Anatomy, features: &Features, wanted: &WantedForm) -> FormPlan {
        // Legacy code and VEX code do not mix.
        let legacy = anatomy.sample.op_code().encoding() == EncodingKind::Legacy;
        let mut plan = FormPlan {
            fillers: !legacy && features.missing(FILLER.features()).is_empty(),
            anatomy,
            experiments: Vec::new(),
            surroundings: Surroundings::default(),
            init: wanted.init.clone(),
            features: features.clone(),
            latency: wanted.latency,
            sequence: wanted.sequence.is_some(),
        };
        if let Some(sequence) = &wanted.sequence {
            if sequence.instructions().iter().any(x87::uses) {
                let fill = encode(&x87::fill()).expect("loads of constants");
                plan.init = [fill, plan.init].concat();
            }
            let experiments = sequence::experiments(sequence, &wanted.init, wanted.latency);
            experiments.into_iter().for_each(|experiment| plan.take(experiment));
            return plan;
        }
        if let Some(experiments) = branch::experiments(&plan.anatomy) {
            let asked = |one: &Experiment| wanted.latency || !matches!(one.meaning, Meaning::Latency { .. });
            experiments.into_iter().filter(asked).for_each(|experiment| plan.take(experiment));
            return plan;
        }
        plan.usual();
        plan.values(features, wanted.latency);
        plan
    }

    /// The same with another constant, and without programs that have special operands; `None` where its code can't hold
    /// it. An experiment has the same place as in this plan.
    pub(crate) fn with(&self, constant: Constant) -> Option<FormPlan> {
        let anatomy = self.anatomy.with(constant)?;
        let mut plan = FormPlan { anatomy, experiments: Vec::new(), ..self.clone() };
        plan.usual();
        plan.is_like(self).then_some(plan)
    }

    /// Whether experiments mean the same as those of another plan at the same places.
    fn is_like(&self, other: &FormPlan) -> bool {
        let alike = |(one, other): (&Experiment, &Experiment)| one.meaning.is_like(&other.meaning);
        self.experiments.len() <= other.experiments.len()
            && self.experiments.iter().zip(&other.experiments).all(alike)
    }

    /// What is measured with ordinary operands.
    fn usual(&mut self) {
        self.throughput();
        if self.latency {
            self.latency(&self.features.clone());
            self.same_destination();
        }
    }

    fn add(
        &mut self,
        meaning: Meaning,
        period: &[Instruction],
        copies: usize,
        body: usize,
        init: &[Instruction],
    ) {
        let (Some(period), Some(init)) = (encode(period), encode(init)) else { return };
        self.take(Experiment { meaning, period, copies, body, init, world: World::default() });
    }

    /// Adds an experiment, with the plan's own init code before its own and the world that its code needs.
    fn take(&mut self, experiment: Experiment) {
        let Some(mut init) = self.init() else { return };
        init.extend(&experiment.init);
        let outline = Snippet::new(experiment.period.clone(), init.clone(), "").outline(true);
        // Instances say what the numbers are; links may be of another type.
        if self.experiments.is_empty() {
            let full = settings::of(self.anatomy.code()).full;
            let element = outline.world.element;
            self.surroundings.element = if full { element.full() } else { element };
        }
        // A prefetch for writing accesses nothing, but takes longer on a page that was never written.
        let points = self.anatomy.slots().contains(&Slot::Base);
        self.surroundings.touches_memory |= outline.touches_memory || points;
        self.surroundings.vectors = self.surroundings.vectors.max(outline.world.vectors);
        self.surroundings.emptied = settings::of(self.anatomy.code()).empties;
        let world = World { element: self.surroundings.element, ..outline.world };
        self.experiments.push(Experiment { init, world, ..experiment });
    }

    fn init(&self) -> Option<Vec<u8>> {
        if self.sequence {
            return Some(self.init.clone());
        }
        let text = settings::of(self.anatomy.code()).init;
        let mut init = self.init.clone();
        init.extend(asm::parse(text).expect("settings are valid assembly").bytes());
        if x87::uses(&self.anatomy.sample) {
            init.extend(encode(&x87::fill())?);
        }
        Some(init)
    }

    fn throughput(&mut self) {
        let anatomy = self.anatomy.clone();
        if is_non_temporal_store(&anatomy.sample) {
            return self.combined();
        }
        let hazards = Hazards::of(&anatomy);
        let kept = settings::of(anatomy.code()).kept;
        let mut recipes: Vec<Recipe> = RECIPES.to_vec();
        if hazards.any() && matches!(anatomy.form.prefix, Prefix::None | Prefix::Lock) {
            // What stands still needs no breaking; what must keep its value can't do without.
            let more: &[Breaking] = match (hazards.addresses(), kept) {
                (true, _) => &[Breaking::Once],
                (false, true) => &[],
                (false, false) => &[Breaking::Zero, Breaking::None],
            };
            for breaking in more {
                recipes.extend([0, 1, 3].map(|index| Recipe { breaking: *breaking, ..RECIPES[index] }));
            }
        }
        let on_memory = anatomy.slots().contains(&Slot::Base);
        for recipe in recipes {
            let Some(body) = Body::new(&anatomy, recipe) else { continue };
            let instances = (recipe.copies / body.copies).max(1) * body.copies;
            let beside = balance(&anatomy.sample);
            let burdened = !beside.0.is_empty() || !beside.1.is_empty();
            let meaning =
                Meaning::Throughput { recipe: body.text(instances, on_memory), burdened, variant: None };
            self.add(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }

    /// Stores that go past the caches: over lines that are written whole, and all in one line beside it.
    fn combined(&mut self) {
        let anatomy = self.anatomy.clone();
        for (addresses, variant) in
            [(Addresses::Walk(LINES_WALKED), None), (Addresses::One, Some("one line"))]
        {
            let recipe = Recipe { addresses, ..RECIPES[1] };
            let Some(body) = Body::new(&anatomy, recipe) else { continue };
            let instances = (recipe.copies / body.copies).max(1) * body.copies;
            let variant = variant.map(str::to_string);
            let meaning =
                Meaning::Throughput { recipe: body.text(instances, true), burdened: false, variant };
            self.add(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }

    fn latency(&mut self, features: &Features) {
        let anatomy = self.anatomy.clone();
        let has = |links: &[Link]| links.iter().all(|link| features.missing(link.features()).is_empty());
        for from in &anatomy.inputs {
            for to in &anatomy.outputs {
                if gather::is_mask(&anatomy, from.place) || gather::is_mask(&anatomy, to.place) {
                    continue;
                }
                let through_memory = from.place == Place::Memory || to.place == Place::Memory;
                for links in routes(&anatomy, from.place, to.place) {
                    if !has(&links) {
                        continue;
                    }
                    let own = from.variant.map(str::to_string);
                    self.chain(from, to, &links, Registers::Distinct, own.clone());
                    if through_memory && !links.is_empty() {
                        self.chain(from, to, &links, Registers::Alternating, own.clone());
                    }
                    if anatomy.keeps_flags() && !through_memory {
                        self.chain(from, to, &links, Registers::FlagsKept, own);
                    }
                }
            }
        }
        self.same_register();
    }

    fn chain(
        &mut self,
        from: &Port,
        to: &Port,
        links: &[Link],
        registers: Registers,
        variant: Option<String>,
    ) {
        let Some(chain) = Chain::new(&self.anatomy, Ends { from, to }, links, registers) else { return };
        let Some(turn) = encode(&chain.period[..chain.turn]) else { return };
        let meaning = Meaning::Latency {
            from: from.name.clone(),
            to: to.name.clone(),
            variant,
            links: chain.links.clone(),
            ports: Some(Box::new((from.clone(), to.clone(), registers))),
            turn,
        };
        let mut body = CHAIN_COPIES / (1 + chain.links.len() / 3);
        if registers == Registers::Alternating {
            body = chain.copies * ((body / chain.copies).max(1) | 1);
        }
        self.add(meaning, &chain.period, chain.copies, body, &chain.init);
    }

    /// The best rate among these readings, in core cycles an instance; infinite without any.
    pub(crate) fn rate(&self, readings: &[ProgramReading]) -> f64 {
        let rates = self.experiments.iter().zip(readings).filter(|(experiment, reading)| {
            matches!(experiment.meaning, Meaning::Throughput { variant: None, .. })
                && !reading.cycles.is_empty()
        });
        rates.map(|(_, reading)| median(&mut reading.cycles.clone())).fold(f64::INFINITY, f64::min)
    }

    /// The first throughput program, with as much code as fits the first-level code cache but no buffer of decoded
    /// instructions.
    pub(crate) fn decoders(&self) -> Option<Experiment> {
        // A jump finds its target in a register: in each period that of the first.
        if self.anatomy.sample.is_jmp_near_indirect() {
            return None;
        }
        let is_rate = |experiment: &&Experiment| matches!(experiment.meaning, Meaning::Throughput { .. });
        let first = self.experiments.iter().find(is_rate)?;
        let repeats = DECODED_BYTES / first.period.len();
        Some(Experiment { body: repeats * first.copies, ..first.clone() })
    }

    /// Whether an experiment is about a chain that goes through memory.
    pub(crate) fn is_through_memory(&self, index: usize) -> bool {
        self.has_end(index, |place| place == Place::Memory)
    }

    /// Whether an experiment is about a chain from or to flags or a register without choice.
    pub(crate) fn is_implied(&self, index: usize) -> bool {
        self.has_end(index, |place| matches!(place, Place::Fixed(_) | Place::Flags(_)))
    }

    fn has_end(&self, index: usize, is: impl Fn(Place) -> bool) -> bool {
        match &self.experiments[index].meaning {
            Meaning::Latency { ports: Some(ports), .. } => is(ports.0.place) || is(ports.1.place),
            _ => false,
        }
    }

    /// A latency's chain in another way.
    pub fn again(&self, index: usize, way: Way) -> Option<Experiment> {
        let experiment = &self.experiments[index];
        let Meaning::Latency { links, ports: Some(ports), variant, .. } = &experiment.meaning else {
            return None;
        };
        let (from, to, registers) = &**ports;
        let (links, fillers) = match way {
            // Links need registers of their own.
            Way::Longer(_) if matches!(*registers, Registers::Same | Registers::Alternating) => return None,
            Way::Longer(more) => (padded(&self.anatomy, from.place, to.place, links, more)?, None),
            Way::Beside(count) => {
                let banks = [self.anatomy.bank(from.place), self.anatomy.bank(to.place)];
                if banks != [Bank::Vector; 2] || !self.fillers {
                    return None;
                }
                (links.clone(), Some(Fillers { link: FILLER, count }))
            }
        };
        let chain = Chain::beside(&self.anatomy, Ends { from, to }, &links, *registers, fillers)?;
        let (period, mut init) = (encode(&chain.period)?, self.init()?);
        init.extend(encode(&chain.init)?);
        let world = Snippet::new(period.clone(), init.clone(), "").outline(true).world;
        let world = World { element: self.surroundings.element, ..world };
        let body = CHAIN_COPIES / (1 + links.len() / 3);
        let meaning = Meaning::Latency {
            from: from.name.clone(),
            to: to.name.clone(),
            variant: variant.clone(),
            links,
            ports: None,
            turn: encode(&chain.period[..chain.turn])?,
        };
        Some(Experiment { meaning, period, copies: chain.copies, body, init, world })
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
                && matches!(
                    anatomy.bank(port.place),
                    Bank::General | Bank::HighByte | Bank::Vector | Bank::Mask
                )
        };
        let Some(to) = anatomy.outputs.iter().find(writes_only) else { return };
        let recipe = Recipe {
            destinations: 1,
            copies: 96,
            nop_after: None,
            addresses: Addresses::One,
            breaking: Breaking::Copy,
        };
        if let Some(body) = Body::new(&anatomy, recipe) {
            let meaning = Meaning::SameDestination { to: to.name.clone() };
            self.add(meaning, &body.period, body.copies, recipe.copies, &body.init);
        }
    }

    /// Gathers and scatters with indices that are not all zero.
    fn patterns(&mut self) {
        let anatomy = self.anatomy.clone();
        let Some(body) = Body::new(&anatomy, RECIPES[0]).filter(|body| body.masks) else { return };
        let Some(instance) = body.period.iter().find(|one| one.is_vsib()) else { return };
        let instances = (RECIPES[0].copies / body.copies).max(1) * body.copies;
        for name in gather::PATTERNS {
            let Some(pattern) = gather::pattern(&anatomy, instance, name) else { continue };
            let init = [body.init.as_slice(), &pattern].concat();
            let (recipe, variant) = (body.text(instances, true), Some(name.to_string()));
            let meaning = Meaning::Throughput { recipe, burdened: false, variant };
            self.add(meaning, &body.period, body.copies, RECIPES[0].copies, &init);
        }
    }

    /// Other control and debug registers, and other types of invalidation.
    fn control(&mut self) {
        let Some(body) = Body::new(&self.anatomy, RECIPES[0]) else { return };
        let instances = (RECIPES[0].copies / body.copies).max(1) * body.copies;
        for other in control::others(self.anatomy.code(), &body.period) {
            let recipe = body.text(instances, false);
            let meaning = Meaning::Throughput { recipe, burdened: false, variant: Some(other.name) };
            let init = [body.init.as_slice(), &other.init].concat();
            self.add(meaning, &other.period, body.copies, RECIPES[0].copies, &init);
        }
    }

    /// Leaves out programs that may not run, and returns why where none is left.
    pub(crate) fn keep<W>(&mut self, mut against: impl FnMut(&Experiment) -> Option<W>) -> Option<W> {
        let mut first = None;
        self.experiments.retain(|experiment| {
            let why = against(experiment);
            let kept = why.is_none();
            first = first.take().or(why);
            kept
        });
        first.filter(|_| self.experiments.is_empty())
    }

    /// With other operands.
    fn values(&mut self, features: &Features, latency: bool) {
        let anatomy = self.anatomy.clone();
        self.patterns();
        self.control();
        if let Some(Candidate { recipe, period, copies, body, init, .. }) = values::subnormal(&anatomy) {
            let variant = Some(values::SUBNORMAL.to_string());
            self.add(Meaning::Throughput { recipe, burdened: false, variant }, &period, copies, body, &init);
        }
        for candidate in values::candidates(&anatomy, features, latency) {
            let Candidate { chain, recipe, values, period, copies, body, init } = candidate;
            let of = match chain {
                None => Meaning::Throughput { recipe, burdened: false, variant: None },
                Some((from, to, chain)) => {
                    let Some(turn) = encode(&period[..chain.turn]) else { continue };
                    let (from, to) = (from.name, to.name);
                    Meaning::Latency { from, to, variant: None, links: chain.links, ports: None, turn }
                }
            };
            self.add(Meaning::Operands { values, of: Box::new(of) }, &period, copies, body, &init);
        }
    }
}
