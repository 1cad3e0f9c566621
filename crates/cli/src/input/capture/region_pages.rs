//! The pages that a region touches, as memory of programs.

use super::page_log::PageLog;
use super::process_map::{PAGE, split_by_page};
use cyclescope::program::memory::{AreaAccess, AreaAddress, AreaFill, MemoryArea, PagePresence};
use std::collections::BTreeMap;
use std::ops::Range;

/// Distance up to which two pieces of memory to restore are copied as one.
const PIECE_GAP: u64 = 128;

/// The pages by address.
pub type RegionPages = BTreeMap<u64, PageLog>;

/// A piece of memory that is restored before each execution.
pub struct MemoryPiece {
    /// Its address.
    pub address: u64,
    /// Its contents at the region's start.
    pub bytes: Vec<u8>,
}

/// Consecutive pages of one kind.
pub struct PageRun {
    /// Their addresses.
    pub range: Range<u64>,
    /// Whether the region executes code in them.
    pub is_code: bool,
}

/// Whether the region has the pages of some bytes, writes none of the pages, and uses none of the
/// bytes.
pub fn is_unused(pages: &RegionPages, address: u64, length: usize) -> bool {
    let is_free =
        |page: &PageLog, mut places: Range<usize>| !page.is_written() && !places.any(|byte| page.is_needed(byte));
    split_by_page(address, length).all(|(page, places)| pages.get(&page).is_some_and(|page| is_free(page, places)))
}

/// Replaces code on pages that the region has.
pub fn write_code(pages: &mut RegionPages, address: u64, code: &[u8]) {
    let mut bytes = code.iter();
    for (page, places) in split_by_page(address, code.len()) {
        let page = pages.get_mut(&page).expect("the region has the page");
        page.is_code = true;
        for (place, byte) in places.zip(&mut bytes) {
            page.contents[place] = *byte;
        }
    }
}

/// The memory to restore before each execution.
pub fn find_pieces(pages: &RegionPages) -> Vec<MemoryPiece> {
    let mut pieces: Vec<MemoryPiece> = Vec::new();
    for (address, page) in pages {
        for byte in (0..PAGE as usize).filter(|byte| page.is_to_restore(*byte)) {
            let at = address + byte as u64;
            match pieces.last_mut() {
                // Bytes between two pieces have their initial value too. They are of the same page,
                // or of the page before it.
                Some(piece) if at - (piece.address + piece.bytes.len() as u64) <= PIECE_GAP => {
                    while piece.address + (piece.bytes.len() as u64) <= at {
                        let next = piece.address + piece.bytes.len() as u64;
                        let place = &pages[&(next & !(PAGE - 1))];
                        piece.bytes.push(place.contents[(next % PAGE) as usize]);
                    }
                }
                _ => pieces.push(MemoryPiece { address: at, bytes: vec![page.contents[byte]] }),
            }
        }
    }
    pieces
}

/// Joins pages to at most this many runs, those with the smallest gaps first.
pub fn join_pages(pages: &RegionPages, most: usize) -> Vec<PageRun> {
    let mut runs: Vec<PageRun> = Vec::new();
    for (address, page) in pages {
        match runs.last_mut() {
            Some(run) if run.range.end == *address && run.is_code == page.is_code => run.range.end += PAGE,
            _ => runs.push(PageRun { range: *address..address + PAGE, is_code: page.is_code }),
        }
    }
    while runs.len() > most {
        let gap = |pair: &[PageRun]| match pair[0].is_code == pair[1].is_code {
            true => pair[1].range.start - pair[0].range.end,
            false => u64::MAX,
        };
        let (number, _) = runs.windows(2).map(gap).enumerate().min_by_key(|(_, gap)| *gap).expect("there are several");
        runs[number].range.end = runs[number + 1].range.end;
        runs.remove(number + 1);
    }
    runs
}

