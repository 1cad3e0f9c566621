//! Sums of a power series.

use crate::test::rate::{Rates, Row, Way};
use crate::test::text::{ITERATIONS_SLOW, repeated};
use crate::test::walk::Steps;
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::{AVX, FMA};

/// Terms of a step, in as many chains as a row says.
const TERMS: usize = 24;
/// The first register of sums; those before it have the argument and a coefficient.
const FIRST: usize = 2;

/// Each chain's next term: the sum so far times the argument, and a coefficient. `{}` stands for the chain's register.
fn terms(chains: usize, term: &str) -> Steps {
    let each = |number: usize| term.replace("{}", &format!("xmm{}", FIRST + number % chains));
    let all: Vec<String> = (0..TERMS).map(each).collect();
    let steps = repeated("pxor xmm0, xmm0; pxor xmm1, xmm1", &all.join("; "));
    Steps { iterations: ITERATIONS_SLOW, ..steps }
}

const DOUBLE: &str = "mulsd {}, xmm0; addsd {}, xmm1";
const PACKED: &str = "mulps {}, xmm0; addps {}, xmm1";
const FUSED_DOUBLE: &str = "vfmadd213sd {}, xmm0, xmm1";
const FUSED_PACKED: &str = "vfmadd213ps {}, xmm0, xmm1";

const SEPARATE: &[Way] = &[
    Way::plain("mulsd and addsd", |chains| terms(chains, DOUBLE)),
    Way::plain("mulps and addps", |chains| terms(chains, PACKED)),
];
const FUSED: &[Way] = &[
    Way::plain("vfmadd213sd", |chains| terms(chains, FUSED_DOUBLE)).needing(&[AVX, FMA]),
    Way::plain("vfmadd213ps", |chains| terms(chains, FUSED_PACKED)).needing(&[AVX, FMA]),
];

const fn row(name: &'static str, chains: usize, ways: &'static [Way]) -> Row {
    Row::new(name, chains, TERMS as f64, ways)
}

pub(crate) const TEST: Test = Test {
    name: "taylor",
    about: "what a term of a power series takes, by how many sums run beside each other",
    definition: "core cycles of a term, a multiplication and an addition, or both at once where the name says so: in one chain their latencies, in many what the units do at once",
    source: "A. Fog, Test programs for measuring clock cycles and performance monitoring (2024)",
    part: Part::Execution,
    look: Look::Rates(Rates {
        rows: &[
            row("one_sum", 1, SEPARATE),
            row("two_sums", 2, SEPARATE),
            row("four_sums", 4, SEPARATE),
            row("twelve_sums", 12, SEPARATE),
            row("one_sum_fma", 1, FUSED),
            row("two_sums_fma", 2, FUSED),
            row("four_sums_fma", 4, FUSED),
            row("twelve_sums_fma", 12, FUSED),
        ],
        unit: Unit::CoreCycles,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
