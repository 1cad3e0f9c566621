//! Flags that make a condition true or false.

use iced_x86::{Code, ConditionCode, Instruction, Register, RflagsBits};

/// Pairs of 32-bit numbers whose comparison makes every condition both true and false: equal,
/// below, above, overflowing.
const COMPARED_PAIRS: [(u32, u32); 4] = [(0, 0), (0, 2), (2, 0), (1 << 31, 2)];
/// Registers of the compared numbers.
const COMPARED_REGISTERS: [Register; 2] = [Register::ESI, Register::EDI];

/// Code that makes a condition true or false.
#[derive(Debug, Clone, Default)]
pub(super) struct ConditionSetup {
    /// Code that runs once.
    pub(super) init: Vec<Instruction>,
    /// Code that sets the flags.
    pub(super) before: Vec<Instruction>,
}

impl ConditionSetup {
    /// Code for a branch by the flags. Empty for other branches.
    ///
    /// ```text
    ///     mov esi, …      ; once
    ///     mov edi, …
    ///     cmp esi, edi
    ///     nop             ; keeps the comparison from fusing with a branch
    /// ```
    pub(super) fn for_branch(sample: &Instruction, holds: bool) -> Option<ConditionSetup> {
        let condition = sample.condition_code();
        if condition == ConditionCode::None {
            return Some(ConditionSetup::default());
        }
        let (a, b) = COMPARED_PAIRS
            .into_iter()
            .find(|(a, b)| self::condition_holds(condition, flags_after_compare(*a, *b)) == holds)?;
        let [first, second] = COMPARED_REGISTERS;
        let load = |register, value| Instruction::with2(Code::Mov_r32_imm32, register, value).ok();
        let compare = Instruction::with2(Code::Cmp_rm32_r32, first, second).ok()?;
        let before = vec![compare, Instruction::with(Code::Nopd)];
        Some(ConditionSetup { init: vec![load(first, a)?, load(second, b)?], before })
    }
}

/// The flags after `cmp a, b`.
pub(super) fn flags_after_compare(a: u32, b: u32) -> u32 {
    let difference = a.wrapping_sub(b);
    let flags = [
        (RflagsBits::CF, a < b),
        (RflagsBits::ZF, a == b),
        (RflagsBits::SF, (difference as i32) < 0),
        (RflagsBits::OF, (a as i32).checked_sub(b as i32).is_none()),
        (RflagsBits::PF, (difference as u8).count_ones().is_multiple_of(2)),
    ];
    flags.iter().filter(|(_, set)| *set).fold(0, |all, (flag, _)| all | flag)
}

/// Whether a condition is true with these flags (Intel SDM vol. 1, appendix B).
pub(super) fn condition_holds(condition: ConditionCode, flags: u32) -> bool {
    let set = |flag: u32| flags & flag != 0;
    let less = set(RflagsBits::SF) != set(RflagsBits::OF);
    match condition {
        ConditionCode::None => true,
        ConditionCode::o => set(RflagsBits::OF),
        ConditionCode::no => !set(RflagsBits::OF),
        ConditionCode::b => set(RflagsBits::CF),
        ConditionCode::ae => !set(RflagsBits::CF),
        ConditionCode::e => set(RflagsBits::ZF),
        ConditionCode::ne => !set(RflagsBits::ZF),
        ConditionCode::be => set(RflagsBits::CF | RflagsBits::ZF),
        ConditionCode::a => !set(RflagsBits::CF | RflagsBits::ZF),
        ConditionCode::s => set(RflagsBits::SF),
        ConditionCode::ns => !set(RflagsBits::SF),
        ConditionCode::p => set(RflagsBits::PF),
        ConditionCode::np => !set(RflagsBits::PF),
        ConditionCode::l => less,
        ConditionCode::ge => !less,
        ConditionCode::le => less || set(RflagsBits::ZF),
        ConditionCode::g => !less && !set(RflagsBits::ZF),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_set_the_documented_flags() {
        let (cf, zf, sf) = (RflagsBits::CF, RflagsBits::ZF, RflagsBits::SF);
        let (of, pf) = (RflagsBits::OF, RflagsBits::PF);
        assert_eq!(COMPARED_PAIRS.map(|(a, b)| flags_after_compare(a, b)), [zf | pf, cf | sf, 0, of]);
    }

    #[test]
    fn every_condition_can_be_true_and_false() {
        for condition in ConditionCode::values().filter(|condition| *condition != ConditionCode::None) {
            for wanted in [false, true] {
                let found = COMPARED_PAIRS
                    .iter()
                    .any(|(a, b)| condition_holds(condition, flags_after_compare(*a, *b)) == wanted);
                assert!(found, "{condition:?} {wanted}");
            }
        }
    }
}
