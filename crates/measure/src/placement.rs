//! Chooses layouts: the addresses of code and data.
//!
//! Code placement changes results more than sampling noise does, so layouts are the replicates.
//! Each layout has its own code addresses, alignment of the body to the cache line, data addresses
//! and order of the programs in memory. Programs of one snippet share the alignment of their
//! bodies, so that they differ only by the added copies. The ruler has fixed addresses.
//!
//! A [`PlacementPolicy`](cyclescope_code::program::PlacementPolicy) describes where code or data
//! has to be. [`resolve_places`] and [`resolve_data_places`] find offsets for it.

mod place_resolution;

pub use place_resolution::{PlacementRequest, resolve_data_places, resolve_places};

use cyclescope_code::program::Program;
use cyclescope_code::program::memory::{AreaFill, PointerPosition, ProgramMemory};
use cyclescope_core::random::Random;
use cyclescope_exec::PlacedProgram;

pub(crate) const CACHE_LINE: usize = 64;
/// Bytes between the alignments of successive layouts: near the golden section of a line, so that
/// any number of layouts covers it evenly, and odd, so that 64 of them have every alignment once.
const ALIGNMENT_STRIDE: usize = 39;
const PAGE: usize = 4096;

/// Largest displacement of data from the middle of its area, in bytes; a multiple of the cache
/// line.
const DATA_SPREAD: usize = 16 * PAGE;

/// The next place after `end` where the program's body is `alignment` bytes past the start of a
/// cache line.
fn place_next(program: &Program, end: &mut usize, alignment: usize) -> u32 {
    let body = *end + program.body_range().start;
    let offset = *end + (alignment + CACHE_LINE - body % CACHE_LINE) % CACHE_LINE;
    *end = offset + program.len();
    offset as u32
}

/// Puts programs at the start of the arena, each body at the start of a cache line. Returns their
/// offsets and the end of the last one.
pub fn fixed_offsets(programs: &[Program]) -> (Vec<u32>, usize) {
    let mut end = 0;
    let offsets = programs.iter().map(|program| place_next(program, &mut end, 0)).collect();
    (offsets, end)
}

/// Chooses places in the arena between `from` and `arena_len` for the programs with these indices:
/// random addresses in random order, with one alignment for all bodies. The alignment is an offset
/// in bytes from the start of a cache line; `None` means random.
///
/// Returns `None` if the arena is too small.
pub(crate) fn place_randomly(
    programs: &[Program],
    numbers: &[usize],
    from: usize,
    arena_len: usize,
    alignment: Option<usize>,
    random: &mut Random,
) -> Option<Vec<PlacedProgram>> {
    let needed: usize = numbers.iter().map(|number| programs[*number].len() + CACHE_LINE).sum();
    let first = from.next_multiple_of(PAGE);
    let room = arena_len.checked_sub(first + needed)?;
    let mut end = first + random.below(room + 1);
    let alignment = alignment.unwrap_or_else(|| random.below(CACHE_LINE));
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    random.shuffle(&mut order);
    let mut places = vec![PlacedProgram { program: 0, offset: 0 }; numbers.len()];
    for index in order {
        let program = numbers[index];
        places[index] = PlacedProgram { program, offset: place_next(&programs[program], &mut end, alignment) };
    }
    Some(places)
}

/// The alignment of the bodies in a layout, evenly spread over the layouts of a measurement. The
/// cost of a block that outruns the decoders depends on it by up to a fifth. With random alignments
/// the mean over some dozens of layouts differed by 2 % from run to run.
pub(crate) fn spread_alignment(first: usize, layout: usize) -> usize {
    (first + ALIGNMENT_STRIDE * layout) % CACHE_LINE
}

/// Chooses the displacement of each register in the standard memory, as [`displace_data`] does.
pub fn displace_standard_data(random: &mut Random) -> Vec<i32> {
    displace_data(&ProgramMemory::default(), random)
}

/// Chooses the displacement of each area's register in whole cache lines, so that no access begins
/// to straddle two lines. Pointers to the start of an area, or to an element of a ring, stay.
pub fn displace_data(memory: &ProgramMemory, random: &mut Random) -> Vec<i32> {
    (0..memory.areas.len()).map(|area| draw_displacement(memory, area, random)).collect()
}

