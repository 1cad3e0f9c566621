//! The memory areas of programs in ring 0, which the module makes and fills.
//!
//! The module makes areas of whole small pages at addresses of its choice, and fills the pages that were written to
//! with a repeated word or with bytes from this executor. All other features of a memory are unavailable.

use super::abi::{self, Area as PlacedSize, Fill};
use super::device::Module;
use crate::{ObtainedPages, PlacedArea};
use cyclescope_code::program::memory::{Address, Area, Frames, Lifetime, Memory, Pages};
use cyclescope_core::error::{RunError, Unavailable};

/// The areas that the module has made for this executor.
#[derive(Debug, Default)]
pub(super) struct Areas {
    /// The last memory of which an area was used.
    memory: Memory,
    /// Lifetimes of the last batch's areas.
    lifetimes: Vec<Lifetime>,
    /// Sizes and addresses, in the order of the module's list.
    placed: Vec<PlacedSize>,
    /// Initial contents of areas that are not one repeated word.
    contents: Vec<Option<Vec<u8>>>,
    /// Whether the module has filled all used areas with their initial contents.
    filled: bool,
    /// Whether areas whose contents are kept have been filled at least once.
    begun: bool,
}

impl Areas {
    /// Lets the module make the areas of a checked memory. The error names the feature that the module does not offer.
    pub(super) fn adopt(&mut self, module: &Module, memory: &Memory) -> Result<(), RunError> {
        offered(memory, &module.info).map_err(RunError::Unavailable)?;
        let sizes = memory.areas.iter().map(Area::mapped_bytes);
        if !self.placed.iter().map(|area| area.bytes).eq(sizes.clone()) {
            self.placed = sizes.map(|bytes| PlacedSize { bytes, address: 0 }).collect();
            self.filled = false;
            module.set_areas(&mut self.placed).inspect_err(|_| self.placed.clear())?;
        }
        self.hold(memory);
        Ok(())
    }

    /// A memory without used areas changes no contents: it often comes between two equal memories.
    fn hold(&mut self, memory: &Memory) {
        let lifetimes: Vec<Lifetime> = memory.areas.iter().map(|area| area.lifetime).collect();
        let unused = lifetimes.iter().all(|lifetime| *lifetime == Lifetime::Unused);
        if self.lifetimes != lifetimes {
            self.begun = false;
            self.lifetimes = lifetimes;
        }
        let same = |(one, other): (&Area, &Area)| one.fill == other.fill && one.bytes == other.bytes;
        if unused || self.filled && self.memory.areas.iter().zip(&memory.areas).all(same) {
            return;
        }
        (self.filled, self.begun) = (false, false);
        self.memory.clone_from(memory);
        let content = |(area, placed): (&Area, &PlacedSize)| {
            area.word().is_none().then(|| {
                let mut bytes = vec![0; area.frame_bytes() as usize];
                area.write(placed.address, &mut bytes);
                bytes
            })
        };
        self.contents = memory.areas.iter().zip(&self.placed).map(content).collect();
    }

    /// Areas that the module fills before the next layout. Their addresses are valid until the next [`Areas::adopt`].
    pub(super) fn fills(&self) -> Vec<Fill> {
        let written = if self.filled { abi::FILL_WRITTEN } else { abi::FILL_ALL };
        let fill = |(number, lifetime): (usize, &Lifetime)| {
            let flags = match lifetime {
                Lifetime::Fresh => written,
                Lifetime::Kept if !self.begun => written,
                Lifetime::Kept | Lifetime::Unused => return Fill::default(),
            };
            let content = self.contents[number].as_ref().map_or(0, |bytes| bytes.as_ptr() as u64);
            let word = self.memory.areas[number].word().unwrap_or(0);
            Fill { flags, reserved: 0, content, word }
        };
        self.lifetimes.iter().enumerate().map(fill).collect()
    }

    /// Notes that a layout has ended, also with a fault of its program.
    pub(super) fn ran(&mut self, well: bool) {
        let every = self.lifetimes.iter().all(|lifetime| *lifetime != Lifetime::Unused);
        self.filled |= every;
        self.begun = well;
    }

    /// The addresses of all areas.
    pub(super) fn addresses(&self) -> Vec<u64> {
        self.placed.iter().map(|area| area.address).collect()
    }

    /// Addresses of the areas, and the kinds of their pages.
    pub(super) fn placed(&self) -> Vec<PlacedArea> {
        let area = |address| PlacedArea { address, pages: ObtainedPages::Small };
        self.addresses().into_iter().map(area).collect()
    }
}

