//! The crafted neighbours, as data.
//!
//! Chains are of square roots: twelve cycles and more for four bytes of code (uops.info, SQRTSD), so that no window of a
//! core fills up and no code fetch shows. The square root of what vector registers hold at first is a fixed point.

use super::fault::ContaminationFault;
use cyclescope_code::asm;

/// Code as a piece of text and how often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodePiece {
    /// Intel syntax.
    pub(super) text: &'static str,
    /// Copies.
    pub(super) times: usize,
}

impl CodePiece {
    const NONE: CodePiece = CodePiece { text: "", times: 0 };

    /// As many again.
    pub(super) fn with_double_copies(self) -> CodePiece {
        CodePiece { times: 2 * self.times, ..self }
    }

    pub(super) fn assemble(self) -> Vec<u8> {
        let listing = asm::parse_assembly(self.text).expect("the neighbours are valid code");
        listing.bytes().repeat(self.times)
    }
}

/// What provokes a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NeighbourCode {
    /// In words.
    pub(super) words: &'static str,
    /// The code that the fault lets in, or leaves out.
    pub(super) code: CodePiece,
    /// What lies between the readings meanwhile, or before the part of the body that the end may miss.
    pub(super) body: CodePiece,
    /// Core cycles that the code takes on any core. Where fenced readings see less they are not fenced, and nothing
    /// can be compared with them.
    pub(super) least: f64,
}

/// Some 200 cycles: longer than any start takes to read its counter, so that a body has the time to begin.
pub(super) const LEADING_CHAIN: CodePiece = CodePiece { text: "sqrtsd xmm0, xmm0", times: 16 };

/// Before what an end may miss. It is longer than what follows a fence at first, and than an end needs to be decoded.
const BODY_CHAIN: CodePiece = CodePiece { text: "sqrtsd xmm0, xmm0", times: 6 };
/// Core cycles of a square root in a chain, less than on any core.
const SQUARE_ROOT_CYCLES: f64 = 8.0;

/// The other kind of code than square roots: it waits for another unit and in other registers, and has many more
/// instructions in flight at a time.
const MULTIPLICATION_CODE: &str = "imul r8, r8";
/// Core cycles of a multiplication in a chain on any core, but for what a fenced reading may be off.
const MULTIPLICATION_CYCLES: f64 = 2.0;

/// Two neighbours of a fault that differ in kind; of following code, two of many ([`FOLLOWING`]). The second is asked
/// where the first speaks against a method.
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
        code: CodePiece { text: MULTIPLICATION_CODE, times: 48 },
        body: CodePiece::NONE,
        least: 48.0 * MULTIPLICATION_CYCLES,
    },
];

/// Of another register than the leading chain's.
const EARLY_BODY: [NeighbourCode; 2] = [
    NeighbourCode {
        words: "a chain of square roots behind an unfinished one",
        code: CodePiece { text: "sqrtsd xmm1, xmm1", times: 10 },
        body: CodePiece::NONE,
        least: 10.0 * SQUARE_ROOT_CYCLES,
    },
    NeighbourCode {
        words: "a chain of multiplications behind an unfinished one of square roots",
        code: CodePiece { text: MULTIPLICATION_CODE, times: 40 },
        body: CodePiece::NONE,
        least: 40.0 * MULTIPLICATION_CYCLES,
    },
];

const LATE_BODY: [NeighbourCode; 2] = [
    NeighbourCode {
        words: "a chain of square roots before the end",
        code: CodePiece { text: "sqrtsd xmm0, xmm0", times: 12 },
        body: BODY_CHAIN,
        least: 12.0 * SQUARE_ROOT_CYCLES,
    },
    // Twice as many still fit into the scheduler of a core that has 64 places for waiting instructions, once some of the
    // first have executed.
    NeighbourCode {
        words: "a chain of multiplications before the end",
        code: CodePiece { text: MULTIPLICATION_CODE, times: 24 },
        body: CodePiece { text: MULTIPLICATION_CODE, times: 40 },
        least: 24.0 * MULTIPLICATION_CYCLES,
    },
];

