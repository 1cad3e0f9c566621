//! Page walks that are on their way at once.
//!
//! Each load is of another page, of more pages than any core has translations of at hand. All pages are the same few in memory, so that the nearest cache
//! holds what is loaded. The same loads of a few pages are subtracted.

use crate::program::memory::{Area, At, Fill, Frames, Lifetime, Memory, PAGE, Pointer};
use crate::study::uarch::test::batches::Batches;
use crate::study::uarch::test::walk::{Beside, LINE, Steps, Walk, code};
use crate::study::uarch::test::{Look, Part, Test};

/// Pages that are loaded from: twice as many as the largest second level of translations has entries (4096 on Zen 5: AMD, Software Optimization Guide for
/// the AMD Zen5 Microarchitecture, 58455), and those of the control.
const PAGES: usize = 8192;
const FEW: usize = 16;
/// Bytes from one to the next: no two are in a group of pages whose translations have one entry, as four have on Zen where they are in a row in memory too.
const STRIDE: usize = 4 * PAGE as usize;
/// By how many bits a page's place is more than that of its line, and all places of lines: 64 pages in a row use 64 lines, each in another set.
const TO_LINES: u32 = STRIDE.ilog2() - LINE.ilog2();
const LINES: usize = PAGE as usize - LINE;
/// Pages in memory.
const FRAMES: usize = 64;
/// Pages from one load to the next of two programs: odd, so that all pages have their turn, and about the square root of two and the golden section of all. On
/// Zen 4 a batch of eight loads 5063 pages apart took as long as one of six, and one of seven half as long again; with 3393 pages both took longer. That is not
/// explained, so the two programs differ in it.
const STEPS: [usize; 2] = [3393, 5063];
/// Walks that are there beforehand in the witness.
const BEFORE: usize = 2;
/// The largest number.
const MOST: usize = 20;
/// Batches of the shorter call.
const BATCHES: u64 = 128;

/// How a batch loads.
#[derive(Debug, Clone, Copy)]
struct Use {
    /// Pages over which it goes.
    pages: usize,
    /// Loads beforehand.
    before: usize,
    /// What loads from behind RAX.
    load: &'static str,
    /// Pages from one load to the next.
    step: usize,
}

/// Batches of so many loads. R14 points to the pages, and RBP is the place of the next one, which is kept in what R13 points to.
fn batches(number: usize, how: Use) -> Steps {
    let Use { pages, before, load, step } = how;
    let (mask, step) = (pages * STRIDE - 1, step * STRIDE);
    let mut body = Vec::new();
    for place in 0..before + number {
        let instruction = if place < before { TO_VECTOR } else { load };
        let ahead = (place * step) & mask;
        body.extend(code(&format!(
            "lea eax, [rbp + {ahead}]; and eax, {mask}; mov edx, eax; shr edx, {TO_LINES}; and edx, {LINES}; add eax, edx; {instruction} [r14 + rax]"
        )));
    }
    let next = ((before + number) * step) & mask;
    body.extend(code(&format!("add ebp, {next}; and ebp, {mask}; lfence")));
    let pointer = |register| Some(Pointer { register, at: At::Start });
    let kept = |area| Area { lifetime: Lifetime::Kept, ..area };
    let bytes = (PAGES * STRIDE) as u64;
    let areas = vec![
        kept(Area {
            frames: Frames::Repeated(FRAMES as u32),
            pointer: pointer(14),
            ..Area::new(bytes, Fill::Bytes(vec![1]))
        }),
        kept(Area { pointer: pointer(13), ..Area::new(PAGE, Fill::Bytes(vec![0])) }),
    ];
    Steps {
        init: code("mov rbp, [r13]"),
        body,
        following: code("mov [r13], rbp"),
        steps: 1,
        iterations: BATCHES,
        memory: Memory { areas, ..Memory::default() },
    }
}

const TO_GENERAL: &str = "mov ecx,";
const TO_VECTOR: &str = "movups xmm0,";
const COMPARED: &str = "cmp ebx,";

const WALKS: Use = Use { pages: PAGES, before: 0, load: TO_GENERAL, step: STEPS[0] };
const NONE: Use = Use { pages: FEW, ..WALKS };
const OTHERS: Use = Use { load: TO_VECTOR, step: STEPS[1], ..WALKS };

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "walks_in_flight",
    about: "how many page walks the core does at once",
    definition: "loads that find no translation at hand and take as long as one of them: so many page walks go on at once",
    source: "AMD, Software Optimization Guide for the AMD Zen4 Microarchitecture, 57647, section on translation lookaside buffers",
    part: Part::Memory,
    look: Look::Batches(Batches {
        walks: &[
            Walk {
                name: "mov r32, m32",
                program: |number| batches(number, WALKS),
                without: Some(|number| batches(number, NONE)),
            },
            Walk {
                name: "movups xmm, m128",
                program: |number| batches(number, OTHERS),
                without: Some(|number| batches(number, Use { pages: FEW, ..OTHERS })),
            },
            Walk {
                name: "cmp r32, m32",
                program: |number| batches(number, Use { load: COMPARED, ..WALKS }),
                without: Some(|number| batches(number, Use { load: COMPARED, ..NONE })),
            },
        ],
        one: Walk {
            name: "a walk",
            program: |number| batches(number, WALKS),
            without: Some(|number| batches(number, NONE)),
        },
        beside: Beside {
            walk: Walk {
                name: "mov r32, m32, behind two others",
                program: |number| batches(number, Use { before: BEFORE, ..WALKS }),
                without: Some(|number| batches(number, Use { before: BEFORE, ..NONE })),
            },
            occupied: BEFORE,
        },
        more: 0,
        part: 0.35,
        counts: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, MOST],
        // Each reads an entry of a table, which may not be in the nearest cache.
        takes: &[("misses_in_flight", 1)],
        pace: "load_rate",
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The pages of so many batches.
    fn pages(how: Use, number: usize, times: usize) -> Vec<usize> {
        (0..times * number).map(|load| (load * how.step * STRIDE) & (how.pages * STRIDE - 1)).collect()
    }

    #[test]
    fn all_pages_have_their_turn_and_the_control_has_few() {
        let walks: BTreeSet<usize> = pages(WALKS, 1, PAGES).into_iter().collect();
        assert_eq!(walks.len(), PAGES);
        assert!(walks.iter().all(|page| page % STRIDE == 0));
        assert_eq!(pages(NONE, 1, PAGES).into_iter().collect::<BTreeSet<_>>().len(), FEW);
        let [one, other] = [WALKS, NONE].map(|how| batches(7, how));
        assert_eq!((one.memory, one.body.len()), (other.memory, other.body.len()));
        assert_eq!(pages(OTHERS, 1, PAGES).into_iter().collect::<BTreeSet<_>>().len(), PAGES);
        let line = |page: &usize| (page >> TO_LINES) & LINES;
        assert_eq!(walks.iter().map(line).collect::<BTreeSet<_>>().len(), PAGE as usize / LINE);
    }
}
