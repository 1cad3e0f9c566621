//! Code with known core cycles, or with core cycles that grow with its length: the ruler, and the
//! sample code of the calibration.

use crate::pair::hide;
use core::arch::asm;

/// Multiplications in a block of the ruler.
pub(crate) const BLOCK: f64 = 64.0;

/// The ruler: blocks of dependent multiplications. Their unit rests between links: with background
/// load on the sibling they lost 0.1 %, where additions lost 1 to 5 % (Zen 4). The branch after a
/// block is resolved long before it, and takes no time.
#[inline(always)]
pub(crate) fn multiplications(mut value: u64, blocks: u32) -> u64 {
    // SAFETY: it changes two registers, which are named, and flags. The count is not 0.
    unsafe {
        asm!(
            "2:", ".rept 64", "imul {value}, {value}", ".endr", "dec {blocks:e}", "jnz 2b",
            value = inout(reg) value, blocks = inout(reg) blocks.max(1) => _, options(nomem, nostack),
        );
    }
    value
}

/// Runs a chain of additions that takes this many core cycles.
#[inline(always)]
pub(crate) fn pass(value: u64, cycles: u32) -> u64 {
    (0..cycles).fold(value, |value, _| hide(value.wrapping_add(hide(value))))
}

/// Code at two lengths, inlined where it is timed.
pub(crate) trait Chain {
    /// Links of the shorter code.
    const LINKS: f64;

    /// The shorter code.
    fn short(value: u64) -> u64;

    /// The longer code, with twice as many links.
    fn long(value: u64) -> u64;
}

macro_rules! chain {
    (
        $(#[$doc:meta])* $name:ident, $links:literal, $twice:literal, $before:literal, $link:literal, $option:ident
    ) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl Chain for $name {
            const LINKS: f64 = $links as f64;

            #[inline(always)]
            fn short(mut value: u64) -> u64 {
                // SAFETY: it changes two registers, which are named, and flags.
                unsafe {
                    asm!(
                        $before, concat!(".rept ", $links), $link, ".endr",
                        inout(reg) value, out("xmm0") _, options(nostack, $option),
                    );
                }
                value
            }

            #[inline(always)]
            fn long(mut value: u64) -> u64 {
                // SAFETY: as in the shorter code.
                unsafe {
                    asm!(
                        $before, concat!(".rept ", $twice), $link, ".endr",
                        inout(reg) value, out("xmm0") _, options(nostack, $option),
                    );
                }
                value
            }
        }
    };
}

chain!(
    /// Dependent additions, each of one core cycle on every x86-64 core (A. Fog, Instruction
    /// tables). Of registers: some cores add constants while they rename.
    Additions, 512, 1024, "", "add {0}, {0}", nomem
);
chain!(
    /// Multiplications of floating point numbers.
    FloatMultiplications, 64, 128, "xorps xmm0, xmm0 /* {0} */", "mulsd xmm0, xmm0", nomem
);
chain!(
    /// No-operations: code that waits for nothing.
    NoOperations, 64, 128, "/* {0} */", "nop; nop; nop; nop; nop; nop", nomem
);
chain!(
    /// Multiplications of numbers that wait for a load, so that the first one starts late: by 9 cycles
    /// (Raptor Cove).
    LoadedMultiplications, 64, 128, "/* {0} */", "xor {0}, [rsp]; imul {0}, {0}", readonly
);
