//! A period of branches as machine code, and its experiment.

use crate::experiments::experiment::{ExperimentMeaning, FormExperiment};
use crate::forms::form_anatomy::encode_instructions;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::{EntryState, append_nops};
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// Numbers of instances in a body. In a long body, the loop's own branch weighs less; a short one
/// fits smaller branch tables.
pub(super) const BODY_COPIES: [usize; 2] = [120, 32];

/// Bytes from the start of a taken branch to the start of the next one.
pub(super) const SPACINGS: [usize; 4] = [8, 16, 32, 64];

/// Bytes of a near call.
const CALL_BYTES: usize = 5;

/// Properties of a throughput program besides its code.
pub(super) struct BranchDescription {
    pub(super) recipe: String,
    pub(super) variant: Option<String>,
    /// Whether each instance needs other instructions.
    pub(super) burdened: bool,
}

impl BranchDescription {
    pub(super) fn new(recipe: String, variant: Option<&str>) -> BranchDescription {
        BranchDescription { recipe, variant: variant.map(str::to_string), burdened: false }
    }

    pub(super) fn mark_burdened(self) -> BranchDescription {
        BranchDescription { burdened: true, ..self }
    }

    /// The experiment of a period that alone forms the loop body.
    pub(super) fn into_experiment(self, body: NearBranchBody, copies: usize) -> FormExperiment {
        let BranchDescription { recipe, variant, burdened } = self;
        body.into_experiment(ExperimentMeaning::Throughput { recipe, burdened, program: None, variant }, copies)
    }
}

/// A period and its init code, as machine code. Branches lead to offsets in the period.
#[derive(Debug, Clone, Default)]
pub(super) struct NearBranchBody {
    pub(super) mode: CodeMode,
    pub(super) init: Vec<u8>,
    pub(super) period: Vec<u8>,
}

impl NearBranchBody {
    pub(super) fn new(mode: CodeMode) -> NearBranchBody {
        NearBranchBody { mode, ..NearBranchBody::default() }
    }

    pub(super) fn with_init(mode: CodeMode, init: &[Instruction]) -> Option<NearBranchBody> {
        Some(NearBranchBody { init: encode_instructions(mode, init)?, ..NearBranchBody::new(mode) })
    }

    pub(super) fn len(&self) -> usize {
        self.period.len()
    }

    pub(super) fn push_instruction(&mut self, instruction: Instruction) -> Option<()> {
        let mut encoder = Encoder::new(self.mode.bits());
        encoder.encode(&self.mode.convert_own(&instruction), self.len() as u64).ok()?;
        self.period.extend(encoder.take_buffer());
        Some(())
    }

    pub(super) fn push_branch(&mut self, instruction: Instruction, target: usize) -> Option<()> {
        let mut branch = self.mode.convert_own(&instruction);
        match self.mode {
            CodeMode::Bits64 => branch.set_near_branch64(target as u64),
            CodeMode::Bits32 => branch.set_near_branch32(target as u32),
        }
        self.push_instruction(branch)
    }

    /// The address of an offset in the period.
    ///
    /// ```text
    ///     lea register, [rip + …]     ; 64-bit mode
    ///
    ///     call 1f                     ; 32-bit code
    /// 1:  pop register
    ///     lea register, [register + …]
    /// ```
    pub(super) fn push_address(&mut self, register: Register, target: usize) -> Option<()> {
        let place = match self.mode {
            CodeMode::Bits64 => MemoryOperand::with_base_displ(Register::RIP, target as i64),
            CodeMode::Bits32 => {
                let here = self.len() + CALL_BYTES;
                self.push_branch(Instruction::with_branch(Code::Call_rel32_64, 0).ok()?, here)?;
                self.push_instruction(Instruction::with1(Code::Pop_r64, register).ok()?)?;
                // The length must not depend on the target.
                let offset = target as i64 - here as i64;
                MemoryOperand::new(register, Register::None, 1, offset, 4, false, Register::None)
            }
        };
        self.push_instruction(Instruction::with2(Code::Lea_r64_m, register, place).ok()?)
    }

    /// NOPs up to this offset.
    pub(super) fn pad_to(&mut self, until: usize) {
        let bytes = until.saturating_sub(self.len());
        append_nops(&mut self.period, bytes);
    }

    pub(super) fn into_experiment(self, meaning: ExperimentMeaning, copies: usize) -> FormExperiment {
        let NearBranchBody { init, period, .. } = self;
        // The period is not repeated: addresses that are set once are valid in one copy only.
        FormExperiment { meaning, period, copies, body_copies: copies, init, world: EntryState::default() }
    }
}

pub(super) fn describe_spacing(bytes: usize) -> String {
    format!("taken, every {bytes} bytes")
}
