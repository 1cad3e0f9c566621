//! Finds the parts of the state that a snippet's cost depends on: repeat counts, masks, dividends,
//! directions of branches, the x87 stack, exceptional numbers.
//!
//! Two executions that agree in all of them cost the same on a core whose caches and predictors are
//! in the same state. Other registers may hold anything.
//!
//! Its limits: code that the snippet calls is not watched, except for the x87 stack that it leaves.
//! Snippets with indirect jumps, with branches between instructions or with RIP-relative operands
//! are not watched at all.

use crate::asm::CodeMode;
use iced_x86::{
    Code, CpuidFeature, Decoder, DecoderOptions, EncodingKind, FlowControl, Instruction, MemorySize, Mnemonic, OpKind,
    Register,
};

/// A part of the state, as two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedState {
    /// RCX before and after a repeated string instruction.
    RepeatCount,
    /// The mask register of a gather or scatter before it; a vector register's low 16 bytes.
    ElementMask(Register),
    /// RAX and RDX before a division.
    Dividend,
    /// RAX and RDX after a division.
    Quotient,
    /// How often a copy reaches a conditional branch, and how often it is not taken.
    Branch,
    /// The register that selects bits in PDEP and PEXT.
    BitSelection(Register),
    /// Low 16 bytes of the result of a floating-point division or square root.
    FloatResult(Register),
    /// MXCSR after a copy. Its exception flags are those of all copies so far.
    FloatFlags,
    /// The x87 status word after a copy. Its exception flags are those of all copies so far.
    StackStatus,
    /// A general register before the copy.
    Entry(Register),
}

/// A part of the state at an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchPoint {
    /// Index of the instruction in the snippet; 0 for a state of the whole copy.
    pub instruction: usize,
    /// The watched part.
    pub state: WatchedState,
}

/// A snippet's instructions, and the states that its cost depends on.
#[derive(Debug, Clone)]
pub struct WatchedSnippet {
    mode: CodeMode,
    instructions: Vec<Instruction>,
    points: Vec<WatchPoint>,
    code_len: usize,
}

/// Address of a watched snippet's first instruction.
pub(super) const SNIPPET_IP: u64 = 1 << 30;

/// Most states of a snippet that are watched.
const POINTS_MOST: usize = 64;
/// Most instructions of all probes together, each of which contains the snippet: they are encoded
/// within some ten milliseconds.
const PROBED_MOST: usize = 1 << 17;

impl WatchedSnippet {
    /// Finds the states of a snippet. `None` if its flow can't be followed, or if there are too
    /// many.
    pub fn from_code(code: &[u8], mode: CodeMode) -> Option<WatchedSnippet> {
        let decoder = Decoder::with_ip(mode.bits(), code, SNIPPET_IP, DecoderOptions::NONE);
        let instructions: Vec<Instruction> = decoder.into_iter().collect();
        let is_place = |target: u64| {
            target == SNIPPET_IP + code.len() as u64
                || instructions.binary_search_by_key(&target, Instruction::ip).is_ok()
        };
        instructions.iter().all(|instruction| is_followed(instruction, &is_place)).then_some(())?;
        let mut points = Vec::new();
        for (index, instruction) in instructions.iter().enumerate() {
            points.extend(find_states(instruction).map(|state| WatchPoint { instruction: index, state }));
        }
        let any = |holds: &dyn Fn(&Instruction) -> bool| instructions.iter().any(holds);
        let calls = |instruction: &Instruction| instruction.flow_control() == FlowControl::IndirectCall;
        if any(&is_x87) || any(&calls) {
            points.push(WatchPoint { instruction: 0, state: WatchedState::StackStatus });
        }
        if any(&computes_floats) {
            points.push(WatchPoint { instruction: 0, state: WatchedState::FloatFlags });
        }
        let fits = points.len() <= POINTS_MOST && points.len() * instructions.len() <= PROBED_MOST;
        fits.then_some(WatchedSnippet { mode, instructions, points, code_len: code.len() })
    }

    /// The mode that the snippet runs in.
    pub fn mode(&self) -> CodeMode {
        self.mode
    }

    /// The instructions. Their addresses have no meaning.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The states that the cost depends on.
    pub fn points(&self) -> &[WatchPoint] {
        &self.points
    }

    /// Address behind the last instruction.
    pub(super) fn end_ip(&self) -> u64 {
        SNIPPET_IP + self.code_len as u64
    }
}

/// Whether a probe can run a copy of the instruction elsewhere, and follow it.
fn is_followed(instruction: &Instruction, is_place: &dyn Fn(u64) -> bool) -> bool {
    let has_target =
        matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    let leaves = matches!(instruction.flow_control(), FlowControl::IndirectBranch | FlowControl::XbeginXabortXend);
    let reaches = !has_target || is_place(instruction.near_branch_target());
    !instruction.is_invalid() && !instruction.is_ip_rel_memory_operand() && !leaves && reaches
}

