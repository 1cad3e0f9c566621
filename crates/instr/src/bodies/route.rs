//! Routes: the links that carry a value from an output of one instance to an input of the next.

use super::links::{self, Link};
use crate::forms::gather;
use crate::forms::operands::{Anatomy, Bank, Place, Slot};
use crate::forms::settings;
use iced_x86::{Code, EncodingKind, RflagsBits};

/// The ways from output `to` back to input `from`, each a list of links; an empty list where the one can be the other.
/// No way at all where nothing that is known leads back.
pub(crate) fn routes(anatomy: &Anatomy, from: Place, to: Place) -> Vec<Vec<Link>> {
    let way = Finder { anatomy, vex: anatomy.sample.op_code().encoding() != EncodingKind::Legacy };
    let routes = way.routes(from, to);
    match (from, to) {
        (Place::Memory, Place::Memory) => routes,
        (Place::Memory, _) | (_, Place::Memory) => {
            routes.into_iter().filter_map(|route| way.steady(route, to)).collect()
        }
        _ => routes,
    }
}

/// A way that is longer by links of a cycle each: for chains that are slower than the value needs, because the
/// instructions in them take longer than that to issue. `None` where the class of registers has no such link.
pub(crate) fn padded(
    anatomy: &Anatomy,
    from: Place,
    to: Place,
    route: &[Link],
    more: usize,
) -> Option<Vec<Link>> {
    let way = Finder { anatomy, vex: anatomy.sample.op_code().encoding() != EncodingKind::Legacy };
    let (start, end) = (anatomy.bank(to), anatomy.bank(from));
    if is_address(anatomy, from) || is_kept(anatomy, from) {
        return None;
    }
    let first = match (route.is_empty(), start) {
        (false, _) => route.to_vec(),
        (true, Bank::General) => way.to_general(to, false, &[]).pop()?,
        (true, Bank::Flags) => way.to_general(to, true, &[links::COMPARE]).pop()?,
        (true, _) => Vec::new(),
    };
    // From flags to flags the way is through a general register, which is where it can be made longer.
    if end == Bank::Flags {
        let at = first.iter().position(|link| *link == links::COMPARE)?;
        let mut longer = first.clone();
        longer.splice(at..at, std::iter::repeat_n(links::FROM_32, more));
        return Some(longer);
    }
    Some(first.into_iter().chain(std::iter::repeat_n(links::within(end, way.vex)?, more)).collect())
}

/// Whether the place is an address that memory is accessed at, and not only computed with.
pub(crate) fn is_address(anatomy: &Anatomy, place: Place) -> bool {
    place == Place::Slot(Slot::Base) && !is_computed(anatomy)
}

/// Whether the address is only computed with, and needs to point to nothing.
pub(crate) fn is_computed(anatomy: &Anatomy) -> bool {
    matches!(anatomy.code(), Code::Lea_r16_m | Code::Lea_r32_m | Code::Lea_r64_m)
}

/// Whether what is loaded can be the next address.
pub(crate) fn is_pointer_load(anatomy: &Anatomy) -> bool {
    anatomy.code() == Code::Mov_r64_rm64
}

/// Whether an input must have its value back before the next instance. One that an instance changes is no operand of
/// which it matters.
pub(crate) fn is_kept(anatomy: &Anatomy, from: Place) -> bool {
    let changed = matches!(from, Place::Slot(_)) && anatomy.writes(from);
    let kept = settings::of(anatomy.code()).kept && !changed;
    kept && anatomy.bank(from) == Bank::General && !is_address(anatomy, from)
}

struct Finder<'a> {
    anatomy: &'a Anatomy,
    /// Whether vector links are VEX ones.
    vex: bool,
}

/// Links of a cycle each in a chain through memory. What is loaded as soon as it is stored is forwarded in a time that is
/// never the same twice; with four links between, in the same each time (Golden Cove).
pub(crate) const STEADY: usize = 6;

