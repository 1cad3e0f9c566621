//! The crafted neighbours, as data.
//!
//! Chains are of square roots: twelve cycles and more for four bytes of code (uops.info, SQRTSD), so that no window of a
//! core fills up and no code fetch shows. The square root of what vector registers hold at first is a fixed point.

use super::fault::Fault;
use cyclescope_code::asm;

/// Code as a piece of text and how often it is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// Intel syntax.
    pub(super) text: &'static str,
    /// Copies.
    pub(super) times: usize,
}

impl Piece {
    const NONE: Piece = Piece { text: "", times: 0 };

    /// As many again.
    pub(super) fn twice(self) -> Piece {
        Piece { times: 2 * self.times, ..self }
    }

    pub(super) fn code(self) -> Vec<u8> {
        let listing = asm::parse(self.text).expect("the neighbours are valid code");
        listing.bytes().repeat(self.times)
    }
}

/// What provokes a fault.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Neighbour {
    /// In words.
    pub(super) words: &'static str,
    /// The code that the fault lets in, or leaves out.
    pub(super) code: Piece,
    /// What lies between the readings meanwhile, or before the part of the body that the end may miss.
    pub(super) body: Piece,
    /// Core cycles that the code takes on any core. Where fenced readings see less they are not fenced, and nothing
    /// can be compared with them.
    pub(super) least: f64,
}

/// Some 200 cycles: longer than any start takes to read its counter, so that a body has the time to begin.
pub(super) const LEADING: Piece = Piece { text: "sqrtsd xmm0, xmm0", times: 16 };

/// Before what an end may miss. It is longer than what follows a fence at first, and than an end needs to be decoded.
const FIRST: Piece = Piece { text: "sqrtsd xmm0, xmm0", times: 6 };
/// Core cycles of a square root in a chain, less than on any core.
const SQUARE_ROOT: f64 = 8.0;

/// The other kind of code than square roots: it waits for another unit and in other registers, and has many more
/// instructions in flight at a time.
const MULTIPLICATIONS: &str = "imul r8, r8";
/// Core cycles of a multiplication in a chain on any core, but for what a fenced reading may be off.
const MULTIPLICATION: f64 = 2.0;

/// Two neighbours of a fault that differ in kind; of following code, two of many ([`FOLLOWING`]). The second is asked
/// where the first speaks against a method.
pub(super) fn of(fault: Fault) -> [&'static Neighbour; 2] {
    match fault {
        Fault::LeadingUnfinished => [&LEADING_CODE[0], &LEADING_CODE[1]],
        Fault::BodyStartedEarly => [&EARLY_BODY[0], &EARLY_BODY[1]],
        Fault::BodyUnfinished => [&LATE_BODY[0], &LATE_BODY[1]],
        Fault::FollowingInTheWay => [&FOLLOWING[0], &FOLLOWING[1]],
        Fault::StoresNotDrained => [&STORES[0], &STORES[1]],
    }
}

const LEADING_CODE: [Neighbour; 2] = [
    Neighbour {
        words: "a chain of square roots before the start",
        code: LEADING,
        body: Piece::NONE,
        least: 16.0 * SQUARE_ROOT,
    },
    Neighbour {
        words: "a chain of multiplications before the start",
        code: Piece { text: MULTIPLICATIONS, times: 48 },
        body: Piece::NONE,
        least: 48.0 * MULTIPLICATION,
    },
];

/// Of another register than the leading chain's.
const EARLY_BODY: [Neighbour; 2] = [
    Neighbour {
        words: "a chain of square roots behind an unfinished one",
        code: Piece { text: "sqrtsd xmm1, xmm1", times: 10 },
        body: Piece::NONE,
        least: 10.0 * SQUARE_ROOT,
    },
    Neighbour {
        words: "a chain of multiplications behind an unfinished one of square roots",
        code: Piece { text: MULTIPLICATIONS, times: 40 },
        body: Piece::NONE,
        least: 40.0 * MULTIPLICATION,
    },
];

