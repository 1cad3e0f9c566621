//! Page walks in flight at once.
//!
//! Each load is from another page, of more pages than any core's TLBs hold. All pages map to the
//! same few frames: the nearest cache holds the loaded lines. The control has the same loads from
//! few pages.

use crate::spec::*;
use cyclescope_code::program::memory::{
    AreaFill, AreaPointer, MemoryArea, PAGE_BYTES, PhysicalFrames, PointerPosition, ProgramMemory, StoreLifetime,
};

/// Pages to load from: twice the entries of the largest second-level TLB (4096 on Zen 5: AMD,
/// Software Optimization Guide for the AMD Zen5 Microarchitecture, 58455).
const PAGES: usize = 8192;
/// Pages of the control.
const FEW: usize = 16;
/// Bytes from one page to the next. No two pages share a TLB entry, as four pages in a row do on
/// Zen if they are in a row in memory too.
const STRIDE: usize = 4 * PAGE_BYTES as usize;
/// Shift from the place of a page to the place of its line: 64 pages in a row use 64 lines, each in
/// another set.
const TO_LINES: u32 = STRIDE.ilog2() - LINE.ilog2();
const LINES: usize = PAGE_BYTES as usize - LINE;
/// Frames in memory.
const FRAMES: usize = 64;
/// Pages from one load to the next in the two programs. They are odd: all pages get their turn.
/// They are about the square root of two and the golden section of all pages. On Zen 4, with 5063
/// pages, a batch of eight loads took as long as a batch of six. A batch of seven took half as long
/// again. With 3393 pages, both took longer. The cause is unknown, so the two programs differ.
const STEPS: [usize; 2] = [3393, 5063];
/// Walks that the witness starts beforehand.
const BEFORE: usize = 2;
/// The largest number of walks.
const MOST: usize = 20;
/// Batches of the shorter call.
const BATCHES: u64 = 128;

/// The loads of a batch.
#[derive(Debug, Clone, Copy)]
struct WalkBatch {
    /// Number of pages that it uses.
    pages: usize,
    /// Loads beforehand.
    before: usize,
    /// The instruction that loads from the address in RAX.
    load: &'static str,
    /// Pages from one load to the next.
    step: usize,
}

/// Batches of loads. R14 points to the pages, RBP is the place of the next one, and R13 points to
/// the cell that keeps it.
fn walk_batches(number: usize, how: WalkBatch) -> StepLoop {
    let WalkBatch { pages, before, load, step } = how;
    let (mask, step) = (pages * STRIDE - 1, step * STRIDE);
    let mut body = Vec::new();
    for place in 0..before + number {
        let instruction = if place < before { TO_VECTOR } else { load };
        let ahead = (place * step) & mask;
        body.extend(assemble(&format!(
            "lea eax, [rbp + {ahead}]; and eax, {mask}; mov edx, eax; shr edx, {TO_LINES}; and edx, {LINES}; add \
             eax, edx; {instruction} [r14 + rax]"
        )));
    }
    let next = ((before + number) * step) & mask;
    body.extend(assemble(&format!("add ebp, {next}; and ebp, {mask}; lfence")));
    let pointer = |register| Some(AreaPointer { register, at: PointerPosition::Start });
    let kept = |area| MemoryArea { lifetime: StoreLifetime::Kept, ..area };
    let bytes = (PAGES * STRIDE) as u64;
    let areas = vec![
        kept(MemoryArea {
            frames: PhysicalFrames::Repeated(FRAMES as u32),
            pointer: pointer(14),
            ..MemoryArea::new(bytes, AreaFill::Bytes(vec![1]))
        }),
        kept(MemoryArea { pointer: pointer(13), ..MemoryArea::new(PAGE_BYTES, AreaFill::Bytes(vec![0])) }),
    ];
    StepLoop {
        init: assemble("mov rbp, [r13]"),
        body,
        following: assemble("mov [r13], rbp"),
        steps_per_iteration: 1,
        iterations: BATCHES,
        memory: ProgramMemory { areas, ..ProgramMemory::default() },
        calls_memcpy: false,
    }
}

