//! Registers for results that have not retired.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX2, AVX512BW, AVX512DQ, AVX512F};

// Integer registers for results that have not retired.

const INTEGER_LEA: FillerSpec = FillerSpec::new(
    "lea",
    &[
        "lea rbx, [rcx + rdx]",
        "lea r8, [rcx + rdx]",
        "lea r9, [rcx + rdx]",
        "lea r10, [rcx + rdx]",
        "lea r11, [rcx + rdx]",
        "lea r12, [rcx + rdx]",
        "lea r13, [rcx + rdx]",
    ],
    &["rob"],
);

const INTEGER_ADD: FillerSpec = FillerSpec::new(
    "add",
    &[
        "add rbx, rcx",
        "add r8, rcx",
        "add r9, rcx",
        "add r10, rcx",
        "add r11, rcx",
        "add r12, rcx",
        "add r13, rcx",
        "add rdx, rcx",
    ],
    &["rob"],
);

const INTEGER_NOT: FillerSpec = FillerSpec::new(
    "not",
    &["not rbx", "not r8", "not r9", "not r10", "not r11", "not r12", "not r13", "not rdx"],
    &["rob"],
);

/// No chain on the x87 stack: with one, Zen 4 has six more registers left (194 and 188), and four
/// more mask registers.
const VECTOR_CHAINS: &[[FirstChain; 2]] = &[[SQRTSD, DIVSD]];

// Flags of results that have not retired.

