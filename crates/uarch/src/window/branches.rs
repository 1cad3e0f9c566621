//! Branches in flight.

use crate::spec::*;

// Branches that have not retired.

const NOT_TAKEN: FillerSpec = FillerSpec::new("jz, not taken", &["jz x; x:"], &["rob"]).behind(&["test rsp, rsp"]);
const LONG: FillerSpec = FillerSpec::new("jc near, not taken", &["jc near x; x:"], &["rob"]).behind(&["test rsp, rsp"]);

// Taken branches that have not retired.

const JMP: FillerSpec = FillerSpec::new(
    "jmp, 16 bytes apart",
    &["jmp x; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; x:"],
    &["rob", "branches_in_flight"],
);
const JNZ: FillerSpec = FillerSpec::new(
    "jnz, taken, 16 bytes apart",
    &["jnz x; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; int3; x:"],
    &["rob", "branches_in_flight"],
)
.behind(&["test rsp, rsp"]);
const NEARER: FillerSpec = FillerSpec::new(
    "jmp, 8 bytes apart",
    &["jmp x; int3; int3; int3; int3; int3; int3; x:"],
    &["rob", "branches_in_flight"],
);

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "branches_in_flight",
        about: "how many branches that are not taken the core holds until they retire",
        definition: "conditional branches, not taken, that are executed and not retired",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], &[NOT_TAKEN, LONG], 400)),
    },
    TestSpec {
        name: "taken_branches_in_flight",
        about: "how many taken branches the core holds until they retire",
        definition: "taken branches that are executed and not retired",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], &[JMP, JNZ, NEARER], 400)),
    },
];
