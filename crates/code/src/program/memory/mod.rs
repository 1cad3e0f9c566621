//! A program's memory as data: a list of areas, their initial contents, and the registers that point into them.
//!
//! A study describes the memory that its programs need; an executor makes it and knows no reason for it. What an
//! area holds follows from its description and its address alone, so that it is the same in every executor. The limits
//! are those of this file's constants and of [`ProgramMemory::check`]; an executor that cannot offer something that is
//! correct answers [`Unavailable`](cyclescope_core::error::Unavailable).

mod check;
mod contents;
#[cfg(test)]
mod tests;

use crate::context::{AREA_REGISTERS, FloatElement};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// The largest area, in bytes.
pub const MOST_AREA_BYTES: u64 = 1 << 30;
/// Most areas of one memory.
pub const MOST_AREAS: usize = 32;
/// Bytes of an area of [`ProgramMemory::standard`].
pub const STANDARD_AREA_BYTES: u64 = 1 << 20;
/// Bytes of a small page and of a huge one (Intel SDM vol. 3A, 4.5).
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of a huge page.
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Distances that keep the areas' registers apart modulo 4096: odd multiples of 320, all in lines of their own. On
/// Zen 4 a store and a load at addresses that are congruent modulo 1024 cost 20 to 50 cycles.
const POINTER_STAGGER: u64 = 320;
/// Smallest distance in bytes of a pointer from an area's ends: code accesses memory up to this far from it.
const POINTER_MARGIN: u64 = 60 << 10;
/// The same as a share of the area.
const MARGIN_SHARE: u64 = 16;
/// Distance in bytes of a pointer to the top from the end of its area, without its stagger: a layout moves it by
/// 64 KiB at most, and the margin stays.
const TOP_DISTANCE: u64 = 128 << 10;
/// Bytes at the end of an area that may be above its pointer to the top, when a layout has moved it.
pub const MOST_ABOVE_TOP: u64 = 256 << 10;
/// Bytes that a worker copies in a fraction of a millisecond to some milliseconds.
const QUICKLY_COPIED: u64 = 64 << 20;

/// Memory areas and initial vector registers of programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramMemory {
    /// The numbers that vector registers hold at a program's entry.
    pub vectors: FloatElement,
    /// The areas, at most [`MOST_AREAS`].
    pub areas: Vec<MemoryArea>,
}

/// One stretch of memory that programs may read and write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryArea {
    /// Its size in bytes, 1 to [`MOST_AREA_BYTES`]. It is mapped in whole pages; what is behind its last byte is zero.
    pub bytes: u64,
    /// Initial contents.
    pub fill: AreaFill,
    /// Size of its pages.
    pub pages: PageSize,
    /// Its physical memory.
    pub frames: PhysicalFrames,
    /// Its address.
    pub address: AreaAddress,
    /// Lifetime of programs' stores.
    pub lifetime: StoreLifetime,
    /// Pages that are present before the first call.
    pub present: PagePresence,
    /// The register that points into it, if one does.
    pub pointer: Option<AreaPointer>,
}

/// Initial contents of an area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AreaFill {
    /// Floating point numbers.
    Pattern(FloatElement),
    /// These bytes over and over, at least one.
    Bytes(Vec<u8>),
    /// Pointers that lead from element to element and back to the first.
    Ring(PointerRing),
    /// These bytes once, then zeros.
    Image(Vec<u8>),
    /// Random bytes of this seed.
    Random(u64),
}

/// A ring of pointers: each element holds the address of the next in its first eight bytes, little-endian; the other
/// bytes are zero. `mov rax, [rax]` goes through all of them and begins again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerRing {
    /// Bytes from one element to the next in memory: a multiple of 8. There are as many as have room in the area.
    pub stride: u32,
    /// Order in which the ring visits the elements.
    pub order: RingOrder,
    /// Seed of the random orders.
    pub seed: u64,
}

/// The order of a [`PointerRing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RingOrder {
    /// By address.
    Sequential,
    /// Any element after any other: of a stride of 64, each cache line once. Most steps lead to another page.
    RandomByLine,
    /// Page after page in random order, in each page all of its elements in random order: few translations.
    RandomByPage,
}

