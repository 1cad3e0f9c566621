//! From policies to offsets: a pure function of the items, the room, and random numbers.

use super::LINE;
use cyclescope_code::program::memory::Memory;
use cyclescope_code::program::{Place, Program};
use cyclescope_core::error::BadBatch;
use cyclescope_core::random::Random;
use cyclescope_exec::Placed;
use std::ops::Range;

/// A program, and the policy for its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Index of the program in the batch.
    pub program: usize,
    /// Policy for its body.
    pub place: Place,
}

/// Starting points for an item: those that are `residue` modulo `modulus` within a range.
#[derive(Debug, Clone, Copy)]
struct Grid {
    first: usize,
    modulus: usize,
    count: usize,
}

impl Grid {
    /// The points of `room` that are `residue` modulo `modulus`.
    fn new(room: Range<usize>, modulus: usize, residue: usize) -> Grid {
        let first = room.start + (residue + modulus - room.start % modulus) % modulus;
        let count = if first < room.end { (room.end - first).div_ceil(modulus) } else { 0 };
        Grid { first, modulus, count }
    }

    /// One of the points that fits, from a random one on.
    fn find(self, random: &mut Random, fits: impl Fn(usize) -> bool) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let start = random.below(self.count);
        let point = |step: usize| self.first + (start + step) % self.count * self.modulus;
        (0..self.count).map(point).find(|point| fits(*point))
    }
}

/// The items that are placed already.
struct Arena<'a> {
    programs: &'a [Program],
    room: Range<usize>,
    taken: Vec<Range<usize>>,
}

impl Arena<'_> {
    /// The stretch that a program takes whose body begins there, if the room has it and nothing else does.
    fn free(&self, program: usize, body: usize) -> Option<Range<usize>> {
        let program = &self.programs[program];
        let start = body.checked_sub(program.body().start)?;
        let stretch = start..start + program.len();
        let inside = self.room.start <= stretch.start && stretch.end <= self.room.end;
        let apart = |other: &Range<usize>| other.end <= stretch.start || stretch.end <= other.start;
        (inside && self.taken.iter().all(apart)).then_some(stretch)
    }

    /// Whether copies of a program at this distance fit, without overlapping each other.
    fn fits(&self, program: usize, body: usize, copies: usize, by: usize) -> bool {
        let apart = copies == 1 || by >= self.programs[program].len();
        apart && (0..copies).all(|copy| self.free(program, body + copy * by).is_some())
    }

    fn take(&mut self, program: usize, body: usize) -> Placed {
        let start = body - self.programs[program].body().start;
        self.taken.push(start..start + self.programs[program].len());
        Placed { program, offset: start as u32 }
    }
}

/// Finds places in the arena's `room` for programs, so that none overlap: for each what it wants, several of one with
/// [`Place::Spaced`]. Offsets are those of an arena that begins at the start of a page.
///
/// The error says which place cannot be had, and why.
pub fn resolve(
    programs: &[Program],
    wanted: &[Wanted],
    room: Range<usize>,
    random: &mut Random,
) -> Result<Vec<Vec<Placed>>, BadBatch> {
    for (number, one) in wanted.iter().enumerate() {
        one.place.check(number, wanted.len())?;
    }
    let shared = random.below(LINE);
    let mut arena = Arena { programs, room, taken: Vec::new() };
    let mut bodies: Vec<Option<usize>> = vec![None; wanted.len()];
    let mut placed = vec![Vec::new(); wanted.len()];
    for number in order(wanted, random)? {
        let Wanted { program, place } = wanted[number];
        let points = |modulus, residue| Grid::new(arena.room.clone(), modulus, residue);
        let (grid, by) = match place {
            Place::Offset(at) => (Grid { first: at as usize, modulus: 1, count: 1 }, 0),
            Place::Random => (points(LINE, shared), 0),
            Place::Aligned { to, plus } => (points(to as usize, plus as usize), 0),
            Place::Spaced { by, .. } => (points(LINE, shared), by as usize),
            Place::Aliased { with, bits } => {
                let modulus = 1usize << bits;
                let other = bodies[with].expect("what it is aliased to is placed before it");
                (points(modulus, other % modulus), 0)
            }
        };
        let copies = place.copies();
        let found = grid.find(random, |body| arena.fits(program, body, copies, by));
        let body = found.ok_or_else(|| no_room(number, &arena, program))?;
        bodies[number] = Some(body);
        placed[number] = (0..copies).map(|copy| arena.take(program, body + copy * by)).collect();
    }
    Ok(placed)
}

