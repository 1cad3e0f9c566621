//! MMX registers for results that are not retired.

use crate::spec::*;

/// MMX registers are where vector registers are, as on Zen 4, or where mask registers are, as on Golden Cove.
const fn mmx_filler(name: &'static str, code: &'static [&'static str]) -> FillerSpec {
    FillerSpec { may_occupy: &["vector_registers_xmm", "mask_registers"], ..FillerSpec::new(name, code, &["rob"]) }
}

const ADD: FillerSpec =
    mmx_filler("paddd mm", &["paddd mm2, mm7", "paddd mm3, mm7", "paddd mm4, mm7", "paddd mm5, mm7", "paddd mm6, mm7"]);
const OR: FillerSpec =
    mmx_filler("por mm", &["por mm2, mm7", "por mm3, mm7", "por mm4, mm7", "por mm5, mm7", "por mm6, mm7"]);

/// Results of a first chain of vector instructions would take registers of the same file.
const HEADS: &[[FirstChain; 2]] = &[[DIV, IDIV]];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "mmx_registers",
    about: "how many results in MMX registers the core holds until they retire",
    definition: "spare MMX registers: those beside the architectural ones and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(HEADS, &[ADD, OR], 500)),
}];
