//! Routes: the links that carry a value from an output of one instance to an input of the next.

use super::links::{self, Link};
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use iced_x86::{Code, EncodingKind, RflagsBits};

/// The ways from output `to` back to input `from`, each a list of links; an empty list where the one can be the other.
/// No way at all where nothing that is known leads back.
pub(crate) fn find_routes(anatomy: &FormAnatomy, from: OperandPlace, to: OperandPlace) -> Vec<Vec<Link>> {
    let way = RouteFinder { anatomy, vex: anatomy.sample.op_code().encoding() != EncodingKind::Legacy };
    let routes = way.find_routes(from, to);
    match (from, to) {
        (OperandPlace::Memory, OperandPlace::Memory) => routes,
        (OperandPlace::Memory, _) | (_, OperandPlace::Memory) => {
            routes.into_iter().filter_map(|route| way.add_steady_links(route, to)).collect()
        }
        _ => routes,
    }
}

/// A way that is longer by links of a cycle each: for chains that are slower than the value needs, because the
/// instructions in them take longer than that to issue. `None` where the class of registers has no such link.
pub(crate) fn pad_route(
    anatomy: &FormAnatomy,
    from: OperandPlace,
    to: OperandPlace,
    route: &[Link],
    more: usize,
) -> Option<Vec<Link>> {
    let way = RouteFinder { anatomy, vex: anatomy.sample.op_code().encoding() != EncodingKind::Legacy };
    let (start, end) = (anatomy.place_bank(to), anatomy.place_bank(from));
    if is_address(anatomy, from) || needs_restoring(anatomy, from) {
        return None;
    }
    let first = match (route.is_empty(), start) {
        (false, _) => route.to_vec(),
        (true, RegisterBank::General) => way.route_to_general(to, false, &[]).pop()?,
        (true, RegisterBank::Flags) => way.route_to_general(to, true, &[links::COMPARE]).pop()?,
        (true, _) => Vec::new(),
    };
    // From flags to flags the way is through a general register, which is where it can be made longer.
    if end == RegisterBank::Flags {
        let at = first.iter().position(|link| *link == links::COMPARE)?;
        let mut longer = first.clone();
        longer.splice(at..at, std::iter::repeat_n(links::FROM_32, more));
        return Some(longer);
    }
    Some(first.into_iter().chain(std::iter::repeat_n(links::find_link_within(end, way.vex)?, more)).collect())
}

/// Whether the place is an address that memory is accessed at, and not only computed with.
pub(crate) fn is_address(anatomy: &FormAnatomy, place: OperandPlace) -> bool {
    place == OperandPlace::Slot(RegisterSlot::Base) && !is_computed(anatomy)
}

/// Whether the address is only computed with, and needs to point to nothing.
pub(crate) fn is_computed(anatomy: &FormAnatomy) -> bool {
    matches!(anatomy.code(), Code::Lea_r16_m | Code::Lea_r32_m | Code::Lea_r64_m)
}

/// Whether what is loaded can be the next address.
pub(crate) fn is_pointer_load(anatomy: &FormAnatomy) -> bool {
    anatomy.code() == Code::Mov_r64_rm64
}

/// Whether an input must have its value back before the next instance. One that an instance changes is no operand of
/// which it matters.
pub(crate) fn needs_restoring(anatomy: &FormAnatomy, from: OperandPlace) -> bool {
    let changed = matches!(from, OperandPlace::Slot(_)) && anatomy.writes_place(from);
    let kept = instruction_setting::find_setting(anatomy.code()).restores_values && !changed;
    kept && anatomy.place_bank(from) == RegisterBank::General && !is_address(anatomy, from)
}

struct RouteFinder<'a> {
    anatomy: &'a FormAnatomy,
    /// Whether vector links are VEX ones.
    vex: bool,
}

/// Links of a cycle each in a chain through memory. What is loaded as soon as it is stored is forwarded in a time that is
/// never the same twice; with four links between, in the same each time (Golden Cove).
pub(crate) const STEADY_LINKS: usize = 6;

