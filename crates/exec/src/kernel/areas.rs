//! The memory areas of programs in ring 0, which the module makes and fills.
//!
//! The module chooses the addresses of areas, which are whole small pages. It fills pages that were
//! written to, with a repeated word or with bytes from this executor. All other features of a
//! memory are unavailable.

use super::abi::{self, ModuleArea as PlacedSize, ModuleFill};
use super::device::ModuleDevice;
use crate::{ObtainedPages, PlacedArea};
use cyclescope_code::program::memory::{
    AreaAccess, AreaAddress, MemoryArea, PageSize, PhysicalFrames, ProgramMemory, StoreLifetime,
};
use cyclescope_core::error::{RunError, Unavailable};

/// The areas that the module has made for this executor.
#[derive(Debug, Default)]
pub(super) struct KernelAreas {
    /// The last memory with used areas.
    memory: ProgramMemory,
    /// Lifetimes of the last batch's areas.
    lifetimes: Vec<StoreLifetime>,
    /// Sizes and addresses, in the order of the module's list.
    placed: Vec<PlacedSize>,
    /// Initial contents of areas that are not one repeated word.
    contents: Vec<Option<Vec<u8>>>,
    /// Whether the module has filled all used areas with their initial contents.
    filled: bool,
    /// Whether areas with kept contents have been filled at least once.
    begun: bool,
}

impl KernelAreas {
    /// Lets the module make the areas of a checked memory. The error names the feature that the
    /// module does not offer.
    pub(super) fn adopt_memory(&mut self, module: &ModuleDevice, memory: &ProgramMemory) -> Result<(), RunError> {
        check_features(memory, &module.info).map_err(RunError::Unavailable)?;
        let sizes = memory.areas.iter().map(MemoryArea::mapped_bytes);
        if !self.placed.iter().map(|area| area.bytes).eq(sizes.clone()) {
            self.placed = sizes.map(|bytes| PlacedSize { bytes, address: 0 }).collect();
            self.filled = false;
            module.set_areas(&mut self.placed).inspect_err(|_| self.placed.clear())?;
        }
        self.update_contents(memory);
        Ok(())
    }

    /// A memory without used areas changes no contents: such a memory often comes between two equal
    /// ones.
    fn update_contents(&mut self, memory: &ProgramMemory) {
        let lifetimes: Vec<StoreLifetime> = memory.areas.iter().map(|area| area.lifetime).collect();
        let unused = lifetimes.iter().all(|lifetime| *lifetime == StoreLifetime::Unused);
        if self.lifetimes != lifetimes {
            self.begun = false;
            self.lifetimes = lifetimes;
        }
        let same = |(one, other): (&MemoryArea, &MemoryArea)| one.fill == other.fill && one.bytes == other.bytes;
        if unused || self.filled && self.memory.areas.iter().zip(&memory.areas).all(same) {
            return;
        }
        (self.filled, self.begun) = (false, false);
        self.memory.clone_from(memory);
        let content = |(area, placed): (&MemoryArea, &PlacedSize)| {
            area.uniform_word().is_none().then(|| {
                let mut bytes = vec![0; area.frame_bytes() as usize];
                area.write_contents(placed.address, &mut bytes);
                bytes
            })
        };
        self.contents = memory.areas.iter().zip(&self.placed).map(content).collect();
    }

    /// Areas that the module fills before the next layout. Their addresses are valid until the next
    /// [`KernelAreas::adopt_memory`].
    pub(super) fn list_fills(&self) -> Vec<ModuleFill> {
        let written = if self.filled { abi::FILL_WRITTEN } else { abi::FILL_ALL };
        let fill = |(number, lifetime): (usize, &StoreLifetime)| {
            let flags = match lifetime {
                StoreLifetime::Fresh => written,
                StoreLifetime::Kept if !self.begun => written,
                StoreLifetime::Kept | StoreLifetime::Unused => return ModuleFill::default(),
            };
            let content = self.contents[number].as_ref().map_or(0, |bytes| bytes.as_ptr() as u64);
            let word = self.memory.areas[number].uniform_word().unwrap_or(0);
            ModuleFill { flags, reserved: 0, content, word }
        };
        self.lifetimes.iter().enumerate().map(fill).collect()
    }

    /// Records the end of a layout; `well` is false after a fault of its program.
    pub(super) fn record_layout_end(&mut self, well: bool) {
        let every = self.lifetimes.iter().all(|lifetime| *lifetime != StoreLifetime::Unused);
        self.filled |= every;
        self.begun = well;
    }

    /// The addresses of all areas.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.placed.iter().map(|area| area.address).collect()
    }

    /// Addresses of the areas, and the kinds of their pages.
    pub(super) fn placed_areas(&self) -> Vec<PlacedArea> {
        let area = |address| PlacedArea { address, pages: ObtainedPages::Small };
        self.addresses().into_iter().map(area).collect()
    }
}

