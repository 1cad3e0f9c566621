//! Vector units: upper halves of registers, and units that power down.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

// Instructions in two encodings; one of them keeps the upper half of a register.

/// Registers of ones, including their upper halves. `{a}` runs afterwards.
const ONES: AsmLoop = AsmLoop {
    before: "vcmpps ymm2, ymm2, ymm2, 15; vmovaps ymm3, ymm2; vmovaps ymm4, ymm2; vmovaps ymm5, ymm2; \
             vmovaps ymm6, ymm2; vmovaps ymm7, ymm2; {a}",
    following: "vzeroupper",
    ..AsmLoop::SLOW
};
const CLEAN: AsmLoop = ONES.with(["vzeroupper", "", "", ""]);

/// A text after dirty upper halves, less the same text after clean ones.
const fn dirty(text: &'static str) -> ProgramVariant {
    ONES.asm(text).less_in(CLEAN).requiring(&[AVX])
}

/// A text after dirty upper halves, less another text after the same.
const fn ordered(text: &'static str, other: &'static str) -> ProgramVariant {
    ONES.asm(text).less(other).requiring(&[AVX])
}

/// The same with all 64 bytes of registers of ones.
const WIDE_ONES: AsmLoop = AsmLoop {
    before: "vpternlogd zmm2, zmm2, zmm2, 255; vmovaps zmm3, zmm2; vmovaps zmm4, zmm2; vmovaps zmm5, zmm2; \
             vmovaps zmm6, zmm2; vmovaps zmm7, zmm2; {a}",
    ..ONES
};
const WIDE_CLEAN: AsmLoop = WIDE_ONES.with(["vzeroupper", "", "", ""]);
/// Ones in a register that only EVEX names, and that `vzeroupper` does not change.
const HIGH_ONES: AsmLoop = AsmLoop {
    before: "vzeroupper; vpternlogd zmm20, zmm20, zmm20, 255",
    following: "vzeroall; vpxord zmm20, zmm20, zmm20",
    ..ONES
};
const HIGH_CLEAN: AsmLoop = AsmLoop { before: "vzeroupper; vpxord zmm20, zmm20, zmm20", ..HIGH_ONES };

/// A text after dirty 64-byte registers, less the same text after clean ones.
const fn wide_dirty(text: &'static str) -> ProgramVariant {
    WIDE_ONES.asm(text).less_in(WIDE_CLEAN).requiring(&[AVX, AVX512F])
}

/// A text while a high register is dirty, less the same text while it is zero.
const fn high_dirty(text: &'static str) -> ProgramVariant {
    HIGH_ONES.asm(text).less_in(HIGH_CLEAN).requiring(&[AVX, AVX512F])
}

// Wide vector units that power down when unused.

/// Independent instructions per step.
const TOGETHER: usize = 16;
/// Steps of the shorter call. The measured steps are as many and follow them, at most a microsecond
/// after the rest.
const SOON: u64 = 8;

/// Steps of a vector instruction, `{a}`, with registers `{b}`. Before them, a loop runs for
/// `cycles` core cycles: without vector instructions to let the units rest, or with one in each
/// cycle.
fn loop_after_rest(cycles: usize, inputs: &Inputs) -> StepLoop {
    let Inputs { texts: [name, register, ..], numbers: [rests, ..] } = inputs;
    let instruction = |to: usize| format!("{name} {register}{to}, {register}15, {register}15");
    let inside = if *rests == 1 { String::new() } else { format!("{}; ", instruction(0)) };
    let body: Vec<String> = (0..TOGETHER).map(|number| instruction(number % 12)).collect();
    let rest = format!("vxorps xmm15, xmm15, xmm15; mov ecx, {cycles}; 1: {inside}dec ecx; jnz 1b");
    StepLoop { init: assemble(&rest), iterations: SOON, ..straight_loop(assemble(&body.join("; ")), 1) }
}

