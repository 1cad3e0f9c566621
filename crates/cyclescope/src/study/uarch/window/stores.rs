//! Stores that are not written to the cache.

use crate::study::uarch::test::chain::{FSQRT, SQRTSD};
use crate::study::uarch::test::{Filler, Look, Part, Test, Window};

const ONE_LINE: Filler = Filler::plain(
    "mov m64, r64, one line",
    &["mov [r14], rcx", "mov [r14 + 8], rcx", "mov [r14 + 16], rcx", "mov [r14 + 24], rcx"],
    &["rob"],
);
const LINES: Filler = Filler::plain(
    "mov m64, r64, several lines",
    &[
        "mov [r14], rcx",
        "mov [r14 + 64], rcx",
        "mov [r14 + 128], rcx",
        "mov [r14 + 192], rcx",
        "mov [r14 + 256], rcx",
    ],
    &["rob"],
);
const VECTORS: Filler = Filler::plain(
    "movups m128, xmm",
    &[
        "movups [r14], xmm2",
        "movups [r14 + 64], xmm2",
        "movups [r14 + 128], xmm2",
        "movups [r14 + 192], xmm2",
    ],
    &["rob"],
);

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "stores_in_flight",
    about: "how many stores the core holds until they are written to the first cache",
    definition: "stores that are fetched and not written",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 0,
        leads: &[0],
        heads: [SQRTSD, FSQRT],
        fillers: &[ONE_LINE, LINES, VECTORS],
        most: 400,
    }),
};
