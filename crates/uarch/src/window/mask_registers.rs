//! Mask registers for results that are not retired.

use crate::spec::*;
use crate::window::integer_registers::HEADS;
use iced_x86::CpuidFeature::{AVX512BW, AVX512DQ};

const KADD: FillerSpec = FillerSpec {
    required_features: &[AVX512BW],
    ..FillerSpec::new(
        "kaddd",
        &["kaddd k1, k6, k7", "kaddd k2, k6, k7", "kaddd k3, k6, k7", "kaddd k4, k6, k7"],
        &["rob"],
    )
};
const KOR: FillerSpec = FillerSpec {
    required_features: &[AVX512DQ],
    ..FillerSpec::new("korb", &["korb k1, k6, k7", "korb k2, k6, k7", "korb k3, k6, k7", "korb k4, k6, k7"], &["rob"])
};

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "mask_registers",
    about: "how many results in mask registers the core holds until they retire",
    definition: "spare mask registers: those beside the architectural ones and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(HEADS, &[KADD, KOR], 500)),
}];