/// Flags are in an integer register, as on Golden Cove, or in their own registers, as on Zen 4.
const fn flags_filler(name: &'static str, code: &'static [&'static str]) -> FillerSpec {
    FillerSpec::new(name, code, &["rob"]).may_occupy(&["int_registers"])
}

// A core could know the result of comparing a register with itself without execution.
const TEST_REGISTERS: FillerSpec =
    flags_filler("test", &["test rbx, rcx", "test rdx, r8", "test r9, r10", "test r11, r12"]);
const COMPARE: FillerSpec = flags_filler("cmp", &["cmp rbx, rcx", "cmp rdx, r8", "cmp r9, r10", "cmp r11, r12"]);

// Vector registers for results that have not retired, by width.

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
const YMM_ADD: FillerSpec = FillerSpec::new(
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
.requiring(&[AVX2]);
const YMM_AND: FillerSpec = FillerSpec::new(
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
.requiring(&[AVX]);
const ZMM_ADD: FillerSpec = FillerSpec::new(
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
.requiring(&[AVX512F]);
const ZMM_AND: FillerSpec = FillerSpec::new(
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
.requiring(&[AVX512F]);

/// No result of a first chain may be in these registers. Multiplications fill small schedulers
/// before the fillers come, and roots take registers if x87 results are in vector registers.
/// Divisions are few and take none.
const INTEGER_OR_X87_CHAINS: &[[FirstChain; 2]] = &[[IMUL, FSQRT], [DIV, IDIV]];

const DEFINITION: &str = "spare vector registers of this width: those beside the architectural ones, which all hold \
                          values, and those that the core keeps for itself";
const fn registers_test(
    name: &'static str,
    about: &'static str,
    answers: &'static [&'static str],
    fillers: &'static [FillerSpec],
) -> TestSpec {
    // The first link of the chain behind the fillers takes one.
    TestSpec {
        name,
        about,
        definition: DEFINITION,
        source: WONG,
        answers,
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec {
            chain_entries: 1,
            ..OverlapSpec::new(INTEGER_OR_X87_CHAINS, fillers, 700)
        }),
    }
}

// Mask registers for results that have not retired.

const KADD: FillerSpec = FillerSpec::new(
    "kaddd",
    &["kaddd k1, k6, k7", "kaddd k2, k6, k7", "kaddd k3, k6, k7", "kaddd k4, k6, k7"],
    &["rob"],
)
.requiring(&[AVX512BW]);
const KOR: FillerSpec =
    FillerSpec::new("korb", &["korb k1, k6, k7", "korb k2, k6, k7", "korb k3, k6, k7", "korb k4, k6, k7"], &["rob"])
        .requiring(&[AVX512DQ]);

// MMX registers for results that have not retired.

/// MMX results are in vector registers, as on Zen 4, or in mask registers, as on Golden Cove.
const fn mmx_filler(name: &'static str, code: &'static [&'static str]) -> FillerSpec {
    FillerSpec::new(name, code, &["rob"]).may_occupy(&["vector_registers_xmm", "mask_registers"])
}

const MMX_ADD: FillerSpec =
    mmx_filler("paddd mm", &["paddd mm2, mm7", "paddd mm3, mm7", "paddd mm4, mm7", "paddd mm5, mm7", "paddd mm6, mm7"]);
const MMX_OR: FillerSpec =
    mmx_filler("por mm", &["por mm2, mm7", "por mm3, mm7", "por mm4, mm7", "por mm5, mm7", "por mm6, mm7"]);

/// A first chain of vector instructions would take registers of the same file.
const DIVISION_CHAINS: &[[FirstChain; 2]] = &[[DIV, IDIV]];

// x87 registers for results that have not retired.

/// Results on the x87 stack, which is empty before and behind them. They are in vector registers,
/// as on Zen 4, or with mask and MMX registers. An instruction that pops one also writes a
/// register. An incomplete period leaves a result on the stack, and eight iterations fill it.
const fn x87_filler(name: &'static str, code: &'static [&'static str]) -> FillerSpec {
    FillerSpec::new(name, code, &["rob"]).may_occupy(&["vector_registers_xmm", "mask_registers", "mmx_registers"])
}

const X87_ONES: FillerSpec = x87_filler("fld1, fstp", &["fld1", "fstp st(0)"]);
const X87_SIGNS: FillerSpec = x87_filler("fldz, fchs, fstp", &["fldz", "fchs", "fstp st(0)"]);

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "int_registers",
        about: "how many results in integer registers the core holds until they retire",
        definition: "spare integer registers: those beside the architectural ones and those that the core keeps for \
                     itself",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(VECTOR_CHAINS, &[INTEGER_LEA, INTEGER_ADD, INTEGER_NOT], 700)),
    },
    TestSpec {
        name: "flags",
        about: "how many results in the flags alone the core holds until they retire",
        definition: "spare registers of flags: those beside the architectural one and those that the core keeps for \
                     itself",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], &[TEST_REGISTERS, COMPARE], 700)),
    },
    registers_test(
        "vector_registers_xmm",
        "how many results in vector registers of 128 bits the core holds until they retire",
        &[],
        &[XMM_ADD, XMM_AND],
    ),
    registers_test("vector_registers_ymm", "the same of 256 bits", &[], &[YMM_ADD, YMM_AND]),
    registers_test("vector_registers_zmm", "the same of 512 bits", &[], &[ZMM_ADD, ZMM_AND]),
    TestSpec {
        name: "mask_registers",
        about: "how many results in mask registers the core holds until they retire",
        definition: "spare mask registers: those beside the architectural ones and those that the core keeps for \
                     itself",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(VECTOR_CHAINS, &[KADD, KOR], 500)),
    },
    TestSpec {
        name: "mmx_registers",
        about: "how many results in MMX registers the core holds until they retire",
        definition: "spare MMX registers: those beside the architectural ones and those that the core keeps for \
                     itself",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(DIVISION_CHAINS, &[MMX_ADD, MMX_OR], 500)),
    },
    TestSpec {
        name: "x87_registers",
        about: "how many results on the x87 stack the core holds until they retire",
        definition: "spare x87 registers: those beside the architectural ones and those that the core keeps for \
                     itself",
        source: WONG,
        answers: &[],
        part: TestedPart::Window,
        experiment: Experiment::Overlap(OverlapSpec::new(DIVISION_CHAINS, &[X87_ONES, X87_SIGNS], 500)),
    },
];