/// Steps of a vector instruction, `{a}`, with registers `{b}`, behind a rest and this many core
/// cycles of the same instruction. A slow chain sets the pace of those, as long as the units are not
/// far slower. With a first number of zero, there is no rest.
fn loop_after_use(cycles: usize, inputs: &Inputs) -> StepLoop {
    let Inputs { texts: [name, register, ..], numbers: [rests, ..] } = inputs;
    let instruction = format!("{name} {register}0, {register}15, {register}15");
    let inside = if *rests == 1 { String::new() } else { format!("{instruction}; ") };
    let times = cycles / USE_CYCLES;
    let used = match times {
        0 => String::new(),
        _ => format!(
            "; mov ecx, {times}; 2: {instruction}; {}; dec ecx; jnz 2b",
            ["imul eax, eax"; USE_CHAIN].join("; ")
        ),
    };
    let rest = format!("vxorps xmm15, xmm15, xmm15; mov ecx, {LONG}; 1: {inside}dec ecx; jnz 1b{used}");
    StepLoop { init: assemble(&rest), ..loop_after_rest(1, inputs) }
}

/// Multiplications of a chain for each vector instruction, and the core cycles that they take at
/// least on every core.
const USE_CHAIN: usize = 4;
const USE_CYCLES: usize = 3 * USE_CHAIN;

/// An instruction after a rest and some use, less the same without a rest.
const fn used(name: &'static str, register: &'static str) -> ProgramFamily {
    let texts = [name, register, "", ""];
    ProgramVariant::built("{a} {b}", loop_after_use, texts, [1, 0, 0, 0]).less_built(texts, [0; 4]).family
}

/// An instruction after a rest, less the same instruction after a loop that uses it.
const fn rested(name: &'static str, register: &'static str) -> ProgramVariant {
    let texts = [name, register, "", ""];
    ProgramVariant::built("{a} {b}", loop_after_rest, texts, [1, 0, 0, 0]).less_built(texts, [0; 4])
}

