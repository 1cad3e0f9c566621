//! A program's memory as data: a list of areas, their initial contents, and the registers that
//! point into them.
//!
//! A study describes the memory that its programs need; an executor creates it without knowing why.
//! The contents of an area follow only from its description and its address, so they are the same
//! in every executor.
//!
//! Limits: see the constants of this file and [`ProgramMemory::check`]. An executor that cannot
//! provide valid memory returns [`Unavailable`](cyclescope_core::error::Unavailable).

mod check;
mod contents;
mod image_text;
#[cfg(test)]
mod tests;

use crate::context::{AREA_REGISTERS, FloatElement};
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Size of the largest area in bytes.
pub const MOST_AREA_BYTES: u64 = 1 << 30;
/// Largest number of areas.
pub const MOST_AREAS: usize = 32;
/// Size of an area of [`ProgramMemory::standard`] in bytes.
pub const STANDARD_AREA_BYTES: u64 = 1 << 20;
/// Bytes of a small page (Intel SDM vol. 3A, 4.5).
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of a huge page (Intel SDM vol. 3A, 4.5).
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Distance that keeps the areas' registers apart modulo 4096: odd multiples of 320, each in a
/// different line. On Zen 4, a store and a load at addresses congruent modulo 1024 cost 20 to 50
/// cycles.
const POINTER_STAGGER: u64 = 320;
/// Smallest distance in bytes of a pointer from the ends of its area. Code accesses memory up to
/// this far from the pointer.
const POINTER_MARGIN: u64 = 60 << 10;
/// Smallest distance of a pointer from the ends, as a share of the area: 1 / `MARGIN_SHARE`.
const MARGIN_SHARE: u64 = 16;
/// Distance in bytes of a top pointer from the end of its area, without the stagger. A layout moves
/// the pointer by at most 64 KiB, so the margin is kept.
const TOP_DISTANCE: u64 = 128 << 10;
/// Most bytes of an area above its top pointer after a layout has moved it.
pub const MOST_ABOVE_TOP: u64 = 256 << 10;
/// Bytes that a worker copies within a few milliseconds.
const QUICKLY_COPIED: u64 = 64 << 20;

/// Memory areas and initial vector registers of programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramMemory {
    /// Initial numbers in the vector registers.
    pub vectors: FloatElement,
    /// The areas, at most [`MOST_AREAS`].
    pub areas: Vec<MemoryArea>,
}

/// A contiguous memory area that programs may read and write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryArea {
    /// Size in bytes, 1 to [`MOST_AREA_BYTES`]. Whole pages are mapped; the bytes after the end are
    /// zero.
    pub bytes: u64,
    /// Initial contents.
    pub fill: AreaFill,
    /// Page size.
    pub pages: PageSize,
    /// Physical memory.
    pub frames: PhysicalFrames,
    /// Address.
    pub address: AreaAddress,
    /// Lifetime of programs' stores.
    pub lifetime: StoreLifetime,
    /// Pages that are present before the first call.
    pub present: PagePresence,
    /// Register that points into it, if any.
    pub pointer: Option<AreaPointer>,
    /// Use of its bytes.
    #[serde(default)]
    pub access: AreaAccess,
}

/// Initial contents of an area.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AreaFill {
    /// Floating point numbers.
    Pattern(FloatElement),
    /// These bytes repeatedly, at least one.
    Bytes(Vec<u8>),
    /// Pointers from element to element and back to the first.
    Ring(PointerRing),
    /// These bytes once, then zeros.
    Image(#[serde(with = "image_text")] Vec<u8>),
    /// Random bytes from this seed.
    Random(u64),
}

/// A ring of pointers. The first eight bytes of each element hold the address of the next,
/// little-endian; its other bytes are zero. `mov rax, [rax]` visits all elements and starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointerRing {
    /// Bytes from one element to the next in memory: a multiple of 8. The area holds as many
    /// elements as fit.
    pub stride: u32,
    /// Order in which the ring visits the elements.
    pub order: RingOrder,
    /// Seed of the random orders.
    pub seed: u64,
}

