//! Loads that prefetchers fetch ahead, by the stride.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, ProgramMemory, StoreLifetime,
};

/// Bytes of the region in which rows of loads begin, a power of two. It exceeds any second cache:
/// hardly a line of a row is in one.
const REGION: usize = 32 << 20;
/// Loads per row.
const ROW: usize = 64;
/// Rows of the shorter call.
const ROWS: usize = 5;
/// The largest stride.
const MOST: usize = 4096;

/// Rows of loads `apart` bytes from each other, at most 256 KiB long; the shorter call has `number`
/// rows. Each row begins at a random `multiple` in the region, and each load waits for the previous
/// one. All loads are one instruction: prefetchers also distinguish loads by their address in the
/// code.
fn load_rows(number: usize, loads: usize, apart: i64, multiple: usize) -> StepLoop {
    // R14 points to the region, and R13 to a cell with the last random number, which RBP holds. R8
    // is the place, and R11 masks a number to a multiple. Every word of the region is zero.
    let first = row_start(loads, apart);
    let multiplier = 6_364_136_223_846_793_005u64.to_le_bytes();
    let mut init = assemble("mov rbp, [r13]; inc rbp; xor eax, eax");
    init.extend([&[0x49, 0xb9][..], &multiplier].concat());
    init.extend(assemble(&format!("mov r11d, {}", REGION - multiple)));
    let mut body = assemble(&format!(
        "add rbp, rax; imul rbp, r9; add rbp, {LINE}; mov r8, rbp; shr r8, 24; and r8, r11; lea r8, [r14 + r8 + \
         {first}]; mov ecx, {loads}"
    ));
    let mut load = assemble(&format!("mov rax, [r8]; lea r8, [r8 + rax + {apart}]; dec ecx"));
    // jnz back to the load.
    load.extend([0x75, (-(load.len() as i8) - 2) as u8]);
    body.extend(load);
    let kept = |area: MemoryArea, register| MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register, at: PointerPosition::Start }),
        ..area
    };
    let region = MemoryArea::new((REGION + ROW * MOST) as u64, AreaFill::Image(Vec::new()));
    let areas = vec![kept(region, 14), kept(MemoryArea::new(PAGE_BYTES, AreaFill::Image(Vec::new())), 13)];
    StepLoop {
        init,
        body,
        following: assemble("mov [r13], rbp"),
        steps_per_iteration: loads,
        iterations: number as u64,
        memory: ProgramMemory { areas, ..ProgramMemory::default() },
        calls_memcpy: false,
    }
}

/// The offset of a row's first load from its place; a row that goes down ends at its place.
fn row_start(loads: usize, apart: i64) -> i64 {
    if apart < 0 { (loads - 1) as i64 * -apart } else { 0 }
}

fn rows_upwards(apart: usize) -> StepLoop {
    load_rows(ROWS, ROW, apart as i64, LINE)
}

fn rows_downwards(apart: usize) -> StepLoop {
    load_rows(ROWS, ROW, -(apart as i64), LINE)
}

const ORDERED: &[ProgramVariant] =
    &[ProgramVariant::new("upwards", rows_upwards), ProgramVariant::new("downwards", rows_downwards)];
/// Pages get few loads each. Prefetchers may then follow only one direction.
const UP: &[ProgramVariant] = &[
    ProgramVariant::new("from any line", rows_upwards),
    ProgramVariant::new("from every other line", |apart| load_rows(ROWS, ROW, apart as i64, 2 * LINE)),
];
const DOWN: &[ProgramVariant] = &[
    ProgramVariant::new("from any line", rows_downwards),
    ProgramVariant::new("from every other line", |apart| load_rows(ROWS, ROW, -(apart as i64), 2 * LINE)),
];
const RANDOM: &[ProgramVariant] = &[
    ProgramVariant::new("any line", |_| load_rows(ROWS * ROW, 1, LINE as i64, LINE)),
    ProgramVariant::new("any other line", |_| load_rows(ROWS * ROW, 1, LINE as i64, 2 * LINE)),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "strided_load",
    about: "how far apart loads may be that prefetchers bring before they are asked for",
    definition: "core cycles of a load that waits for the one before, this many bytes behind or before it, in rows of \
                 64 that begin anywhere in 32 MiB, in pages of 4 KiB; or of one that is anywhere itself, of which \
                 no prefetcher knows and often no translation is at hand",
    source: "Intel 64 and IA-32 Architectures Optimization Reference Manual, section on data prefetching",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Rates(RatesSpec {
        // Rows with smaller strides need as much.
        bytes_per_n: REGION / MOST,
        // The tolerance of memory that other CPUs use too.
        tolerance_share: 0.3,
        ..RatesSpec::new(
            Unit::CoreCycles,
            &[
                TestRow::for_n("64_bytes", 64, ORDERED).in_shared_memory(),
                TestRow::for_n("128_bytes", 128, ORDERED).in_shared_memory(),
                TestRow::for_n("256_bytes", 256, ORDERED).in_shared_memory(),
                TestRow::for_n("512_bytes", 512, ORDERED).in_shared_memory(),
                TestRow::for_n("1024_bytes", 1024, ORDERED).in_shared_memory(),
                TestRow::for_n("2048_bytes_upwards", 2048, UP).in_shared_memory(),
                TestRow::for_n("2048_bytes_downwards", 2048, DOWN).in_shared_memory(),
                TestRow::for_n("4096_bytes_upwards", MOST, UP).in_shared_memory(),
                TestRow::for_n("4096_bytes_downwards", MOST, DOWN).in_shared_memory(),
                TestRow::for_n("random", LINE, RANDOM).in_shared_memory(),
            ],
        )
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_in_their_memory_in_both_directions() {
        for (loads, apart) in [(1, 64), (ROW, MOST as i64), (4 * ROW, 64)] {
            let area = load_rows(ROWS, loads, apart, LINE).memory.areas[0].bytes as i64;
            let span = (loads - 1) as i64 * apart;
            let [up, down] = [apart, -apart].map(|apart| {
                let first = row_start(loads, apart);
                let last = first + (loads - 1) as i64 * apart;
                [first.min(last), first.max(last)]
            });
            assert_eq!((up, down), ([0, span], [0, span]));
            assert!((REGION - LINE) as i64 + span + 8 <= area, "{loads} loads {apart} bytes apart");
        }
    }
}
