//! The memory of a simulated machine: every valid description is accepted, and no code runs that
//! could read it.
//!
//! Addresses are simple and repeatable. Free areas follow each other with a gap between two, fixed
//! ones are at their address, and huge pages come from a pool that is always large enough.

use cyclescope_code::program::memory::{AreaAddress, HUGE_PAGE_BYTES, MemoryArea, PageSize, ProgramMemory};
use cyclescope_core::error::BadBatch;
use cyclescope_exec::{ObtainedPages, PlacedArea};

/// Start of the free areas, far above all requested addresses.
const FREE_AREAS_AT: u64 = 0x7e00_0000_0000;
/// Smallest number of bytes between two free areas.
const AREA_GAP: u64 = 64 << 10;

/// Places a memory's areas on a simulated machine. The error gives the memory's fault.
pub(super) fn place_areas(memory: &ProgramMemory) -> Result<Vec<PlacedArea>, BadBatch> {
    memory.check()?;
    let mut end = FREE_AREAS_AT;
    let place = |area: &MemoryArea| {
        let address = match area.address {
            AreaAddress::Fixed(address) => address,
            AreaAddress::Free => {
                let address = (end + AREA_GAP).next_multiple_of(HUGE_PAGE_BYTES);
                end = address + area.mapped_bytes();
                address
            }
        };
        let pages = match area.pages {
            PageSize::Small => ObtainedPages::Small,
            PageSize::Huge => ObtainedPages::PooledHuge,
        };
        PlacedArea { address, pages }
    };
    Ok(memory.areas.iter().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::context::FloatElement;
    use cyclescope_code::program::memory::{PointerRing, RingOrder};

    /// The initial eight bytes at an address in the areas of a placed memory; `None` outside of all
    /// areas.
    fn word(memory: &ProgramMemory, placed: &[PlacedArea], address: u64) -> Option<u64> {
        let (area, placed) =
            memory.areas.iter().zip(placed).find(|(area, placed)| {
                placed.address <= address && address + 8 <= placed.address + area.mapped_bytes()
            })?;
        let mut bytes = vec![0; area.frame_bytes() as usize];
        area.write_contents(placed.address, &mut bytes);
        let at = ((address - placed.address) % area.frame_bytes()) as usize;
        Some(u64::from_le_bytes(bytes[at..at + 8].try_into().ok()?))
    }

    #[test]
    fn areas_do_not_overlap_and_fixed_ones_keep_their_address() {
        let mut memory = ProgramMemory::default();
        memory.areas[2].address = AreaAddress::Fixed(0x1000_0000);
        memory.areas[3].pages = PageSize::Huge;
        let placed = place_areas(&memory).unwrap();
        assert_eq!(placed[2].address, 0x1000_0000);
        assert_eq!(placed[3].pages, ObtainedPages::PooledHuge);
        let mut spans: Vec<_> = memory
            .areas
            .iter()
            .zip(&placed)
            .map(|(area, placed)| (placed.address, placed.address + area.mapped_bytes()))
            .collect();
        spans.sort();
        assert!(spans.windows(2).all(|pair| pair[0].1 < pair[1].0));
        memory.areas[1].bytes = 0;
        assert_eq!(place_areas(&memory).unwrap_err().part, "area 1");
    }

    #[test]
    fn a_ring_can_be_followed_from_the_register_that_points_to_it() {
        let ring = PointerRing { stride: 192, order: RingOrder::RandomByLine, seed: 3 };
        let mut memory = ProgramMemory::standard(FloatElement::F64, true);
        memory.areas[0] = MemoryArea::from_ring(10_000, ring, 14);
        let placed = place_areas(&memory).unwrap();
        let addresses: Vec<u64> = placed.iter().map(|area| area.address).collect();
        let (register, start) = memory.pointer_registers(&addresses, &[0; 5]).next().unwrap();
        assert_eq!(register, 14);
        let next = |at: u64| word(&memory, &placed, at).unwrap();
        let round = (1..ring.element_count(10_000)).fold(next(start), |at, _| next(at));
        assert_eq!(round, start);
        let middle = addresses[1] + memory.pointer_offset(1).unwrap();
        assert_eq!(word(&memory, &placed, middle), Some(FloatElement::F64.to_word()));
        assert_eq!(word(&memory, &placed, 0), None);
    }
}
