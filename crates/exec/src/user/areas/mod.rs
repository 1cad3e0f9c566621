//! The memory areas of programs: from their description to the worker's mappings.
//!
//! The initial contents of an area are in a file without a name, its *source*, which the caller
//! writes and the worker can only read. An area with few touched pages is a private mapping of its
//! source: a written page is copied, and dropping the copies makes the area fresh. Any other area
//! is the worker's own memory, into which it copies the source.
//!
//! All areas are mapped before the worker's sandbox closes. A batch with a memory of another shape
//! therefore gets a new worker; a memory that differs only in contents keeps the worker. The caller
//! reserves the addresses, so that it knows whether a fixed address is free, and new workers get
//! the same ones.

mod common_file;
mod pages;

use super::narrow_code::{require_reachable, reserve_reachable};
use super::regions::{
    ContentsMapping, HAS_TEMPLATES, MAPPING_STEP, MemoryFile, MemoryMapping, REFUSED_HUGE, allocate_file, call_error,
    create_memory_file, file_number, reserve_addresses,
};
use crate::{ObtainedPages, PlacedArea};
use common_file::open_common_file;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::program::memory::{
    AreaAccess, AreaAddress, HUGE_PAGE_BYTES, MemoryArea, PAGE_BYTES, PagePresence, PageSize, PhysicalFrames,
    ProgramMemory, StoreLifetime,
};
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::machine::fact::SystemFiles;
use cyclescope_core::machine::free_memory;
use cyclescope_platform::error_code;
use cyclescope_worker::area::{AreaBacking, AreaOrders, AreaSetup, NO_REGISTER};
use cyclescope_worker::view::GUARD_BYTES;
use std::io;
use std::sync::Arc;

/// Mappings of one process that this leaves to others, out of the kernel's limit
/// (`vm.max_map_count`).
const OTHER_MAPPINGS: u64 = 4096;

/// Initial contents of areas.
struct AreaSource {
    file: MemoryFile,
    bytes: usize,
    /// The first area that uses these contents.
    area: usize,
}

/// Everything that decides on mappings. One worker serves all memories with equal mappings.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AreaShape {
    bytes: u64,
    pages: PageSize,
    frames: PhysicalFrames,
    address: AreaAddress,
    register: Option<u8>,
    access: AreaAccess,
    backing: BackingKind,
    /// The area whose source it uses.
    source: usize,
    source_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BackingKind {
    Template,
    Copied,
    Repeated,
}

impl AreaShape {
    fn from_area(memory: &ProgramMemory, number: usize) -> AreaShape {
        let area = &memory.areas[number];
        let sparse = HAS_TEMPLATES && area.present == PagePresence::AtPointer && area.pages == PageSize::Small;
        let backing = match area.frames {
            PhysicalFrames::Repeated(_) | PhysicalFrames::Common(_) => BackingKind::Repeated,
            PhysicalFrames::Own if sparse => BackingKind::Template,
            PhysicalFrames::Own => BackingKind::Copied,
        };
        let source_bytes = match (backing, area.uniform_word()) {
            (BackingKind::Copied | BackingKind::Repeated, Some(_)) => PAGE_BYTES,
            _ => area.frame_bytes(),
        };
        // A ring's contents depend on its address, so that no two rings are the same.
        let same = |other: &MemoryArea| {
            other.bytes == area.bytes
                && other.frames == area.frames
                && other.fill == area.fill
                && other.pages == area.pages
                && other.present == area.present
        };
        let shared = area.uniform_word().and_then(|_| memory.areas[..number].iter().position(same));
        AreaShape {
            bytes: area.bytes,
            pages: area.pages,
            frames: area.frames,
            address: area.address,
            register: area.pointer.map(|pointer| pointer.register),
            access: area.access,
            backing,
            source: shared.unwrap_or(number),
            source_bytes,
        }
    }
}

/// The areas of one memory, as files and addresses.
struct PreparedAreas {
    /// The last memory with used areas.
    memory: ProgramMemory,
    /// Lifetimes of the last batch's areas.
    lifetimes: Vec<StoreLifetime>,
    shapes: Vec<AreaShape>,
    sources: Vec<AreaSource>,
    /// Reserved addresses, kept free of other mappings of this process.
    _reservations: Vec<MemoryMapping>,
    setups: Vec<AreaSetup>,
    /// The physical pages of areas that repeat them or share them with others.
    _frames: Vec<Arc<MemoryFile>>,
    obtained: Vec<ObtainedPages>,
    /// Whether the system has given the sources their memory.
    allocated: bool,
    /// Whether sources have the contents that the memory describes.
    written: bool,
    /// Whether areas with kept contents have been filled at least once.
    begun: bool,
}

