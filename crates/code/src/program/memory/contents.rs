//! Initial contents of areas: the bytes that an executor writes.

use super::{AreaFill, MemoryArea, PointerRing, RingOrder};
use cyclescope_core::random::Random;

impl MemoryArea {
    /// Writes the initial contents of an area's physical memory, [`MemoryArea::frame_bytes`] long,
    /// for an area at this address.
    ///
    /// # Panics
    ///
    /// Panics if [`ProgramMemory::check`](super::ProgramMemory::check) rejects the memory, or if
    /// the length differs.
    pub fn write_contents(&self, address: u64, into: &mut [u8]) {
        assert_eq!(into.len() as u64, self.frame_bytes(), "all of an area's physical memory is written");
        let end = self.bytes.min(self.frame_bytes()) as usize;
        let (inside, behind) = into.split_at_mut(end);
        behind.fill(0);
        match &self.fill {
            AreaFill::Pattern(element) => repeat_bytes(&element.to_word().to_le_bytes(), inside),
            AreaFill::Bytes(bytes) => repeat_bytes(bytes, inside),
            AreaFill::Image(bytes) => {
                inside[..bytes.len()].copy_from_slice(bytes);
                inside[bytes.len()..].fill(0);
            }
            AreaFill::Random(seed) => {
                let mut random = Random::new(*seed);
                inside
                    .chunks_mut(8)
                    .for_each(|word| word.copy_from_slice(&random.next_bits().to_le_bytes()[..word.len()]));
            }
            AreaFill::Ring(ring) => {
                inside.fill(0);
                ring.write_pointers(self, address, into);
            }
        }
    }

    /// The eight bytes that the area repeats throughout, if it does. An executor can fill the area
    /// with them by itself.
    pub fn uniform_word(&self) -> Option<u64> {
        let whole = self.bytes == self.mapped_bytes();
        match &self.fill {
            AreaFill::Pattern(element) if whole => Some(element.to_word()),
            _ => None,
        }
    }
}

fn repeat_bytes(bytes: &[u8], into: &mut [u8]) {
    let first = bytes.len().min(into.len());
    into[..first].copy_from_slice(&bytes[..first]);
    let mut done = first;
    // Each copy doubles the filled part, which stays a whole number of copies until the last.
    while done < into.len() {
        let more = done.min(into.len() - done);
        into.copy_within(..more, done);
        done += more;
    }
}

impl PointerRing {
    /// Elements in ring order, each as its number from the start of the area. The area has `bytes`
    /// bytes, in pages of `page` bytes.
    pub(crate) fn visit_order(&self, bytes: u64, page: u64) -> Vec<u32> {
        let mut random = Random::new(self.seed);
        let mut order: Vec<u32> = (0..self.element_count(bytes) as u32).collect();
        match self.order {
            RingOrder::Sequential => order,
            RingOrder::RandomByLine => {
                random.shuffle(&mut order);
                order
            }
            RingOrder::RandomByPage => {
                let stride = u64::from(self.stride);
                let page_of = |element: &u32| u64::from(*element) * stride / page;
                let mut pages: Vec<&mut [u32]> =
                    order.chunk_by_mut(|one, next| page_of(one) == page_of(next)).collect();
                random.shuffle(&mut pages);
                pages.iter_mut().for_each(|page| random.shuffle(page));
                pages.into_iter().flat_map(|page| page.iter().copied()).collect()
            }
        }
    }

    fn write_pointers(&self, area: &MemoryArea, address: u64, frames: &mut [u8]) {
        let order = self.visit_order(area.bytes, area.page_bytes());
        let at = |element: u32| u64::from(element) * u64::from(self.stride);
        let followed = order.iter().skip(1).chain(order.first());
        let length = frames.len();
        for (element, next) in order.iter().zip(followed) {
            let slot = at(*element) as usize % length;
            frames[slot..slot + 8].copy_from_slice(&(address + at(*next)).to_le_bytes());
        }
    }

    /// Number of elements that do not alias in this number of bytes of physical memory.
    pub(super) fn distinct_elements(&self, frame_bytes: u64) -> u64 {
        let (mut a, mut b) = (u64::from(self.stride), frame_bytes);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        frame_bytes / a
    }
}