/// A whole line, which leaves its write-combining buffer at once; several lines, or parts of one that have to
/// be merged in memory, drain in times that differ by a tenth and more.
const STORE_LINE: [NeighbourCode; 2] = [
    NeighbourCode {
        words: "a line of non-temporal stores before the end",
        code: CodePiece {
            text: "movnti [r14], r8; movnti [r14 + 8], r8; movnti [r14 + 16], r8; movnti [r14 + 24], r8; \
                   movnti [r14 + 32], r8; movnti [r14 + 40], r8; movnti [r14 + 48], r8; movnti [r14 + 56], r8",
            times: 1,
        },
        body: BODY_CHAIN,
        least: 0.0,
    },
    NeighbourCode {
        words: "a line of non-temporal vector stores before the end",
        code: CodePiece {
            text: "movntps [r14], xmm1; movntps [r14 + 16], xmm1; movntps [r14 + 32], xmm1; \
                   movntps [r14 + 48], xmm1",
            times: 1,
        },
        body: CodePiece { text: MULTIPLICATION_CODE, times: 40 },
        least: 0.0,
    },
];

/// Following code that competes with a body or with the reading itself, one or two for each kind of resource. It has to be
/// ready at once, and to keep its unit busy while the end waits. Registers that an end may change are not used.
pub(super) const FOLLOWING: [NeighbourCode; 6] = [
    // The divider, which takes an operation every few cycles only.
    NeighbourCode {
        words: "independent square roots after the end, behind a chain of them",
        code: CodePiece {
            text: "sqrtsd xmm1, xmm15; sqrtsd xmm2, xmm15; sqrtsd xmm3, xmm15; sqrtsd xmm4, xmm15; \
                   sqrtsd xmm5, xmm15; sqrtsd xmm6, xmm15; sqrtsd xmm7, xmm15; sqrtsd xmm8, xmm15",
            times: 5,
        },
        body: CodePiece { text: "sqrtsd xmm0, xmm0", times: 8 },
        least: 0.0,
    },
    // The multiplier.
    NeighbourCode {
        words: "independent multiplications after the end, behind a chain of them",
        code: CodePiece { text: "imul r9, r9; imul r10, r10; imul r11, r11; imul rbx, rbx; imul r12, r12", times: 16 },
        body: CodePiece { text: "imul r8, r8", times: 40 },
        least: 0.0,
    },
    // The multiplier again, beside nothing but the reading.
    NeighbourCode {
        words: "independent multiplications after the end",
        code: CodePiece {
            text: "imul r9, r9, 3; imul r10, r10, 3; imul r11, r11, 3; imul rbx, rbx, 3; imul r12, r12, 3",
            times: 16,
        },
        body: CodePiece::NONE,
        least: 0.0,
    },
    // All adders, and the width of the core.
    NeighbourCode {
        words: "independent additions after the end",
        code: CodePiece { text: "add r9, r9; add r10, r10; add r11, r11; add rbx, rbx; add r12, r12", times: 40 },
        body: CodePiece::NONE,
        least: 0.0,
    },
    // The divider again, beside nothing but the reading.
    NeighbourCode {
        words: "independent divisions after the end",
        code: CodePiece {
            text: "divsd xmm1, xmm15; divsd xmm2, xmm15; divsd xmm3, xmm15; divsd xmm4, xmm15; \
                   divsd xmm5, xmm15; divsd xmm6, xmm15; divsd xmm7, xmm15; divsd xmm8, xmm15",
            times: 5,
        },
        body: CodePiece::NONE,
        least: 0.0,
    },
    // The load ports and the first-level cache.
    NeighbourCode {
        words: "independent loads after the end",
        code: CodePiece {
            text: "mov r8, [r14]; mov r9, [r14 + 64]; mov r10, [r14 + 128]; mov r11, [r14 + 192]; \
                   mov rbx, [r14 + 256]; mov r12, [r14 + 320]",
            times: 12,
        },
        body: CodePiece::NONE,
        least: 0.0,
    },
];
