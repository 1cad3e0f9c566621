//! Translations of data addresses, in small pages and in huge pages.

use crate::spec::*;
use cyclescope_code::program::memory::{HUGE_PAGE_BYTES, MemoryArea, PAGE_BYTES, PageSize, ProgramMemory, RingOrder};

// Translations of data addresses.

/// One line of each page. The next page uses the next line: lines use all sets of the cache.
fn line_of_each_page(pages: usize) -> StepLoop {
    chase_loop(pages, PAGE_BYTES as usize + LINE, RingOrder::RandomByLine)
}

/// As many lines in as few pages as possible: with more of them, the control's own translations
/// would no longer fit the first level.
fn as_many_lines(lines: usize) -> StepLoop {
    chase_loop(lines, LINE, RingOrder::RandomByLine)
}

/// Pages of the witness's other ring.
const OCCUPIED: usize = 24;

fn with_other_ring(pages: usize) -> StepLoop {
    chase_with_other_ring(pages, PAGE_BYTES as usize + LINE, OCCUPIED)
}

// Translations of data addresses in huge pages.

/// One line of each page. The next line is in the next page and in the next 4 KiB of it. So the
/// lines use all sets of the cache, and all sets of the TLB if the hypervisor splits huge pages.
fn line_of_each_huge_page(pages: usize) -> StepLoop {
    in_huge_pages(chase_loop(pages, (HUGE_PAGE_BYTES + PAGE_BYTES) as usize + LINE, RingOrder::RandomByLine))
}

// The gain from huge pages on this machine.

/// Small pages of the ring, 32 MiB: more than any TLB level holds; their lines fit a second cache.
const RING_PAGES: usize = 8192;

/// One line of each page.
fn line_of_many_pages(_: usize) -> StepLoop {
    chase_loop(RING_PAGES, PAGE_BYTES as usize + LINE, RingOrder::RandomByLine)
}

fn other_line_of_many_pages(_: usize) -> StepLoop {
    chase_loop(RING_PAGES, PAGE_BYTES as usize + 3 * LINE, RingOrder::RandomByLine)
}

/// The same in pages of 2 MiB.
pub(super) fn in_huge_pages(steps: StepLoop) -> StepLoop {
    // The cell with the place stays in a small page.
    let huge = |area: MemoryArea| {
        if area.bytes > PAGE_BYTES { MemoryArea { pages: PageSize::Huge, ..area } } else { area }
    };
    let areas = steps.memory.areas.into_iter().map(huge).collect();
    StepLoop { memory: ProgramMemory { areas, ..steps.memory }, ..steps }
}

fn line_of_huge_pages(count: usize) -> StepLoop {
    in_huge_pages(line_of_many_pages(count))
}

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "data_tlb",
        about: "how many pages of 4 KiB have their translation at hand, and what one more costs",
        definition: "pages of 4 KiB over which loads in random order find all translations in this level or a \
                     nearer one; the interval of a gradual end holds the number",
        source: SAAVEDRA,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("a line of each page", line_of_each_page).less(as_many_lines),
                ProgramFamily::new("another line of each page", |pages| {
                    chase_loop(pages, PAGE_BYTES as usize + 3 * LINE, RingOrder::RandomByLine)
                })
                .less(as_many_lines),
            ],
            witness: Some(&WitnessProgram {
                family: ProgramFamily::new("a line of each page, beside 24 pages", with_other_ring),
                occupied: OCCUPIED,
            }),
            count_range: [8, 8192],
            min_rise: 3.0,
            min_ratio: 1.3,
            cost_definition: Some(
                "core cycles by which a load takes longer than one of as many lines in fewer pages: none in the \
                 first level",
            ),
            bytes_per_count: 2 * PAGE_BYTES as usize,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "huge_tlb",
        about: "how many pages of 2 MiB have their translation at hand, and what one more costs",
        definition: "pages of 2 MiB over which loads in random order find all translations in this level or a \
                     nearer one",
        source: SAAVEDRA,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("a line of each page", line_of_each_huge_page).less(as_many_lines),
                ProgramFamily::new("another line of each page", |pages| {
                    in_huge_pages(chase_loop(
                        pages,
                        (HUGE_PAGE_BYTES + 3 * PAGE_BYTES) as usize + 3 * LINE,
                        RingOrder::RandomByLine,
                    ))
                })
                .less(as_many_lines),
            ],
            // Split huge pages use entries of small pages. No core with fewer entries for huge
            // pages than for small ones has more than these.
            count_range: [8, 48],
            min_rise: 3.0,
            min_ratio: 1.3,
            cost_definition: Some(
                "core cycles by which a load takes longer than one of as many lines in fewer pages: none in the \
                 first level",
            ),
            bytes_per_count: (HUGE_PAGE_BYTES + 3 * PAGE_BYTES) as usize + 3 * LINE,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "huge_pages",
        about: "what a load waits less where pages have 2 MiB",
        definition: "core cycles by which a load, of one line in each 4 KiB of 32 MiB, takes longer in pages of 4 \
                     KiB than in pages of 2 MiB",
        source: "A. Basu et al., Efficient Virtual Memory for Big Memory Servers (2013), section 2",
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[TestRow::new(
                "",
                &[
                    ProgramVariant::new("a line of each page", line_of_many_pages).less_generated(line_of_huge_pages),
                    ProgramVariant::new("another line of each page", other_line_of_many_pages)
                        .less_generated(|count| in_huge_pages(other_line_of_many_pages(count))),
                ],
            )
            .in_shared_memory()],
            tolerance: 3.0,
            // As for levels of caches; physical pages differ each time too.
            tolerance_share: 0.25,
            slot_costs: &[],
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_differ_only_in_the_pages_of_the_ring() {
        let [small, huge] = [line_of_many_pages(1), line_of_huge_pages(1)];
        assert_eq!((&small.body, &small.init, small.iterations), (&huge.body, &huge.init, huge.iterations));
        let pages: Vec<PageSize> = huge.memory.areas.iter().map(|area| area.pages).collect();
        assert_eq!(pages, [PageSize::Huge, PageSize::Small]);
        let small_again =
            huge.memory.areas.into_iter().map(|area| MemoryArea { pages: PageSize::Small, ..area }).collect::<Vec<_>>();
        assert_eq!(small_again, small.memory.areas);
    }
}
