//! Stores that are not written to the cache.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

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
    FillerSpec { required_features: needs, ..FillerSpec::new(name, code, &["rob"]) }
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
        source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
        answers,
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], fillers, 400)),
    }
}

pub(crate) const TESTS: &[TestSpec] = &[
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