impl PageRun {
    /// The area with these pages.
    pub fn to_area(&self, pages: &RegionPages) -> MemoryArea {
        let mut bytes = vec![0; (self.range.end - self.range.start) as usize];
        for (address, page) in pages.range(self.range.clone()) {
            let at = (address - self.range.start) as usize;
            bytes[at..at + PAGE as usize].copy_from_slice(&page.contents);
        }
        new_area(self.range.start, bytes, self.is_code)
    }
}

/// An area with these bytes at its address.
pub fn new_area(address: u64, bytes: Vec<u8>, is_code: bool) -> MemoryArea {
    let length = bytes.len() as u64;
    let area = MemoryArea { address: AreaAddress::Fixed(address), ..MemoryArea::new(length, AreaFill::Image(bytes)) };
    match is_code {
        true => MemoryArea { access: AreaAccess::Code, ..area },
        false => MemoryArea { present: PagePresence::for_bytes(length), ..area },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::capture::page_log::ByteUse;

    const JUMP_BYTES: usize = 5;
    const UPDATE: ByteUse = ByteUse { reads: true, writes: true, surely: true };

    /// Pages at these numbers; code from the given one on.
    fn pages(numbers: &[u64], code_from: u64) -> RegionPages {
        let page = |number: &u64| {
            let mut page = PageLog::new(vec![*number as u8; PAGE as usize]);
            if *number >= code_from {
                page.note_execution(0..1);
            }
            (number * PAGE, page)
        };
        numbers.iter().map(page).collect()
    }

    fn page_numbers(runs: &[PageRun]) -> Vec<(u64, u64)> {
        runs.iter().map(|run| (run.range.start / PAGE, run.range.end / PAGE)).collect()
    }

    #[test]
    fn pages_of_one_kind_are_joined_across_the_smallest_gaps() {
        let pages = pages(&[1, 2, 4, 5, 9, 20, 21, 22], 21);
        assert_eq!(page_numbers(&join_pages(&pages, 9)), [(1, 3), (4, 6), (9, 10), (20, 21), (21, 23)]);
        assert_eq!(page_numbers(&join_pages(&pages, 3)), [(1, 10), (20, 21), (21, 23)]);
        let joined = join_pages(&pages, 2);
        assert_eq!(page_numbers(&joined), [(1, 21), (21, 23)]);
        let area = joined[0].to_area(&pages);
        let AreaFill::Image(bytes) = &area.fill else { panic!("an image") };
        let first = |page: usize| bytes[(page - 1) * PAGE as usize];
        assert_eq!([1, 2, 3, 4, 8, 9, 20].map(first), [1, 2, 0, 4, 0, 9, 20]);
        assert_eq!((area.access, joined[1].to_area(&pages).access), (AreaAccess::Data, AreaAccess::Code));
    }

    #[test]
    fn pieces_to_restore_are_joined_if_they_are_near() {
        let mut pages = pages(&[1, 2, 3], 9);
        for (page, bytes) in [(1, 0..8), (1, 100..101), (1, 4090..4096), (2, 0..2), (2, 2000..2001)] {
            pages.get_mut(&(page * PAGE)).expect("a page").note_use(bytes, UPDATE);
        }
        let pieces: Vec<(u64, usize)> =
            find_pieces(&pages).iter().map(|piece| (piece.address - PAGE, piece.bytes.len())).collect();
        assert_eq!(pieces, [(0, 101), (4090, 8), (PAGE + 2000, 1)]);
        let across = &find_pieces(&pages)[1];
        assert_eq!(across.bytes, [1, 1, 1, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn code_is_replaced_only_where_the_region_has_it_and_does_not_use_it() {
        let mut pages = pages(&[1, 2], 1);
        let end = 2 * PAGE - 2;
        assert!(!is_unused(&pages, end, JUMP_BYTES), "the second page begins with an instruction");
        assert!(is_unused(&pages, end, 2));
        assert!(!is_unused(&pages, 3 * PAGE - 2, JUMP_BYTES), "the region lacks the third page");
        write_code(&mut pages, 2 * PAGE - 1, &[7, 8]);
        assert_eq!((pages[&PAGE].contents[4095], pages[&(2 * PAGE)].contents[0]), (7, 8));
    }
}
