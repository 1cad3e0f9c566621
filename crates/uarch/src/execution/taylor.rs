//! Sums of a power series.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, FMA};

/// Terms per step, in as many chains as the row says.
const TERMS: usize = 24;
/// The first register for sums; the registers before it hold the argument and a coefficient.
const FIRST: usize = 2;

/// Each chain's next term: the present sum times the argument, plus a coefficient. `{}` is the
/// chain's register.
fn taylor_loop(chains: usize, term: &str) -> StepLoop {
    let each = |number: usize| term.replace("{}", &format!("xmm{}", FIRST + number % chains));
    let all: Vec<String> = (0..TERMS).map(each).collect();
    AsmLoop { before: "pxor xmm0, xmm0; pxor xmm1, xmm1", ..AsmLoop::SLOW }.assemble(&all.join("; "), 0)
}

const DOUBLE: &str = "mulsd {}, xmm0; addsd {}, xmm1";
const PACKED: &str = "mulps {}, xmm0; addps {}, xmm1";
const FUSED_DOUBLE: &str = "vfmadd213sd {}, xmm0, xmm1";
const FUSED_PACKED: &str = "vfmadd213ps {}, xmm0, xmm1";

const SEPARATE: &[ProgramVariant] = &[
    ProgramVariant::new("mulsd and addsd", |chains| taylor_loop(chains, DOUBLE)),
    ProgramVariant::new("mulps and addps", |chains| taylor_loop(chains, PACKED)),
];
const FUSED: &[ProgramVariant] = &[
    ProgramVariant::new("vfmadd213sd", |chains| taylor_loop(chains, FUSED_DOUBLE)).requiring(&[AVX, FMA]),
    ProgramVariant::new("vfmadd213ps", |chains| taylor_loop(chains, FUSED_PACKED)).requiring(&[AVX, FMA]),
];

const fn sums_row(name: &'static str, chains: usize, variants: &'static [ProgramVariant]) -> TestRow {
    TestRow::for_n(name, chains, variants).amount(TERMS as f64)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "taylor",
    about: "what a term of a power series takes, by how many sums run beside each other",
    definition: "core cycles of a term, a multiplication and an addition, or both at once where the name says so: \
                 in one chain their latencies, in many what the units do at once",
    source: FOG_TEST_PROGRAMS,
    answers: &["taylor"],
    part: TestedPart::Execution,
    experiment: Experiment::Rates(RatesSpec::new(
        Unit::CoreCycles,
        &[
            sums_row("one_sum", 1, SEPARATE),
            sums_row("two_sums", 2, SEPARATE),
            sums_row("four_sums", 4, SEPARATE),
            sums_row("twelve_sums", 12, SEPARATE),
            sums_row("one_sum_fma", 1, FUSED),
            sums_row("two_sums_fma", 2, FUSED),
            sums_row("four_sums_fma", 4, FUSED),
            sums_row("twelve_sums_fma", 12, FUSED),
        ],
    )),
}];