/// Checks that the module offers all features of a memory.
fn offered(memory: &Memory, info: &abi::Info) -> Result<(), Unavailable> {
    let lack = |what: String, why: String| Unavailable {
        what: format!("{what} in ring 0"),
        why,
        remedy: "measure in user mode (--executor user)".to_string(),
    };
    if memory.areas.len() > info.most_areas as usize {
        let why = format!("the kernel module has at most {}", info.most_areas);
        return Err(lack(format!("a memory of {} areas", memory.areas.len()), why));
    }
    let bytes: u64 = memory.areas.iter().map(Area::mapped_bytes).sum();
    if bytes > info.most_area_bytes {
        let why = format!("the kernel module has at most {} for all areas together", info.most_area_bytes);
        return Err(lack(format!("a memory of {bytes} bytes"), why));
    }
    for (number, area) in memory.areas.iter().enumerate() {
        let why = match area {
            Area { pages: Pages::Huge, .. } => "the kernel module makes pages of 4 KiB only",
            Area { frames: Frames::Repeated(_), .. } => "the kernel module maps each physical page once",
            Area { frames: Frames::Common(_), .. } => "the kernel module shares no memory with another CPU",
            Area { address: Address::Fixed(_), .. } => "the kernel module chooses addresses by itself",
            _ => continue,
        };
        return Err(lack(format!("area {number}"), why.to_string()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::context::Element;
    use cyclescope_code::program::memory::{Fill as Contents, Order, Ring};

    fn info() -> abi::Info {
        abi::Info { most_areas: 16, most_area_bytes: 64 << 20, ..abi::Info::default() }
    }

    /// Areas as after the module has placed them.
    fn placed(memory: &Memory) -> Areas {
        let size = |area: &Area| PlacedSize { bytes: area.mapped_bytes(), address: 0x10_0000 };
        let mut areas = Areas { placed: memory.areas.iter().map(size).collect(), ..Areas::default() };
        areas.hold(memory);
        areas
    }

    fn flags(areas: &Areas) -> Vec<u32> {
        areas.fills().iter().map(|fill| fill.flags).collect()
    }

    #[test]
    fn what_the_module_does_not_have_is_unavailable() {
        assert_eq!(offered(&Memory::default(), &info()), Ok(()));
        let changed = |change: &dyn Fn(&mut Area)| {
            let mut memory = Memory::default();
            change(&mut memory.areas[3]);
            offered(&memory, &info()).unwrap_err()
        };
        assert!(changed(&|area| area.pages = Pages::Huge).why.contains("4 KiB"));
        assert!(changed(&|area| area.frames = Frames::Repeated(2)).why.contains("once"));
        assert!(changed(&|area| area.frames = Frames::Common(2)).why.contains("another CPU"));
        assert!(changed(&|area| area.address = Address::Fixed(0x1000_0000)).what.contains("area 3"));
        assert!(changed(&|area| area.bytes = 61 << 20).why.contains("67108864"));
        let many = vec![Area::new(1, Contents::Image(Vec::new())); 17];
        let memory = Memory { vectors: Element::F64, areas: many };
        assert!(offered(&memory, &info()).unwrap_err().why.contains("at most 16"));
    }

    #[test]
    fn pages_are_filled_when_they_have_to_be() {
        let (all, written) = (abi::FILL_ALL, abi::FILL_WRITTEN);
        let mut areas = placed(&Memory::standard(Element::F32, true));
        assert_eq!(flags(&areas), [all; 5]);
        assert!(areas.fills().iter().all(|fill| fill.word == Element::F32.pattern() && fill.content == 0));
        areas.ran(true);
        assert_eq!(flags(&areas), [written; 5]);
        areas.hold(&Memory::standard(Element::F64, false));
        assert_eq!(flags(&areas), [0; 5]);
        areas.hold(&Memory::standard(Element::F32, true));
        assert_eq!(flags(&areas), [written; 5]);
        areas.hold(&Memory::standard(Element::F64, true));
        assert_eq!(flags(&areas), [all; 5]);
    }

    #[test]
    fn rings_come_from_here_and_kept_areas_are_filled_once() {
        let ring = Ring { stride: 64, order: Order::Sequential, seed: 0 };
        let mut memory = Memory::default();
        memory.areas[2] = Area { lifetime: Lifetime::Kept, ..Area::ring(4096, ring, 6) };
        let mut areas = placed(&memory);
        let content = areas.contents[2].as_ref().expect("a ring is no word");
        assert_eq!(content[..8], (0x10_0000u64 + 64).to_le_bytes());
        assert_eq!(areas.fills()[2].content, content.as_ptr() as u64);
        areas.ran(true);
        assert_eq!(flags(&areas)[2], 0);
        areas.ran(false);
        assert_eq!(flags(&areas)[2], abi::FILL_WRITTEN);
    }
}
