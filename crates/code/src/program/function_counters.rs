//! What a probe of a function counts: its blocks, branches, repeated instructions and divisions.

use super::function_code::FunctionCode;
use super::watch_point::is_conditional;
use iced_x86::{Code, Instruction, Mnemonic, Register};

/// Most counters of a function: enough for 8 192 instructions, a quarter of them branches.
pub(super) const COUNTERS_MOST: usize = 16_384;
/// Counters of a branch.
pub(super) const DIRECTION_PAIRS: usize = 4;
/// A division's counter has the number of divisions in the upper half, and the bits in the lower one.
pub(super) const ONE_DIVISION: u64 = 1 << 32;

/// Divisions of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DivisionCount {
    /// Their number.
    pub divisions: u64,
    /// Significant bits of all quotients together, each less one. Of floating-point divisions the
    /// number of short results.
    pub bits: u64,
}

impl DivisionCount {
    /// Reads a word of [`CountComparison::Divisions`](crate::program::CountComparison::Divisions).
    pub fn from_word(word: u64) -> DivisionCount {
        DivisionCount { divisions: word / ONE_DIVISION, bits: word % ONE_DIVISION }
    }
}

/// Where a probe counts: the counters of a function's blocks, then those of its branches, of its
/// repeated instructions, of its divisions, and of its floating-point divisions.
#[derive(Debug, Clone)]
pub struct FunctionCounters {
    /// Addresses of the blocks, branches, repeated instructions and divisions.
    pub(super) places: Vec<u64>,
    /// Number of the blocks' counters, and of those before each further kind.
    pub(super) ends: [usize; 4],
}

impl FunctionCounters {
    /// The counters of a function. `None` if there are too many.
    pub fn from_code(code: &FunctionCode) -> Option<FunctionCounters> {
        let mut places: Vec<u64> = code.blocks().into_keys().collect();
        let blocks = places.len();
        for branch in code.instructions().filter(|one| is_conditional(one)) {
            places.extend([branch.ip(); DIRECTION_PAIRS]);
        }
        let branches = places.len();
        places.extend(code.instructions().filter(|one| is_repeated(one)).map(Instruction::ip));
        let counted = places.len();
        places.extend(code.instructions().filter(|one| is_division(one)).map(Instruction::ip));
        let ends = [blocks, branches, counted, places.len()];
        places.extend(code.instructions().filter(|one| find_float_division(one).is_some()).map(Instruction::ip));
        (places.len() <= COUNTERS_MOST).then_some(FunctionCounters { places, ends })
    }

    /// The address that a counter belongs to.
    pub fn place(&self, counter: u64) -> Option<u64> {
        self.places.get(counter as usize).copied()
    }
}

/// Whether an instruction is a repeated string instruction.
pub(super) fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// Whether the time of an instruction depends on the bits of its quotient. Divisions of few bits
/// take about the same time.
pub(super) fn is_division(instruction: &Instruction) -> bool {
    matches!(instruction.code(), Code::Div_rm32 | Code::Div_rm64 | Code::Idiv_rm32 | Code::Idiv_rm64)
}

/// A floating-point division or square root.
#[derive(Debug, Clone, Copy)]
pub(super) struct FloatDivision {
    /// The register whose lowest element is its result.
    pub result: Register,
    pub is_single: bool,
}

/// The division or square root that an instruction is. One with a mask may leave its result alone.
pub(super) fn find_float_division(instruction: &Instruction) -> Option<FloatDivision> {
    use Mnemonic::*;
    let is_single = match instruction.mnemonic() {
        Divss | Divps | Sqrtss | Sqrtps | Vdivss | Vdivps | Vsqrtss | Vsqrtps => true,
        Divsd | Divpd | Sqrtsd | Sqrtpd | Vdivsd | Vdivpd | Vsqrtsd | Vsqrtpd => false,
        _ => return None,
    };
    let number = instruction.op0_register().number();
    // Only the lower registers can be stored without EVEX.
    let is_stored = number < 16 && instruction.op_mask() == Register::None;
    is_stored.then(|| FloatDivision { result: Register::XMM0 + number as u32, is_single })
}
