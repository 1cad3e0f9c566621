//! The levels of data caches, and the memory behind them.

use super::translations::in_huge_pages;
use crate::spec::*;
use cyclescope_code::program::memory::RingOrder;

// The levels of data caches, and the memory behind them.

pub(super) fn each_line(bytes: usize) -> StepLoop {
    chase_loop(bytes / LINE, LINE, RingOrder::RandomByLine)
}

pub(super) fn every_other_line(bytes: usize) -> StepLoop {
    chase_loop(bytes / (2 * LINE), 2 * LINE, RingOrder::RandomByLine)
}

/// The same with few translations: all lines of a page, then the lines of another page.
pub(super) fn page_after_page(bytes: usize) -> StepLoop {
    chase_loop(bytes / LINE, LINE, RingOrder::RandomByPage)
}

/// Bytes of the witness's other ring.
pub(super) const OCCUPIED: usize = 8 << 10;

pub(super) fn with_other_ring(bytes: usize) -> StepLoop {
    chase_with_other_ring(bytes / LINE, LINE, OCCUPIED / LINE)
}

// The levels of data caches, by loads that need few translations.
//
// In small pages, and in huge pages that a hypervisor has split, random loads get dearer when their
// translations no longer fit the first TLB. This may happen just before the second cache's end and
// make that end soft: 256 KiB to 1.4 MiB (Genoa, family 25, model 17, in a guest).

/// Every other line of each page.
fn half_of_each_page(bytes: usize) -> StepLoop {
    chase_loop(bytes / (2 * LINE), 2 * LINE, RingOrder::RandomByPage)
}

// The levels of data caches in huge pages.
//
// Physical memory is contiguous over 2 MiB: sets fill evenly, and a level ends at one count.
// Translations cost less too.

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "data_caches",
        about: "how large each level of the data caches is, and how long a load takes",
        definition: "bytes over which loads in random order find all in this level or a nearer one; the interval of a \
                     gradual end holds it",
        source: SAAVEDRA,
        answers: &["cache_latency"],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("each line", each_line),
                ProgramFamily::new("page after page", page_after_page),
                ProgramFamily::new("every other line", every_other_line),
            ],
            witness: Some(&WitnessProgram {
                family: ProgramFamily::new("each line, beside 8 KiB", with_other_ring),
                occupied: OCCUPIED,
            }),
            count_range: [4 << 10, 128 << 20],
            unit: Unit::Bytes,
            min_rise: 3.0,
            // The next cache takes more than twice as long. Missing translations raise the cost of
            // a load from the second cache by at most a half.
            min_ratio: 1.8,
            fills_randomly: true,
            cost_definition: Some(
                "core cycles of a load of 64 bits, mov r, [r], that waits for the one before; its translation is \
                 part of it",
            ),
            bytes_per_count: 1,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "data_caches_by_page",
        about: "how large each level of the data caches is where loads need few translations",
        definition: "bytes over which loads, of all lines of a page in random order before those of another page, \
                     find all in this level or a nearer one; the interval of a gradual end holds it",
        source: SAAVEDRA,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("each line", page_after_page),
                ProgramFamily::new("every other line", half_of_each_page),
            ],
            // No known second cache is larger; third caches have other users too.
            count_range: [4 << 10, 8 << 20],
            unit: Unit::Bytes,
            min_rise: 3.0,
            // As for loads that each need a translation.
            min_ratio: 1.8,
            fills_randomly: true,
            // Prefetchers load a part of an order by pages, so the cost is no latency.
            cost_definition: None,
            bytes_per_count: 1,
            ..LevelsSpec::COUNTS
        }),
    },
    TestSpec {
        name: "data_caches_huge",
        about: "how large each level of the data caches is in pages of 2 MiB, and how long a load takes",
        definition: "bytes over which loads in random order, in pages of 2 MiB, find all in this level or a nearer \
                     one; the interval of a gradual end holds it",
        source: SAAVEDRA,
        answers: &[],
        part: TestedPart::Memory,
        experiment: Experiment::Levels(LevelsSpec {
            programs: &[
                ProgramFamily::new("each line", |bytes| in_huge_pages(each_line(bytes))),
                ProgramFamily::new("every other line", |bytes| in_huge_pages(every_other_line(bytes))),
                ProgramFamily::new("page after page", |bytes| in_huge_pages(page_after_page(bytes))),
            ],
            witness: Some(&WitnessProgram {
                family: ProgramFamily::new("each line, beside 8 KiB", |bytes| in_huge_pages(with_other_ring(bytes))),
                occupied: OCCUPIED,
            }),
            // Memory that fits a small page is in one. No known second cache is larger; third
            // caches have other users too.
            count_range: [8 << 10, 8 << 20],
            unit: Unit::Bytes,
            min_rise: 3.0,
            min_ratio: 1.8,
            // The hypervisor may have split this memory.
            fills_randomly: true,
            cost_definition: Some(
                "core cycles of a load of 64 bits, mov r, [r], that waits for the one before, in pages of 2 MiB",
            ),
            bytes_per_count: 1,
            ..LevelsSpec::COUNTS
        }),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use cyclescope_code::program::memory::AreaFill;
    use std::collections::BTreeSet;

    fn asked() -> &'static LevelsSpec {
        let test: &'static TestSpec = find_test("data_caches_by_page");
        let Experiment::Levels(spec) = &test.experiment else { unreachable!("it is one of levels") };
        spec
    }

    #[test]
    fn loads_of_a_page_follow_each_other_and_programs_differ() {
        let strides = asked().programs.iter().map(|family| {
            let steps = family.program(1 << 20);
            let area = &steps.memory.areas[0];
            let AreaFill::Ring(ring) = &area.fill else { panic!("it is a ring") };
            assert!(matches!(ring.order, RingOrder::RandomByPage), "{}", family.name);
            // Both have the same number of bytes, and so of pages.
            assert_eq!((area.bytes as usize + ring.stride as usize).next_multiple_of(4096), (1 << 20) + 4096);
            ring.stride as usize
        });
        assert_eq!(strides.collect::<BTreeSet<_>>(), BTreeSet::from([LINE, 2 * LINE]));
    }

    /// Bytes of the largest published second cache of a single core (Lion Cove: 3 MiB, Intel,
    /// 2024).
    const LARGEST: usize = 3 << 20;

    #[test]
    fn counts_reach_beyond_the_largest_second_cache_and_no_latency_is_reported() {
        let spec = asked();
        assert!(spec.count_range[1] >= 2 * LARGEST && spec.count_range[0] <= 8 << 10);
        assert!(spec.cost_definition.is_none());
    }
}
