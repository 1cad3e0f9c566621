//! Code of which the core cycles are known, or grow with its length: the ruler, and what stands for measured code in the calibration.

use core::arch::asm;

/// Code at two lengths, built into where it is timed.
pub(crate) trait Chain {
    /// Links of the shorter one.
    const LINKS: f64;

    /// The shorter one.
    fn short(value: u64) -> u64;

    /// The longer one, of twice as many links.
    fn long(value: u64) -> u64;
}

macro_rules! chain {
    ($(#[$doc:meta])* $name:ident, $links:literal, $twice:literal, $before:literal, $link:literal) => {
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
                        inout(reg) value, out("xmm0") _, options(nomem, nostack),
                    );
                }
                value
            }

            #[inline(always)]
            fn long(mut value: u64) -> u64 {
                // SAFETY: as in the shorter one.
                unsafe {
                    asm!(
                        $before, concat!(".rept ", $twice), $link, ".endr",
                        inout(reg) value, out("xmm0") _, options(nomem, nostack),
                    );
                }
                value
            }
        }
    };
}

chain!(
    /// The ruler: each addition waits for the one before and takes one core cycle, on every x86-64 core (A. Fog, Instruction tables). Of
    /// registers: some cores add constants while they rename.
    Ruler, 512, 1024, "", "add {0}, {0}"
);
chain!(
    /// Additions.
    Additions, 64, 128, "", "add {0}, {0}"
);
chain!(
    /// Multiplications of integers.
    Multiplications, 64, 128, "", "imul {0}, {0}"
);
chain!(
    /// Multiplications of floating point numbers.
    FloatMultiplications, 64, 128, "xorps xmm0, xmm0 /* {0} */", "mulsd xmm0, xmm0"
);
chain!(
    /// No-operations: code that waits for nothing.
    NoOperations, 64, 128, "/* {0} */", "nop; nop; nop; nop; nop; nop"
);
