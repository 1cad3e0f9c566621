//! Experiments of near branches, which no body of copies one after the other can hold as they are.
//!
//! A direct jump goes to the next instance, which stands some bytes further on: its cost is a curve over that distance.
//! Calls and returns are measured as pairs, for neither goes without the other.

mod calls;
mod condition;
mod jumps;
#[cfg(test)]
mod tests;

use super::experiment::{Experiment, Meaning};
use super::operands::{Anatomy, Place};
use crate::program::{World, fill};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// Instances in a body, one count after the other: the loop's own branch weighs less in a long one, and a short one
/// fits smaller tables of branches.
const COPIES: [usize; 2] = [120, 32];
/// Bytes from the start of a taken branch to the next one's, but for the branch's own length.
const SPACINGS: [usize; 4] = [8, 16, 32, 64];

/// What a near branch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// By the flags.
    Conditional,
    /// LOOP, LOOPE, LOOPNE: counts RCX down.
    Loop,
    /// By RCX alone.
    Counter,
    Jump,
    JumpIndirect,
    /// A call, direct or not, or a return.
    Pair,
}

fn kind(sample: &Instruction) -> Option<Kind> {
    Some(match sample.code() {
        Code::Retnq | Code::Retnq_imm16 => Kind::Pair,
        _ if sample.is_call_near() || sample.is_call_near_indirect() => Kind::Pair,
        _ if sample.is_jcc_short_or_near() => Kind::Conditional,
        _ if sample.is_loop() || sample.is_loopcc() => Kind::Loop,
        _ if sample.is_jcx_short() => Kind::Counter,
        _ if sample.is_jmp_short_or_near() => Kind::Jump,
        _ if sample.is_jmp_near_indirect() => Kind::JumpIndirect,
        _ => return None,
    })
}

/// The experiments of a near branch; `None` for any other instruction. Its latencies come last.
pub fn experiments(anatomy: &Anatomy) -> Option<Vec<Experiment>> {
    let sample = &anatomy.sample;
    let mut found = match kind(sample)? {
        Kind::Conditional | Kind::Counter => jumps::conditional(sample),
        Kind::Loop => jumps::counting(sample),
        Kind::Jump => jumps::direct(sample),
        Kind::JumpIndirect => jumps::indirect(sample),
        Kind::Pair => calls::pairs(sample),
    };
    let counter =
        |place: Place| matches!(place, Place::Fixed(register) if register.full_register() == Register::RCX);
    let from = anatomy.inputs.iter().find(|port| counter(port.place));
    let to = anatomy.outputs.iter().find(|port| counter(port.place));
    if let (Some(from), Some(to)) = (from, to) {
        found.extend(jumps::count_down(sample, &from.name, &to.name));
    }
    Some(found)
}

/// What a throughput program is beside its code.
struct About {
    recipe: String,
    variant: Option<String>,
    /// Whether each instance needs other instructions.
    burdened: bool,
}

impl About {
    fn new(recipe: String, variant: Option<&str>) -> About {
        About { recipe, variant: variant.map(str::to_string), burdened: false }
    }

    fn burdened(self) -> About {
        About { burdened: true, ..self }
    }

    /// The experiment of a period that stands alone in its loop.
    fn of(self, body: Body, copies: usize) -> Experiment {
        let About { recipe, variant, burdened } = self;
        body.experiment(Meaning::Throughput { recipe, burdened, variant }, copies)
    }
}

/// A period and what runs once before it, as machine code. Branches go to places of the period.
#[derive(Debug, Clone, Default)]
struct Body {
    init: Vec<u8>,
    period: Vec<u8>,
}

impl Body {
    fn starting_with(init: &[Instruction]) -> Option<Body> {
        Some(Body { init: super::operands::encode(init)?, period: Vec::new() })
    }

    fn len(&self) -> usize {
        self.period.len()
    }

    fn push(&mut self, instruction: Instruction) -> Option<()> {
        let mut encoder = Encoder::new(64);
        encoder.encode(&instruction, self.len() as u64).ok()?;
        self.period.extend(encoder.take_buffer());
        Some(())
    }

    fn branch(&mut self, mut instruction: Instruction, target: usize) -> Option<()> {
        instruction.set_near_branch64(target as u64);
        self.push(instruction)
    }

    /// `lea register, [rip + …]`
    fn address(&mut self, register: Register, target: usize) -> Option<()> {
        let place = MemoryOperand::with_base_displ(Register::RIP, target as i64);
        self.push(Instruction::with2(Code::Lea_r64_m, register, place).ok()?)
    }

    /// NOPs up to a place.
    fn pad(&mut self, until: usize) {
        let bytes = until.saturating_sub(self.len());
        fill(&mut self.period, bytes);
    }

    fn experiment(self, meaning: Meaning, copies: usize) -> Experiment {
        let Body { init, period } = self;
        // One period: addresses that are set up once are those of one.
        Experiment { meaning, period, copies, body: copies, init, world: World::default() }
    }
}

fn every(bytes: usize) -> String {
    format!("taken, every {bytes} bytes")
}
