//! The line of the data caches.

use crate::test::walk::{Steps, Walk, Walks, chase, code};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::Order;
use cyclescope_core::unit::Unit;

/// Pairs of loads of an iteration.
const PAIRS: usize = 16;
/// Bytes of all elements: more than the nearest cache holds, for few of its sets have a part in them.
const BYTES: usize = 256 << 10;

/// A load of the byte so far into each element, then one of its begin, each waiting for the one before.
fn pairs(bytes: usize, stride: usize) -> Steps {
    let alone = chase(BYTES / stride, stride, Order::RandomByLine);
    // The byte is zero, as all of an element are but those of its pointer, its first eight.
    let body = code(&format!("movzx eax, byte ptr [rbp + {}]; add rbp, rax; mov rbp, [rbp]", bytes - 1));
    Steps { body: body.repeat(PAIRS), steps: PAIRS, ..alone }
}

fn each_512(bytes: usize) -> Steps {
    pairs(bytes, 512)
}

fn each_1024(bytes: usize) -> Steps {
    pairs(bytes, 1024)
}

pub(crate) const TEST: Test = Test {
    name: "cache_line",
    about: "how many bytes come to the nearest data cache at once",
    definition: "bytes from the begin of a line of which all are at hand once one was loaded",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    part: Part::Memory,
    look: Look::Levels(Walks {
        walks: &[
            Walk { name: "pairs 512 bytes apart", program: each_512, without: None },
            Walk { name: "pairs 1024 bytes apart", program: each_1024, without: None },
        ],
        others: &[],
        takes: &[],
        beside: None,
        counts: [16, 256],
        unit: Unit::Bytes,
        // Less than what the next cache adds to a load, 9 cycles or more, and more than the 3 by which the second half of a line comes later than the
        // first on a Zen 4.
        rise: 5.0,
        ratio: 1.15,
        by_chance: false,
        one: true,
        always: true,
        cost: None,
        bytes: 0,
    }),
};
