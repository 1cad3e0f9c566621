//! Routes: the links that carry a value from an instance's output to the next one's input.

use super::links::{self, Link};
use crate::forms::form_anatomy::{FormAnatomy, OperandPlace, RegisterBank, RegisterSlot};
use crate::forms::gather;
use crate::forms::instruction_setting;
use iced_x86::{Code, EncodingKind, RflagsBits};

/// The routes from output `to` back to input `from`, each a list of links. An empty list means that
/// both can be one place. Without a known route, there are no lists.
pub(crate) fn find_routes(anatomy: &FormAnatomy, from: OperandPlace, to: OperandPlace) -> Vec<Vec<Link>> {
    let finder = RouteFinder { anatomy, vex: anatomy.sample.op_code().encoding() != EncodingKind::Legacy };
    let routes = finder.find_routes(from, to);
    match (from, to) {
        (OperandPlace::Memory, OperandPlace::Memory) => routes,
        (OperandPlace::Memory, _) | (_, OperandPlace::Memory) => {
            routes.into_iter().filter_map(|route| finder.add_steady_links(route, to)).collect()
        }
        _ => routes,
    }
}

/// Appends `more` links of one cycle each to a route. This serves chains that are slow because
/// their instructions take longer to issue than the latency. `None` if the bank has no suitable
/// link.
pub(crate) fn pad_route(
    anatomy: &FormAnatomy,
    from: OperandPlace,
    to: OperandPlace,
    route: &[Link],
    more: usize,
) -> Option<Vec<Link>> {
    let finder = RouteFinder { anatomy, vex: anatomy.sample.op_code().encoding() != EncodingKind::Legacy };
    let (start, end) = (anatomy.place_bank(to), anatomy.place_bank(from));
    if is_address(anatomy, from) || needs_restoring(anatomy, from) {
        return None;
    }
    let first = match (route.is_empty(), start) {
        (false, _) => route.to_vec(),
        (true, RegisterBank::General) => finder.route_to_general(to, false, &[]).pop()?,
        (true, RegisterBank::Flags) => finder.route_to_general(to, true, &[links::COMPARE]).pop()?,
        (true, _) => Vec::new(),
    };
    // A route between flags passes through a general register, and the links go there.
    if end == RegisterBank::Flags {
        let at = first.iter().position(|link| *link == links::COMPARE)?;
        let mut longer = first.clone();
        longer.splice(at..at, std::iter::repeat_n(links::FROM_32, more));
        return Some(longer);
    }
    Some(first.into_iter().chain(std::iter::repeat_n(links::find_link_within(end, finder.vex)?, more)).collect())
}

/// Whether the place is an address at which memory is accessed.
pub(crate) fn is_address(anatomy: &FormAnatomy, place: OperandPlace) -> bool {
    place == OperandPlace::Slot(RegisterSlot::Base) && !is_computed(anatomy)
}

/// Whether the address is only computed, so that it need not be valid.
pub(crate) fn is_computed(anatomy: &FormAnatomy) -> bool {
    matches!(anatomy.code(), Code::Lea_r16_m | Code::Lea_r32_m | Code::Lea_r64_m)
}

/// Whether the loaded value can be the next address.
pub(crate) fn is_pointer_load(anatomy: &FormAnatomy) -> bool {
    anatomy.code() == anatomy.mode().counterpart(Code::Mov_r64_rm64)
}

/// Whether an input must be restored before the next instance. An input that the instance itself
/// changes needs no particular value.
pub(crate) fn needs_restoring(anatomy: &FormAnatomy, from: OperandPlace) -> bool {
    let changed = matches!(from, OperandPlace::Slot(_)) && anatomy.writes_place(from);
    let kept = instruction_setting::find_setting(anatomy.code()).restores_values && !changed;
    kept && anatomy.place_bank(from) == RegisterBank::General && !is_address(anatomy, from)
}

struct RouteFinder<'a> {
    anatomy: &'a FormAnatomy,
    /// Whether vector links use VEX.
    vex: bool,
}

/// Number of links of one cycle each in a chain through memory. A load directly after its store is
/// forwarded in a time that varies between runs. With four links between them, the time is the same
/// in every run (Golden Cove).
pub(crate) const STEADY_LINKS: usize = 6;

impl RouteFinder<'_> {
    /// The same route through memory, with links between store and load.
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
        // A value that must be restored can't be in memory that the previous instance wrote.
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
            // The loop counter does not change the carry.
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
            // An instruction that reads flags may keep its destination. A result there would form a
            // second path.
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

    /// Whether an instance overwrites this input register.
    fn overwrites_input(&self, place: OperandPlace) -> bool {
        match place {
            OperandPlace::Fixed(register) => self.anatomy.writes_register(register.full_register()),
            _ => self.anatomy.writes_place(place),
        }
    }

    /// The link that squares a result of this width.
    fn find_square(&self, to: OperandPlace) -> Option<Link> {
        let OperandPlace::Slot(slot) = to else { return None };
        let memory = self.anatomy.sample.op_code().memory_size();
        // An instruction that takes one element from memory is scalar.
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
                && link.exists_in(self.anatomy.mode())
                && (bank != RegisterBank::Vector || link.is_vex() == self.vex)
        };
        table.iter().find(fits).copied()
    }

    /// The routes from a place to a general register and over further links. A value in a general
    /// register needs a link only to change registers, or if it is too narrow to be read at any
    /// width.
    fn route_to_general(&self, place: OperandPlace, any: bool, further: &[Link]) -> Vec<Vec<Link>> {
        let anatomy = self.anatomy;
        let bytes = match place {
            OperandPlace::Slot(slot) => anatomy.slot_register(slot).size(),
            OperandPlace::Fixed(register) => register.size(),
            OperandPlace::Flags(_) => 0,
            OperandPlace::Memory => anatomy.memory_bytes,
        };
        let routes: Vec<Vec<Link>> = match anatomy.place_bank(place) {
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
        routes.into_iter().map(|route| [route.as_slice(), further].concat()).collect()
    }

    /// Routes that read flags: by the first two computed flags, and by the carry if it is written
    /// at all.
    fn route_from_flags(&self, place: OperandPlace) -> Vec<Vec<Link>> {
        let OperandPlace::Flags(flags) = place else { return Vec::new() };
        let mut routes: Vec<Vec<Link>> =
            links::SELECT.iter().filter(|link| link.flag & flags != 0).take(2).map(|link| vec![*link]).collect();
        if self.anatomy.flags_modified() & links::BORROW.flag & !self.anatomy.flags_undefined() != 0 {
            routes.push(vec![links::BORROW]);
        }
        routes
    }
}