/// Order of a [`PointerRing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RingOrder {
    /// By address.
    Sequential,
    /// Any element after any other; with a stride of 64, each cache line once. Most steps lead to
    /// another page.
    RandomByLine,
    /// Pages in random order, and all elements of a page in random order: few translations.
    RandomByPage,
}

/// Size of an area's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    Small,
    /// 2 MiB.
    Huge,
}

/// Physical memory of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhysicalFrames {
    /// One physical page per page.
    #[default]
    Own,
    /// This number of physical pages, mapped repeatedly: page n is physical page n modulo this
    /// number. The fill covers the physical pages.
    Repeated(u32),
    /// Physical memory shared by all areas with this number and the same size, across the executors
    /// of this process. A store by one program is visible to a program on another CPU. Each worker
    /// writes the fill when it creates its area.
    Common(u64),
}

/// Address of an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AreaAddress {
    /// Chosen by the executor; the start of a page.
    #[default]
    Free,
    /// This address, the start of a page.
    Fixed(u64),
}

/// Lifetime of programs' stores in an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoreLifetime {
    /// One layout: each layout finds the area in its initial state.
    #[default]
    Fresh,
    /// Kept across calls, layouts and batches, until a batch has a different memory or a program
    /// fails.
    Kept,
    /// No program uses the area, and it is not prepared: it may hold anything. Its register still
    /// points into it.
    Unused,
}

/// Use of an area's bytes by programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AreaAccess {
    /// Programs read and write them.
    #[default]
    Data,
    /// Programs execute and read them. Only for areas of small pages, one physical page each, that
    /// come with a fault.
    Code,
}

/// Pages of an area that are present before the first call of a layout. The others come with a page
/// fault at the first access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PagePresence {
    /// Pages around the pointer: fast to create. Pages that were never written may share physical
    /// memory with areas of the same fill.
    #[default]
    AtPointer,
    /// All pages. Always so for huge and repeated pages.
    Everywhere,
}

/// The register that points into an area, and its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AreaPointer {
    /// Register by its encoding number: 0 (RAX) to 14 (R14). R15 counts a loop's iterations.
    pub register: u8,
    /// Position of the pointer before a layout moves it.
    pub at: PointerPosition,
}

/// Target of a pointer in an area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PointerPosition {
    /// First byte; in a ring the first element.
    Start,
    /// The middle plus an odd multiple of 320 bytes that differs per area, so that no two pointers
    /// are congruent modulo 4096. In a ring, the last element up to there.
    Middle,
    /// Near the end, with room for a layout to move it, and staggered like `Middle`. For a stack,
    /// which grows down.
    Top,
}

impl Default for ProgramMemory {
    fn default() -> ProgramMemory {
        ProgramMemory::standard(FloatElement::default(), true)
    }
}

impl ProgramMemory {
    /// Five areas of 1 MiB with these numbers, fresh in each layout. R14, RDI, RSI, RSP and RBP
    /// point into their middles. Areas that programs do not touch are not prepared.
    pub fn standard(element: FloatElement, touched: bool) -> ProgramMemory {
        let area = |register: usize| MemoryArea {
            bytes: STANDARD_AREA_BYTES,
            lifetime: if touched { StoreLifetime::Fresh } else { StoreLifetime::Unused },
            pointer: Some(AreaPointer { register: register as u8, at: PointerPosition::Middle }),
            ..MemoryArea::new(STANDARD_AREA_BYTES, AreaFill::Pattern(element))
        };
        ProgramMemory { vectors: element, areas: AREA_REGISTERS.map(area).into() }
    }

