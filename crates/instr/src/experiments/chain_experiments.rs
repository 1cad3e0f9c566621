//! Experiments of a form's latencies: the chains of its plan, and variations of these chains.

use super::experiment::{ChainVariation, ExperimentMeaning, FormExperiment};
use super::form_plan::FormPlan;
use crate::bodies::chain::{ChainEnds, LatencyChain};
use crate::bodies::chain_registers::{ChainFillers, ChainRegisters};
use crate::bodies::links::{self, Link};
use crate::bodies::route::{find_routes, pad_route};
use crate::forms::form_anatomy::{OperandPlace, OperandPort, RegisterBank, RegisterSlot};
use crate::forms::gather;
use cyclescope_code::program::EntryState;
use cyclescope_core::machine::features::CpuFeatures;

/// Approximate number of instances in the body of a chain.
const CHAIN_COPIES: usize = 96;
/// The filler instruction of chains.
pub(super) const FILLER_LINK: Link = links::FROM_VECTOR_VEX;

impl FormPlan {
    pub(super) fn plan_latencies(&mut self, features: &CpuFeatures) {
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
}