/// Core cycles of a rest that is longer than units stay awake: most of a millisecond on the fastest
/// cores.
const LONG: usize = 4_500_000;

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "upper_halves",
        about: "what legacy vector instructions cost where upper halves of registers are not zero",
        definition: "core cycles by which an instruction, or a pair of them in turns, takes longer than behind \
                     vzeroupper, or than in the order that the row's name does not have; of `vzeroupper` itself \
                     what it costs; with zmm, all 64 bytes were ones, or those of a register that only EVEX names",
        source: FOG,
        answers: &["AVX_states"],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::new("chain", &[dirty("paddd xmm2, xmm6"), dirty("psubd xmm3, xmm7")]),
                TestRow::new("overwritten", &[dirty("cvtdq2ps xmm2, xmm6"), dirty("cvttps2dq xmm3, xmm7")]),
                TestRow::new(
                    "in_turn_with_vex",
                    &[
                        dirty("paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6"),
                        dirty("psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7"),
                    ],
                ),
                TestRow::new(
                    "before_vzeroupper",
                    &[
                        ordered(
                            "vorps ymm2, ymm6, ymm7; paddd xmm3, xmm6; vzeroupper",
                            "vorps ymm2, ymm6, ymm7; vzeroupper; paddd xmm3, xmm6",
                        ),
                        ordered(
                            "vandps ymm4, ymm6, ymm7; psubd xmm5, xmm7; vzeroupper",
                            "vandps ymm4, ymm6, ymm7; vzeroupper; psubd xmm5, xmm7",
                        ),
                    ],
                ),
                TestRow::new(
                    "in_turns_or_pairs",
                    &[
                        ordered(
                            "paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6; paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6",
                            "paddd xmm2, xmm6; paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6; vpaddd xmm4, xmm4, xmm6",
                        ),
                        ordered(
                            "psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7; psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7",
                            "psubd xmm3, xmm7; psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7; vpsubd xmm5, xmm5, xmm7",
                        ),
                    ],
                ),
                TestRow::new(
                    "vzeroupper",
                    &[
                        ordered(
                            "vandps ymm3, ymm6, ymm7; vzeroupper; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; \
                             nop; nop; nop; nop; nop; nop",
                            "vandps ymm3, ymm6, ymm7; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; \
                             nop; nop; nop; nop",
                        ),
                        ordered(
                            "vorps ymm2, ymm6, ymm7; vzeroupper; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, \
                             edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d; xor eax, eax; xor ebx, \
                             ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d",
                            "vorps ymm2, ymm6, ymm7; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor \
                             esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d; xor eax, eax; xor ebx, ebx; xor \
                             ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d",
                        ),
                    ],
                ),
                TestRow::new("zmm_chain", &[wide_dirty("paddd xmm2, xmm6"), wide_dirty("psubd xmm3, xmm7")]),
                TestRow::new(
                    "zmm_overwritten",
                    &[wide_dirty("cvtdq2ps xmm2, xmm6"), wide_dirty("cvttps2dq xmm3, xmm7")],
                ),
                TestRow::new(
                    "zmm_in_turn_with_vex",
                    &[
                        wide_dirty("paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6"),
                        wide_dirty("psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7"),
                    ],
                ),
                TestRow::new(
                    "zmm_before_ymm",
                    &[
                        wide_dirty("vaddps ymm2, ymm2, ymm8; vaddps ymm3, ymm3, ymm8"),
                        wide_dirty("vmulps ymm4, ymm4, ymm8; vmulps ymm5, ymm5, ymm8"),
                    ],
                ),
                TestRow::new("high_zmm_chain", &[high_dirty("paddd xmm2, xmm6"), high_dirty("psubd xmm3, xmm7")]),
                TestRow::new(
                    "high_zmm_before_ymm",
                    &[high_dirty("vaddps ymm2, ymm2, ymm8"), high_dirty("vmulps ymm4, ymm4, ymm8")],
                ),
            ],
            tolerance: 0.2,
            tolerance_share: 0.15,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "wake_up_time",
        about: "how long vector units are slow that have rested",
        definition: "core cycles for which such multiplications go on behind a loop without vectors until they are \
                     no more than half as much slower as at first",
        source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), warm-up of the vector units",
        answers: &["warmup_fp"],
        part: TestedPart::Execution,
        experiment: Experiment::Fades(FadesSpec {
            rows: &[
                FadeRow {
                    name: "256_bits",
                    programs: [used("vmulps", "ymm"), used("vmulpd", "ymm")],
                    required_features: &[AVX],
                },
                FadeRow {
                    name: "512_bits",
                    programs: [used("vmulps", "zmm"), used("vmulpd", "zmm")],
                    required_features: &[AVX, AVX512F],
                },
            ],
            // As in `wake_up`, with room for noise.
            tolerance: 4.0,
            // Published times are 9 to 20 microseconds (A. Fog, as above).
            time_range: [600, 400_000],
        }),
    },
    TestSpec {
        name: "wake_up",
        about: "how much slower vector units are that have rested",
        definition: "core cycles by which sixteen multiplications take longer some hundred cycles behind a loop \
                     without vectors than behind one with them",
        source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), warm-up of the vector units",
        answers: &["warmup_fp"],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::for_n(
                    "256_bits",
                    LONG,
                    &[rested("vmulps", "ymm").requiring(&[AVX]), rested("vmulpd", "ymm").requiring(&[AVX])],
                ),
                TestRow::for_n(
                    "512_bits",
                    LONG,
                    &[
                        rested("vmulps", "zmm").requiring(&[AVX, AVX512F]),
                        rested("vmulpd", "zmm").requiring(&[AVX, AVX512F]),
                    ],
                ),
            ],
            tolerance: 2.0,
            tolerance_share: 0.25,
            slot_costs: &[],
        }),
    },
];