/// The memory areas of one executor. They outlive its workers.
#[derive(Default)]
pub(super) struct UserAreas {
    prepared: Option<PreparedAreas>,
    /// The mode of the code that reaches them.
    mode: CodeMode,
}

impl UserAreas {
    /// No areas yet, for code of a mode.
    pub(super) fn for_mode(mode: CodeMode) -> UserAreas {
        UserAreas { prepared: None, mode }
    }

    /// Whether a worker that has mapped the memory so far can't have this one.
    pub(super) fn needs_other_mappings(&self, memory: &ProgramMemory) -> bool {
        self.prepared.as_ref().is_some_and(|made| {
            made.shapes.len() != memory.areas.len()
                || (0..).zip(&made.shapes).any(|(area, shape)| AreaShape::from_area(memory, area) != *shape)
        })
    }

    /// Makes files and addresses for a checked memory. Returns true if the worker has mapped
    /// another memory and has to be replaced.
    pub(super) fn adopt_memory(&mut self, memory: &ProgramMemory) -> Result<bool, RunError> {
        let shapes: Vec<AreaShape> = (0..memory.areas.len()).map(|area| AreaShape::from_area(memory, area)).collect();
        let renewed = match &mut self.prepared {
            Some(made) if made.shapes == shapes => false,
            _ => {
                // Its addresses may be requested again.
                self.prepared = None;
                self.prepared = Some(PreparedAreas::new(memory, shapes, self.mode)?);
                true
            }
        };
        let made = self.prepared.as_mut().expect("just made");
        made.update_sources(memory)?;
        Ok(renewed)
    }

    /// The addresses of all areas.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.area_setups().iter().map(|setup| setup.address).collect()
    }

    /// Mappings of a new worker.
    pub(super) fn area_setups(&self) -> &[AreaSetup] {
        self.prepared.as_ref().map_or(&[], |made| &made.setups)
    }

    /// Records the mappings of a new worker, from the text of its `/proc/self/smaps`; empty if no
    /// area has huge pages.
    pub(super) fn record_mapping(&mut self, smaps: &str) -> Result<(), Unavailable> {
        let Some(made) = &mut self.prepared else { return Ok(()) };
        made.begun = false;
        let obtain = |setup: &AreaSetup| match setup.huge {
            true => pages::find_page_kind(smaps, setup.address, setup.bytes as u64),
            false => Ok(ObtainedPages::Small),
        };
        made.obtained = made.setups.iter().map(obtain).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Areas that the worker prepares for the next command.
    pub(super) fn build_orders(&self) -> AreaOrders {
        let mut orders = AreaOrders::default();
        let Some(made) = &self.prepared else { return orders };
        for (number, lifetime) in made.lifetimes.iter().enumerate() {
            let bit = 1 << number;
            match lifetime {
                StoreLifetime::Fresh => orders.refresh |= bit,
                StoreLifetime::Kept if !made.begun => orders.begin |= bit,
                StoreLifetime::Kept => {}
                StoreLifetime::Unused => continue,
            }
            orders.touch |= bit;
        }
        orders
    }

    /// Records that a command has ended well.
    pub(super) fn record_success(&mut self) {
        if let Some(made) = &mut self.prepared {
            made.begun = true;
        }
    }

    /// Addresses of the areas, and the kinds of their pages.
    pub(super) fn placed_areas(&self) -> Vec<PlacedArea> {
        let Some(made) = &self.prepared else { return Vec::new() };
        let placed =
            |(setup, pages): (&AreaSetup, &ObtainedPages)| PlacedArea { address: setup.address, pages: *pages };
        made.setups.iter().zip(&made.obtained).map(placed).collect()
    }
}

