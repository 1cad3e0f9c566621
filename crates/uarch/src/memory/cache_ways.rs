//! Associativity and line size of the data caches.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PageSize, PointerPosition, ProgramMemory, RingOrder,
    StoreLifetime,
};
use cyclescope_core::random::Random;

// The associativity of the nearest data cache.

/// Bytes after which the sets of any nearest data cache repeat.
const L1D_SETS: usize = 64 << 10;

fn one_set(lines: usize) -> StepLoop {
    chase_loop(lines, L1D_SETS, RingOrder::RandomByLine)
}

/// The same number of lines and pages, each line in another set.
fn many_sets(lines: usize) -> StepLoop {
    chase_loop(lines, L1D_SETS + LINE, RingOrder::RandomByLine)
}

// The associativity of the second data cache: the last cache within some 26 core cycles.
//
// Physical addresses select its sets. A huge page keeps the last 21 bits of an address.

/// Bytes after which the sets of any second cache repeat.
const L2_SETS: usize = 1 << 20;
/// Bytes after which the sets of most second caches repeat.
const L2_FEWER_SETS: usize = 512 << 10;
/// The largest number of lines.
const MOST: usize = 32;
/// Loads per iteration.
const LOADS: usize = 32;
/// Iterations of the shorter call.
const ITERATIONS: u64 = 24;
/// Core cycles of a chain that runs along with each load. It hides loads from any second cache,
/// with a translation from the second level. A load from any third cache takes longer and shows.
const HIDDEN: usize = 23;

/// Lines `apart` bytes from each other, `behind` the start of a page. All fall into one set, or
/// each into another set of the same pages. If the hypervisor splits huge pages, both variants fill
/// the same sets of the TLB.
fn set_lines(number: usize, apart: usize, behind: usize, one_set: bool) -> Vec<usize> {
    let line = |number: usize| if one_set { behind } else { (behind + number * LINE) % PAGE_BYTES as usize };
    (0..number).map(|number| number * apart + line(number)).collect()
}

/// Loads around these lines in random order. Each waits for the previous load and for the chain
/// next to it.
fn load_ring(mut lines: Vec<usize>, apart: usize) -> StepLoop {
    Random::new(lines.len() as u64).shuffle(&mut lines);
    // R14 points to all lines and RBP to one. R11 is zero, and so is R12 after its chain.
    let next = lines.iter().cycle().skip(1);
    let each = lines.iter().zip(next).map(|(own, next)| format!("lea rbp, [r14 + {next}]; mov [r14 + {own}], rbp; "));
    let init = format!("{}xor r11d, r11d; lea rbp, [r14 + {}]", each.collect::<String>(), lines[0]);
    let chain = "add r12, r11; ".repeat(HIDDEN);
    let step = format!("mov r12, rbp; and r12, r11; mov rbp, [rbp]; {chain}add rbp, r12");
    let area = MemoryArea {
        pages: PageSize::Huge,
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register: 14, at: PointerPosition::Start }),
        ..MemoryArea::new((MOST * apart) as u64, AreaFill::Image(Vec::new()))
    };
    StepLoop {
        init: assemble(&init),
        body: assemble(&step).repeat(LOADS),
        following: Vec::new(),
        steps_per_iteration: LOADS,
        iterations: ITERATIONS,
        memory: ProgramMemory { areas: vec![area], ..ProgramMemory::default() },
        calls_memcpy: false,
    }
}

/// The line within a page in the second program.
const ANOTHER: usize = 37 * LINE;

// The line size of the data caches.

/// Pairs of loads per iteration.
const PAIRS: usize = 16;
/// Bytes of all elements: more than the nearest cache holds, because the elements use few of its
/// sets.
const BYTES: usize = 256 << 10;

