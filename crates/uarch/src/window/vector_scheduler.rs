//! Vector operations that wait for an operand.

use crate::spec::*;

pub(super) const PADDD: FillerSpec = FillerSpec::new(
    "paddd",
    &["paddd xmm2, xmm0", "paddd xmm3, xmm0", "paddd xmm4, xmm0", "paddd xmm5, xmm0", "paddd xmm6, xmm0"],
    &["rob", "vector_registers_xmm"],
);
pub(super) const ADDPS: FillerSpec = FillerSpec::new(
    "addps",
    &["addps xmm2, xmm0", "addps xmm3, xmm0", "addps xmm4, xmm0", "addps xmm5, xmm0", "addps xmm6, xmm0"],
    &["rob", "vector_registers_xmm"],
);

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "vector_scheduler",
    about: "how many vector operations can wait for an operand",
    definition: "vector operations that wait for one result, the chains' links beside them included",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec {
        chain_entries: 1,
        ..OverlapSpec::new(&[[SQRTSD, DIVSD]], &[PADDD, ADDPS], 400)
    }),
}];
