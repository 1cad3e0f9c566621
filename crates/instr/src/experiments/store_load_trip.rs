//! A store and a load of what it stored, and whether the core takes the store's register for the load.

/// A load that takes less than this share of what one takes from its address never reached the cache, nor the queue of
/// stores: its register was taken from the store.
pub(crate) const RENAMED_SHARE: f64 = 0.5;

/// Core cycles by which a store and a load take less than a load alone, if they do.
const RENAMED_CYCLES: f64 = 0.5;

/// What a store and a load of what it stored take together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StoreLoadTrip {
    /// Core cycles of the load from its address.
    pub load: f64,
    /// Core cycles from the data of the store to those of the load, where memory is not renamed if it can be.
    pub whole: f64,
    /// Where the core takes the store's register for the load.
    pub renamed: MemoryRenaming,
}

/// Where a core takes a store's register for a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryRenaming {
    /// Nowhere that was tried.
    Never,
    /// Where the load reads what the same store stored each time.
    SamePlace,
    /// Even where another store did each time.
    Always,
}

impl StoreLoadTrip {
    /// From what a load takes from its address, and what store and load take at one place and at two in turn.
    ///
    /// Renamed at one place, they take less than a load alone, and much less than at two places. That they take longer at two
    /// says nothing alone: the core may guess which store a load reads, and be wrong each time.
    pub(crate) fn from_costs(load: f64, plain: f64, alternating: f64) -> StoreLoadTrip {
        let (renamed, whole) = match plain < load - RENAMED_CYCLES {
            true if alternating < RENAMED_SHARE * load => (MemoryRenaming::Always, alternating),
            true if plain < alternating - (1.0 - RENAMED_SHARE) * load => (MemoryRenaming::SamePlace, alternating),
            _ => (MemoryRenaming::Never, plain),
        };
        StoreLoadTrip { load, whole: whole.max(0.0), renamed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_renamed_where_a_store_and_a_load_take_less_than_a_load() {
        let of = |plain, alternating| {
            let trip = StoreLoadTrip::from_costs(4.0, plain, alternating);
            (trip.renamed, trip.whole)
        };
        assert_eq!(of(7.0, 7.5), (MemoryRenaming::Never, 7.0));
        assert_eq!(of(7.0, 20.0), (MemoryRenaming::Never, 7.0), "two places in turn are slow for another reason");
        assert_eq!(of(2.0, 7.0), (MemoryRenaming::SamePlace, 7.0));
        assert_eq!(of(3.4, 4.0), (MemoryRenaming::Never, 3.4), "data are forwarded sooner than the cache is read");
        assert_eq!(of(0.5, 7.5), (MemoryRenaming::SamePlace, 7.5));
        assert_eq!(of(0.5, 0.6), (MemoryRenaming::Always, 0.6));
        assert_eq!(of(-0.1, 0.6), (MemoryRenaming::Always, 0.6), "links can cost a little more than they do here");
    }
}