const TO_GENERAL: &str = "mov ecx,";
const TO_VECTOR: &str = "movups xmm0,";
const COMPARED: &str = "cmp ebx,";

const WALKS: WalkBatch = WalkBatch { pages: PAGES, before: 0, load: TO_GENERAL, step: STEPS[0] };
const NONE: WalkBatch = WalkBatch { pages: FEW, ..WALKS };
const OTHERS: WalkBatch = WalkBatch { load: TO_VECTOR, step: STEPS[1], ..WALKS };

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "walks_in_flight",
    about: "how many page walks the core does at once",
    definition: "loads that find no translation at hand and take as long as one of them: this many page walks go on \
                 at once",
    source: "AMD, Software Optimization Guide for the AMD Zen4 Microarchitecture, 57647, section on translation \
             lookaside buffers",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Batches(BatchesSpec {
        programs: &[
            ProgramFamily::new("mov r32, m32", |number| walk_batches(number, WALKS))
                .less(|number| walk_batches(number, NONE)),
            ProgramFamily::new("movups xmm, m128", |number| walk_batches(number, OTHERS))
                .less(|number| walk_batches(number, WalkBatch { pages: FEW, ..OTHERS })),
            ProgramFamily::new("cmp r32, m32", |number| walk_batches(number, WalkBatch { load: COMPARED, ..WALKS }))
                .less(|number| walk_batches(number, WalkBatch { load: COMPARED, ..NONE })),
        ],
        single_event: &ProgramFamily::new("a walk", |number| walk_batches(number, WALKS))
            .less(|number| walk_batches(number, NONE)),
        witness: &WitnessProgram {
            family: ProgramFamily::new("mov r32, m32, behind two others", |number| {
                walk_batches(number, WalkBatch { before: BEFORE, ..WALKS })
            })
            .less(|number| walk_batches(number, WalkBatch { before: BEFORE, ..NONE })),
            occupied: BEFORE,
        },
        uncounted_events: 0,
        last_event_slack: 0.35,
        counts: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 18, MOST],
        // Each walk reads a table entry, which may miss the nearest cache.
        also_occupies: &[("misses_in_flight", 1)],
        pacing_test: "load_rate",
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, Register};
    use std::collections::{BTreeMap, BTreeSet};

    /// General registers and the cell at R13, to the extent that these programs use them.
    #[derive(Default)]
    struct State {
        registers: BTreeMap<Register, u64>,
        cell: u64,
    }

    impl State {
        fn value_of(&self, register: Register) -> u64 {
            self.registers.get(&register.full_register()).copied().unwrap_or_default()
        }

        /// Executes code. Returns the loaded places, relative to R14.
        fn run(&mut self, code: &[u8]) -> Vec<usize> {
            let all = Decoder::new(64, code, DecoderOptions::NONE).into_iter();
            all.filter_map(|instruction| self.step(&instruction)).collect()
        }

        fn step(&mut self, instruction: &Instruction) -> Option<usize> {
            let to = instruction.op0_register();
            let value = match instruction.code() {
                Code::Mov_r64_rm64 if instruction.memory_base() == Register::R13 => self.cell,
                Code::Mov_rm64_r64 if instruction.memory_base() == Register::R13 => {
                    self.cell = self.value_of(instruction.op1_register());
                    return None;
                }
                _ if instruction.memory_base() == Register::R14 => {
                    return Some(self.value_of(instruction.memory_index()) as usize);
                }
                Code::Mov_r32_rm32 | Code::Mov_rm32_r32 => self.value_of(instruction.op1_register()),
                code => match instruction.mnemonic() {
                    Mnemonic::Lea => {
                        self.value_of(instruction.memory_base()).wrapping_add(instruction.memory_displacement64())
                    }
                    Mnemonic::And => self.value_of(to) & self.second(instruction),
                    Mnemonic::Shr => self.value_of(to) >> self.second(instruction),
                    Mnemonic::Add => self.value_of(to).wrapping_add(self.second(instruction)),
                    Mnemonic::Lfence => return None,
                    _ => panic!("such programs have no {code:?}"),
                },
            };
            let value = if to.size() == 4 { u64::from(value as u32) } else { value };
            self.registers.insert(to.full_register(), value);
            None
        }

        fn second(&self, instruction: &Instruction) -> u64 {
            match instruction.op1_register() {
                Register::None => instruction.immediate(1),
                register => self.value_of(register),
            }
        }
    }

    /// The places that this number of calls of an iteration load from.
    fn loaded(steps: &StepLoop, calls: usize) -> Vec<usize> {
        let mut state = State::default();
        let call = |_| {
            state.run(&steps.init);
            let loaded = state.run(&steps.body);
            state.run(&steps.following);
            loaded
        };
        (0..calls).flat_map(call).collect()
    }

    fn asked() -> &'static BatchesSpec {
        let test: &'static TestSpec = find_test("walks_in_flight");
        let Experiment::Batches(batches) = &test.experiment else { unreachable!("it is one of batches") };
        batches
    }

    fn pages(places: &[usize]) -> BTreeSet<usize> {
        places.iter().map(|place| place / PAGE_BYTES as usize).collect()
    }

    /// Pages that may share a TLB entry: four in a row on Zen; eight share a line of a page table.
    const GROUP: usize = 4;
    /// Entries of the largest second-level TLB (Zen 5, as above), and of the smallest first-level
    /// TLB (Silvermont: 32 entries of 4 KiB, Intel optimization manual).
    const TRANSLATIONS: [usize; 2] = [4096, 32];

    #[test]
    fn every_load_misses_the_tlb_and_control_loads_hit() {
        for family in asked().programs.iter().chain([asked().single_event, &asked().witness.family]) {
            let places = loaded(&family.program(7), PAGES);
            // A page comes again only after more pages than there are entries.
            let mut last = BTreeMap::new();
            for (number, place) in places.iter().enumerate() {
                let before = last.insert(place / (GROUP * PAGE_BYTES as usize), number);
                assert!(before.is_none_or(|before| number - before > TRANSLATIONS[0]), "{}", family.name);
            }
            let few = loaded(&family.control(7).expect("it subtracts"), PAGES);
            assert_eq!(few.len(), places.len());
            assert!(pages(&few).len() <= TRANSLATIONS[1], "{}", family.name);
        }
    }

    #[test]
    fn all_loads_hit_the_nearest_cache() {
        let steps = walk_batches(7, WALKS);
        let area = &steps.memory.areas[0];
        let PhysicalFrames::Repeated(frames) = area.frames else { panic!("its pages are the same few in memory") };
        let size = PAGE_BYTES as usize;
        let lines = |place: &usize| (place / size % frames as usize * size + place % size) / LINE;
        let places = loaded(&steps, PAGES);
        assert!(places.iter().all(|place| place + 16 <= area.bytes as usize));
        let lines: BTreeSet<usize> = places.iter().map(lines).collect();
        // One line in each set.
        let sets: BTreeSet<usize> = lines.iter().map(|line| line % (size / LINE)).collect();
        assert_eq!((lines.len(), sets.len()), (size / LINE, size / LINE));
    }

    #[test]
    fn programs_differ_in_order_and_instructions_and_wait_for_each_batch() {
        let all: Vec<StepLoop> = asked().programs.iter().map(|family| family.program(7)).collect();
        assert_ne!(loaded(&all[0], 2), loaded(&all[1], 2));
        let loads = |steps: &StepLoop| {
            let all: Vec<Instruction> = Decoder::new(64, &steps.body, DecoderOptions::NONE).iter().collect();
            assert_eq!(all[all.len() - 1].mnemonic(), Mnemonic::Lfence);
            let own = all.iter().filter(|instruction| instruction.memory_base() == Register::R14);
            own.map(|instruction| instruction.mnemonic()).collect::<Vec<_>>()
        };
        let kinds: BTreeSet<Mnemonic> = all.iter().flat_map(loads).collect();
        assert_eq!(kinds, BTreeSet::from([Mnemonic::Mov, Mnemonic::Movups, Mnemonic::Cmp]));
        let witness = loads(&asked().witness.family.program(7));
        let others = witness.iter().filter(|instruction| **instruction == Mnemonic::Movups).count();
        assert_eq!((witness.len(), others), (7 + asked().witness.occupied, asked().witness.occupied));
    }
}