/// The states that the cost of an instruction depends on.
fn find_states(instruction: &Instruction) -> impl Iterator<Item = WatchedState> {
    use Mnemonic::{Div, Idiv, Pdep, Pext};
    let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let (first, second) = match instruction.mnemonic() {
        _ if instruction.is_string_instruction() && repeats => (Some(WatchedState::RepeatCount), None),
        _ if instruction.memory_index().is_vector_register() => {
            (find_element_mask(instruction).map(WatchedState::ElementMask), None)
        }
        _ if is_conditional(instruction) => (Some(WatchedState::Branch), None),
        _ if divides_floats(instruction) => (Some(WatchedState::FloatResult(instruction.op0_register())), None),
        Div | Idiv => (Some(WatchedState::Dividend), Some(WatchedState::Quotient)),
        Pdep | Pext if instruction.op2_kind() == OpKind::Register => {
            (Some(WatchedState::BitSelection(instruction.op2_register())), None)
        }
        _ => (None, None),
    };
    [first, second].into_iter().flatten()
}

/// Whether an instruction is a branch that depends on flags or on RCX.
pub(super) fn is_conditional(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::ConditionalBranch
}

/// The register whose elements say what a gather or scatter accesses.
fn find_element_mask(instruction: &Instruction) -> Option<Register> {
    if instruction.has_op_mask() {
        return Some(instruction.op_mask());
    }
    let is_vex = instruction.code().op_code().encoding() == EncodingKind::VEX;
    (is_vex && instruction.op2_kind() == OpKind::Register).then(|| instruction.op2_register())
}

fn is_x87(instruction: &Instruction) -> bool {
    use CpuidFeature::{FPU, FPU287, FPU287XL_ONLY, FPU387};
    instruction.cpuid_features().iter().any(|feature| [FPU, FPU287, FPU287XL_ONLY, FPU387].contains(feature))
}

/// Whether an SSE, AVX or AVX-512 instruction may compute with floating-point numbers.
fn computes_floats(instruction: &Instruction) -> bool {
    let size = instruction.code().op_code().memory_size().element_type();
    let is_float = matches!(size, MemorySize::Float16 | MemorySize::Float32 | MemorySize::Float64);
    is_float && !is_x87(instruction)
}

/// Whether an instruction divides or takes a square root of vector elements.
fn divides_floats(instruction: &Instruction) -> bool {
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    let name = name.trim_start_matches('v');
    let divides = ["divs", "divp", "sqrts", "sqrtp"].iter().any(|start| name.starts_with(start));
    divides && instruction.op0_kind() == OpKind::Register && instruction.op0_register().is_vector_register()
}

/// The instruction that stores the low 16 bytes of a vector register, in the encoding of another
/// instruction.
pub(super) fn vector_store_code(like: &Instruction) -> Code {
    match like.code().op_code().encoding() {
        EncodingKind::Legacy | EncodingKind::D3NOW => Code::Movups_xmmm128_xmm,
        EncodingKind::EVEX => Code::EVEX_Vmovups_xmmm128_k1z_xmm,
        _ => Code::VEX_Vmovups_xmmm128_xmm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(text: &str) -> Option<Vec<(usize, WatchedState)>> {
        let snippet = crate::asm::parse_assembly(text).unwrap();
        let watched = WatchedSnippet::from_code(snippet.bytes(), CodeMode::Bits64)?;
        Some(watched.points().iter().map(|point| (point.instruction, point.state)).collect())
    }

    #[test]
    fn ordinary_instructions_have_no_watched_state() {
        assert_eq!(
            states("imul rax, rax; mov [r14], rax; paddd xmm0, xmm1; push rax; call 1f; 1: pop rax"),
            Some(vec![])
        );
    }

    #[test]
    fn costs_that_depend_on_a_state_are_watched() {
        use WatchedState::{BitSelection, Branch, Dividend, ElementMask, FloatFlags, FloatResult, Quotient};
        let found = [
            ("nop; rep movsb", vec![(1, WatchedState::RepeatCount)]),
            ("1: loop 1b", vec![(0, Branch)]),
            ("div rcx", vec![(0, Dividend), (0, Quotient)]),
            ("vpgatherdd ymm0, [r14+ymm1*4], ymm2", vec![(0, ElementMask(Register::YMM2))]),
            ("vpscatterdd [r14+zmm1*4]{k3}, zmm2", vec![(0, ElementMask(Register::K3))]),
            ("pext rax, rbx, rcx", vec![(0, BitSelection(Register::RCX))]),
            ("sqrtsd xmm3, xmm4", vec![(0, FloatResult(Register::XMM3)), (0, FloatFlags)]),
            ("nop; fld1", vec![(0, WatchedState::StackStatus)]),
            ("call rbx", vec![(0, WatchedState::StackStatus)]),
        ];
        for (text, expected) in found {
            assert_eq!(states(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn code_whose_flow_is_unknown_is_not_watched() {
        let long = "nop; ".repeat(PROBED_MOST / 2) + "div rcx";
        for text in [&long, "div rcx; jmp rax", "div rcx; mov rax, [rip]"] {
            assert_eq!(states(text), None, "{text}");
        }
        // `div rcx`, and a branch to its own second byte.
        assert!(WatchedSnippet::from_code(&[0x48, 0xf7, 0xf1, 0x74, 0xff, 0x90], CodeMode::Bits64).is_none());
    }
}