fn no_room(number: usize, arena: &Arena, program: usize) -> BadBatch {
    let Range { start, end } = arena.room;
    BadBatch {
        part: format!("place {number}"),
        what: format!("its {} bytes have no room there", arena.programs[program].len()),
        expected: format!(
            "a place between bytes {start} and {end} of the arena that overlaps no other program and no copy"
        ),
    }
}

/// The order in which places are found: fixed ones first, then the others at random, what is aliased after what it is
/// aliased to.
fn order(wanted: &[Wanted], random: &mut Random) -> Result<Vec<usize>, BadBatch> {
    let mut left: Vec<usize> = (0..wanted.len()).collect();
    random.shuffle(&mut left);
    left.sort_by_key(|number| !matches!(wanted[*number].place, Place::Offset(_)));
    let mut order: Vec<usize> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let ready = |number: &usize| match wanted[*number].place {
            Place::Aliased { with, .. } => order.contains(&with),
            _ => true,
        };
        let Some(next) = left.iter().position(ready) else {
            return Err(BadBatch {
                part: format!("place {}", left[0]),
                what: "it is aliased to one that is aliased to it in turn".to_string(),
                expected: "a chain of aliased places that ends at one that is not".to_string(),
            });
        };
        order.push(left.remove(next));
    }
    Ok(order)
}