/// Checks that the module offers all features of a memory.
fn check_features(memory: &ProgramMemory, info: &abi::ModuleProperties) -> Result<(), Unavailable> {
    let lack = |what: String, why: String| Unavailable {
        what: format!("{what} in ring 0"),
        why,
        remedy: "measure in user mode (--executor user)".to_string(),
    };
    if memory.areas.len() > info.most_areas as usize {
        let why = format!("the kernel module has at most {}", info.most_areas);
        return Err(lack(format!("a memory of {} areas", memory.areas.len()), why));
    }
    let bytes: u64 = memory.areas.iter().map(MemoryArea::mapped_bytes).sum();
    if bytes > info.most_area_bytes {
        let why = format!("the kernel module has at most {} for all areas together", info.most_area_bytes);
        return Err(lack(format!("a memory of {bytes} bytes"), why));
    }
    for (number, area) in memory.areas.iter().enumerate() {
        let why = match area {
            MemoryArea { pages: PageSize::Huge, .. } => "the kernel module makes pages of 4 KiB only",
            MemoryArea { frames: PhysicalFrames::Repeated(_), .. } => "the kernel module maps each physical page once",
            MemoryArea { frames: PhysicalFrames::Common(_), .. } => {
                "the kernel module shares no memory with another CPU"
            }
            MemoryArea { address: AreaAddress::Fixed(_), .. } => "the kernel module chooses addresses by itself",
            MemoryArea { access: AreaAccess::Code, .. } => "the kernel module runs code only in its programs",
            _ => continue,
        };
        return Err(lack(format!("area {number}"), why.to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::context::FloatElement;
    use cyclescope_code::program::memory::{AreaFill as Contents, PointerRing, RingOrder};

    fn info() -> abi::ModuleProperties {
        abi::ModuleProperties { most_areas: 16, most_area_bytes: 64 << 20, ..abi::ModuleProperties::default() }
    }

    /// Areas as after placement by the module.
    fn placed(memory: &ProgramMemory) -> KernelAreas {
        let size = |area: &MemoryArea| PlacedSize { bytes: area.mapped_bytes(), address: 0x10_0000 };
        let mut areas = KernelAreas { placed: memory.areas.iter().map(size).collect(), ..KernelAreas::default() };
        areas.update_contents(memory);
        areas
    }

    fn flags(areas: &KernelAreas) -> Vec<u32> {
        areas.list_fills().iter().map(|fill| fill.flags).collect()
    }

    #[test]
    fn features_that_the_module_lacks_are_unavailable() {
        assert_eq!(check_features(&ProgramMemory::default(), &info()), Ok(()));
        let changed = |change: &dyn Fn(&mut MemoryArea)| {
            let mut memory = ProgramMemory::default();
            change(&mut memory.areas[3]);
            check_features(&memory, &info()).unwrap_err()
        };
        assert!(changed(&|area| area.pages = PageSize::Huge).why.contains("4 KiB"));
        assert!(changed(&|area| area.frames = PhysicalFrames::Repeated(2)).why.contains("once"));
        assert!(changed(&|area| area.frames = PhysicalFrames::Common(2)).why.contains("another CPU"));
        assert!(changed(&|area| area.address = AreaAddress::Fixed(0x1000_0000)).what.contains("area 3"));
        assert!(changed(&|area| area.access = AreaAccess::Code).why.contains("runs code only in its programs"));
        assert!(changed(&|area| area.bytes = 61 << 20).why.contains("67108864"));
        let many = vec![MemoryArea::new(1, Contents::Image(Vec::new())); 17];
        let memory = ProgramMemory { vectors: FloatElement::F64, areas: many };
        assert!(check_features(&memory, &info()).unwrap_err().why.contains("at most 16"));
    }

    #[test]
    fn pages_are_filled_when_needed() {
        let (all, written) = (abi::FILL_ALL, abi::FILL_WRITTEN);
        let mut areas = placed(&ProgramMemory::standard(FloatElement::F32, true));
        assert_eq!(flags(&areas), [all; 5]);
        assert!(areas.list_fills().iter().all(|fill| fill.word == FloatElement::F32.to_word() && fill.content == 0));
        areas.record_layout_end(true);
        assert_eq!(flags(&areas), [written; 5]);
        areas.update_contents(&ProgramMemory::standard(FloatElement::F64, false));
        assert_eq!(flags(&areas), [0; 5]);
        areas.update_contents(&ProgramMemory::standard(FloatElement::F32, true));
        assert_eq!(flags(&areas), [written; 5]);
        areas.update_contents(&ProgramMemory::standard(FloatElement::F64, true));
        assert_eq!(flags(&areas), [all; 5]);
    }

    #[test]
    fn rings_are_sent_as_bytes_and_kept_areas_are_filled_once() {
        let ring = PointerRing { stride: 64, order: RingOrder::Sequential, seed: 0 };
        let mut memory = ProgramMemory::default();
        memory.areas[2] = MemoryArea { lifetime: StoreLifetime::Kept, ..MemoryArea::from_ring(4096, ring, 6) };
        let mut areas = placed(&memory);
        let content = areas.contents[2].as_ref().expect("a ring is no word");
        assert_eq!(content[..8], (0x10_0000u64 + 64).to_le_bytes());
        assert_eq!(areas.list_fills()[2].content, content.as_ptr() as u64);
        areas.record_layout_end(true);
        assert_eq!(flags(&areas)[2], 0);
        areas.record_layout_end(false);
        assert_eq!(flags(&areas)[2], abi::FILL_WRITTEN);
    }
}
