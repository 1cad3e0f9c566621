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

// Sums with a table of coefficients: each term has its own, from memory, and a power of the argument
// that is computed beside the sum.

/// Sums of terms whose coefficients are in a table. `{c}` is the coefficient's address, and `{s}`
/// the register of a sum. The tables of all sums are one.
fn table_loop(chains: usize, step: &str) -> StepLoop {
    let each = |number: usize| {
        let coefficient = format!("[r14 + {}]", number / chains % TERMS * COEFFICIENT_BYTES);
        step.replace("{c}", &coefficient).replace("{s}", &format!("xmm{}", FIRST + number % chains))
    };
    let all: Vec<String> = (0..TERMS).map(each).collect();
    // All coefficients are one, and so is the argument: the powers stay normal numbers.
    let init = format!(
        "mov rax, 0x3ff0000000000000; movq xmm0, rax; movaps xmm1, xmm0; {}",
        (0..TERMS)
            .map(|number| format!("mov [r14 + {}], rax", number * COEFFICIENT_BYTES))
            .collect::<Vec<_>>()
            .join("; ")
    );
    let sums = (FIRST..FIRST + chains).map(|sum| format!("pxor xmm{sum}, xmm{sum}")).collect::<Vec<_>>().join("; ");
    StepLoop { init: assemble(&format!("{init}; {sums}")), ..AsmLoop::SLOW.assemble(&all.join("; "), 0) }
}

/// Bytes from one coefficient to the next: a packed operand is aligned.
const COEFFICIENT_BYTES: usize = 16;
/// Horner's scheme: the sum times the argument, plus the next coefficient.
const HORNER: &str = "mulsd {s}, xmm0; addsd {s}, {c}";
/// The next power, times its coefficient, added to the sum.
const POWERS: &str = "mulsd xmm1, xmm0; movsd xmm15, {c}; mulsd xmm15, xmm1; addsd {s}, xmm15";
/// The same with other instructions for the product.
const POWERS_REVERSED: &str = "mulsd xmm1, xmm0; movapd xmm15, xmm1; mulsd xmm15, {c}; addsd {s}, xmm15";
const HORNER_LOADED: &str = "movsd xmm15, {c}; mulsd {s}, xmm0; addsd {s}, xmm15";
const HORNER_FUSED: &str = "vfmadd213sd {s}, xmm0, {c}";
const HORNER_FUSED_LOADED: &str = "vmovsd xmm15, {c}; vfmadd213sd {s}, xmm0, xmm15";

const TABLE: &[ProgramVariant] = &[
    ProgramVariant::new("mulsd and addsd of memory", |chains| table_loop(chains, HORNER)),
    ProgramVariant::new("movsd, mulsd and addsd", |chains| table_loop(chains, HORNER_LOADED)),
];
const TABLE_FUSED: &[ProgramVariant] = &[
    ProgramVariant::new("vfmadd213sd of memory", |chains| table_loop(chains, HORNER_FUSED)).requiring(&[AVX, FMA]),
    ProgramVariant::new("vmovsd and vfmadd213sd", |chains| table_loop(chains, HORNER_FUSED_LOADED))
        .requiring(&[AVX, FMA]),
];
const TABLE_POWERS: &[ProgramVariant] = &[
    ProgramVariant::new("the coefficient times the power", |chains| table_loop(chains, POWERS)),
    ProgramVariant::new("the power times the coefficient", |chains| table_loop(chains, POWERS_REVERSED)),
];

const fn sums_row(name: &'static str, chains: usize, variants: &'static [ProgramVariant]) -> TestRow {
    TestRow::for_n(name, chains, variants).amount(TERMS as f64)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "taylor",
    about: "what a term of a power series takes, by how many sums run beside each other",
    definition: "core cycles of a term, a multiplication and an addition, or both at once where the name says so: \
                 in one chain their latencies, in many what the units do at once; with a table, each term has its \
                 own coefficient in memory, and with powers the argument's power is computed beside the sum",
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
            sums_row("table_one_sum", 1, TABLE),
            sums_row("table_four_sums", 4, TABLE),
            sums_row("table_one_sum_fma", 1, TABLE_FUSED),
            sums_row("table_four_sums_fma", 4, TABLE_FUSED),
            sums_row("table_and_powers", 4, TABLE_POWERS),
        ],
    )),
}];