/// Finds by how many bytes each area's register is moved, for one policy an area. Registers point where they do by
/// themselves with [`Place::Random`] as [`super::data_in`] moves them; [`Place::Spaced`] is for code alone.
///
/// The error says which area's pointer cannot be there, and why.
pub fn data_at(memory: &Memory, places: &[Place], random: &mut Random) -> Result<Vec<i32>, BadBatch> {
    let mut shifts = super::data_in(memory, random);
    if places.len() != memory.areas.len() {
        return Err(BadBatch {
            part: "the memory".to_string(),
            what: format!("{} places are given for {} areas", places.len(), memory.areas.len()),
            expected: "one place for each area".to_string(),
        });
    }
    let wanted: Vec<Wanted> =
        places.iter().enumerate().map(|(program, &place)| Wanted { program, place }).collect();
    for (number, place) in places.iter().enumerate() {
        place.check(number, places.len())?;
    }
    for number in order(&wanted, random)? {
        if places[number] == Place::Random {
            continue;
        }
        let wrong = |what: &str| BadBatch {
            part: format!("place {number}"),
            what: what.to_string(),
            expected: "a position in the area to which its pointer may be moved".to_string(),
        };
        let own =
            memory.pointer_offset(number).ok_or_else(|| wrong("no register points into its area"))? as i64;
        let allowed = memory.shifts(number);
        let room = (own + allowed.start()) as usize..(own + allowed.end()) as usize + 1;
        let at =
            |number: usize, shift: i32| memory.pointer_offset(number).unwrap_or(0) as i64 + i64::from(shift);
        let grid = match places[number] {
            Place::Random => continue,
            Place::Offset(offset) => Grid { first: offset as usize, modulus: 1, count: 1 },
            Place::Aligned { to, plus } => Grid::new(room.clone(), to as usize, plus as usize),
            Place::Aliased { bits, .. } if bits > PAGE_BITS => {
                return Err(wrong("areas are known to begin at the start of a page, so 12 bits is the most"));
            }
            Place::Aliased { with, bits } => {
                let modulus = 1usize << bits;
                Grid::new(room.clone(), modulus, at(with, shifts[with]) as usize % modulus)
            }
            Place::Spaced { .. } => return Err(wrong("an area has one pointer, and no copies of it")),
        };
        let found = grid.find(random, |point| room.contains(&point));
        let found = found.ok_or_else(|| wrong("the area has no such position"))?;
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
    use cyclescope_code::program::Recipe;
    use proptest::prelude::*;

    const ARENA: usize = 1 << 20;

    fn programs() -> Vec<Program> {
        let clock = Clock::named("lfence-rdtsc-lfence").unwrap();
        [100, 200, 400, 1000]
            .map(|copies| Recipe { snippet: &[0x90], copies, ..Recipe::empty(clock) }.build())
            .into()
    }

    fn places() -> impl Strategy<Value = Place> {
        prop_oneof![
            Just(Place::Random),
            (0u32..12)
                .prop_flat_map(|bits| (Just(1u32 << bits), 0..1u32 << bits))
                .prop_map(|(to, plus)| Place::Aligned { to, plus }),
            (1u32..8, 2000u32..9000).prop_map(|(copies, by)| Place::Spaced { copies, by }),
            (0usize..4, 1u8..14).prop_map(|(with, bits)| Place::Aliased { with, bits }),
        ]
    }

    /// Where the bodies of what was placed begin.
    fn bodies(programs: &[Program], placed: &[Placed]) -> Vec<usize> {
        placed.iter().map(|one| one.offset as usize + programs[one.program].body().start).collect()
    }

    proptest! {
        #[test]
        fn places_are_what_was_wanted_and_lie_apart(
            wanted in proptest::collection::vec(places(), 4), seed: u64, from in 0usize..9000
        ) {
            let programs = programs();
            let wanted: Vec<Wanted> =
                wanted.into_iter().enumerate().map(|(program, place)| Wanted { program, place }).collect();
            let resolved = resolve(&programs, &wanted, from..ARENA, &mut Random::new(seed));
            let circular = (0..4).any(|number| {
                let followed = |at: usize| match wanted[at].place {
                    Place::Aliased { with, .. } => with,
                    _ => at,
                };
                let end = (0..4).fold(number, |at, _| followed(at));
                followed(end) != end || (followed(number) == number
                    && matches!(wanted[number].place, Place::Aliased { .. }))
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
                    Place::Random => alignments.push(bodies[0] % LINE),
                    Place::Offset(_) => unreachable!("not drawn"),
                    Place::Aligned { to, plus } => prop_assert_eq!(bodies[0] % to as usize, plus as usize),
                    Place::Spaced { copies, by } => {
                        prop_assert_eq!(bodies.len(), copies as usize);
                        prop_assert!(bodies.windows(2).all(|pair| pair[1] - pair[0] == by as usize));
                    }
                    Place::Aliased { with, bits } =>
                        prop_assert_eq!(bodies[0].abs_diff(first(with)) % (1 << bits), 0),
                }
            }
            prop_assert!(alignments.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }

    #[test]
    fn an_offset_is_kept_or_refused() {
        let programs = programs();
        let body = programs[0].body().start;
        let at = |offset: usize| Wanted { program: 0, place: Place::Offset(offset as u32) };
        let place = |wanted: &[Wanted]| resolve(&programs, wanted, 0..ARENA, &mut Random::new(1));
        let placed = place(&[at(body + 77), Wanted { program: 1, place: Place::Random }]).unwrap();
        assert_eq!(placed[0], [Placed { program: 0, offset: 77 }]);
        for wrong in [vec![at(body + 77), at(body + 78)], vec![at(0)], vec![at(ARENA)]] {
            let error = place(&wrong).unwrap_err();
            assert!(error.part.starts_with("place ") && error.what.contains("no room"), "{error:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_its_number() {
        let programs = programs();
        for place in [
            Place::Aligned { to: 48, plus: 0 },
            Place::Aligned { to: 8192, plus: 0 },
            Place::Aligned { to: 64, plus: 64 },
            Place::Spaced { copies: 0, by: 64 },
            Place::Spaced { copies: 2, by: 1 },
            Place::Aliased { with: 1, bits: 4 },
            Place::Aliased { with: 2, bits: 4 },
            Place::Aliased { with: 0, bits: 32 },
        ] {
            let wanted = [Wanted { program: 0, place: Place::Random }, Wanted { program: 1, place }];
            let error = resolve(&programs, &wanted, 0..ARENA, &mut Random::new(1)).unwrap_err();
            assert_eq!(error.part, "place 1", "{place:?}");
        }
    }

    #[test]
    fn pointers_go_where_they_are_wanted() {
        let memory = Memory::default();
        let aligned = Place::Aligned { to: 4096, plus: 24 };
        let aliased = Place::Aliased { with: 1, bits: 12 };
        let places =
            [Place::Random, aligned, aliased, Place::Offset(300_000), Place::Aliased { with: 3, bits: 10 }];
        let mut random = Random::new(5);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let shifts = data_at(&memory, &places, &mut random).unwrap();
            let at = |area: usize| {
                memory.pointer_offset(area).unwrap().wrapping_add_signed(i64::from(shifts[area]))
            };
            assert!(at(1) % 4096 == 24 && at(2) % 4096 == 24 && at(3) == 300_000);
            assert_eq!(at(4) % 1024, 300_000 % 1024);
            assert!((0..5).all(|area| memory.shifts(area).contains(&i64::from(shifts[area]))));
            seen.insert(shifts);
        }
        assert!(seen.len() > 90);
        for wrong in [
            Place::Spaced { copies: 2, by: 64 },
            Place::Offset(1 << 20),
            Place::Offset(0),
            Place::Aliased { with: 1, bits: 13 },
        ] {
            let error = data_at(&memory, &[wrong; 5], &mut random).unwrap_err();
            assert!(error.part.starts_with("place "), "{error:?}");
        }
        assert!(data_at(&memory, &[Place::Random; 4], &mut random).is_err());
    }
}