/// A load of the byte at this offset of each element, then a load of its start. Each load waits for
/// the previous one.
fn load_pairs(bytes: usize, stride: usize) -> StepLoop {
    let alone = chase_loop(BYTES / stride, stride, RingOrder::RandomByLine);
    // Elements are zero, except for their pointers in the first eight bytes, so this byte is zero.
    let body = assemble(&format!("movzx eax, byte ptr [rbp + {}]; add rbp, rax; mov rbp, [rbp]", bytes - 1));
    StepLoop { body: body.repeat(PAIRS), steps_per_iteration: PAIRS, ..alone }
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "l1d_ways",
        about: "how many lines a set of the nearest data cache holds",
        definition: "lines with the same address modulo 64 KiB that are all in the nearest data cache",
        source: SAAVEDRA,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("each 64 KiB", one_set).less(many_sets),
                ProgramFamily::new("each 192 KiB", |lines| chase_loop(lines, 3 * L1D_SETS, RingOrder::RandomByLine))
                    .less(|lines| chase_loop(lines, 3 * L1D_SETS + LINE, RingOrder::RandomByLine)),
            ],
            count_range: [2, 48],
            min_rise: 3.0,
            min_ratio: 1.3,
            single_structure: true,
            always_ends: true,
            bytes_per_count: 3 * L1D_SETS + LINE,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "l2_ways",
        about: "how many lines a set of the second data cache holds",
        definition: "lines with the same address modulo 1 MiB, in pages of 2 MiB, that are all in the second data \
                     cache or a nearer one",
        source: SAAVEDRA,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("each MiB", |number| load_ring(set_lines(number, L2_SETS, 0, true), L2_SETS))
                    .less(|number| load_ring(set_lines(number, L2_SETS, 0, false), L2_SETS)),
                ProgramFamily::new("each 512 KiB", |number| {
                    load_ring(set_lines(number, L2_FEWER_SETS, ANOTHER, true), L2_FEWER_SETS)
                })
                .less(|number| load_ring(set_lines(number, L2_FEWER_SETS, ANOTHER, false), L2_FEWER_SETS)),
            ],
            count_range: [2, MOST],
            // Exceeds the difference between the first and the second cache, which shows where both
            // programs wait for translations.
            min_rise: 12.0,
            min_ratio: 1.3,
            single_structure: true,
            always_ends: true,
            bytes_per_count: L2_SETS,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "cache_line",
        about: "how many bytes come to the nearest data cache at once",
        definition: "bytes from the begin of a line of which all are at hand once one was loaded",
        source: SAAVEDRA,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("pairs 512 bytes apart", |bytes| load_pairs(bytes, 512)),
                ProgramFamily::new("pairs 1024 bytes apart", |bytes| load_pairs(bytes, 1024)),
            ],
            count_range: [16, 256],
            unit: Unit::Bytes,
            // The next cache adds 9 cycles or more to a load. The second half of a line arrives 3
            // cycles after the first (Zen 4).
            min_rise: 5.0,
            min_ratio: 1.15,
            single_structure: true,
            always_ends: true,
            ..LevelsSpec::COUNTS
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_differ_only_in_the_lines_of_their_pages() {
        for (apart, behind) in [(L2_SETS, 0), (L2_FEWER_SETS, ANOTHER)] {
            let [one, others] = [true, false].map(|one_set| set_lines(MOST, apart, behind, one_set));
            assert!(one.iter().all(|line| line % L2_FEWER_SETS == behind));
            let pages = |lines: &[usize]| lines.iter().map(|line| line / PAGE_BYTES as usize).collect::<Vec<_>>();
            assert_eq!(pages(&one), pages(&others));
            let mut sets: Vec<usize> = others.iter().map(|line| line % PAGE_BYTES as usize).collect();
            sets.sort_unstable();
            sets.dedup();
            assert_eq!(sets.len(), MOST);
            let [one, others] = [one, others].map(|lines| load_ring(lines, apart));
            assert_eq!((one.body, one.memory), (others.body, others.memory));
        }
    }
}
