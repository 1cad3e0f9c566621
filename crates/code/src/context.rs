//! The context of a program: inputs and outputs of one call, in one block of memory next to the
//! code.
//!
//! A program is position-independent code `fn(ctx*)`. Every address, register image and sample
//! lives in the context and is reached RIP-relative. So the same program bytes run wherever an
//! executor puts them, in user mode or in ring 0. The layout is an interface between this library
//! and every executor.

pub use cyclescope_worker::context::{CONSTANT_PART, EVICTION_PAGES, ProgramContext};

/// Registers that an executor points into the middle of the snippet's memory areas, by encoding
/// number and in the order of the areas: R14, RDI, RSI, RSP, RBP.
pub const AREA_REGISTERS: [usize; 5] = [14, 7, 6, 4, 5];

/// Power-on value of MXCSR: all exceptions masked, round to nearest (Intel SDM vol. 1, 10.2.3).
pub const MXCSR_DEFAULT: u32 = 0x1f80;

/// Element type of the initial floating-point numbers in registers and memory areas.
///
/// Each element is one, with its lowest mantissa bit set. Long products neither grow nor vanish,
/// and the same bytes read as integers are not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FloatElement {
    /// 64-bit floating point; also for code without floating point.
    #[default]
    F64,
    /// 32-bit floating point.
    F32,
    /// 16-bit floating point.
    F16,
    /// 64-bit floating point slightly above one, with a full mantissa that differs per register.
    /// For operations whose time may depend on their operands.
    Full64,
    /// Like `Full64`, with 32 bits.
    Full32,
    /// Like `Full64`, with 16 bits.
    Full16,
}

/// A mantissa without a pattern: the first bits of the fraction of the golden ratio.
const MANTISSA: u64 = 0x9e37_79b9_7f4a_7c15;

impl FloatElement {
    /// Eight bytes of elements.
    pub const fn to_word(self) -> u64 {
        match self {
            FloatElement::F64 => 0x3ff0_0000_0000_0001,
            FloatElement::F32 => 0x3f80_0001_3f80_0001,
            FloatElement::F16 => 0x3c01_3c01_3c01_3c01,
            FloatElement::Full64 | FloatElement::Full32 | FloatElement::Full16 => self.register_word(0),
        }
    }

    /// Eight bytes of elements for the vector register with this number.
    pub const fn register_word(self, number: u64) -> u64 {
        let mantissa = MANTISSA.wrapping_mul(2 * number + 1);
        match self {
            FloatElement::F64 | FloatElement::F32 | FloatElement::F16 => self.to_word(),
            FloatElement::Full64 => 0x3ff0_0000_0000_0000 | mantissa >> 20 | 1,
            FloatElement::Full32 => (0x3f80_0000 | mantissa >> 49 | 1) * 0x1_0000_0001,
            FloatElement::Full16 => (0x3c00 | mantissa >> 61 | 1) * 0x1_0001_0001_0001,
        }
    }

    /// The same type with full mantissas.
    pub fn with_full_mantissa(self) -> FloatElement {
        match self {
            FloatElement::F64 | FloatElement::Full64 => FloatElement::Full64,
            FloatElement::F32 | FloatElement::Full32 => FloatElement::Full32,
            FloatElement::F16 | FloatElement::Full16 => FloatElement::Full16,
        }
    }
}

/// The initial processor state of a snippet, except the registers that point to memory areas, which
/// an executor sets.
///
/// RDX is less than every other register, so that `div` by any of them does not overflow. All are
/// odd, so that products do not drift to zero.
pub fn fresh_context(element: FloatElement) -> ProgramContext {
    let mut gpr = [0; 16];
    for (number, value) in gpr.iter_mut().enumerate() {
        *value = 0x1_0001 + 2 * number as u64;
    }
    gpr[0] = 0x1_0001;
    gpr[1] = 3;
    gpr[2] = 1;
    ProgramContext {
        start: 0,
        end: 0,
        loop_count: 1,
        return_rsp: 0,
        spill: [0; 10],
        mxcsr: MXCSR_DEFAULT,
        counter_index: 0,
        clock_gettime: 0,
        eviction: 0,
        timespec: [0; 2],
        gpr,
        mask: [u64::MAX; 8],
        vector: std::array::from_fn(|number| [element.register_word(number as u64); 8]),
        memcpy: 0,
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_slightly_above_one() {
        let f64_bits = f64::from_bits(FloatElement::F64.to_word());
        assert!(f64_bits > 1.0 && f64_bits.powi(1000) < 1.01);
        let f32_bits = f32::from_bits(FloatElement::F32.to_word() as u32);
        assert!(f32_bits > 1.0 && f32_bits.powi(1000) < 1.01);
    }

    #[test]
    fn full_mantissas_differ_between_registers() {
        for (element, one, two) in [
            (FloatElement::Full64, f64::from_bits(FloatElement::Full64.register_word(1)), 2.0),
            (FloatElement::Full32, f32::from_bits(FloatElement::Full32.register_word(1) as u32).into(), 2.0),
        ] {
            assert!(one > 1.0 && one < two && element.register_word(1) != element.register_word(2));
        }
        assert_eq!(
            FloatElement::F32.with_full_mantissa().register_word(5) >> 32,
            FloatElement::Full32.register_word(5) & 0xffff_ffff
        );
    }

    #[test]
    fn no_register_is_zero_and_division_cannot_overflow() {
        let context = fresh_context(FloatElement::F64);
        for (number, value) in context.gpr.iter().enumerate() {
            assert_ne!(*value, 0);
            assert!(number == 2 || *value > context.gpr[2]);
        }
    }
}