/// The size of an area's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    Small,
    /// 2 MiB.
    Huge,
}

/// The physical memory of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhysicalFrames {
    /// A physical page for each page.
    #[default]
    Own,
    /// This number of physical pages, mapped repeatedly: page n is physical page n modulo this number. The fill is that
    /// of the physical pages.
    Repeated(u32),
    /// Those that all areas of this number and of as many bytes have in common, of whichever executor of this process: what one
    /// program stores, one on another CPU reads. Each worker writes the fill when its area begins to live.
    Common(u64),
}

/// An area's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AreaAddress {
    /// The executor chooses: the start of a page.
    #[default]
    Free,
    /// This address, the start of a page.
    Fixed(u64),
}

/// Lifetime of programs' stores in an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreLifetime {
    /// For a layout: each layout finds the area as it was at first.
    #[default]
    Fresh,
    /// From call to call, layout to layout and batch to batch, until a batch with another memory comes or a program
    /// fails.
    Kept,
    /// No program uses the area, and nothing is prepared in it: it may hold anything. Its register still points into
    /// it.
    Unused,
}

/// Which pages of an area are there before the first call of a layout; the others come with a page fault when a program
/// first touches them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PagePresence {
    /// Those around the pointer: quick to make. Pages that were never written to may have their physical memory in
    /// common with areas of the same fill.
    #[default]
    AtPointer,
    /// All of them. Huge and repeated pages always are.
    Everywhere,
}

/// Which register points into an area, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AreaPointer {
    /// The register by its encoding number: 0 (RAX) to 14 (R14). R15 counts a loop's iterations.
    pub register: u8,
    /// Position of the pointer before a layout moves it.
    pub at: PointerPosition,
}

/// Where in an area a pointer points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointerPosition {
    /// The first byte; in a ring the first element.
    Start,
    /// The middle and an odd multiple of 320 bytes, another for each area, so that no two areas' pointers are congruent
    /// modulo 4096; in a ring the last element up to there.
    Middle,
    /// So far before the end that a layout may move it, staggered as in the middle: for a stack, which grows down.
    Top,
}

impl Default for ProgramMemory {
    fn default() -> ProgramMemory {
        ProgramMemory::standard(FloatElement::default(), true)
    }
}

impl ProgramMemory {
    /// Five areas of 1 MiB of these numbers, fresh in each layout; R14, RDI, RSI, RSP and RBP point into their
    /// middles. Where programs do not touch them, they are not prepared.
    pub fn standard(element: FloatElement, touched: bool) -> ProgramMemory {
        let area = |register: usize| MemoryArea {
            bytes: STANDARD_AREA_BYTES,
            lifetime: if touched { StoreLifetime::Fresh } else { StoreLifetime::Unused },
            pointer: Some(AreaPointer { register: register as u8, at: PointerPosition::Middle }),
            ..MemoryArea::new(STANDARD_AREA_BYTES, AreaFill::Pattern(element))
        };
        ProgramMemory { vectors: element, areas: AREA_REGISTERS.map(area).into() }
    }

    /// What a called function gets: R14 points to the start of a buffer, and RSP to the top of a stack of zeros, this
    /// number of bytes at least. Each worker has physical memory of its own behind a buffer that is quickly copied.
    pub fn for_call(buffer: u64, contents: AreaFill, stack: u64) -> ProgramMemory {
        let pointer = |register, at| Some(AreaPointer { register, at });
        let present = if buffer <= QUICKLY_COPIED { PagePresence::Everywhere } else { PagePresence::AtPointer };
        let buffer =
            MemoryArea { present, pointer: pointer(14, PointerPosition::Start), ..MemoryArea::new(buffer, contents) };
        let zeros = MemoryArea::new(stack.next_multiple_of(PAGE_BYTES) + MOST_ABOVE_TOP, AreaFill::Image(Vec::new()));
        let stack = MemoryArea { pointer: pointer(4, PointerPosition::Top), ..zeros };
        ProgramMemory { vectors: FloatElement::default(), areas: vec![buffer, stack] }
    }

