//! x87 registers for results that are not retired.

use crate::spec::*;

/// Results on the x87 stack, which is empty before and behind them, are where vector registers are, as on Zen 4, or where mask and MMX
/// registers are. What pops one writes a register too. A part of a period leaves a result on the stack, and eight iterations fill it.
const fn x87_filler(name: &'static str, code: &'static [&'static str]) -> FillerSpec {
    FillerSpec {
        may_occupy: &["vector_registers_xmm", "mask_registers", "mmx_registers"],
        ..FillerSpec::new(name, code, &["rob"])
    }
}

const ONES: FillerSpec = x87_filler("fld1, fstp", &["fld1", "fstp st(0)"]);
const SIGNS: FillerSpec = x87_filler("fldz, fchs, fstp", &["fldz", "fchs", "fstp st(0)"]);

/// Results of a first chain of vector instructions would take registers of the same file.
const HEADS: &[[FirstChain; 2]] = &[[DIV, IDIV]];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "x87_registers",
    about: "how many results on the x87 stack the core holds until they retire",
    definition: "spare x87 registers: those beside the architectural ones and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(HEADS, &[ONES, SIGNS], 500)),
}];
