//! A vector times a number plus a vector (DAXPY).

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};
use iced_x86::CpuidFeature::{AVX, AVX512F, FMA};

/// Bytes of one element.
const NUMBER: usize = 8;
/// Bytes of each vector per iteration.
const BLOCK: usize = 512;
/// Bytes of each vector in the shorter call.
const CALL: usize = 32 << 10;

/// Bytes of both vectors: half of the first caches of old cores.
const NEAR: usize = 16 << 10;
/// Bytes of both vectors: half of the second caches of old cores.
const FAR: usize = 128 << 10;

/// y = a x + y with registers of `width` bytes, `together` of them at once. A step is one element.
fn daxpy_loop(bytes: usize, width: usize, together: usize, fused: bool) -> StepLoop {
    // R14 points to x; y is half a page and five lines behind the end of x. No load has the same
    // last 12 address bits as a store, nor the same last 10. RBP is the place in both.
    let half = bytes / 2;
    let y = half + PAGE_BYTES as usize / 2 + 5 * LINE;
    let name = ["xmm", "ymm", "zmm"][width.ilog2() as usize - 4];
    let group = |first: usize| {
        let mut all = Vec::new();
        let operand = |number: usize| (number * width, format!("{name}{}", 1 + number % together));
        let numbers = first..first + together;
        for (offset, register) in numbers.clone().map(operand) {
            all.push(match width {
                16 => format!("movups {register}, [r14 + rbp + {offset}]"),
                _ => format!("vmovups {register}, [r14 + rbp + {offset}]"),
            });
        }
        for (offset, register) in numbers.clone().map(operand) {
            let at = y + offset;
            all.push(match (width, fused) {
                (16, _) => format!("mulpd {register}, xmm0; addpd {register}, [r14 + rbp + {at}]"),
                (_, true) => format!("vfmadd213pd {register}, {name}0, [r14 + rbp + {at}]"),
                (_, false) => {
                    format!(
                        "vmulpd {register}, {register}, {name}0; vaddpd {register}, {register}, [r14 + rbp + \
                             {at}]"
                    )
                }
            });
        }
        for (offset, register) in numbers.map(operand) {
            let at = y + offset;
            all.push(match width {
                16 => format!("movaps [r14 + rbp + {at}], {register}"),
                _ => format!("vmovups [r14 + rbp + {at}], {register}"),
            });
        }
        all.join("; ")
    };
    let all: Vec<String> = (0..BLOCK / width).step_by(together).map(group).collect();
    let area = MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register: 14, at: PointerPosition::Start }),
        ..MemoryArea::new(bytes as u64 + PAGE_BYTES, AreaFill::Bytes(vec![0]))
    };
    StepLoop {
        init: assemble("xor ebp, ebp; pxor xmm0, xmm0"),
        body: assemble(&format!("{}; add rbp, {BLOCK}; and rbp, {}", all.join("; "), half - 1)),
        following: Vec::new(),
        steps_per_iteration: BLOCK / NUMBER,
        iterations: (CALL / BLOCK).max(half / BLOCK) as u64,
        memory: ProgramMemory { areas: vec![area], ..ProgramMemory::default() },
        calls_memcpy: false,
    }
}

/// The numbers: the width, the number of registers at once, and whether multiplication and addition
/// are fused.
fn build_daxpy(bytes: usize, inputs: &Inputs) -> StepLoop {
    let [width, together, fused, _] = inputs.numbers;
    daxpy_loop(bytes, width, together, fused == 1)
}

const fn daxpy(width: usize, fused: usize) -> [ProgramVariant; 4] {
    [
        ProgramVariant::built("one by one", build_daxpy, [""; 4], [width, 1, fused, 0]),
        ProgramVariant::built("two by two", build_daxpy, [""; 4], [width, 2, fused, 0]),
        ProgramVariant::built("four by four", build_daxpy, [""; 4], [width, 4, fused, 0]),
        ProgramVariant::built("eight by eight", build_daxpy, [""; 4], [width, 8, fused, 0]),
    ]
}

const SSE: &[ProgramVariant] = &daxpy(16, 0);
const FMA_32: &[ProgramVariant] = &daxpy(32, 1);
const FMA_64: &[ProgramVariant] = &daxpy(64, 1);

const fn daxpy_row(
    name: &'static str,
    bytes: usize,
    variants: &'static [ProgramVariant],
    needs: &'static [CpuidFeature],
) -> TestRow {
    TestRow::for_n(name, bytes, variants).requiring(needs)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "daxpy",
    about: "how many numbers of a vector times a number plus a vector the core does in a cycle",
    definition: "numbers of eight bytes in a core cycle, of which one is loaded from each vector, multiplied and \
                 added, and stored; both vectors together have 16 KiB or 128 KiB",
    source: FOG_TEST_PROGRAMS,
    answers: &["daxpy"],
    part: TestedPart::Memory,
    experiment: Experiment::Rates(RatesSpec {
        bytes_per_n: 1,
        tolerance_share: 0.12,
        ..RatesSpec::new(
            Unit::PerCycle,
            &[
                daxpy_row("16_bytes_near", NEAR, SSE, &[]),
                daxpy_row("16_bytes_far", FAR, SSE, &[]),
                daxpy_row("32_bytes_fma_near", NEAR, FMA_32, &[AVX, FMA]),
                daxpy_row("32_bytes_fma_far", FAR, FMA_32, &[AVX, FMA]),
                daxpy_row("64_bytes_fma_near", NEAR, FMA_64, &[AVX512F]),
                daxpy_row("64_bytes_fma_far", FAR, FMA_64, &[AVX512F]),
            ],
        )
    }),
}];
