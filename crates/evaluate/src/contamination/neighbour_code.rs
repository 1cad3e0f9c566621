//! The crafted neighbouring code, as data.
//!
//! Chains consist of square roots: at least twelve cycles for four bytes of code (uops.info,
//! SQRTSD). They fill no window of a core and cause no fetch stall. The initial values of vector
//! registers are fixed points of the square root.

use super::fault::ContaminationFault;
use cyclescope_code::asm::{self, CodeMode};

/// A piece of code and the number of its copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodePiece {
    /// Assembly text in Intel syntax, for 64-bit mode and for 32-bit code.
    pub(super) texts: [&'static str; 2],
    /// Number of copies.
    pub(super) times: usize,
}

impl CodePiece {
    const NONE: CodePiece = CodePiece { texts: [""; 2], times: 0 };

    /// The same code with twice the copies.
    pub(super) fn with_double_copies(self) -> CodePiece {
        CodePiece { times: 2 * self.times, ..self }
    }

    pub(super) fn assemble(self, mode: CodeMode) -> Vec<u8> {
        let listing = asm::parse_for_mode(mode.choose(self.texts), mode, None).expect("the neighbours are valid code");
        listing.bytes().repeat(self.times)
    }
}

/// Code that provokes a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NeighbourCode {
    /// Description for readers.
    pub(super) words: &'static str,
    /// The code that the fault counts or misses.
    pub(super) code: CodePiece,
    /// The code between the readings, or before the part that the end may miss.
    pub(super) body: CodePiece,
    /// Fewest core cycles that the code takes on any core. A lower reading proves that the
    /// reference is not fenced, and rules out a comparison.
    pub(super) least: f64,
}

/// About 200 cycles: longer than any start takes to read its counter, so that a body has time to
/// begin.
pub(super) const LEADING_CHAIN: CodePiece = CodePiece { texts: ["sqrtsd xmm0, xmm0"; 2], times: 16 };

/// Code before the part that an end may miss. It outlasts effects after a fence and the decoding of
/// an end.
const BODY_CHAIN: CodePiece = CodePiece { texts: ["sqrtsd xmm0, xmm0"; 2], times: 6 };
/// Core cycles of a square root in a chain, less than on any core.
const SQUARE_ROOT_CYCLES: f64 = 8.0;

/// The second kind of code. It uses another unit and other registers than square roots, and keeps
/// many more instructions in flight.
const MULTIPLICATION_CODE: [&str; 2] = ["imul r8, r8", "imul ebp, ebp"];
/// Core cycles of a multiplication in a chain on any core, minus the error of a fenced reading.
const MULTIPLICATION_CYCLES: f64 = 2.0;

/// Two neighbours of a fault that differ in kind; for following code, two of many ([`FOLLOWING`]).
/// The second one is used if the first indicates a breach.
pub(super) fn choose_neighbours(fault: ContaminationFault) -> [&'static NeighbourCode; 2] {
    match fault {
        ContaminationFault::LeadingUnfinished => [&LEADING_CODE[0], &LEADING_CODE[1]],
        ContaminationFault::BodyStartedEarly => [&EARLY_BODY[0], &EARLY_BODY[1]],
        ContaminationFault::BodyUnfinished => [&LATE_BODY[0], &LATE_BODY[1]],
        ContaminationFault::FollowingInTheWay => [&FOLLOWING[0], &FOLLOWING[1]],
        ContaminationFault::StoresNotDrained => [&STORE_LINE[0], &STORE_LINE[1]],
    }
}

const LEADING_CODE: [NeighbourCode; 2] = [
    NeighbourCode {
        words: "a chain of square roots before the start",
        code: LEADING_CHAIN,
        body: CodePiece::NONE,
        least: 16.0 * SQUARE_ROOT_CYCLES,
    },
    NeighbourCode {
        words: "a chain of multiplications before the start",
        code: CodePiece { texts: MULTIPLICATION_CODE, times: 48 },
        body: CodePiece::NONE,
        least: 48.0 * MULTIPLICATION_CYCLES,
    },
];