    /// Offset in the area to which its register points before a layout moves it, in bytes; `None` without a register.
    pub fn pointer_offset(&self, area: usize) -> Option<u64> {
        let described = &self.areas[area];
        let stagger = POINTER_STAGGER * (2 * area as u64 + 1);
        let middle = described.bytes / 2 + stagger;
        match (described.pointer?.at, &described.fill) {
            (PointerPosition::Start, _) => Some(0),
            (PointerPosition::Top, _) => Some(described.bytes.saturating_sub(TOP_DISTANCE + stagger)),
            (PointerPosition::Middle, AreaFill::Ring(ring)) => Some(middle - middle % u64::from(ring.stride)),
            (PointerPosition::Middle, _) => Some(middle),
        }
    }

    /// Displacements of an area's pointer that a layout may use, in bytes; only zero without a pointer. In a ring each
    /// position must be an element.
    pub fn allowed_shifts(&self, area: usize) -> RangeInclusive<i64> {
        let Some(offset) = self.pointer_offset(area) else { return 0..=0 };
        let bytes = self.areas[area].bytes;
        let margin = (bytes / MARGIN_SHARE).min(POINTER_MARGIN);
        let low = offset.min(margin) as i64;
        let high = offset.max(bytes - 1 - margin) as i64;
        low - offset as i64..=high - offset as i64
    }

    /// The general purpose registers that point into areas: their encoding numbers and values, for areas at these
    /// addresses and these displacements of the pointers in bytes. Both lists are as long as that of the areas.
    pub fn pointer_registers<'a>(
        &'a self,
        addresses: &'a [u64],
        shifts: &'a [i32],
    ) -> impl Iterator<Item = (usize, u64)> + 'a {
        (0..self.areas.len()).filter_map(|area| {
            let register = self.areas[area].pointer?.register;
            let value = addresses[area] + self.pointer_offset(area)?;
            Some((usize::from(register), value.wrapping_add_signed(shifts[area].into())))
        })
    }
}

impl MemoryArea {
    /// An area of this number of bytes at a free address, of small pages of its own that are fresh in each layout,
    /// without a register.
    pub fn new(bytes: u64, fill: AreaFill) -> MemoryArea {
        MemoryArea {
            bytes,
            fill,
            pages: PageSize::default(),
            frames: PhysicalFrames::default(),
            address: AreaAddress::default(),
            lifetime: StoreLifetime::default(),
            present: PagePresence::default(),
            pointer: None,
        }
    }

    /// A ring with all of its pages there, in which a register points to the first element.
    pub fn from_ring(bytes: u64, ring: PointerRing, register: u8) -> MemoryArea {
        MemoryArea {
            present: PagePresence::Everywhere,
            pointer: Some(AreaPointer { register, at: PointerPosition::Start }),
            ..MemoryArea::new(bytes, AreaFill::Ring(ring))
        }
    }

    /// Bytes of one of its pages.
    pub fn page_bytes(&self) -> u64 {
        match self.pages {
            PageSize::Small => PAGE_BYTES,
            PageSize::Huge => HUGE_PAGE_BYTES,
        }
    }

    /// Bytes of addresses that it takes: whole pages.
    pub fn mapped_bytes(&self) -> u64 {
        self.bytes.next_multiple_of(self.page_bytes())
    }

    /// Bytes of physical memory behind it.
    pub fn frame_bytes(&self) -> u64 {
        match self.frames {
            PhysicalFrames::Own | PhysicalFrames::Common(_) => self.mapped_bytes(),
            PhysicalFrames::Repeated(pages) => u64::from(pages) * self.page_bytes(),
        }
    }
}

impl PointerRing {
    /// Number of elements in an area of this number of bytes.
    pub fn element_count(&self, bytes: u64) -> u64 {
        if bytes < 8 { 0 } else { (bytes - 8) / u64::from(self.stride) + 1 }
    }
}