impl Finder<'_> {
    /// The same way through memory with links between store and load.
    fn steady(&self, route: Vec<Link>, to: Place) -> Option<Vec<Link>> {
        let store = route.iter().position(|link| link.to == Bank::Memory);
        let load = route.iter().position(|link| link.from == Bank::Memory);
        let (at, bank) = match (store, load) {
            (Some(store), _) => (store, route[store].from),
            (None, Some(load)) => (load + 1, route[load].to),
            (None, None) => return Some(route),
        };
        let mut longer = route;
        let between = std::iter::repeat_n(links::within(bank, self.vex)?, STEADY);
        // Links read whole registers.
        let whole = match (at, bank) {
            (0, Bank::General) => self.to_general(to, false, &[]).pop()?,
            _ => Vec::new(),
        };
        longer.splice(at..at, whole.into_iter().chain(between));
        Some(longer)
    }

    fn routes(&self, from: Place, to: Place) -> Vec<Vec<Link>> {
        let anatomy = self.anatomy;
        let (end, start) = (anatomy.bank(from), anatomy.bank(to));
        if is_address(anatomy, from) {
            if is_pointer_load(anatomy) && start == Bank::General {
                return vec![Vec::new()];
            }
            return self.to_general(to, true, &[links::XOR, links::XOR]);
        }
        if gather::is_gather(anatomy) && end == Bank::Vector && from == Place::Slot(Slot::Index) {
            return if start == Bank::Vector { vec![vec![links::ZERO_INDICES]] } else { Vec::new() };
        }
        if settings::of(anatomy.code()).squared && start == Bank::Vector && end == Bank::Vector {
            return self.square(to).into_iter().map(|link| vec![link]).collect();
        }
        // What must keep its value can't be in memory that an instance before has written.
        if from == Place::Memory && settings::of(anatomy.code()).kept {
            return Vec::new();
        }
        if is_kept(anatomy, from) {
            return self.to_general(to, true, &[links::CLEAR, links::RESTORE]);
        }
        let slots = matches!((from, to), (Place::Slot(_), Place::Slot(_)));
        match (from, to) {
            (Place::Fixed(a), Place::Fixed(b)) if a.full_register() == b.full_register() => {
                return vec![Vec::new()];
            }
            // The loop's counter leaves the carry alone.
            (Place::Flags(a), Place::Flags(b)) if a & b & RflagsBits::CF != 0 => return vec![Vec::new()],
            (Place::Flags(_), Place::Flags(_)) => {}
            (Place::Memory, Place::Memory) => return vec![Vec::new()],
            _ if from == to => return vec![Vec::new()],
            _ if slots && start == end && start != Bank::Other => return vec![Vec::new()],
            _ => {}
        }
        match (start, end) {
            (Bank::General, Bank::General) => self.to_general(to, false, &[]),
            // What reads flags keeps its destination under a condition: a result there would be another way.
            (Bank::Flags, Bank::General) if self.changes(from) => {
                self.to_general(to, false, &[links::FROM_32])
            }
            (Bank::Vector, Bank::Vector) => vec![vec![self.vector(links::SHUFFLE, links::SHUFFLE_VEX)]],
            (Bank::Mask, Bank::Vector) => vec![vec![links::MASK_TO_VECTOR]],
            (Bank::Vector, Bank::Mask) => vec![vec![links::VECTOR_TO_MASK]],
            (_, Bank::Memory) => self.to_memory(to, start),
            (Bank::Memory, Bank::Vector | Bank::Mmx | Bank::Mask) => {
                match self.in_memory(&links::LOADS, end, anatomy.memory_bytes) {
                    Some(load) => vec![vec![load]],
                    None => self.through_general(to, end),
                }
            }
            _ => self.through_general(to, end),
        }
    }

    /// Whether an instance writes the register that it reads here.
    fn changes(&self, place: Place) -> bool {
        match place {
            Place::Fixed(register) => self.anatomy.writes_register(register.full_register()),
            _ => self.anatomy.writes(place),
        }
    }

    /// The square of a result, as wide as it.
    fn square(&self, to: Place) -> Option<Link> {
        let Place::Slot(slot) = to else { return None };
        let memory = self.anatomy.sample.op_code().memory_size();
        // What takes one element from memory works on one.
        let scalar = memory.size() == memory.element_size();
        let bytes = if scalar { memory.size() } else { self.anatomy.register(slot).size() };
        let fits = |(element, size, vex, _): &&(usize, usize, bool, Link)| {
            *element == memory.element_size() && *size == bytes && *vex == self.vex
        };
        links::SQUARES.iter().find(fits).map(|(.., link)| *link)
    }

    fn through_general(&self, to: Place, end: Bank) -> Vec<Vec<Link>> {
        let last = match end {
            Bank::General => return self.to_general(to, false, &[]),
            Bank::Flags => links::COMPARE,
            Bank::Vector => self.vector(links::TO_VECTOR, links::TO_VECTOR_VEX),
            Bank::Mask => links::TO_MASK,
            Bank::Mmx => links::TO_MMX,
            Bank::HighByte | Bank::X87 | Bank::Memory | Bank::Other => return Vec::new(),
        };
        self.to_general(to, true, &[last])
    }

    fn to_memory(&self, to: Place, start: Bank) -> Vec<Vec<Link>> {
        let bytes = self.anatomy.memory_bytes;
        if let Some(store) = self.in_memory(&links::STORES, start, bytes) {
            let squared = settings::of(self.anatomy.code()).squared && start == Bank::Vector;
            let square = if squared { self.square(to) } else { None };
            return vec![square.into_iter().chain([store]).collect()];
        }
        if let Some(store) = self.in_memory(&links::STORES, Bank::General, bytes) {
            return self.to_general(to, false, &[store]);
        }
        match self.in_memory(&links::STORES, Bank::Vector, bytes) {
            Some(store) => {
                self.to_general(to, true, &[self.vector(links::TO_VECTOR, links::TO_VECTOR_VEX), store])
            }
            None => Vec::new(),
        }
    }

    fn vector(&self, legacy: Link, vex: Link) -> Link {
        if self.vex { vex } else { legacy }
    }

    fn in_memory(&self, table: &[Link], bank: Bank, bytes: usize) -> Option<Link> {
        let fits = |link: &&Link| {
            [link.from, link.to].contains(&bank)
                && link.bytes == bytes
                && (bank != Bank::Vector || link.name.starts_with('v') == self.vex)
        };
        table.iter().find(fits).copied()
    }

    /// From a place to a general register, and on by further links. Where the place is one, a link only if the value must
    /// be in another register, or can't be read in all widths.
    fn to_general(&self, place: Place, any: bool, further: &[Link]) -> Vec<Vec<Link>> {
        let anatomy = self.anatomy;
        let bytes = match place {
            Place::Slot(slot) => anatomy.register(slot).size(),
            Place::Fixed(register) => register.size(),
            Place::Flags(_) => 0,
            Place::Memory => anatomy.memory_bytes,
        };
        let ways: Vec<Vec<Link>> = match anatomy.bank(place) {
            Bank::General if any && bytes >= 4 => vec![vec![]],
            Bank::General => vec![vec![match bytes {
                1 => links::FROM_8,
                2 => links::FROM_16,
                _ => links::FROM_32,
            }]],
            Bank::HighByte => vec![vec![links::FROM_HIGH]],
            Bank::Vector => vec![vec![self.vector(links::FROM_VECTOR, links::FROM_VECTOR_VEX)]],
            Bank::Mask => vec![vec![links::FROM_MASK]],
            Bank::Mmx => vec![vec![links::FROM_MMX]],
            Bank::Flags => self.by_flags(place),
            Bank::Memory => match self.in_memory(&links::LOADS, Bank::General, bytes) {
                Some(load) => vec![vec![load]],
                None => match self.in_memory(&links::LOADS, Bank::Vector, bytes) {
                    Some(load) => vec![vec![load, self.vector(links::FROM_VECTOR, links::FROM_VECTOR_VEX)]],
                    None => Vec::new(),
                },
            },
            Bank::X87 | Bank::Other => Vec::new(),
        };
        ways.into_iter().map(|way| [way.as_slice(), further].concat()).collect()
    }

    /// Ways to read flags: by the first two of those that are computed, and by the carry where it is written at all.
    fn by_flags(&self, place: Place) -> Vec<Vec<Link>> {
        let Place::Flags(flags) = place else { return Vec::new() };
        let mut ways: Vec<Vec<Link>> = links::SELECT
            .iter()
            .filter(|link| link.flag & flags != 0)
            .take(2)
            .map(|link| vec![*link])
            .collect();
        if self.anatomy.flags_modified() & links::BORROW.flag & !self.anatomy.flags_undefined() != 0 {
            ways.push(vec![links::BORROW]);
        }
        ways
    }
}
