//! A period of branches as machine code, and the experiment that it is.

use crate::experiments::experiment::{Experiment, Meaning};
use crate::forms::operands::encode;
use cyclescope_code::program::{World, fill};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// Instances in a body, one count after the other: the loop's own branch weighs less in a long one, and a short one
/// fits smaller tables of branches.
pub(super) const COPIES: [usize; 2] = [120, 32];

/// Bytes from the start of a taken branch to the next one's, but for the branch's own length.
pub(super) const SPACINGS: [usize; 4] = [8, 16, 32, 64];

/// What a throughput program is beside its code.
pub(super) struct About {
    pub(super) recipe: String,
    pub(super) variant: Option<String>,
    /// Whether each instance needs other instructions.
    pub(super) burdened: bool,
}

impl About {
    pub(super) fn new(recipe: String, variant: Option<&str>) -> About {
        About { recipe, variant: variant.map(str::to_string), burdened: false }
    }

    pub(super) fn burdened(self) -> About {
        About { burdened: true, ..self }
    }

    /// The experiment of a period that stands alone in its loop.
    pub(super) fn of(self, body: Body, copies: usize) -> Experiment {
        let About { recipe, variant, burdened } = self;
        body.experiment(Meaning::Throughput { recipe, burdened, variant }, copies)
    }
}

/// A period and what runs once before it, as machine code. Branches go to places of the period.
#[derive(Debug, Clone, Default)]
pub(super) struct Body {
    pub(super) init: Vec<u8>,
    pub(super) period: Vec<u8>,
}

impl Body {
    pub(super) fn starting_with(init: &[Instruction]) -> Option<Body> {
        Some(Body { init: encode(init)?, period: Vec::new() })
    }

    pub(super) fn len(&self) -> usize {
        self.period.len()
    }

    pub(super) fn push(&mut self, instruction: Instruction) -> Option<()> {
        let mut encoder = Encoder::new(64);
        encoder.encode(&instruction, self.len() as u64).ok()?;
        self.period.extend(encoder.take_buffer());
        Some(())
    }

    pub(super) fn branch(&mut self, mut instruction: Instruction, target: usize) -> Option<()> {
        instruction.set_near_branch64(target as u64);
        self.push(instruction)
    }

    /// `lea register, [rip + …]`
    pub(super) fn address(&mut self, register: Register, target: usize) -> Option<()> {
        let place = MemoryOperand::with_base_displ(Register::RIP, target as i64);
        self.push(Instruction::with2(Code::Lea_r64_m, register, place).ok()?)
    }

    /// NOPs up to a place.
    pub(super) fn pad(&mut self, until: usize) {
        let bytes = until.saturating_sub(self.len());
        fill(&mut self.period, bytes);
    }

    pub(super) fn experiment(self, meaning: Meaning, copies: usize) -> Experiment {
        let Body { init, period } = self;
        // One period: addresses that are set up once are those of one.
        Experiment { meaning, period, copies, body: copies, init, world: World::default() }
    }
}

pub(super) fn every(bytes: usize) -> String {
    format!("taken, every {bytes} bytes")
}
