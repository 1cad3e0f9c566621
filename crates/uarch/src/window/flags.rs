//! Flags of results that are not retired.

use crate::spec::*;

/// Flags are in an integer register, as on Golden Cove, or in registers of their own, as on Zen 4.
const fn flags_filler(name: &'static str, code: &'static [&'static str]) -> FillerSpec {
    FillerSpec { may_occupy: &["int_registers"], ..FillerSpec::new(name, code, &["rob"]) }
}

// A comparison of a register with itself could be known without being executed.
const TEST_REGISTERS: FillerSpec =
    flags_filler("test", &["test rbx, rcx", "test rdx, r8", "test r9, r10", "test r11, r12"]);
const COMPARE: FillerSpec = flags_filler("cmp", &["cmp rbx, rcx", "cmp rdx, r8", "cmp r9, r10", "cmp r11, r12"]);

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "flags",
    about: "how many results in the flags alone the core holds until they retire",
    definition: "spare registers of flags: those beside the architectural one and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], &[TEST_REGISTERS, COMPARE], 700)),
}];