    /// Memory for a called function: R14 points to the start of a buffer, RSP to the top of a
    /// zeroed stack of at least this many bytes. A buffer that copies fast has separate physical
    /// memory in each worker.
    pub fn for_call(buffer: u64, contents: AreaFill, stack: u64) -> ProgramMemory {
        let pointer = |register, at| Some(AreaPointer { register, at });
        let present = PagePresence::for_bytes(buffer);
        let buffer =
            MemoryArea { present, pointer: pointer(14, PointerPosition::Start), ..MemoryArea::new(buffer, contents) };
        ProgramMemory { vectors: FloatElement::default(), areas: vec![buffer, MemoryArea::new_stack(stack)] }
    }

    /// Memory for code that runs at its own addresses: these areas, and a zeroed stack of at least
    /// this many bytes, to whose top RSP points.
    pub fn for_region(stack: u64, mut areas: Vec<MemoryArea>) -> ProgramMemory {
        areas.push(MemoryArea::new_stack(stack));
        ProgramMemory { vectors: FloatElement::default(), areas }
    }

    /// Offset in the area of its register's target before a layout moves it, in bytes; `None`
    /// without a register.
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

    /// Pointer displacements that a layout may use, in bytes; only zero without a pointer. In a
    /// ring each position must be an element.
    pub fn allowed_shifts(&self, area: usize) -> RangeInclusive<i64> {
        let Some(offset) = self.pointer_offset(area) else { return 0..=0 };
        let bytes = self.areas[area].bytes;
        let margin = (bytes / MARGIN_SHARE).min(POINTER_MARGIN);
        let low = offset.min(margin) as i64;
        let high = offset.max(bytes - 1 - margin) as i64;
        low - offset as i64..=high - offset as i64
    }

    /// General-purpose registers that point into areas, with their values. `addresses` are those of
    /// the areas, and the displacements move their pointers, in bytes. Both lists have one entry
    /// per area.
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
    /// An area of this many bytes at a free address, without a register. It has small pages of its
    /// own and is fresh in each layout.
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
            access: AreaAccess::default(),
        }
    }

    /// A zeroed stack of at least this many bytes; RSP points to its top.
    fn new_stack(bytes: u64) -> MemoryArea {
        let mapped = bytes.next_multiple_of(PAGE_BYTES) + MOST_ABOVE_TOP;
        let pointer = Some(AreaPointer { register: 4, at: PointerPosition::Top });
        MemoryArea { pointer, ..MemoryArea::new(mapped, AreaFill::Image(Vec::new())) }
    }

    /// A ring with all pages present; a register points to its first element.
    pub fn from_ring(bytes: u64, ring: PointerRing, register: u8) -> MemoryArea {
        MemoryArea {
            present: PagePresence::Everywhere,
            pointer: Some(AreaPointer { register, at: PointerPosition::Start }),
            ..MemoryArea::new(bytes, AreaFill::Ring(ring))
        }
    }

    /// Bytes per page.
    pub fn page_bytes(&self) -> u64 {
        match self.pages {
            PageSize::Small => PAGE_BYTES,
            PageSize::Huge => HUGE_PAGE_BYTES,
        }
    }

    /// Bytes of address space: whole pages.
    pub fn mapped_bytes(&self) -> u64 {
        self.bytes.next_multiple_of(self.page_bytes())
    }

    /// Bytes of physical memory.
    pub fn frame_bytes(&self) -> u64 {
        match self.frames {
            PhysicalFrames::Own | PhysicalFrames::Common(_) => self.mapped_bytes(),
            PhysicalFrames::Repeated(pages) => u64::from(pages) * self.page_bytes(),
        }
    }
}

impl PagePresence {
    /// All pages of an area that copies fast, so that each worker has physical memory of its own.
    pub fn for_bytes(bytes: u64) -> PagePresence {
        if bytes <= QUICKLY_COPIED { PagePresence::Everywhere } else { PagePresence::AtPointer }
    }
}

impl PointerRing {
    /// Number of elements in an area of this many bytes.
    pub fn element_count(&self, bytes: u64) -> u64 {
        if bytes < 8 { 0 } else { (bytes - 8) / u64::from(self.stride) + 1 }
    }
}
