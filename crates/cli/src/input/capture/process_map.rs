//! The mappings of a process, and addresses that are free in several processes.

use std::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// The lowest address that programs may map by default (`vm.mmap_min_addr`).
const LOWEST: u64 = 0x1_0000;
/// Distance that a jump with a displacement of 32 bits reaches, less a margin.
const JUMP_REACH: u64 = 0x7000_0000;

/// Mapped ranges of addresses, in ascending order.
pub struct ProcessMap(Vec<Range<u64>>);

impl ProcessMap {
    /// Reads the mappings of processes by their numbers (proc(5)).
    pub fn read(processes: &[u32]) -> std::io::Result<ProcessMap> {
        let mut all = Vec::new();
        for process in processes {
            let text = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
            all.extend(text.lines().filter_map(parse_range));
        }
        all.sort_by_key(|range: &Range<u64>| range.start);
        Ok(ProcessMap(all))
    }

    /// Whether any of these bytes are mapped.
    pub fn overlaps(&self, range: &Range<u64>) -> bool {
        self.0.iter().any(|mapped| mapped.start < range.end && range.start < mapped.end)
    }

    /// The start of this many free bytes within a jump's reach of an address, as near as possible.
    /// A page on both sides is free too.
    pub fn find_gap(&self, near: u64, bytes: u64) -> Option<u64> {
        let room = bytes.next_multiple_of(PAGE) + 2 * PAGE;
        let mut candidates = Vec::new();
        let mut end = LOWEST;
        let last = near.saturating_add(JUMP_REACH) & !(PAGE - 1);
        for mapped in self.0.iter().chain([&(last..last)]) {
            if mapped.start >= end + room {
                candidates.extend([end + PAGE, mapped.start - room + PAGE]);
            }
            end = end.max(mapped.end);
        }
        let distance = |start: &u64| start.abs_diff(near).max((start + bytes).abs_diff(near));
        candidates.into_iter().filter(|start| distance(start) < JUMP_REACH).min_by_key(distance)
    }
}

/// The pages of some bytes, with the part in each.
pub fn split_by_page(address: u64, length: usize) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = address.saturating_add(length as u64);
    let first = address & !(PAGE - 1);
    (first..end).step_by(PAGE as usize).map(move |page| {
        let from = address.max(page) - page;
        let to = end.min(page.saturating_add(PAGE)) - page;
        (page, from as usize..to as usize)
    })
}

fn parse_range(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_gap_has_room_and_a_page_on_both_sides() {
        let ranges = [0x40_0000..0x40_1000, 0x40_3000..0x50_0000, 0x7f00_0000_0000..0x7f00_0001_0000];
        let map = ProcessMap(ranges.to_vec());
        // The gap of two pages is too small with its margins.
        assert_eq!(map.find_gap(0x40_0000, PAGE), Some(0x40_0000 - 2 * PAGE));
        let far = map.find_gap(0x7f00_0000_0000, PAGE).expect("a gap");
        assert!(far == 0x7eff_ffff_e000 || far == 0x7f00_0001_1000, "{far:#x}");
        assert!(!map.overlaps(&(far - PAGE..far + 2 * PAGE)));
        assert_eq!(map.find_gap(0x40_0000, JUMP_REACH), None);
    }
}
