//! What huge pages are worth here.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{LINE, Steps, chase};
use crate::test::{Look, Part, Test};
use cyclescope_code::program::memory::{Area, Memory, Order, PAGE, Pages};

/// Small pages of the ring, 32 MiB of them: more than any level of translations holds, and their lines have room in a second cache.
const NUMBER: usize = 8192;

/// One line of each page.
fn a_line(_: usize) -> Steps {
    chase(NUMBER, PAGE as usize + LINE, Order::RandomByLine)
}

fn another_line(_: usize) -> Steps {
    chase(NUMBER, PAGE as usize + 3 * LINE, Order::RandomByLine)
}

/// The same in pages of 2 MiB.
pub(super) fn in_huge_pages(steps: Steps) -> Steps {
    // What holds the place stays where it is, in a small page.
    let huge = |area: Area| if area.bytes > PAGE { Area { pages: Pages::Huge, ..area } } else { area };
    let areas = steps.memory.areas.into_iter().map(huge).collect();
    Steps { memory: Memory { areas, ..steps.memory }, ..steps }
}

fn a_line_huge(count: usize) -> Steps {
    in_huge_pages(a_line(count))
}

fn another_line_huge(count: usize) -> Steps {
    in_huge_pages(another_line(count))
}

pub(crate) const TEST: Test = Test {
    name: "huge_pages",
    about: "what a load waits less where pages have 2 MiB",
    definition: "core cycles by which a load, of one line in each 4 KiB of 32 MiB, takes longer in pages of 4 KiB than in pages of 2 MiB",
    source: "A. Basu et al., Efficient Virtual Memory for Big Memory Servers (2013), section 2",
    part: Part::Memory,
    look: Look::Contrast(Contrast {
        rows: &[Row::new(
            "",
            1,
            1.0,
            &[
                Way::less("a line of each page", a_line, a_line_huge),
                Way::less("another line of each page", another_line, another_line_huge),
            ],
        )],
        apart: 3.0,
        // As levels of caches, and with other physical pages each time.
        apart_share: 0.25,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_differ_in_the_pages_of_the_ring_alone() {
        let [small, huge] = [a_line(1), a_line_huge(1)];
        assert_eq!((&small.body, &small.init, small.iterations), (&huge.body, &huge.init, huge.iterations));
        let pages: Vec<Pages> = huge.memory.areas.iter().map(|area| area.pages).collect();
        assert_eq!(pages, [Pages::Huge, Pages::Small]);
        let small_again = huge
            .memory
            .areas
            .into_iter()
            .map(|area| Area { pages: Pages::Small, ..area })
            .collect::<Vec<_>>();
        assert_eq!(small_again, small.memory.areas);
    }
}