fn draw_displacement(memory: &ProgramMemory, area: usize, random: &mut Random) -> i32 {
    let described = &memory.areas[area];
    let moved = described.pointer.is_some_and(|pointer| pointer.at != PointerPosition::Start);
    if !moved || matches!(described.fill, AreaFill::Ring(_)) {
        return 0;
    }
    let (line, spread) = (CACHE_LINE as i64, DATA_SPREAD as i64);
    let allowed = memory.allowed_shifts(area);
    let first = (*allowed.start()).max(-spread) / line;
    let last = (*allowed.end()).min(spread - line) / line;
    ((first + random.below((last - first + 1) as usize) as i64) * line) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ruler::RulerPrograms;
    use cyclescope_code::clock::Clock;
    use cyclescope_code::program::ProgramRecipe;
    use cyclescope_code::program::memory::{AreaFill, MOST_AREA_BYTES};

    #[test]
    fn alignments_are_evenly_spread() {
        for layouts in [8, 16, 64] {
            let mut found: Vec<usize> = (0..layouts).map(|layout| spread_alignment(5, layout)).collect();
            found.sort_unstable();
            let around = found[0] + CACHE_LINE;
            let gaps = found.windows(2).map(|pair| pair[1] - pair[0]).chain([around - found[layouts - 1]]);
            assert!(gaps.max().unwrap() <= 2 * CACHE_LINE / layouts, "{layouts}: {found:?}");
        }
    }

    fn programs() -> Vec<Program> {
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        [100, 200, 400]
            .map(|copies| ProgramRecipe { snippet: &[0x90], copies, ..ProgramRecipe::empty(clock) }.build())
            .into()
    }

    #[test]
    fn bodies_of_one_layout_share_their_alignment_and_do_not_overlap() {
        let programs = programs();
        let mut generator = Random::new(1);
        let mut alignments = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let places = place_randomly(&programs, &[0, 1, 2], 5000, 1 << 20, None, &mut generator).unwrap();
            let place = |index: usize| places[index].offset as usize;
            let alignment = |index: usize| (place(index) + programs[index].body_range().start) % CACHE_LINE;
            assert!(alignment(0) == alignment(1) && alignment(1) == alignment(2));
            alignments.insert(alignment(0));
            let mut spans: Vec<_> = (0..3).map(|index| (place(index), place(index) + programs[index].len())).collect();
            spans.sort();
            assert!(spans[0].0 >= 5000 && spans[0].1 <= spans[1].0 && spans[1].1 <= spans[2].0);
            assert!(spans[2].1 <= 1 << 20);
        }
        assert_eq!(alignments.len(), CACHE_LINE);
    }

    #[test]
    fn ruler_bodies_start_at_a_cache_line() {
        let ruler = RulerPrograms::new(Clock::find_named("rdtscp-lfence").unwrap());
        let programs: Vec<_> = ruler.imul.iter().chain(&ruler.add).cloned().collect();
        let (offsets, end) = fixed_offsets(&programs);
        for (offset, program) in offsets.iter().zip(&programs) {
            assert_eq!((*offset as usize + program.body_range().start) % CACHE_LINE, 0);
        }
        assert!(end < PAGE);
    }

    #[test]
    fn data_moves_by_lines_within_its_area() {
        let mut generator = Random::new(2);
        let mut memory = ProgramMemory::default();
        memory.areas[1].bytes = 8192;
        memory.areas[2].pointer = None;
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let shifts = displace_data(&memory, &mut generator);
            for (area, shift) in shifts.iter().enumerate() {
                assert!(shift % 64 == 0 && memory.allowed_shifts(area).contains(&i64::from(*shift)), "{area} {shift}");
            }
            assert_eq!(shifts[2], 0);
            seen.insert(shifts);
        }
        assert!(seen.len() > 900);
    }

    #[test]
    fn displacements_of_the_standard_memory_follow_the_seed() {
        let mut generator = Random::new(3);
        let expected: Vec<i32> =
            (0..5).map(|_| (generator.below(2048) * CACHE_LINE) as i32 - DATA_SPREAD as i32).collect();
        assert_eq!(displace_standard_data(&mut Random::new(3)), expected);
    }

    #[test]
    fn an_arena_that_is_too_small_is_refused() {
        assert!(place_randomly(&programs(), &[0, 1, 2], 0, 1000, None, &mut Random::new(1)).is_none());
    }

    #[test]
    fn a_call_keeps_its_buffer_in_place_and_its_stack_aligned() {
        for (bytes, stack) in [(1, 1), (1 << 20, 8 << 20), (MOST_AREA_BYTES, 4096)] {
            let memory = ProgramMemory::for_call(bytes, AreaFill::Random(3), stack);
            let pointer = memory.pointer_offset(1).unwrap() as i64;
            let mut random = Random::new(1);
            for _ in 0..1000 {
                let shifts = displace_data(&memory, &mut random);
                let below = pointer + i64::from(shifts[1]);
                assert!(shifts[0] == 0 && below >= stack as i64 && below < memory.areas[1].bytes as i64);
                assert_eq!(below % 16, 0, "calls need an aligned stack");
            }
        }
    }
}
