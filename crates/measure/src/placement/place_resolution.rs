//! Turns policies into offsets: a pure function of the items, the room and random numbers.

use super::CACHE_LINE;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{PlacementPolicy, Program};
use cyclescope_core::error::BadBatch;
use cyclescope_core::random::Random;
use cyclescope_exec::PlacedProgram;
use std::ops::Range;

/// A program, and the policy for its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlacementRequest {
    /// Index of the program in the batch.
    pub program: usize,
    /// Policy for its body.
    pub place: PlacementPolicy,
}

/// Candidate places for an item: those that are `residue` modulo `modulus` within a range.
#[derive(Debug, Clone, Copy)]
struct PlacementGrid {
    first: usize,
    modulus: usize,
    count: usize,
}

impl PlacementGrid {
    /// The points of `room` that are `residue` modulo `modulus`.
    fn new(room: Range<usize>, modulus: usize, residue: usize) -> PlacementGrid {
        let first = room.start + (residue + modulus - room.start % modulus) % modulus;
        let count = if first < room.end { (room.end - first).div_ceil(modulus) } else { 0 };
        PlacementGrid { first, modulus, count }
    }

    /// Finds a point that fits, beginning at a random one.
    fn find_fit(self, random: &mut Random, fits: impl Fn(usize) -> bool) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let start = random.below(self.count);
        let point = |step: usize| self.first + (start + step) % self.count * self.modulus;
        (0..self.count).map(point).find(|point| fits(*point))
    }
}

/// The items placed so far.
struct OccupiedArena<'a> {
    programs: &'a [Program],
    room: Range<usize>,
    taken: Vec<Range<usize>>,
}

impl OccupiedArena<'_> {
    /// The range that a program occupies if its body begins at `body`; `None` if it leaves the room
    /// or overlaps an item.
    fn free_stretch(&self, program: usize, body: usize) -> Option<Range<usize>> {
        let program = &self.programs[program];
        let start = body.checked_sub(program.body_range().start)?;
        let stretch = start..start + program.len();
        let inside = self.room.start <= stretch.start && stretch.end <= self.room.end;
        let apart = |other: &Range<usize>| other.end <= stretch.start || stretch.end <= other.start;
        (inside && self.taken.iter().all(apart)).then_some(stretch)
    }

    /// Whether copies of a program fit at this distance from each other without overlap.
    fn fits_copies(&self, program: usize, body: usize, copies: usize, by: usize) -> bool {
        let apart = copies == 1 || by >= self.programs[program].len();
        apart && (0..copies).all(|copy| self.free_stretch(program, body + copy * by).is_some())
    }

    fn occupy_stretch(&mut self, program: usize, body: usize) -> PlacedProgram {
        let start = body - self.programs[program].body_range().start;
        self.taken.push(start..start + self.programs[program].len());
        PlacedProgram { program, offset: start as u32 }
    }
}

/// Finds places for programs in the arena's `room` so that none overlap.
/// [`PlacementPolicy::Spaced`] gives several places to one program. Offsets assume that the arena
/// begins at the start of a page.
///
/// The error says which place is impossible, and why.
pub fn resolve_places(
    programs: &[Program],
    wanted: &[PlacementRequest],
    room: Range<usize>,
    random: &mut Random,
) -> Result<Vec<Vec<PlacedProgram>>, BadBatch> {
    for (number, one) in wanted.iter().enumerate() {
        one.place.check(number, wanted.len())?;
    }
    let shared = random.below(CACHE_LINE);
    let mut arena = OccupiedArena { programs, room, taken: Vec::new() };
    let mut bodies: Vec<Option<usize>> = vec![None; wanted.len()];
    let mut placed = vec![Vec::new(); wanted.len()];
    for number in placement_order(wanted, random)? {
        let PlacementRequest { program, place } = wanted[number];
        let points = |modulus, residue| PlacementGrid::new(arena.room.clone(), modulus, residue);
        let (grid, by) = match place {
            PlacementPolicy::Offset(at) => (PlacementGrid { first: at as usize, modulus: 1, count: 1 }, 0),
            PlacementPolicy::Random => (points(CACHE_LINE, shared), 0),
            PlacementPolicy::Aligned { to, plus } => (points(to as usize, plus as usize), 0),
            PlacementPolicy::Spaced { by, .. } => (points(CACHE_LINE, shared), by as usize),
            PlacementPolicy::Aliased { with, bits } => {
                let modulus = 1usize << bits;
                let other = bodies[with].expect("the target of an alias is placed first");
                (points(modulus, other % modulus), 0)
            }
        };
        let copies = place.copies();
        let found = grid.find_fit(random, |body| arena.fits_copies(program, body, copies, by));
        let body = found.ok_or_else(|| no_room_error(number, &arena, program))?;
        bodies[number] = Some(body);
        placed[number] = (0..copies).map(|copy| arena.occupy_stretch(program, body + copy * by)).collect();
    }
    Ok(placed)
}

