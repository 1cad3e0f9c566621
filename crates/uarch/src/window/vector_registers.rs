//! Vector registers for results that are not retired, by width.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX2, AVX512F};

const XMM_ADD: FillerSpec = FillerSpec::new(
    "paddd xmm",
    &[
        "paddd xmm2, xmm15",
        "paddd xmm3, xmm15",
        "paddd xmm4, xmm15",
        "paddd xmm5, xmm15",
        "paddd xmm6, xmm15",
        "paddd xmm7, xmm15",
        "paddd xmm8, xmm15",
        "paddd xmm9, xmm15",
    ],
    &["rob"],
);
const XMM_AND: FillerSpec = FillerSpec::new(
    "andps xmm",
    &[
        "andps xmm2, xmm15",
        "andps xmm3, xmm15",
        "andps xmm4, xmm15",
        "andps xmm5, xmm15",
        "andps xmm6, xmm15",
        "andps xmm7, xmm15",
        "andps xmm8, xmm15",
        "andps xmm9, xmm15",
    ],
    &["rob"],
);
const YMM_ADD: FillerSpec = FillerSpec {
    required_features: &[AVX2],
    ..FillerSpec::new(
        "vpaddd ymm",
        &[
            "vpaddd ymm2, ymm14, ymm15",
            "vpaddd ymm3, ymm14, ymm15",
            "vpaddd ymm4, ymm14, ymm15",
            "vpaddd ymm5, ymm14, ymm15",
            "vpaddd ymm6, ymm14, ymm15",
            "vpaddd ymm7, ymm14, ymm15",
        ],
        &["rob"],
    )
};
const YMM_AND: FillerSpec = FillerSpec {
    required_features: &[AVX],
    ..FillerSpec::new(
        "vandps ymm",
        &[
            "vandps ymm2, ymm14, ymm15",
            "vandps ymm3, ymm14, ymm15",
            "vandps ymm4, ymm14, ymm15",
            "vandps ymm5, ymm14, ymm15",
            "vandps ymm6, ymm14, ymm15",
            "vandps ymm7, ymm14, ymm15",
        ],
        &["rob"],
    )
};
const ZMM_ADD: FillerSpec = FillerSpec {
    required_features: &[AVX512F],
    ..FillerSpec::new(
        "vpaddd zmm",
        &[
            "vpaddd zmm2, zmm14, zmm15",
            "vpaddd zmm3, zmm14, zmm15",
            "vpaddd zmm4, zmm14, zmm15",
            "vpaddd zmm5, zmm14, zmm15",
            "vpaddd zmm6, zmm14, zmm15",
            "vpaddd zmm7, zmm14, zmm15",
        ],
        &["rob"],
    )
};
const ZMM_AND: FillerSpec = FillerSpec {
    required_features: &[AVX512F],
    ..FillerSpec::new(
        "vpandd zmm",
        &[
            "vpandd zmm2, zmm14, zmm15",
            "vpandd zmm3, zmm14, zmm15",
            "vpandd zmm4, zmm14, zmm15",
            "vpandd zmm5, zmm14, zmm15",
            "vpandd zmm6, zmm14, zmm15",
            "vpandd zmm7, zmm14, zmm15",
        ],
        &["rob"],
    )
};

/// None of a first chain's results may be in these registers. Where schedulers are small, multiplications fill theirs before the
/// fillers come; and where x87 results are in vector registers, roots take some. Divisions are few and take none.
const HEADS: &[[FirstChain; 2]] = &[[IMUL, FSQRT], [DIV, IDIV]];

const DEFINITION: &str = "spare vector registers of this width: those beside the architectural ones, which all hold values, and those that the core keeps for itself";
const SOURCE: &str = "H. Wong, Measuring Reorder Buffer Capacity (2013)";

const fn registers_test(
    name: &'static str,
    about: &'static str,
    answers: &'static [&'static str],
    fillers: &'static [FillerSpec],
) -> TestSpec {
    // The first link of the chain behind them has one.
    TestSpec {
        name,
        about,
        definition: DEFINITION,
        source: SOURCE,
        answers,
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec { chain_entries: 1, ..OverlapSpec::new(HEADS, fillers, 700) }),
    }
}

pub(crate) const TESTS: &[TestSpec] = &[
    registers_test(
        "vector_registers_xmm",
        "how many results in vector registers of 128 bits the core holds until they retire",
        &[],
        &[XMM_ADD, XMM_AND],
    ),
    registers_test("vector_registers_ymm", "the same of 256 bits", &[], &[YMM_ADD, YMM_AND]),
    registers_test("vector_registers_zmm", "the same of 512 bits", &[], &[ZMM_ADD, ZMM_AND]),
];