/// Uses another register than the leading chain.
const EARLY_BODY: [NeighbourCode; 2] = [
    NeighbourCode {
        words: "a chain of square roots after an unfinished one",
        code: CodePiece { texts: ["sqrtsd xmm1, xmm1"; 2], times: 10 },
        body: CodePiece::NONE,
        least: 10.0 * SQUARE_ROOT_CYCLES,
    },
    NeighbourCode {
        words: "a chain of multiplications after an unfinished one of square roots",
        code: CodePiece { texts: MULTIPLICATION_CODE, times: 40 },
        body: CodePiece::NONE,
        least: 40.0 * MULTIPLICATION_CYCLES,
    },
];

const LATE_BODY: [NeighbourCode; 2] = [
    NeighbourCode {
        words: "a chain of square roots before the end",
        code: CodePiece { texts: ["sqrtsd xmm0, xmm0"; 2], times: 12 },
        body: BODY_CHAIN,
        least: 12.0 * SQUARE_ROOT_CYCLES,
    },
    // Not integer multiplications: those that wait fill the scheduler of their unit (24 entries on
    // Zen 3). RDTSC needs entries there too. A missed body would delay it, and stay unseen.
    NeighbourCode {
        words: "a chain of multiplications before the end",
        code: CodePiece { texts: ["mulsd xmm0, xmm0"; 2], times: 24 },
        body: BODY_CHAIN,
        least: 24.0 * MULTIPLICATION_CYCLES,
    },
];

/// A whole line, which leaves its write-combining buffer at once. The drain time of several lines,
/// or of partial lines merged in memory, varies by a tenth or more.
const STORE_LINE: [NeighbourCode; 2] = [
    NeighbourCode {
        words: "a line of non-temporal stores before the end",
        code: CodePiece {
            texts: [
                "movnti [r14], r8; movnti [r14 + 8], r8; movnti [r14 + 16], r8; movnti [r14 + 24], r8; \
                 movnti [r14 + 32], r8; movnti [r14 + 40], r8; movnti [r14 + 48], r8; movnti [r14 + 56], r8",
                "movnti [esi], ebp; movnti [esi + 4], ebp; movnti [esi + 8], ebp; movnti [esi + 12], ebp; \
                 movnti [esi + 16], ebp; movnti [esi + 20], ebp; movnti [esi + 24], ebp; movnti [esi + 28], ebp; \
                 movnti [esi + 32], ebp; movnti [esi + 36], ebp; movnti [esi + 40], ebp; movnti [esi + 44], ebp; \
                 movnti [esi + 48], ebp; movnti [esi + 52], ebp; movnti [esi + 56], ebp; movnti [esi + 60], ebp",
            ],
            times: 1,
        },
        body: BODY_CHAIN,
        least: 0.0,
    },
    NeighbourCode {
        words: "a line of non-temporal vector stores before the end",
        code: CodePiece {
            texts: [
                "movntps [r14], xmm1; movntps [r14 + 16], xmm1; movntps [r14 + 32], xmm1; movntps [r14 + 48], xmm1",
                "movntps [esi], xmm1; movntps [esi + 16], xmm1; movntps [esi + 32], xmm1; movntps [esi + 48], xmm1",
            ],
            times: 1,
        },
        body: CodePiece { texts: MULTIPLICATION_CODE, times: 40 },
        least: 0.0,
    },
];

