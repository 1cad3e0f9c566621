//! Loads around rings in a simulated hierarchy of caches and translations. At times a sibling holds
//! a random share of each level.
//!
//! The cost of a load is the expected one: cycles of the cache that has its line, and the extra
//! cycles of the level that has its translation. Four rules give the share of loads that miss a
//! level:
//!
//! - Sets that fill evenly miss from the first line without room on, until no set fits.
//! - Sets that physical pages fill by chance miss by the Poisson distribution.
//! - Where any line is replaced instead of the oldest, only the lines that are too many evict
//!   others.
//! - Loads in random order from pages of many lines find a translation by chance.
//!
//! Limits: no level excludes what another one has.

use cyclescope_code::program::memory::{
    AreaFill, HUGE_PAGE_BYTES, MemoryArea, PAGE_BYTES, PageSize, PointerRing, ProgramMemory, RingOrder,
};
use cyclescope_core::random::Random;

/// Bytes of a line.
const LINE_BYTES: u64 = 64;

/// A simulated cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedCache {
    /// Size in bytes.
    pub bytes: f64,
    /// Lines of a set.
    pub ways: usize,
    /// Core cycles of a load that it answers.
    pub cost: f64,
    /// Whether physical addresses select the sets, so that small pages fill them by chance.
    pub physical: bool,
    /// Whether it replaces any line of a set, not the oldest one.
    pub replaces_any: bool,
}

/// A simulated level of translations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedTranslations {
    /// Entries.
    pub entries: f64,
    /// Entries of a set.
    pub ways: usize,
    /// Core cycles that a load takes longer if this level has its translation.
    pub cost: f64,
}

/// A sibling that holds a share of each level for spells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheSibling {
    /// The share of the time in which it holds something.
    pub active: f64,
    /// The mean length of a spell, in measurements.
    pub spell: f64,
    /// The largest share that it holds of the first level of caches and translations, and of the
    /// others.
    pub most: [f64; 2],
}

/// A simulated hierarchy.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryHierarchy {
    /// Caches, the nearest first.
    pub caches: Vec<SimulatedCache>,
    /// Core cycles of a load from memory.
    pub memory: f64,
    /// Levels of translations, the nearest first.
    pub translations: Vec<SimulatedTranslations>,
    /// Core cycles that a load takes longer without any translation.
    pub walk: f64,
    /// The share of the cost beyond the second cache that prefetchers hide if a program loads page
    /// after page.
    pub prefetched: f64,
    /// Whether a hypervisor splits huge pages.
    pub splits_huge_pages: bool,
    /// What holds a part of it.
    pub sibling: Option<CacheSibling>,
}

/// The shares that a sibling holds now: of each cache, and of each level of translations.
#[derive(Debug, Clone, Default)]
pub struct HeldShares {
    caches: Vec<f64>,
    translations: Vec<f64>,
    left: usize,
}

impl MemoryHierarchy {
    /// A hierarchy like that of a core with a small first level of translations: these end before
    /// the second cache. Sizes and costs are random by seed.
    pub fn from_seed(seed: u64) -> MemoryHierarchy {
        let mut random = Random::new(seed);
        let mut draw = |from: f64, to: f64| from + (to - from) * random.uniform();
        // Lines of 8 to 16 ways with 64 sets.
        let ways = draw(8.0, 16.99).floor();
        let first = ways * (PAGE_BYTES as f64);
        let kib = |kib: f64| (kib * 1024.0 / 65536.0).round() * 65536.0;
        let second = kib(draw(512.0, 2560.0));
        let third = (second * draw(10.0, 24.0) / 1048576.0).round() * 1048576.0;
        let [near, far] = [draw(12.0, 17.0).round(), draw(44.0, 75.0).round()];
        let replaces_any = draw(0.0, 1.0) < 0.5;
        let cache = |bytes, ways: f64, cost, physical| {
            let replaces_any = physical && replaces_any;
            SimulatedCache { bytes, ways: ways as usize, cost, physical, replaces_any }
        };
        let level = |entries: f64, ways: f64, cost| SimulatedTranslations { entries, ways: ways as usize, cost };
        let entries = draw(64.0, 112.0).round();
        MemoryHierarchy {
            caches: vec![
                cache(first, ways, draw(4.0, 5.99).floor(), false),
                cache(second, draw(8.0, 16.99).floor(), near, true),
                cache(third, draw(12.0, 16.99).floor(), far, true),
            ],
            memory: far * draw(4.0, 6.0),
            translations: vec![
                level(entries, entries, 0.0),
                level((draw(1536.0, 4096.0) / 64.0).round() * 64.0, draw(6.0, 16.99).floor(), draw(6.0, 8.99).floor()),
            ],
            walk: draw(24.0, 60.0),
            prefetched: draw(0.0, 0.5),
            splits_huge_pages: draw(0.0, 1.0) < 0.5,
            sibling: None,
        }
    }