const LATE_BODY: [Neighbour; 2] = [
    Neighbour {
        words: "a chain of square roots before the end",
        code: Piece { text: "sqrtsd xmm0, xmm0", times: 12 },
        body: FIRST,
        least: 12.0 * SQUARE_ROOT,
    },
    // Twice as many still fit into the scheduler of a core that has 64 places for waiting instructions, once some of the
    // first have executed.
    Neighbour {
        words: "a chain of multiplications before the end",
        code: Piece { text: MULTIPLICATIONS, times: 24 },
        body: Piece { text: MULTIPLICATIONS, times: 40 },
        least: 24.0 * MULTIPLICATION,
    },
];

/// A whole line, which leaves its write-combining buffer at once; several lines, or parts of one that have to
/// be merged in memory, drain in times that differ by a tenth and more.
const STORES: [Neighbour; 2] = [
    Neighbour {
        words: "a line of non-temporal stores before the end",
        code: Piece {
            text: "movnti [r14], r8; movnti [r14 + 8], r8; movnti [r14 + 16], r8; movnti [r14 + 24], r8; \
                   movnti [r14 + 32], r8; movnti [r14 + 40], r8; movnti [r14 + 48], r8; movnti [r14 + 56], r8",
            times: 1,
        },
        body: FIRST,
        least: 0.0,
    },
    Neighbour {
        words: "a line of non-temporal vector stores before the end",
        code: Piece {
            text: "movntps [r14], xmm1; movntps [r14 + 16], xmm1; movntps [r14 + 32], xmm1; \
                   movntps [r14 + 48], xmm1",
            times: 1,
        },
        body: Piece { text: MULTIPLICATIONS, times: 40 },
        least: 0.0,
    },
];

/// Following code that competes with a body or with the reading itself, one or two for each kind of resource. It has to be
/// ready at once, and to keep its unit busy while the end waits. Registers that an end may change are not used.
pub(super) const FOLLOWING: [Neighbour; 6] = [
    // The divider, which takes an operation every few cycles only.
    Neighbour {
        words: "independent square roots after the end, behind a chain of them",
        code: Piece {
            text: "sqrtsd xmm1, xmm15; sqrtsd xmm2, xmm15; sqrtsd xmm3, xmm15; sqrtsd xmm4, xmm15; \
                   sqrtsd xmm5, xmm15; sqrtsd xmm6, xmm15; sqrtsd xmm7, xmm15; sqrtsd xmm8, xmm15",
            times: 5,
        },
        body: Piece { text: "sqrtsd xmm0, xmm0", times: 8 },
        least: 0.0,
    },
    // The multiplier.
    Neighbour {
        words: "independent multiplications after the end, behind a chain of them",
        code: Piece {
            text: "imul r9, r9; imul r10, r10; imul r11, r11; imul rbx, rbx; imul r12, r12",
            times: 16,
        },
        body: Piece { text: "imul r8, r8", times: 40 },
        least: 0.0,
    },
    // The multiplier again, beside nothing but the reading.
    Neighbour {
        words: "independent multiplications after the end",
        code: Piece {
            text: "imul r9, r9, 3; imul r10, r10, 3; imul r11, r11, 3; imul rbx, rbx, 3; imul r12, r12, 3",
            times: 16,
        },
        body: Piece::NONE,
        least: 0.0,
    },
    // All adders, and the width of the core.
    Neighbour {
        words: "independent additions after the end",
        code: Piece { text: "add r9, r9; add r10, r10; add r11, r11; add rbx, rbx; add r12, r12", times: 40 },
        body: Piece::NONE,
        least: 0.0,
    },
    // The divider again, beside nothing but the reading.
    Neighbour {
        words: "independent divisions after the end",
        code: Piece {
            text: "divsd xmm1, xmm15; divsd xmm2, xmm15; divsd xmm3, xmm15; divsd xmm4, xmm15; \
                   divsd xmm5, xmm15; divsd xmm6, xmm15; divsd xmm7, xmm15; divsd xmm8, xmm15",
            times: 5,
        },
        body: Piece::NONE,
        least: 0.0,
    },
    // The load ports and the first-level cache.
    Neighbour {
        words: "independent loads after the end",
        code: Piece {
            text: "mov r8, [r14]; mov r9, [r14 + 64]; mov r10, [r14 + 128]; mov r11, [r14 + 192]; \
                   mov rbx, [r14 + 256]; mov r12, [r14 + 320]",
            times: 12,
        },
        body: Piece::NONE,
        least: 0.0,
    },
];
