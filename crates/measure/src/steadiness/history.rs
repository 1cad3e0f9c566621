//! A watched state in several copies, as a number that the cost depends on.

use cyclescope_code::program::{ENDLESS_COPY, WatchPoint, WatchedState};
use iced_x86::{Instruction, MemorySize, Mnemonic, OpKind};
use std::ops::Range;

/// Later copies that are compared with the first one. A branch that random numbers decide goes one
/// way in all of them once in four billion snippets.
pub(super) const LATE: Range<u64> = 33..65;
/// Copies after which numbers that shrink by a twentieth in each copy are denormal.
pub(super) const FAR: Range<u64> = 16_385..16_389;

/// Exception flags of MXCSR and of the x87 status word: a denormal operand, and a result that is
/// too small (Intel SDM vol. 1, 10.2.3 and 8.1.3).
const DENORMAL_FLAGS: u64 = 1 << 1 | 1 << 4;
/// The x87 status word's flag of a stack fault.
const STACK_FAULT: u64 = 1 << 6;
/// Lowest bit of the number of the x87 register that is the top of the stack.
const STACK_TOP_BIT: u32 = 11;

/// The words of a state in one copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StateReading {
    /// Number of the copy after the start of a sample, from 1.
    pub(super) copy: u64,
    pub(super) words: [u64; 2],
}

impl StateReading {
    pub(super) fn is_endless(&self) -> bool {
        self.words == ENDLESS_COPY
    }
}

/// A watched state in several copies, the first one first.
#[derive(Debug, Clone)]
pub(super) struct StateHistory {
    pub(super) point: WatchPoint,
    readings: Vec<StateReading>,
}

impl StateHistory {
    pub(super) fn new(point: WatchPoint, readings: Vec<StateReading>) -> StateHistory {
        StateHistory { point, readings }
    }

    pub(super) fn extend_with(&mut self, later: StateHistory) {
        self.readings.extend(later.readings);
    }

    /// The state in the first copy. `None` if the copy did not end.
    pub(super) fn first(&self) -> Option<StateReading> {
        self.readings.first().copied().filter(|reading| !reading.is_endless())
    }

    /// Conditional branches that the first copy reaches at the watched one.
    pub(super) fn first_branches(&self) -> u64 {
        let is_branch = self.point.state == WatchedState::Branch;
        self.first().filter(|_| is_branch).map_or(0, |reading| reading.words[0])
    }

    /// The second copy and those after it, as far as they were read.
    pub(super) fn later(&self) -> &[StateReading] {
        self.readings.get(1..).unwrap_or_default()
    }

    /// The copies to compare with the first one: late ones if there are any.
    pub(super) fn settled(&self) -> &[StateReading] {
        let late = self.within(&LATE);
        if late.is_empty() { self.later() } else { late }
    }

    /// The last copies.
    pub(super) fn far(&self) -> &[StateReading] {
        self.within(&FAR)
    }

    fn within(&self, copies: &Range<u64>) -> &[StateReading] {
        let start = self.readings.partition_point(|reading| reading.copy < copies.start);
        let end = self.readings.partition_point(|reading| reading.copy < copies.end);
        &self.readings[start..end]
    }

    /// Whether a property holds for most settled copies, or for most of the last ones.
    pub(super) fn mostly(&self, holds: impl Fn(&StateReading) -> bool) -> bool {
        let most = |readings: &[StateReading]| {
            !readings.is_empty() && 2 * readings.iter().filter(|reading| holds(reading)).count() > readings.len()
        };
        most(self.settled()) || most(self.far())
    }
}

/// The number that the cost of an instruction depends on.
pub(super) fn cost_number(state: WatchedState, instruction: &Instruction, [one, two]: [u64; 2]) -> u64 {
    match state {
        // Comparisons end before the count is 0.
        WatchedState::RepeatCount => one.wrapping_sub(two),
        WatchedState::ElementMask(mask) if mask.is_k() => u64::from(one.count_ones()),
        WatchedState::ElementMask(_) => {
            let bits = 8 * instruction.memory_size().size().clamp(1, 8) as u32;
            let signs = |word: u64| (bits..=64).step_by(bits as usize).filter(|end| word >> (end - 1) & 1 == 1).count();
            (signs(one) + signs(two)) as u64
        }
        WatchedState::Dividend => significant_bits(instruction, one, Some(two)),
        WatchedState::Quotient => significant_bits(instruction, one, None),
        WatchedState::BitSelection(_) => u64::from(one.count_ones()),
        _ => one,
    }
}

/// Significant bits of a dividend, or of a quotient without `high`.
fn significant_bits(division: &Instruction, low: u64, high: Option<u64>) -> u64 {
    let bytes = match division.op0_kind() {
        OpKind::Register => division.op0_register().size(),
        _ => division.memory_size().size(),
    };
    let bits = 8 * bytes as u32;
    let part = |word: u64| u128::from(word) & (u128::MAX >> (128 - bits));
    // The dividend of an 8-bit division is AX.
    let (value, width) = match (high, bits) {
        (None, _) => (part(low), bits),
        (Some(_), 8) => (u128::from(low & 0xffff), 16),
        (Some(high), _) => (part(high) << bits | part(low), 2 * bits),
    };
    let magnitude = if division.mnemonic() == Mnemonic::Idiv {
        let unused = 128 - width;
        ((value << unused) as i128 >> unused).unsigned_abs()
    } else {
        value
    };
    u64::from(128 - magnitude.leading_zeros())
}

/// Whether flags show a denormal operand or result of any copy so far.
pub(super) fn is_denormal(reading: &StateReading) -> bool {
    reading.words[0] & DENORMAL_FLAGS != 0
}

/// Whether the x87 status word shows a stack fault of any copy so far.
pub(super) fn is_stack_fault(reading: &StateReading) -> bool {
    reading.words[0] & STACK_FAULT != 0
}

/// Values that a copy leaves on the x87 stack; negative if it takes some from it. Before the first
/// copy the stack is empty, unless init code filled it. The second copy shows that.
pub(super) fn stack_growth(history: &StateHistory) -> i64 {
    let top = |reading: &StateReading| (reading.words[0] >> STACK_TOP_BIT & 7) as i64;
    let [first, second] = [1, 2].map(|copy| history.readings.iter().find(|reading| reading.copy == copy).map(top));
    let Some(first) = first else { return 0 };
    let pushed = second.map_or(-first, |second| first - second).rem_euclid(8);
    if pushed < 4 { pushed } else { pushed - 8 }
}

/// Whether all elements of a result are normal numbers. A scalar instruction has one.
pub(super) fn is_normal(instruction: &Instruction, words: [u64; 2]) -> bool {
    let size = instruction.code().op_code().memory_size();
    let is_packed = size.is_packed() || size.is_broadcast();
    let low = words[0];
    match size.element_type() {
        MemorySize::Float64 => {
            [low, words[1]][..if is_packed { 2 } else { 1 }].iter().all(|word| f64::from_bits(*word).is_normal())
        }
        MemorySize::Float32 => {
            let halves = [low as u32, (low >> 32) as u32];
            halves[..if is_packed { 2 } else { 1 }].iter().all(|word| f32::from_bits(*word).is_normal())
        }
        _ => {
            let exponent = low >> 10 & 0x1f;
            exponent != 0 && exponent != 0x1f
        }
    }
}
