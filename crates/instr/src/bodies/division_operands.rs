//! Candidate operands in the search for fast and slow integer divisions.

use iced_x86::Mnemonic;

/// Bits without a pattern: the start of the fraction of the golden ratio.
const PATTERNLESS_BITS: u64 = 0x9e37_79b9_7f4a_7c15;

/// The operands of a division. Each part is as wide as the divisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DivisionOperands {
    /// Bits of the divisor.
    pub bits: u32,
    /// The dividend's high half.
    pub high: u64,
    /// The dividend's low half.
    pub low: u64,
    /// The divisor.
    pub divisor: u64,
}

impl DivisionOperands {
    /// The division as text.
    pub(crate) fn describe(&self) -> String {
        let dividend = u128::from(self.high) << self.bits | u128::from(self.low);
        format!("{dividend:#x} / {:#x}", self.divisor)
    }

    /// The values of RAX and RDX.
    pub(crate) fn dividend(&self) -> (u64, u64) {
        match self.bits {
            // A division by a byte divides AX.
            8 => (self.high << 8 | self.low, 0),
            _ => (self.low, self.high),
        }
    }

    /// The divisor, repeated to fill eight bytes.
    pub(crate) fn divisor_pattern(&self) -> u64 {
        repeat_element(self.divisor, self.bits)
    }
}

/// An element of `bits` bits, repeated to fill eight bytes.
pub(crate) fn repeat_element(element: u64, bits: u32) -> u64 {
    (0..64 / bits).fold(0, |pattern, index| pattern | element << (bits * index))
}

/// Divisions with different numbers of bits in quotient, divisor and dividend: their times may
/// differ.
pub(crate) fn list_integer_divisions(bits: u32, signed: bool) -> Vec<DivisionOperands> {
    let full = (PATTERNLESS_BITS >> (64 - bits) | 1) >> u32::from(signed) | 1;
    let division = |high: u64, low: u64, divisor: u64| DivisionOperands { bits, high, low, divisor };
    let mut all = vec![
        division(0, 0, full),
        division(0, 7, 3),
        division(0, 7, full),
        division(0, full, full),
        division(0, full, 3),
        division(0, full, full >> (bits / 2) | 1),
        division(full >> 2, full, full),
        division(full >> 4, full, 1 << (bits - 2)),
    ];
    if signed {
        let ones = u64::MAX >> (64 - bits);
        all.push(division(ones, full.wrapping_neg() & ones, 3));
    }
    all
}

/// Whether a division of integers is signed. `None` for other mnemonics.
pub(crate) fn division_signedness(mnemonic: Mnemonic) -> Option<bool> {
    match mnemonic {
        Mnemonic::Div => Some(false),
        Mnemonic::Idiv => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(value: u128, bits: u32) -> i128 {
        (value as i128) << (128 - bits) >> (128 - bits)
    }

    #[test]
    fn no_quotient_overflows() {
        for bits in [8, 16, 32, 64] {
            for quotient in list_integer_divisions(bits, false).into_iter().chain(list_integer_divisions(bits, true)) {
                let ones = u64::MAX >> (64 - bits);
                assert!(quotient.high <= ones && quotient.low <= ones);
                assert!(quotient.divisor != 0 && quotient.divisor <= ones);
            }
            for DivisionOperands { high, low, divisor, .. } in list_integer_divisions(bits, false) {
                let dividend = u128::from(high) << bits | u128::from(low);
                assert!(dividend / u128::from(divisor) < 1 << bits);
            }
            for DivisionOperands { high, low, divisor, .. } in list_integer_divisions(bits, true) {
                let dividend = signed(u128::from(high) << bits | u128::from(low), 2 * bits);
                let value = dividend / signed(u128::from(divisor), bits);
                assert!((-(1 << (bits - 1))..1 << (bits - 1)).contains(&value), "{bits}: {high:x} {low:x} {divisor:x}");
            }
        }
    }

    #[test]
    fn quotients_range_from_zero_to_many_bits() {
        let values: Vec<u128> = list_integer_divisions(64, false)
            .iter()
            .map(|one| (u128::from(one.high) << 64 | u128::from(one.low)) / u128::from(one.divisor))
            .collect();
        assert!(values.contains(&0) && values.contains(&1) && values.iter().any(|value| *value > 1 << 60));
    }

    #[test]
    fn a_byte_divides_ax() {
        let one = DivisionOperands { bits: 8, high: 1, low: 2, divisor: 3 };
        assert_eq!((one.dividend(), one.divisor_pattern()), ((0x102, 0), 0x0303_0303_0303_0303));
        assert_eq!(one.describe(), "0x102 / 0x3");
    }
}