impl PreparedAreas {
    fn new(memory: &ProgramMemory, shapes: Vec<AreaShape>, mode: CodeMode) -> Result<PreparedAreas, RunError> {
        let places = AreaAddresses::reserve(memory, &shapes, mode)?;
        let mut sources: Vec<AreaSource> = Vec::new();
        let mut frames = Vec::new();
        let mut setups = Vec::new();
        for (number, (area, shape)) in memory.areas.iter().zip(&shapes).enumerate() {
            if shape.source == number {
                let bytes = shape.source_bytes as usize;
                sources.push(AreaSource { file: create_memory_file("cyclescope-area", bytes)?, bytes, area: number });
            }
            let source = sources.iter().find(|source| source.area == shape.source);
            let source = file_number(&source.expect("the source of an earlier area, or its own").file);
            let backing = match shape.backing {
                BackingKind::Template => AreaBacking::Template,
                BackingKind::Copied => AreaBacking::Copied,
                BackingKind::Repeated => {
                    let bytes = area.frame_bytes() as usize;
                    let file = match area.frames {
                        PhysicalFrames::Common(number) => open_common_file(number, bytes)?,
                        _ => Arc::new(create_memory_file("cyclescope-frames", bytes)?),
                    };
                    let fd = file_number(&file);
                    frames.push(file);
                    AreaBacking::Repeated { fd, bytes }
                }
            };
            setups.push(AreaSetup {
                address: places.areas[number],
                bytes: area.mapped_bytes() as usize,
                huge: area.pages == PageSize::Huge,
                executable: area.access == AreaAccess::Code,
                backing,
                source,
                source_at: places.sources[number],
                source_bytes: shape.source_bytes as usize,
                register: shape.register.and_then(|number| mode.general_number(number.into())).unwrap_or(NO_REGISTER),
            });
        }
        let obtained = vec![ObtainedPages::Small; setups.len()];
        Ok(PreparedAreas {
            memory: memory.clone(),
            lifetimes: Vec::new(),
            shapes,
            sources,
            _reservations: places.reservations,
            setups,
            _frames: frames,
            obtained,
            allocated: false,
            written: false,
            begun: false,
        })
    }

    /// Fills the sources with the contents of a memory of this shape. A memory without used areas
    /// changes no contents: such a memory often comes between two equal ones.
    fn update_sources(&mut self, memory: &ProgramMemory) -> Result<(), RunError> {
        let lifetimes: Vec<StoreLifetime> = memory.areas.iter().map(|area| area.lifetime).collect();
        if self.lifetimes != lifetimes {
            self.begun = false;
            self.lifetimes = lifetimes;
        }
        let unused = self.lifetimes.iter().all(|lifetime| *lifetime == StoreLifetime::Unused);
        let same = |(one, other): (&MemoryArea, &MemoryArea)| one.fill == other.fill;
        if unused || self.written && self.memory.areas.iter().zip(&memory.areas).all(same) {
            return Ok(());
        }
        self.begun = false;
        self.written = false;
        self.memory.clone_from(memory);
        self.write_sources()
    }

    /// Bytes that the areas take, in the worker and in the sources of their contents. Huge pages may
    /// come from a pool of their own.
    fn needed_bytes(&self) -> u64 {
        let area = |setup: &AreaSetup| match setup.backing {
            AreaBacking::Copied if !setup.huge => setup.bytes + setup.source_bytes,
            _ => setup.source_bytes,
        };
        self.setups.iter().map(|setup| area(setup) as u64).sum()
    }

    fn write_sources(&mut self) -> Result<(), RunError> {
        // Without enough, the kernel would end this program without a word.
        if !self.allocated {
            let free = free_memory::read_free_bytes(&SystemFiles::system());
            require_free_bytes(self.needed_bytes(), free.known().copied()).map_err(RunError::Unavailable)?;
        }
        for source in &self.sources {
            let area = &self.memory.areas[source.area];
            allocate_file(&source.file, source.bytes)?;
            let mut mapping = ContentsMapping::map(&source.file, source.bytes)?;
            let bytes = mapping.contents_mut();
            match area.uniform_word() {
                Some(word) => bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&word.to_le_bytes())),
                None => area.write_contents(self.setups[source.area].address, bytes),
            }
        }
        (self.allocated, self.written) = (true, true);
        Ok(())
    }
}

/// Fails if the areas take more memory than is free.
fn require_free_bytes(needed: u64, free: Option<u64>) -> Result<(), Unavailable> {
    match free {
        Some(free) if free < needed => Err(Unavailable {
            what: format!("{} MiB for the memory areas", needed.div_ceil(1 << 20)),
            why: format!("only {} MiB are free here, or in this control group", free >> 20),
            remedy: "take a smaller buffer or smaller areas, or allow more: see `free -m`, and memory.max of the group"
                .to_string(),
        }),
        _ => Ok(()),
    }
}

/// Addresses for areas, and for sources that the worker copies from.
struct AreaAddresses {
    areas: Vec<u64>,
    /// 0 if the worker does not map the source separately.
    sources: Vec<u64>,
    reservations: Vec<MemoryMapping>,
}

