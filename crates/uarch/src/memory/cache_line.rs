//! The line of the data caches.

use crate::spec::*;
use cyclescope_code::program::memory::RingOrder;

/// Pairs of loads of an iteration.
const PAIRS: usize = 16;
/// Bytes of all elements: more than the nearest cache holds, for few of its sets have a part in them.
const BYTES: usize = 256 << 10;

/// A load of the byte so far into each element, then one of its begin, each waiting for the one before.
fn load_pairs(bytes: usize, stride: usize) -> StepLoop {
    let alone = chase_loop(BYTES / stride, stride, RingOrder::RandomByLine);
    // The byte is zero, as all of an element are but those of its pointer, its first eight.
    let body = assemble(&format!("movzx eax, byte ptr [rbp + {}]; add rbp, rax; mov rbp, [rbp]", bytes - 1));
    StepLoop { body: body.repeat(PAIRS), steps_per_iteration: PAIRS, ..alone }
}

fn pairs_512_bytes_apart(bytes: usize) -> StepLoop {
    load_pairs(bytes, 512)
}

fn pairs_1024_bytes_apart(bytes: usize) -> StepLoop {
    load_pairs(bytes, 1024)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "cache_line",
    about: "how many bytes come to the nearest data cache at once",
    definition: "bytes from the begin of a line of which all are at hand once one was loaded",
    source: "R. Saavedra and A. Smith, Measuring Cache and TLB Performance and Their Effect on Benchmark Runtimes (1995)",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("pairs 512 bytes apart", pairs_512_bytes_apart),
            ProgramFamily::new("pairs 1024 bytes apart", pairs_1024_bytes_apart),
        ],
        count_range: [16, 256],
        unit: Unit::Bytes,
        // Less than what the next cache adds to a load, 9 cycles or more, and more than the 3 by which the second half of a line comes later than the
        // first on a Zen 4.
        min_rise: 5.0,
        min_ratio: 1.15,
        single_structure: true,
        always_ends: true,
        ..LevelsSpec::COUNTS
    }),
}];
