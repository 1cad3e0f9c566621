//! Branches that are not retired.

use crate::spec::*;

const NOT_TAKEN: FillerSpec =
    FillerSpec { prologue: &["test rsp, rsp"], ..FillerSpec::new("jz, not taken", &["jz x; x:"], &["rob"]) };
const LONG: FillerSpec =
    FillerSpec { prologue: &["test rsp, rsp"], ..FillerSpec::new("jc near, not taken", &["jc near x; x:"], &["rob"]) };

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "branches_in_flight",
    about: "how many branches that are not taken the core holds until they retire",
    definition: "conditional branches, not taken, that are executed and not retired",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], &[NOT_TAKEN, LONG], 400)),
}];
