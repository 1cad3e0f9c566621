//! What huge pages are worth here.

use crate::spec::*;
use cyclescope_code::program::memory::{MemoryArea, PAGE_BYTES, PageSize, ProgramMemory, RingOrder};

/// Small pages of the ring, 32 MiB of them: more than any level of translations holds, and their lines have room in a second cache.
const NUMBER: usize = 8192;

/// One line of each page.
fn a_line(_: usize) -> StepLoop {
    chase_loop(NUMBER, PAGE_BYTES as usize + LINE, RingOrder::RandomByLine)
}

fn another_line(_: usize) -> StepLoop {
    chase_loop(NUMBER, PAGE_BYTES as usize + 3 * LINE, RingOrder::RandomByLine)
}

/// The same in pages of 2 MiB.
pub(super) fn in_huge_pages(steps: StepLoop) -> StepLoop {
    // What holds the place stays where it is, in a small page.
    let huge = |area: MemoryArea| {
        if area.bytes > PAGE_BYTES { MemoryArea { pages: PageSize::Huge, ..area } } else { area }
    };
    let areas = steps.memory.areas.into_iter().map(huge).collect();
    StepLoop { memory: ProgramMemory { areas, ..steps.memory }, ..steps }
}

fn a_line_huge(count: usize) -> StepLoop {
    in_huge_pages(a_line(count))
}

fn another_line_huge(count: usize) -> StepLoop {
    in_huge_pages(another_line(count))
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "huge_pages",
    about: "what a load waits less where pages have 2 MiB",
    definition: "core cycles by which a load, of one line in each 4 KiB of 32 MiB, takes longer in pages of 4 KiB than in pages of 2 MiB",
    source: "A. Basu et al., Efficient Virtual Memory for Big Memory Servers (2013), section 2",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[TestRow::new(
            "",
            &[
                ProgramVariant::new("a line of each page", a_line).less_generated(a_line_huge),
                ProgramVariant::new("another line of each page", another_line).less_generated(another_line_huge),
            ],
        )],
        tolerance: 3.0,
        // As levels of caches, and with other physical pages each time.
        tolerance_share: 0.25,
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_differ_in_the_pages_of_the_ring_alone() {
        let [small, huge] = [a_line(1), a_line_huge(1)];
        assert_eq!((&small.body, &small.init, small.iterations), (&huge.body, &huge.init, huge.iterations));
        let pages: Vec<PageSize> = huge.memory.areas.iter().map(|area| area.pages).collect();
        assert_eq!(pages, [PageSize::Huge, PageSize::Small]);
        let small_again =
            huge.memory.areas.into_iter().map(|area| MemoryArea { pages: PageSize::Small, ..area }).collect::<Vec<_>>();
        assert_eq!(small_again, small.memory.areas);
    }
}