impl RouteFinder<'_> {
    /// The same way through memory with links between store and load.
    fn add_steady_links(&self, route: Vec<Link>, to: OperandPlace) -> Option<Vec<Link>> {
        let store = route.iter().position(|link| link.to == RegisterBank::Memory);
        let load = route.iter().position(|link| link.from == RegisterBank::Memory);
        let (at, bank) = match (store, load) {
            (Some(store), _) => (store, route[store].from),
            (None, Some(load)) => (load + 1, route[load].to),
            (None, None) => return Some(route),
        };
        let mut longer = route;
        let between = std::iter::repeat_n(links::find_link_within(bank, self.vex)?, STEADY_LINKS);
        // Links read whole registers.
        let whole = match (at, bank) {
            (0, RegisterBank::General) => self.route_to_general(to, false, &[]).pop()?,
            _ => Vec::new(),
        };
        longer.splice(at..at, whole.into_iter().chain(between));
        Some(longer)
    }

    fn find_routes(&self, from: OperandPlace, to: OperandPlace) -> Vec<Vec<Link>> {
        let anatomy = self.anatomy;
        let (end, start) = (anatomy.place_bank(from), anatomy.place_bank(to));
        if is_address(anatomy, from) {
            if is_pointer_load(anatomy) && start == RegisterBank::General {
                return vec![Vec::new()];
            }
            return self.route_to_general(to, true, &[links::XOR, links::XOR]);
        }
        if gather::is_gather(anatomy) && end == RegisterBank::Vector && from == OperandPlace::Slot(RegisterSlot::Index)
        {
            return if start == RegisterBank::Vector { vec![vec![links::ZERO_INDICES]] } else { Vec::new() };
        }
        if instruction_setting::find_setting(anatomy.code()).squared
            && start == RegisterBank::Vector
            && end == RegisterBank::Vector
        {
            return self.find_square(to).into_iter().map(|link| vec![link]).collect();
        }
        // What must keep its value can't be in memory that an instance before has written.
        if from == OperandPlace::Memory && instruction_setting::find_setting(anatomy.code()).restores_values {
            return Vec::new();
        }
        if needs_restoring(anatomy, from) {
            return self.route_to_general(to, true, &[links::CLEAR, links::RESTORE]);
        }
        let slots = matches!((from, to), (OperandPlace::Slot(_), OperandPlace::Slot(_)));
        match (from, to) {
            (OperandPlace::Fixed(a), OperandPlace::Fixed(b)) if a.full_register() == b.full_register() => {
                return vec![Vec::new()];
            }
            // The loop's counter leaves the carry alone.
            (OperandPlace::Flags(a), OperandPlace::Flags(b)) if a & b & RflagsBits::CF != 0 => {
                return vec![Vec::new()];
            }
            (OperandPlace::Flags(_), OperandPlace::Flags(_)) => {}
            (OperandPlace::Memory, OperandPlace::Memory) => return vec![Vec::new()],
            _ if from == to => return vec![Vec::new()],
            _ if slots && start == end && start != RegisterBank::Other => return vec![Vec::new()],
            _ => {}
        }
        match (start, end) {
            (RegisterBank::General, RegisterBank::General) => self.route_to_general(to, false, &[]),
            // What reads flags keeps its destination under a condition: a result there would be another way.
            (RegisterBank::Flags, RegisterBank::General) if self.overwrites_input(from) => {
                self.route_to_general(to, false, &[links::FROM_32])
            }
            (RegisterBank::Vector, RegisterBank::Vector) => {
                vec![vec![self.pick_vector_link(links::SHUFFLE, links::SHUFFLE_VEX)]]
            }
            (RegisterBank::Mask, RegisterBank::Vector) => vec![vec![links::MASK_TO_VECTOR]],
            (RegisterBank::Vector, RegisterBank::Mask) => vec![vec![links::VECTOR_TO_MASK]],
            (_, RegisterBank::Memory) => self.route_to_memory(to, start),
            (RegisterBank::Memory, RegisterBank::Vector | RegisterBank::Mmx | RegisterBank::Mask) => {
                match self.find_memory_link(&links::LOADS, end, anatomy.memory_bytes) {
                    Some(load) => vec![vec![load]],
                    None => self.route_through_general(to, end),
                }
            }
            _ => self.route_through_general(to, end),
        }
    }

    /// Whether an instance writes the register that it reads here.
    fn overwrites_input(&self, place: OperandPlace) -> bool {
        match place {
            OperandPlace::Fixed(register) => self.anatomy.writes_register(register.full_register()),
            _ => self.anatomy.writes_place(place),
        }
    }

    /// The square of a result, as wide as it.
    fn find_square(&self, to: OperandPlace) -> Option<Link> {
        let OperandPlace::Slot(slot) = to else { return None };
        let memory = self.anatomy.sample.op_code().memory_size();
        // What takes one element from memory works on one.
        let scalar = memory.size() == memory.element_size();
        let bytes = if scalar { memory.size() } else { self.anatomy.slot_register(slot).size() };
        let fits = |(element, size, vex, _): &&(usize, usize, bool, Link)| {
            *element == memory.element_size() && *size == bytes && *vex == self.vex
        };
        links::SQUARES.iter().find(fits).map(|(.., link)| *link)
    }

    fn route_through_general(&self, to: OperandPlace, end: RegisterBank) -> Vec<Vec<Link>> {
        let last = match end {
            RegisterBank::General => return self.route_to_general(to, false, &[]),
            RegisterBank::Flags => links::COMPARE,
            RegisterBank::Vector => self.pick_vector_link(links::TO_VECTOR, links::TO_VECTOR_VEX),
            RegisterBank::Mask => links::TO_MASK,
            RegisterBank::Mmx => links::TO_MMX,
            RegisterBank::HighByte | RegisterBank::X87 | RegisterBank::Memory | RegisterBank::Other => {
                return Vec::new();
            }
        };
        self.route_to_general(to, true, &[last])
    }

    fn route_to_memory(&self, to: OperandPlace, start: RegisterBank) -> Vec<Vec<Link>> {
        let bytes = self.anatomy.memory_bytes;
        if let Some(store) = self.find_memory_link(&links::STORES, start, bytes) {
            let squared =
                instruction_setting::find_setting(self.anatomy.code()).squared && start == RegisterBank::Vector;
            let square = if squared { self.find_square(to) } else { None };
            return vec![square.into_iter().chain([store]).collect()];
        }
        if let Some(store) = self.find_memory_link(&links::STORES, RegisterBank::General, bytes) {
            return self.route_to_general(to, false, &[store]);
        }
        match self.find_memory_link(&links::STORES, RegisterBank::Vector, bytes) {
            Some(store) => {
                self.route_to_general(to, true, &[self.pick_vector_link(links::TO_VECTOR, links::TO_VECTOR_VEX), store])
            }
            None => Vec::new(),
        }
    }

    fn pick_vector_link(&self, legacy: Link, vex: Link) -> Link {
        if self.vex { vex } else { legacy }
    }

    fn find_memory_link(&self, table: &[Link], bank: RegisterBank, bytes: usize) -> Option<Link> {
        let fits = |link: &&Link| {
            [link.from, link.to].contains(&bank)
                && link.bytes == bytes
                && (bank != RegisterBank::Vector || link.name.starts_with('v') == self.vex)
        };
        table.iter().find(fits).copied()
    }

    /// From a place to a general register, and on by further links. Where the place is one, a link only if the value must
    /// be in another register, or can't be read in all widths.
    fn route_to_general(&self, place: OperandPlace, any: bool, further: &[Link]) -> Vec<Vec<Link>> {
        let anatomy = self.anatomy;
        let bytes = match place {
            OperandPlace::Slot(slot) => anatomy.slot_register(slot).size(),
            OperandPlace::Fixed(register) => register.size(),
            OperandPlace::Flags(_) => 0,
            OperandPlace::Memory => anatomy.memory_bytes,
        };
        let ways: Vec<Vec<Link>> = match anatomy.place_bank(place) {
            RegisterBank::General if any && bytes >= 4 => vec![vec![]],
            RegisterBank::General => vec![vec![match bytes {
                1 => links::FROM_8,
                2 => links::FROM_16,
                _ => links::FROM_32,
            }]],
            RegisterBank::HighByte => vec![vec![links::FROM_HIGH]],
            RegisterBank::Vector => {
                vec![vec![self.pick_vector_link(links::FROM_VECTOR, links::FROM_VECTOR_VEX)]]
            }
            RegisterBank::Mask => vec![vec![links::FROM_MASK]],
            RegisterBank::Mmx => vec![vec![links::FROM_MMX]],
            RegisterBank::Flags => self.route_from_flags(place),
            RegisterBank::Memory => match self.find_memory_link(&links::LOADS, RegisterBank::General, bytes) {
                Some(load) => vec![vec![load]],
                None => match self.find_memory_link(&links::LOADS, RegisterBank::Vector, bytes) {
                    Some(load) => vec![vec![load, self.pick_vector_link(links::FROM_VECTOR, links::FROM_VECTOR_VEX)]],
                    None => Vec::new(),
                },
            },
            RegisterBank::X87 | RegisterBank::Other => Vec::new(),
        };
        ways.into_iter().map(|way| [way.as_slice(), further].concat()).collect()
    }

    /// Ways to read flags: by the first two of those that are computed, and by the carry where it is written at all.
    fn route_from_flags(&self, place: OperandPlace) -> Vec<Vec<Link>> {
        let OperandPlace::Flags(flags) = place else { return Vec::new() };
        let mut ways: Vec<Vec<Link>> =
            links::SELECT.iter().filter(|link| link.flag & flags != 0).take(2).map(|link| vec![*link]).collect();
        if self.anatomy.flags_modified() & links::BORROW.flag & !self.anatomy.flags_undefined() != 0 {
            ways.push(vec![links::BORROW]);
        }
        ways
    }
}