    /// The core cycles of a load around the rings of this memory, whose loads take turns, while a
    /// sibling holds these shares.
    pub fn cost_of_load(&self, memory: &ProgramMemory, held: &HeldShares) -> f64 {
        let rings: Vec<RingFootprint> = memory.areas.iter().filter_map(|area| self.measure_ring(area)).collect();
        let by_page = rings.iter().any(|ring| ring.by_page);
        let mut cost = self.caches[0].cost;
        for (number, cache) in self.caches.iter().enumerate() {
            let next = self.caches.get(number + 1).map_or(self.memory, |next| next.cost);
            let room = 1.0 - held.caches.get(number).copied().unwrap_or_default();
            let rise = (next - cache.cost) * if by_page && number > 0 { 1.0 - self.prefetched } else { 1.0 };
            cost += cache.missing_share(&rings, room) * rise;
        }
        for (number, level) in self.translations.iter().enumerate() {
            let next = self.translations.get(number + 1).map_or(self.walk, |next| next.cost);
            let room = 1.0 - held.translations.get(number).copied().unwrap_or_default();
            cost += level.missing_share(&rings, room) * (next - level.cost);
        }
        cost
    }

    /// The shares that the sibling holds during the next measurement.
    pub fn draw_held(&self, held: &mut HeldShares, random: &mut Random) {
        let Some(sibling) = self.sibling else { return };
        if held.left > 0 {
            held.left -= 1;
            return;
        }
        held.left = (sibling.spell * random.exponential()).round() as usize;
        let active = random.happens(sibling.active);
        let mut share = |level: usize| {
            let most = sibling.most[usize::from(level > 0)];
            if active { most * random.uniform() } else { 0.0 }
        };
        held.caches = (0..self.caches.len()).map(&mut share).collect();
        held.translations = (0..self.translations.len()).map(&mut share).collect();
    }

