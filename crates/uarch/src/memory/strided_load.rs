//! Loads that prefetchers bring before they are asked for, by the distance from one to the next.

use crate::test::rate::{Rates, Row, Way};
use crate::test::walk::{LINE, Steps, code};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Area, At, Fill, Lifetime, Memory, PAGE, Pointer, Present};
use cyclescope_core::unit::Unit;

/// Bytes in which rows of loads begin, a power of two: more than any second cache holds. Hardly a line of a row is in one.
const REGION: usize = 32 << 20;
/// Loads of a row, and rows of the shorter call.
const ROW: usize = 64;
const ROWS: usize = 5;
/// The largest distance.
const MOST: usize = 4096;

/// So many rows, in the shorter call, of loads this far apart, 256 KiB at most. Each row begins anywhere in the region at a multiple of
/// some bytes, and each load waits for the one before. One instruction loads, for prefetchers know loads by their place too.
fn rows(number: usize, loads: usize, apart: i64, multiple: usize) -> Steps {
    // R14 points to the region and R13 to a cell with the last random number; RBP holds it, R8 is the place, and R11 keeps of a
    // number what is a multiple. Every word of the region is zero.
    let first = first(loads, apart);
    let multiplier = 6_364_136_223_846_793_005u64.to_le_bytes();
    let mut init = code("mov rbp, [r13]; inc rbp; xor eax, eax");
    init.extend([&[0x49, 0xb9][..], &multiplier].concat());
    init.extend(code(&format!("mov r11d, {}", REGION - multiple)));
    let mut body = code(&format!(
        "add rbp, rax; imul rbp, r9; add rbp, {LINE}; mov r8, rbp; shr r8, 24; and r8, r11; lea r8, [r14 + r8 + {first}]; \
         mov ecx, {loads}"
    ));
    let mut load = code(&format!("mov rax, [r8]; lea r8, [r8 + rax + {apart}]; dec ecx"));
    // jnz back to the load.
    load.extend([0x75, (-(load.len() as i8) - 2) as u8]);
    body.extend(load);
    let kept = |area: Area, register| Area {
        lifetime: Lifetime::Kept,
        present: Present::Everywhere,
        pointer: Some(Pointer { register, at: At::Start }),
        ..area
    };
    let region = Area::new((REGION + ROW * MOST) as u64, Fill::Image(Vec::new()));
    let areas = vec![kept(region, 14), kept(Area::new(PAGE, Fill::Image(Vec::new())), 13)];
    Steps {
        init,
        body,
        following: code("mov [r13], rbp"),
        steps: loads,
        iterations: number as u64,
        memory: Memory { areas, ..Memory::default() },
    }
}

/// Where a row begins behind its place, so that it ends there where it goes down.
fn first(loads: usize, apart: i64) -> i64 {
    if apart < 0 { (loads - 1) as i64 * -apart } else { 0 }
}

fn upwards(apart: usize) -> Steps {
    rows(ROWS, ROW, apart as i64, LINE)
}

fn downwards(apart: usize) -> Steps {
    rows(ROWS, ROW, -(apart as i64), LINE)
}

fn upwards_from_pairs(apart: usize) -> Steps {
    rows(ROWS, ROW, apart as i64, 2 * LINE)
}

fn downwards_from_pairs(apart: usize) -> Steps {
    rows(ROWS, ROW, -(apart as i64), 2 * LINE)
}

fn random(_: usize) -> Steps {
    rows(ROWS * ROW, 1, LINE as i64, LINE)
}

fn other_random(_: usize) -> Steps {
    rows(ROWS * ROW, 1, LINE as i64, 2 * LINE)
}

const ORDERED: &[Way] = &[Way::plain("upwards", upwards), Way::plain("downwards", downwards)];
/// Of pages that are hardly loaded from more than once, prefetchers may know one direction alone.
const UP: &[Way] =
    &[Way::plain("from any line", upwards), Way::plain("from every other line", upwards_from_pairs)];
const DOWN: &[Way] =
    &[Way::plain("from any line", downwards), Way::plain("from every other line", downwards_from_pairs)];
const RANDOM: &[Way] = &[Way::plain("any line", random), Way::plain("any other line", other_random)];

pub(crate) const TEST: Test = Test {
    name: "strided_load",
    about: "how far apart loads may be that prefetchers bring before they are asked for",
    definition: "core cycles of a load that waits for the one before, so many bytes behind or before it, in rows of 64 that begin anywhere in 32 MiB, in pages of \
                 4 KiB; or of one that is anywhere itself, of which no prefetcher knows and often no translation is at hand",
    source: "Intel 64 and IA-32 Architectures Optimization Reference Manual, section on data prefetching",
    part: Part::Memory,
    look: Look::Rates(Rates {
        rows: &[
            Row::new("64_bytes", 64, 1.0, ORDERED),
            Row::new("128_bytes", 128, 1.0, ORDERED),
            Row::new("256_bytes", 256, 1.0, ORDERED),
            Row::new("512_bytes", 512, 1.0, ORDERED),
            Row::new("1024_bytes", 1024, 1.0, ORDERED),
            Row::new("2048_bytes_upwards", 2048, 1.0, UP),
            Row::new("2048_bytes_downwards", 2048, 1.0, DOWN),
            Row::new("4096_bytes_upwards", MOST, 1.0, UP),
            Row::new("4096_bytes_downwards", MOST, 1.0, DOWN),
            Row::new("random", LINE, 1.0, RANDOM),
        ],
        unit: Unit::CoreCycles,
        // The rows that are nearer take as much.
        bytes: REGION / MOST,
        // As memory that others use too.
        apart: 0.3,
        alone: false,
        within: None,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_inside_their_memory_and_down_they_load_what_they_load_up() {
        for (loads, apart) in [(1, 64), (ROW, MOST as i64), (4 * ROW, 64)] {
            let area = rows(ROWS, loads, apart, LINE).memory.areas[0].bytes as i64;
            let span = (loads - 1) as i64 * apart;
            let [up, down] = [apart, -apart].map(|apart| {
                let first = first(loads, apart);
                let last = first + (loads - 1) as i64 * apart;
                [first.min(last), first.max(last)]
            });
            assert_eq!((up, down), ([0, span], [0, span]));
            assert!((REGION - LINE) as i64 + span + 8 <= area, "{loads} loads {apart} bytes apart");
        }
    }
}
