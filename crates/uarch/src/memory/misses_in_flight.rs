//! Cache misses in flight at once.
//!
//! Lines are flushed from all caches, then all fetched at once. A chain of loads from the second
//! cache follows. While the nearest cache has a buffer for each line and one more, the chain keeps
//! running. With one more line, the chain waits until a line arrives. So the result does not depend
//! on the speed of memory. The control fetches other lines, which are in the nearest cache.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PagePresence, PointerPosition, RingOrder, StoreLifetime,
};
use cyclescope_core::random::Random;

/// The largest number of lines, including those of the witness.
const MOST: usize = 96;
/// Lines that the witness fetches beforehand.
const BEFORE: usize = 4;
/// Bytes from a line to the next. No two lines form a pair that a core fetches together, and all
/// sets are used.
const APART: usize = 5 * LINE;
/// Bytes of the flushed lines. The same number of bytes, never flushed, follows.
const FLUSHED: usize = MOST * APART;
/// Orders of the lines per iteration.
const ORDERS: usize = 2;
/// Iterations of the shorter call.
const ITERATIONS: u64 = 2;
/// Lines of the chain: more than any nearest cache holds, fewer than any second cache.
const RING: usize = 2048;
/// Loads of the chain. They take about as long as memory takes for all misses (Zen 4: 2240 core
/// cycles; 80 misses take 2400).
const LINKS: usize = 160;

/// How a batch uses its lines.
#[derive(Debug, Clone, Copy)]
struct MissBatch {
    /// Lines loaded beforehand.
    before: usize,
    /// The instruction that fetches each other line.
    fetch: fn(usize) -> String,
    /// Distance in bytes behind the flushed lines.
    behind: usize,
    /// Whether the chain waits for all lines.
    fenced: bool,
}

fn miss_batches(number: usize, how: MissBatch) -> StepLoop {
    let MissBatch { before, fetch, behind, fenced } = how;
    let mut random = Random::new(number as u64);
    let mut lines: Vec<usize> = (0..MOST).map(|line| line * APART).collect();
    let alone = chase_loop(RING, LINE, RingOrder::RandomByLine);
    let mut body = Vec::new();
    for _ in 0..ORDERS {
        random.shuffle(&mut lines);
        let mut text: String =
            lines[..before + number].iter().map(|line| format!("clflush [r12 + {line}]; ")).collect();
        // MFENCE waits for the flushes, and LFENCE for the loads before it (Intel SDM vol. 2,
        // CLFLUSH and LFENCE).
        text += "mfence; lfence";
        for (place, line) in lines[..before + number].iter().enumerate() {
            text += "; ";
            text += &if place < before { load_line_to_vector(line + behind) } else { fetch(line + behind) };
        }
        if fenced {
            text += "; lfence";
        }
        body.extend(assemble(&text));
        body.extend(assemble("mov rbp, [rbp]").repeat(LINKS));
        body.extend(assemble("lfence"));
    }
    let mut memory = alone.memory;
    memory.areas.push(MemoryArea {
        lifetime: StoreLifetime::Kept,
        present: PagePresence::Everywhere,
        pointer: Some(AreaPointer { register: 12, at: PointerPosition::Start }),
        ..MemoryArea::new((2 * FLUSHED as u64).next_multiple_of(PAGE_BYTES), AreaFill::Bytes(vec![1]))
    });
    StepLoop { body, memory, steps_per_iteration: ORDERS, iterations: ITERATIONS, ..alone }
}

fn prefetch_line(line: usize) -> String {
    format!("prefetcht0 [r12 + {line}]")
}

fn load_line_to_general(line: usize) -> String {
    format!("mov eax, [r12 + {line}]")
}

fn load_line_to_vector(line: usize) -> String {
    format!("movups xmm0, [r12 + {line}]")
}

