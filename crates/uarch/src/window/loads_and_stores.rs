//! Loads and stores in flight.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

// Loads that have not retired.

const TO_INTEGER: FillerSpec = FillerSpec::new(
    "mov r64, m64",
    &["mov rbx, [r14]", "mov r8, [r14 + 64]", "mov r9, [r14 + 128]", "mov r10, [r14 + 192]", "mov r11, [r14 + 256]"],
    &["rob", "int_registers"],
);
const TO_VECTOR: FillerSpec = FillerSpec::new(
    "movups xmm, m128",
    &[
        "movups xmm2, [r14]",
        "movups xmm3, [r14 + 64]",
        "movups xmm4, [r14 + 128]",
        "movups xmm5, [r14 + 192]",
        "movups xmm6, [r14 + 256]",
    ],
    &["rob", "vector_registers_xmm"],
);
const COMPARED: FillerSpec = FillerSpec::new(
    "cmp m64, r64",
    &["cmp [r14], rbx", "cmp [r14 + 64], r8", "cmp [r14 + 128], r9", "cmp [r14 + 192], r10"],
    &["rob"],
)
.may_occupy(&["int_registers", "flags"]);

// Stores that are not yet written to the cache.

const ONE_LINE: FillerSpec = FillerSpec::new(
    "mov m64, r64, one line",
    &["mov [r14], rcx", "mov [r14 + 8], rcx", "mov [r14 + 16], rcx", "mov [r14 + 24], rcx"],
    &["rob"],
);
const LINES: FillerSpec = FillerSpec::new(
    "mov m64, r64, several lines",
    &["mov [r14], rcx", "mov [r14 + 64], rcx", "mov [r14 + 128], rcx", "mov [r14 + 192], rcx", "mov [r14 + 256], rcx"],
    &["rob"],
);
const VECTORS: FillerSpec = FillerSpec::new(
    "movups m128, xmm",
    &["movups [r14], xmm2", "movups [r14 + 64], xmm2", "movups [r14 + 128], xmm2", "movups [r14 + 192], xmm2"],
    &["rob"],
);

const fn wide_filler(name: &'static str, code: &'static [&'static str], needs: &'static [CpuidFeature]) -> FillerSpec {
    FillerSpec::new(name, code, &["rob"]).requiring(needs)
}

const YMM_LINES: FillerSpec = wide_filler(
    "vmovups m256, ymm, several lines",
    &["vmovups [r14], ymm2", "vmovups [r14 + 64], ymm2", "vmovups [r14 + 128], ymm2"],
    &[AVX],
);
const YMM_HALVES: FillerSpec = wide_filler(
    "vmovups m256, ymm, both halves of lines",
    &["vmovups [r14], ymm2", "vmovups [r14 + 32], ymm3", "vmovups [r14 + 64], ymm2", "vmovups [r14 + 96], ymm3"],
    &[AVX],
);
const ZMM_LINES: FillerSpec = wide_filler(
    "vmovups m512, zmm, several lines",
    &["vmovups [r14], zmm2", "vmovups [r14 + 64], zmm2", "vmovups [r14 + 128], zmm2"],
    &[AVX512F],
);
const ZMM_LINE: FillerSpec =
    wide_filler("vmovups m512, zmm, one line", &["vmovups [r14], zmm2", "vmovups [r14], zmm3"], &[AVX512F]);

const fn stores_test(
    name: &'static str,
    about: &'static str,
    answers: &'static [&'static str],
    fillers: &'static [FillerSpec],
) -> TestSpec {
    TestSpec {
        name,
        about,
        definition: "stores that are fetched and not written",
        source: WONG,
        answers,
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], fillers, 400)),
    }
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "loads_in_flight",
        about: "how many loads that hit the first cache the core holds until they retire",
        definition: "loads that are executed and not retired",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], &[TO_INTEGER, TO_VECTOR, COMPARED], 600)),
    },
    stores_test(
        "stores_in_flight",
        "how many stores the core holds until they are written to the first cache",
        &[],
        &[ONE_LINE, LINES, VECTORS],
    ),
    stores_test(
        "stores_in_flight_ymm",
        "how many stores of 256 bits the core holds until they are written to the first cache",
        &[],
        &[YMM_LINES, YMM_HALVES],
    ),
    stores_test(
        "stores_in_flight_zmm",
        "how many stores of 512 bits the core holds until they are written to the first cache",
        &[],
        &[ZMM_LINES, ZMM_LINE],
    ),
];
