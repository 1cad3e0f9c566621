//! The cost of a store and a load of the stored value, and whether the core renames memory. With
//! memory renaming, the load takes the store's register.

/// If a load takes less than this share of its usual time, it used neither the cache nor the store
/// queue: it took the store's register.
pub(crate) const RENAMED_SHARE: f64 = 0.5;

/// Least core cycles by which a renamed store and load are quicker than a load alone.
const RENAMED_CYCLES: f64 = 0.5;

/// The cost of a store and a load of the stored value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StoreLoadTrip {
    /// Core cycles of the load from its address.
    pub load: f64,
    /// Core cycles from the store's data to the load's. Without memory renaming, if it can be
    /// avoided.
    pub whole: f64,
    /// Where the core renames memory.
    pub renamed: MemoryRenaming,
}

/// Where a core replaces a load by a store's register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryRenaming {
    /// Nowhere that was tried.
    Never,
    /// If the load always reads the value of the same store.
    SamePlace,
    /// Even if the load reads the value of another store each time.
    Always,
}

impl StoreLoadTrip {
    /// Judges whether memory is renamed. The times are those of a load from its address, of a store
    /// and load at one place, and of a store and load at alternating places.
    ///
    /// If renamed at one place, they take less time than a load alone, and much less than at two
    /// places. A longer time at two places alone proves nothing: the core may predict the wrong
    /// store each time.
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
    fn memory_is_renamed_if_store_and_load_take_less_than_a_load() {
        let judge = |plain, alternating| {
            let trip = StoreLoadTrip::from_costs(4.0, plain, alternating);
            (trip.renamed, trip.whole)
        };
        assert_eq!(judge(7.0, 7.5), (MemoryRenaming::Never, 7.0));
        assert_eq!(judge(7.0, 20.0), (MemoryRenaming::Never, 7.0), "alternating places are slow for another reason");
        assert_eq!(judge(2.0, 7.0), (MemoryRenaming::SamePlace, 7.0));
        assert_eq!(judge(3.4, 4.0), (MemoryRenaming::Never, 3.4), "forwarding is faster than reading the cache");
        assert_eq!(judge(0.5, 7.5), (MemoryRenaming::SamePlace, 7.5));
        assert_eq!(judge(0.5, 0.6), (MemoryRenaming::Always, 0.6));
        assert_eq!(judge(-0.1, 0.6), (MemoryRenaming::Always, 0.6), "link costs may be slightly too high");
    }
}