const MISSES: MissBatch = MissBatch { before: 0, fetch: prefetch_line, behind: 0, fenced: false };
const HITS: MissBatch = MissBatch { behind: FLUSHED, ..MISSES };
const LOADS: MissBatch = MissBatch { fetch: load_line_to_general, ..MISSES };

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "misses_in_flight",
    about: "for how many lines the nearest data cache waits at once",
    definition: "lines for which the nearest data cache waits at once: one more waits for one of them",
    source: "D. Kroft, Lockup-free Instruction Fetch/Prefetch Cache Organization (1981)",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Batches(BatchesSpec {
        programs: &[
            ProgramFamily::new("prefetcht0", |number| miss_batches(number, MISSES))
                .less(|number| miss_batches(number, HITS)),
            ProgramFamily::new("mov r32, m32", |number| miss_batches(number, LOADS))
                .less(|number| miss_batches(number, MissBatch { behind: FLUSHED, ..LOADS })),
        ],
        single_event: &ProgramFamily::new("a load, and a fence", |number| {
            miss_batches(number, MissBatch { fenced: true, ..LOADS })
        })
        .less(|number| miss_batches(number, MissBatch { fenced: true, behind: FLUSHED, ..LOADS })),
        witness: &WitnessProgram {
            family: ProgramFamily::new("prefetcht0, behind four loads", |number| {
                miss_batches(number, MissBatch { before: BEFORE, ..MISSES })
            })
            .less(|number| miss_batches(number, MissBatch { before: BEFORE, ..HITS })),
            occupied: BEFORE,
        },
        // The miss of the chain itself.
        uncounted_events: 1,
        last_event_slack: 0.35,
        counts: &[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 26, 28, 30, 32, 36,
            40, 44, 48, 54, 60, 68, 76,
        ],
        also_occupies: &[],
        pacing_test: "read_bandwidth",
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};
    use std::collections::BTreeSet;

    /// The displacements of a mnemonic's instructions that use R12.
    fn lines(steps: &StepLoop, mnemonic: Mnemonic) -> Vec<usize> {
        let all = Decoder::new(64, &steps.body, DecoderOptions::NONE).into_iter();
        let own = all.filter(|instruction| {
            instruction.mnemonic() == mnemonic && instruction.memory_base() == iced_x86::Register::R12
        });
        own.map(|instruction| instruction.memory_displacement64() as usize).collect()
    }

    #[test]
    fn each_load_of_a_batch_misses_and_none_of_its_control() {
        for number in [2, 17, MOST - BEFORE] {
            let [misses, hits] = [LOADS, MissBatch { behind: FLUSHED, ..LOADS }].map(|how| miss_batches(number, how));
            for batch in 0..ORDERS {
                let own = |mut all: Vec<usize>| {
                    let mut own = all.drain(batch * number..(batch + 1) * number).collect::<Vec<_>>();
                    own.sort_unstable();
                    own
                };
                let flushed = own(lines(&misses, Mnemonic::Clflush));
                assert_eq!(flushed, own(lines(&hits, Mnemonic::Clflush)));
                assert_eq!(flushed, own(lines(&misses, Mnemonic::Mov)));
                let others: Vec<usize> = flushed.iter().map(|line| line + FLUSHED).collect();
                assert_eq!(others, own(lines(&hits, Mnemonic::Mov)));
                assert!(flushed.windows(2).all(|two| two[1] - two[0] >= 2 * LINE), "{flushed:?}");
            }
            assert_eq!(misses.memory, hits.memory);
        }
        let witness = miss_batches(9, MissBatch { before: BEFORE, ..MISSES });
        let all =
            [Mnemonic::Clflush, Mnemonic::Movups, Mnemonic::Prefetcht0].map(|mnemonic| lines(&witness, mnemonic).len());
        assert_eq!(all, [9 + BEFORE, BEFORE, 9].map(|each| each * ORDERS));
    }
    fn mnemonics(steps: &StepLoop) -> Vec<Mnemonic> {
        Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().map(|instruction| instruction.mnemonic()).collect()
    }

    #[test]
    fn lines_are_flushed_first_and_each_batch_waits_for_the_previous() {
        let number = 11;
        let order = [
            vec![Mnemonic::Clflush; number],
            vec![Mnemonic::Mfence, Mnemonic::Lfence],
            vec![Mnemonic::Prefetcht0; number],
            vec![Mnemonic::Mov; LINKS],
            vec![Mnemonic::Lfence],
        ];
        assert_eq!(mnemonics(&miss_batches(number, MISSES)), order.concat().repeat(ORDERS));
        // With one event, everything waits.
        let Experiment::Batches(asked) = &find_test("misses_in_flight").experiment else {
            unreachable!("it is one of batches")
        };
        let fences = |family: &ProgramFamily| {
            let all = mnemonics(&family.program(1));
            all.iter().filter(|mnemonic| **mnemonic == Mnemonic::Lfence).count() / ORDERS
        };
        assert_eq!((fences(asked.single_event), fences(&asked.programs[0])), (3, 2));
    }

    /// Sets of the nearest cache in common designs: 32 KiB of eight ways, 48 KiB of twelve.
    const SETS: usize = 64;

    #[test]
    fn lines_fit_the_nearest_cache_in_an_order_unknown_to_prefetchers() {
        let batch = lines(&miss_batches(MOST - BEFORE, LOADS), Mnemonic::Mov);
        let (first, second) = batch.split_at(MOST - BEFORE);
        assert_ne!(first, second, "batches differ");
        let mut sets = [0; SETS];
        first.iter().for_each(|line| sets[line / LINE % SETS] += 1);
        assert!(sets.iter().all(|lines| *lines <= MOST.div_ceil(SETS)), "{sets:?}");
        let steps: BTreeSet<isize> = first.windows(2).map(|two| two[1] as isize - two[0] as isize).collect();
        assert!(steps.len() > first.len() / 2, "{steps:?}");
    }

    #[test]
    fn the_chain_misses_the_nearest_cache() {
        let Experiment::Batches(asked) = &find_test("misses_in_flight").experiment else {
            unreachable!("it is one of batches")
        };
        let AreaFill::Ring(ring) = &miss_batches(1, MISSES).memory.areas[0].fill else { panic!("it is a ring") };
        let bytes = RING * ring.stride as usize;
        assert!((64 << 10 < bytes) && (bytes <= 256 << 10), "no nearest cache holds {bytes}, and all second ones do");
        assert_eq!(asked.uncounted_events, 1);
    }
}
