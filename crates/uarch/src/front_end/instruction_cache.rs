//! The instruction cache.

use crate::spec::*;

/// Bytes of an instruction. Long instructions fill lines sooner than a cache of decoded
/// instructions.
const LENGTH: usize = 8;

fn fill_lines(bytes: usize, instruction: fn(usize) -> Vec<u8>) -> StepLoop {
    let number = bytes / LINE * (LINE / LENGTH);
    straight_loop((0..number).flat_map(instruction).collect(), bytes / LINE)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "instruction_cache",
    about: "how large the instruction cache is",
    definition: "bytes of straight code, in instructions of 8 bytes, that are fetched as fast as less of it",
    source: FOG,
    answers: &[],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Levels(LevelsSpec {
        programs: &[
            ProgramFamily::new("no-operations of 8 bytes", |bytes| fill_lines(bytes, |_| nop_of_length(LENGTH))),
            // Jumps do not work here: a core that knows them all fetches lines ahead and hides the
            // second cache's latency.
            ProgramFamily::new("xor r32, same, of 8 bytes", |bytes| {
                fill_lines(bytes, |place| zeroing_of_length(LENGTH, place))
            }),
        ],
        count_range: [1 << 10, 1 << 20],
        unit: Unit::Bytes,
        min_rise: 1.0,
        min_ratio: 1.3,
        ..LevelsSpec::COUNTS
    }),
}];