fn no_room_error(number: usize, arena: &OccupiedArena, program: usize) -> BadBatch {
    let Range { start, end } = arena.room;
    BadBatch {
        part: format!("place {number}"),
        what: format!("its {} bytes have no room there", arena.programs[program].len()),
        expected: format!(
            "a place between bytes {start} and {end} of the arena that overlaps no other program and no copy"
        ),
    }
}

/// The order of placement: fixed places first, then the others at random, an aliased place after
/// its target.
fn placement_order(wanted: &[PlacementRequest], random: &mut Random) -> Result<Vec<usize>, BadBatch> {
    let mut left: Vec<usize> = (0..wanted.len()).collect();
    random.shuffle(&mut left);
    left.sort_by_key(|number| !matches!(wanted[*number].place, PlacementPolicy::Offset(_)));
    let mut order: Vec<usize> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ready = |number: &usize| match wanted[*number].place {
            PlacementPolicy::Aliased { with, .. } => order.contains(&with),
            _ => true,
        };
        let Some(next) = left.iter().position(ready) else {
            return Err(BadBatch {
                part: format!("place {}", left[0]),
                what: "its alias refers back to it".to_string(),
                expected: "a chain of aliases that ends at a place that is not aliased".to_string(),
            });
        };
        order.push(left.remove(next));
    }
    Ok(order)
}

/// Finds the displacement of each area's register in bytes, from one policy per area.
/// [`PlacementPolicy::Random`] is resolved by [`super::displace_data`]; [`PlacementPolicy::Spaced`]
/// is for code only.
///
/// The error says which area's pointer is impossible, and why.
pub fn resolve_data_places(
    memory: &ProgramMemory,
    places: &[PlacementPolicy],
    random: &mut Random,
) -> Result<Vec<i32>, BadBatch> {
    let mut shifts = super::displace_data(memory, random);
    if places.len() != memory.areas.len() {
        return Err(BadBatch {
            part: "the memory".to_string(),
            what: format!("{} places are given for {} areas", places.len(), memory.areas.len()),
            expected: "one place for each area".to_string(),
        });
    }
    let wanted: Vec<PlacementRequest> =
        places.iter().enumerate().map(|(program, &place)| PlacementRequest { program, place }).collect();
    for (number, place) in places.iter().enumerate() {
        place.check(number, places.len())?;
    }
    for number in placement_order(&wanted, random)? {
        if places[number] == PlacementPolicy::Random {
            continue;
        }
        let wrong = |what: &str| BadBatch {
            part: format!("place {number}"),
            what: what.to_string(),
            expected: "a position to which the area's pointer may be moved".to_string(),
        };
        let own = memory.pointer_offset(number).ok_or_else(|| wrong("no register points into its area"))? as i64;
        let allowed = memory.allowed_shifts(number);
        let room = (own + allowed.start()) as usize..(own + allowed.end()) as usize + 1;
        let at = |number: usize, shift: i32| memory.pointer_offset(number).unwrap_or(0) as i64 + i64::from(shift);
        let grid = match places[number] {
            PlacementPolicy::Random => continue,
            PlacementPolicy::Offset(offset) => PlacementGrid { first: offset as usize, modulus: 1, count: 1 },
            PlacementPolicy::Aligned { to, plus } => PlacementGrid::new(room.clone(), to as usize, plus as usize),
            PlacementPolicy::Aliased { bits, .. } if bits > PAGE_BITS => {
                return Err(wrong("areas begin at the start of a page, so at most 12 bits are known"));
            }
            PlacementPolicy::Aliased { with, bits } => {
                let modulus = 1usize << bits;
                PlacementGrid::new(room.clone(), modulus, at(with, shifts[with]) as usize % modulus)
            }
            PlacementPolicy::Spaced { .. } => {
                return Err(wrong("an area has only one pointer"));
            }
        };
        let found = grid.find_fit(random, |point| room.contains(&point));
        let found = found.ok_or_else(|| wrong("the area has no position that satisfies the policy"))?;
        shifts[number] = (found as i64 - own) as i32;
    }
    Ok(shifts)
}