impl AreaAddresses {
    fn reserve(memory: &ProgramMemory, shapes: &[AreaShape], mode: CodeMode) -> Result<AreaAddresses, RunError> {
        limit_mappings(&memory.areas).map_err(RunError::Unavailable)?;
        let huge = memory.areas.iter().any(|area| area.pages == PageSize::Huge);
        if let (true, Some((why, remedy))) = (huge, REFUSED_HUGE) {
            let what = "memory in pages of 2 MiB".to_string();
            return Err(RunError::Unavailable(Unavailable { what, why: why.to_string(), remedy: remedy.to_string() }));
        }
        let mut reservations = Vec::new();
        for (number, area) in memory.areas.iter().enumerate() {
            let AreaAddress::Fixed(address) = area.address else { continue };
            require_reachable(mode, address.saturating_add(area.mapped_bytes()))?;
            let reserved = reserve_addresses(Some(address), area.mapped_bytes() as usize);
            reservations
                .push(reserved.map_err(|error| fixed_address_error(number, address, area.mapped_bytes(), error))?);
        }
        // Offsets in one stretch of addresses, which begins on a huge page.
        let mut end = GUARD_BYTES as u64;
        let mut take = |bytes: u64, alignment: u64| {
            let at = end.next_multiple_of(alignment);
            end = at + bytes + GUARD_BYTES as u64;
            at
        };
        let free: Vec<Option<u64>> = memory
            .areas
            .iter()
            .map(|area| {
                (area.address == AreaAddress::Free)
                    .then(|| take(area.mapped_bytes(), area.page_bytes().max(MAPPING_STEP)))
            })
            .collect();
        let copied: Vec<Option<u64>> = shapes
            .iter()
            .map(|shape| {
                let bytes = shape.source_bytes.next_multiple_of(PAGE_BYTES);
                (shape.backing != BackingKind::Template).then(|| take(bytes, MAPPING_STEP.max(PAGE_BYTES)))
            })
            .collect();
        let alignment = if huge { HUGE_PAGE_BYTES } else { MAPPING_STEP };
        let stretch = reserve_reachable(mode, (end + alignment) as usize)
            .map_err(call_error("reserving addresses for the memory areas", "mmap"))?;
        let start = stretch.start().next_multiple_of(alignment);
        reservations.push(stretch);
        let fixed = |area: &MemoryArea| match area.address {
            AreaAddress::Fixed(address) => address,
            AreaAddress::Free => 0,
        };
        let areas = memory.areas.iter().zip(&free);
        Ok(AreaAddresses {
            areas: areas.map(|(area, offset)| offset.map_or(fixed(area), |at| start + at)).collect(),
            sources: copied.iter().map(|offset| offset.map_or(0, |at| start + at)).collect(),
            reservations,
        })
    }
}

/// Why an area can't be at its fixed address.
fn fixed_address_error(number: usize, address: u64, bytes: u64, error: io::Error) -> RunError {
    let (why, remedy) = match error.raw_os_error().unwrap_or(0) {
        error_code::EEXIST => (
            format!("{} is mapped there in this process", pages::find_occupant(address, bytes)),
            "choose another address, such as one above 0x100000000000".to_string(),
        ),
        error_code::EPERM | error_code::EACCES => (
            "the kernel allows no mapping that low (vm.mmap_min_addr)".to_string(),
            "choose an address of 0x10000 or above".to_string(),
        ),
        _ => return call_error("reserving the fixed address of a memory area", "mmap")(error),
    };
    RunError::Unavailable(Unavailable { what: format!("area {number} at address {address:#x}"), why, remedy })
}

/// An error if the repeated pages of all areas need more mappings, one for each repetition, than
/// the kernel allows.
fn limit_mappings(areas: &[MemoryArea]) -> Result<(), Unavailable> {
    let allowed = pages::read_max_mappings().saturating_sub(OTHER_MAPPINGS);
    let mut wanted = 0;
    for (number, area) in areas.iter().enumerate() {
        if area.frames == PhysicalFrames::Own {
            continue;
        }
        let what = format!("area {number} of pages that are mapped more than once");
        if area.pages == PageSize::Huge {
            return Err(Unavailable {
                what,
                why: "this executor does that with pages of 4 KiB only".to_string(),
                remedy: "ask for small pages".to_string(),
            });
        }
        if area.frame_bytes() % MAPPING_STEP != 0 {
            return Err(Unavailable {
                what,
                why: format!("this system repeats memory in pieces of {} KiB only", MAPPING_STEP >> 10),
                remedy: "measure on Linux".to_string(),
            });
        }
        wanted += area.mapped_bytes().div_ceil(area.frame_bytes());
        if wanted > allowed {
            return Err(Unavailable {
                what,
                why: format!("the repeated pages up to there take {wanted} mappings, and {allowed} are allowed"),
                remedy: format!(
                    "repeat more physical pages, or allow more mappings: sysctl -w vm.max_map_count={}",
                    wanted + OTHER_MAPPINGS
                ),
            });
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests;