/// Following code that competes with a body or with the reading itself, one or two kinds per
/// resource. It must be ready at once and keep its unit busy while the end waits. It avoids the
/// registers that an end may change.
pub(super) const FOLLOWING: [NeighbourCode; 6] = [
    // The divider, which accepts an operation every few cycles.
    NeighbourCode {
        words: "independent square roots after the end, with a chain of them before it",
        code: CodePiece {
            texts: [
                "sqrtsd xmm1, xmm15; sqrtsd xmm2, xmm15; sqrtsd xmm3, xmm15; sqrtsd xmm4, xmm15; \
                 sqrtsd xmm5, xmm15; sqrtsd xmm6, xmm15; sqrtsd xmm7, xmm15; sqrtsd xmm8, xmm15",
                "sqrtsd xmm1, xmm7; sqrtsd xmm2, xmm7; sqrtsd xmm3, xmm7; sqrtsd xmm4, xmm7; \
                 sqrtsd xmm5, xmm7; sqrtsd xmm6, xmm7; sqrtsd xmm1, xmm7; sqrtsd xmm2, xmm7",
            ],
            times: 5,
        },
        body: CodePiece { texts: ["sqrtsd xmm0, xmm0"; 2], times: 8 },
        least: 0.0,
    },
    // The multiplier.
    NeighbourCode {
        words: "independent multiplications after the end, with a chain of them before it",
        code: CodePiece {
            texts: [
                "imul r9, r9; imul r10, r10; imul r11, r11; imul rbx, rbx; imul r12, r12",
                "imul esi, esi; imul edi, edi; imul ebx, ebx; imul esi, esi; imul edi, edi",
            ],
            times: 16,
        },
        body: CodePiece { texts: MULTIPLICATION_CODE, times: 40 },
        least: 0.0,
    },
    // The multiplier, competing only with the reading.
    NeighbourCode {
        words: "independent multiplications after the end",
        code: CodePiece {
            texts: [
                "imul r9, r9, 3; imul r10, r10, 3; imul r11, r11, 3; imul rbx, rbx, 3; imul r12, r12, 3",
                "imul esi, esi, 3; imul edi, edi, 3; imul ebx, ebx, 3; imul ebp, ebp, 3; imul esi, esi, 3",
            ],
            times: 16,
        },
        body: CodePiece::NONE,
        least: 0.0,
    },
    // All adders, and the width of the core.
    NeighbourCode {
        words: "independent additions after the end",
        code: CodePiece {
            texts: [
                "add r9, r9; add r10, r10; add r11, r11; add rbx, rbx; add r12, r12",
                // No sum is used by another, so that four registers occupy all adders.
                "lea esi, [ebp + ebp]; lea edi, [ebp + ebp]; lea ebx, [ebp + ebp]; lea esi, [ebp + ebp]; \
                 lea edi, [ebp + ebp]",
            ],
            times: 40,
        },
        body: CodePiece::NONE,
        least: 0.0,
    },
    // The divider, competing only with the reading.
    NeighbourCode {
        words: "independent divisions after the end",
        code: CodePiece {
            texts: [
                "divsd xmm1, xmm15; divsd xmm2, xmm15; divsd xmm3, xmm15; divsd xmm4, xmm15; \
                 divsd xmm5, xmm15; divsd xmm6, xmm15; divsd xmm7, xmm15; divsd xmm8, xmm15",
                "divsd xmm0, xmm7; divsd xmm1, xmm7; divsd xmm2, xmm7; divsd xmm3, xmm7; \
                 divsd xmm4, xmm7; divsd xmm5, xmm7; divsd xmm6, xmm7; divsd xmm0, xmm7",
            ],
            times: 5,
        },
        body: CodePiece::NONE,
        least: 0.0,
    },
    // The load ports and the first-level cache.
    NeighbourCode {
        words: "independent loads after the end",
        code: CodePiece {
            texts: [
                "mov r8, [r14]; mov r9, [r14 + 64]; mov r10, [r14 + 128]; mov r11, [r14 + 192]; \
                 mov rbx, [r14 + 256]; mov r12, [r14 + 320]",
                "mov ebp, [esi]; mov edi, [esi + 64]; mov ebx, [esi + 128]; mov ebp, [esi + 192]; \
                 mov edi, [esi + 256]; mov ebx, [esi + 320]",
            ],
            times: 12,
        },
        body: CodePiece::NONE,
        least: 0.0,
    },
];