/// Bits of an offset in a page (Intel SDM vol. 3A, 4.5).
const PAGE_BITS: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::clock::Clock;
    use cyclescope_code::program::ProgramRecipe;
    use proptest::prelude::*;

    const ARENA: usize = 1 << 20;

    fn programs() -> Vec<Program> {
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        [100, 200, 400, 1000]
            .map(|copies| ProgramRecipe { snippet: &[0x90], copies, ..ProgramRecipe::empty(clock) }.build())
            .into()
    }

    fn places() -> impl Strategy<Value = PlacementPolicy> {
        prop_oneof![
            Just(PlacementPolicy::Random),
            (0u32..12)
                .prop_flat_map(|bits| (Just(1u32 << bits), 0..1u32 << bits))
                .prop_map(|(to, plus)| PlacementPolicy::Aligned { to, plus }),
            (1u32..8, 2000u32..9000).prop_map(|(copies, by)| PlacementPolicy::Spaced { copies, by }),
            (0usize..4, 1u8..14).prop_map(|(with, bits)| PlacementPolicy::Aliased { with, bits }),
        ]
    }

    /// Offsets at which the placed bodies begin.
    fn bodies(programs: &[Program], placed: &[PlacedProgram]) -> Vec<usize> {
        placed.iter().map(|one| one.offset as usize + programs[one.program].body_range().start).collect()
    }

    proptest! {
        #[test]
        fn places_follow_their_policies_without_overlap(
            wanted in proptest::collection::vec(places(), 4), seed: u64, from in 0usize..9000
        ) {
            let programs = programs();
            let wanted: Vec<PlacementRequest> =
                wanted.into_iter().enumerate().map(|(program, place)| PlacementRequest { program, place }).collect();
            let resolved = resolve_places(&programs, &wanted, from..ARENA, &mut Random::new(seed));
            let circular = (0..4).any(|number| {
                let followed = |at: usize| match wanted[at].place {
                    PlacementPolicy::Aliased { with, .. } => with,
                    _ => at,
                };
                let end = (0..4).fold(number, |at, _| followed(at));
                followed(end) != end || (followed(number) == number
                    && matches!(wanted[number].place, PlacementPolicy::Aliased { .. }))
            });
            prop_assert_eq!(resolved.is_err(), circular, "{:?}", resolved);
            let Ok(resolved) = resolved else { return Ok(()) };
            let mut spans: Vec<_> = resolved.iter().flatten()
                .map(|one| (one.offset as usize, one.offset as usize + programs[one.program].len())).collect();
            spans.sort();
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0));
            prop_assert!(spans[0].0 >= from && spans.last().unwrap().1 <= ARENA);
            let first = |number: usize| bodies(&programs, &resolved[number])[0];
            let mut alignments = Vec::new();
            for (number, one) in wanted.iter().enumerate() {
                let bodies = bodies(&programs, &resolved[number]);
                prop_assert!(resolved[number].iter().all(|placed| placed.program == one.program));
                match one.place {
                    PlacementPolicy::Random => alignments.push(bodies[0] % CACHE_LINE),
                    PlacementPolicy::Offset(_) => unreachable!("not drawn"),
                    PlacementPolicy::Aligned { to, plus } => prop_assert_eq!(bodies[0] % to as usize, plus as usize),
                    PlacementPolicy::Spaced { copies, by } => {
                        prop_assert_eq!(bodies.len(), copies as usize);
                        prop_assert!(bodies.windows(2).all(|pair| pair[1] - pair[0] == by as usize));
                    }
                    PlacementPolicy::Aliased { with, bits } =>
                        prop_assert_eq!(bodies[0].abs_diff(first(with)) % (1 << bits), 0),
                }
            }
            prop_assert!(alignments.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }

    #[test]
    fn an_offset_is_kept_or_refused() {
        let programs = programs();
        let body = programs[0].body_range().start;
        let at = |offset: usize| PlacementRequest { program: 0, place: PlacementPolicy::Offset(offset as u32) };
        let place = |wanted: &[PlacementRequest]| resolve_places(&programs, wanted, 0..ARENA, &mut Random::new(1));
        let placed = place(&[at(body + 77), PlacementRequest { program: 1, place: PlacementPolicy::Random }]).unwrap();
        assert_eq!(placed[0], [PlacedProgram { program: 0, offset: 77 }]);
        for wrong in [vec![at(body + 77), at(body + 78)], vec![at(0)], vec![at(ARENA)]] {
            let error = place(&wrong).unwrap_err();
            assert!(error.part.starts_with("place ") && error.what.contains("no room"), "{error:?}");
        }
    }

    #[test]
    fn an_invalid_place_is_refused_by_its_number() {
        let programs = programs();
        for place in [
            PlacementPolicy::Aligned { to: 48, plus: 0 },
            PlacementPolicy::Aligned { to: 8192, plus: 0 },
            PlacementPolicy::Aligned { to: 64, plus: 64 },
            PlacementPolicy::Spaced { copies: 0, by: 64 },
            PlacementPolicy::Spaced { copies: 2, by: 1 },
            PlacementPolicy::Aliased { with: 1, bits: 4 },
            PlacementPolicy::Aliased { with: 2, bits: 4 },
            PlacementPolicy::Aliased { with: 0, bits: 32 },
        ] {
            let wanted = [
                PlacementRequest { program: 0, place: PlacementPolicy::Random },
                PlacementRequest { program: 1, place },
            ];
            let error = resolve_places(&programs, &wanted, 0..ARENA, &mut Random::new(1)).unwrap_err();
            assert_eq!(error.part, "place 1", "{place:?}");
        }
    }

    #[test]
    fn pointers_follow_their_policies() {
        let memory = ProgramMemory::default();
        let aligned = PlacementPolicy::Aligned { to: 4096, plus: 24 };
        let aliased = PlacementPolicy::Aliased { with: 1, bits: 12 };
        let places = [
            PlacementPolicy::Random,
            aligned,
            aliased,
            PlacementPolicy::Offset(300_000),
            PlacementPolicy::Aliased { with: 3, bits: 10 },
        ];
        let mut random = Random::new(5);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let shifts = resolve_data_places(&memory, &places, &mut random).unwrap();
            let at = |area: usize| memory.pointer_offset(area).unwrap().wrapping_add_signed(i64::from(shifts[area]));
            assert!(at(1) % 4096 == 24 && at(2) % 4096 == 24 && at(3) == 300_000);
            assert_eq!(at(4) % 1024, 300_000 % 1024);
            assert!((0..5).all(|area| memory.allowed_shifts(area).contains(&i64::from(shifts[area]))));
            seen.insert(shifts);
        }
        assert!(seen.len() > 90);
        for wrong in [
            PlacementPolicy::Spaced { copies: 2, by: 64 },
            PlacementPolicy::Offset(1 << 20),
            PlacementPolicy::Offset(0),
            PlacementPolicy::Aliased { with: 1, bits: 13 },
        ] {
            let error = resolve_data_places(&memory, &[wrong; 5], &mut random).unwrap_err();
            assert!(error.part.starts_with("place "), "{error:?}");
        }
        assert!(resolve_data_places(&memory, &[PlacementPolicy::Random; 4], &mut random).is_err());
    }
}