    fn measure_ring(&self, area: &MemoryArea) -> Option<RingFootprint> {
        let AreaFill::Ring(PointerRing { stride, order, .. }) = area.fill else { return None };
        let stride = u64::from(stride);
        let elements = (area.bytes.saturating_sub(8) / stride + 1) as f64;
        let huge = area.pages == PageSize::Huge;
        let page = if huge && !self.splits_huge_pages { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        let by_page = order == RingOrder::RandomByPage;
        // The lines of a page that elements use, if the next page uses the same ones.
        let lines = PAGE_BYTES / LINE_BYTES;
        let step = stride / LINE_BYTES % lines;
        let slots = if step == 0 { 1 } else { lines >> step.trailing_zeros().min(lines.trailing_zeros()) };
        Some(RingFootprint {
            elements,
            pages: elements.min((elements * stride as f64 / page as f64).ceil()),
            slots: slots as f64,
            contiguous: huge && !self.splits_huge_pages,
            by_page,
        })
    }
}

/// What a ring occupies.
#[derive(Debug, Clone, Copy)]
struct RingFootprint {
    elements: f64,
    pages: f64,
    /// Different lines of small pages that its elements use.
    slots: f64,
    /// Whether its physical memory is contiguous.
    contiguous: bool,
    by_page: bool,
}

impl RingFootprint {
    /// Lines per way of a cache, as a share of all sets that the ring uses.
    fn count_per_set(&self, cache: &SimulatedCache) -> f64 {
        let sets = cache.bytes / cache.ways as f64 / LINE_BYTES as f64;
        let used = sets * self.slots / (PAGE_BYTES / LINE_BYTES) as f64;
        self.elements / used
    }
}

impl SimulatedCache {
    /// The share of loads that find no line in it, if it has this share of its room.
    fn missing_share(&self, rings: &[RingFootprint], room: f64) -> f64 {
        let lines: f64 = rings.iter().map(|ring| ring.count_per_set(self)).sum();
        let lines = lines / room;
        let by_chance = self.physical && !rings.iter().all(|ring| ring.contiguous);
        match (by_chance, self.replaces_any) {
            (true, true) => any_line_share(lines, self.ways),
            (true, false) => overfull_share(lines, self.ways),
            (false, true) => missing_of_set(lines / self.ways as f64),
            (false, false) => (lines - self.ways as f64).clamp(0.0, 1.0),
        }
    }
}

impl SimulatedTranslations {
    /// The share of loads that find no translation in it, if it has this share of its room.
    fn missing_share(&self, rings: &[RingFootprint], room: f64) -> f64 {
        let pages: f64 = rings.iter().map(|ring| ring.pages).sum();
        let elements: f64 = rings.iter().map(|ring| ring.elements).sum();
        let entries = self.entries * room;
        // Pages in turn, one line or all lines of each.
        let in_turn = ((pages - entries) / (entries / self.ways as f64)).clamp(0.0, 1.0);
        if rings.iter().all(|ring| ring.by_page) || elements <= pages {
            return in_turn * pages / elements;
        }
        (1.0 - entries / pages).max(0.0)
    }
}

/// The share of lines in sets with more lines than ways, if this many lines are in a set on
/// average.
fn overfull_share(mean: f64, ways: usize) -> f64 {
    let (mut term, mut room) = ((-mean).exp(), 0.0);
    for others in 0..ways {
        room += term;
        term *= mean / (others + 1) as f64;
    }
    1.0 - room
}

/// Steps after which a share is exact.
const NEWTON_STEPS: usize = 12;

/// The share of loads that miss in a set with this many times its ways, if any line is replaced. A
/// line stays for a round if none of the misses of that round hits it.
fn missing_of_set(lines: f64) -> f64 {
    if lines <= 1.0 {
        return 0.0;
    }
    // Newton's method, from above.
    (0..NEWTON_STEPS).fold(1.0, |missing, _| {
        let held = f64::exp(-lines * missing);
        missing - (1.0 - held - missing) / (lines * held - 1.0)
    })
}

/// The share of lines that miss in sets with this many lines on average, if any line is replaced.
fn any_line_share(mean: f64, ways: usize) -> f64 {
    let (mut term, mut missing) = ((-mean).exp(), 0.0);
    let most = (mean + 8.0 * mean.sqrt()) as usize + ways;
    for others in 0..most {
        missing += term * missing_of_set((others + 1) as f64 / ways as f64);
        term *= mean / (others + 1) as f64;
    }
    missing.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hierarchy of round numbers.
    fn hierarchy() -> MemoryHierarchy {
        let cache = |bytes, ways, cost, physical| SimulatedCache { bytes, ways, cost, physical, replaces_any: false };
        let level = |entries, ways, cost| SimulatedTranslations { entries, ways, cost };
        MemoryHierarchy {
            caches: vec![
                cache(32768.0, 8, 4.0, false),
                cache(1048576.0, 8, 14.0, true),
                cache(16777216.0, 16, 50.0, true),
            ],
            memory: 300.0,
            translations: vec![level(64.0, 64, 0.0), level(2048.0, 16, 7.0)],
            walk: 40.0,
            prefetched: 0.5,
            splits_huge_pages: false,
            sibling: None,
        }
    }

    fn ring(bytes: u64, stride: u32, order: RingOrder, pages: PageSize) -> ProgramMemory {
        let fill = AreaFill::Ring(PointerRing { stride, order, seed: 1 });
        let area = MemoryArea { pages, ..MemoryArea::new(bytes - u64::from(stride) + 8, fill) };
        ProgramMemory { areas: vec![area], ..ProgramMemory::default() }
    }

    fn cost(bytes: u64, stride: u32, order: RingOrder) -> f64 {
        hierarchy().cost_of_load(&ring(bytes, stride, order, PageSize::Small), &HeldShares::default())
    }

    #[test]
    fn a_load_costs_as_much_as_the_level_that_has_it() {
        let by_line = |bytes: u64| cost(bytes, 64, RingOrder::RandomByLine);
        let near = |costs: [f64; 4], expected: [f64; 4]| {
            costs.iter().zip(expected).all(|(one, other)| (one - other).abs() < 0.001)
        };
        let costs = [16384, 32768, 36864, 131072].map(by_line);
        assert!(near(costs, [4.0, 4.0, 14.0, 14.0]), "{costs:?}");
        // Half of the sets of a cache with physical addresses are overfull, and 192 of 256 pages
        // lack a near translation.
        let expected = 14.0 + 36.0 * overfull_share(8.0, 8) + 7.0 * 0.75;
        assert!((by_line(1 << 20) - expected).abs() < 1e-9, "{} {expected}", by_line(1 << 20));
        assert!(by_line(256 << 20) > 300.0 + 30.0);
        // Every other line fills half of the sets at the same number of bytes.
        let costs = [16384, 32768, 36864, 131072].map(|bytes| cost(bytes, 128, RingOrder::RandomByLine));
        assert!(near(costs, [4.0, 4.0, 14.0, 14.0]), "{costs:?}");
    }

    #[test]
    fn the_oldest_line_is_replaced_or_any() {
        // As many lines as places.
        let shares = [4, 8, 16].map(|ways| [overfull_share(ways as f64, ways), any_line_share(ways as f64, ways)]);
        assert!(
            shares.iter().all(|[oldest, any]| (0.5..0.58).contains(oldest) && (0.15..0.35).contains(any)),
            "{shares:?}"
        );
        assert!(missing_of_set(1.0) == 0.0 && (missing_of_set(1.25) - 0.37).abs() < 0.01);
        assert!(any_line_share(48.0, 16) > 0.9);
    }

    #[test]
    fn orders_and_pages_need_different_translations() {
        // One line of each page, the next one in the next page.
        let of_pages = |pages: u64| cost(pages * 4160, 4160, RingOrder::RandomByLine);
        let costs = [64, 128].map(of_pages);
        assert!((costs[0] - 4.0).abs() < 0.001 && (costs[1] - 11.0).abs() < 0.001, "{costs:?}");
        let by_page = cost(524288, 64, RingOrder::RandomByPage);
        assert!(by_page < cost(524288, 64, RingOrder::RandomByLine) - 3.0, "{by_page}");
        let huge = ring(524288, 64, RingOrder::RandomByLine, PageSize::Huge);
        let [whole, split] = [false, true].map(|splits_huge_pages| {
            MemoryHierarchy { splits_huge_pages, ..hierarchy() }.cost_of_load(&huge, &HeldShares::default())
        });
        assert!((whole - 14.0).abs() < 0.001 && split > 17.0, "{whole} {split}");
    }

    #[test]
    fn a_sibling_takes_room_for_spells() {
        let sibling = Some(CacheSibling { active: 0.5, spell: 4.0, most: [0.2, 0.6] });
        let hierarchy = MemoryHierarchy { sibling, ..hierarchy() };
        let (mut held, mut random) = (HeldShares::default(), Random::new(3));
        let memory = ring(700 << 10, 64, RingOrder::RandomByPage, PageSize::Small);
        let costs: Vec<f64> = (0..2000)
            .map(|_| {
                hierarchy.draw_held(&mut held, &mut random);
                hierarchy.cost_of_load(&memory, &held)
            })
            .collect();
        let alone = hierarchy.cost_of_load(&memory, &HeldShares::default());
        let dearer = costs.iter().filter(|cost| **cost > alone + 0.1).count();
        assert!((600..1400).contains(&dearer), "{dearer}");
        assert!(costs.windows(2).filter(|pair| pair[0] == pair[1]).count() > 1200);
        assert!(costs.iter().all(|cost| *cost >= alone - 1e-9));
    }
}
