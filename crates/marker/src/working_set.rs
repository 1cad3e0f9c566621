//! Working sets: memory that a loop cycles through and that exceeds a cache level. Their size
//! depends on the machine's caches.
//!
//! Limits: a virtual machine may report caches that it does not have. No source gives the part of a
//! shared cache that is available to this core.

use super::source::context::MemoryFootprint;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::memory::{AreaFill, AreaPointer, PointerPosition, ProgramMemory, StoreLifetime};
use cyclescope_core::machine::cache::{Cache, CacheKind};
use serde::{Deserialize, Serialize};

/// The size of a working set and of the cache that it exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingSet {
    /// Bytes that the loop cycles through.
    pub bytes: u64,
    /// Size in bytes of the cache that is too small, as reported by the machine; null if not
    /// reported. The set then exceeds every known cache of this level.
    pub cache: Option<u64>,
}

/// Size of a set relative to the cache. If the set is only slightly larger, imperfect LRU
/// replacement keeps some of its lines.
const CACHE_MULTIPLE: u64 = 4;
/// Smallest size of a set relative to the cache.
const CACHE_MULTIPLE_LEAST: u64 = 2;
/// Sets for a machine that does not report its caches. No level 1 data cache is larger than 128
/// KiB, no level 2 cache of a single core larger than 4 MiB.
const BYTES_BEYOND_UNKNOWN: [u64; 2] = [192 << 10, 16 << 20];
/// Bytes that a loop reads per iteration.
const BYTES_PER_LOOP: u64 = 256;
/// Bytes before the set: its size, and the loop's position in it.
const HEAD_BYTES: u64 = 4096;
/// Register that holds the address of the memory (the second argument of the loop's function).
const MEMORY_REGISTER: u8 = 6;

impl WorkingSet {
    /// A set that exceeds the cache of this level, and fits into the next one if possible.
    pub(crate) fn beyond_cache(level: u32, caches: &[Cache]) -> WorkingSet {
        let cache_bytes = |level: u32| {
            let data = |cache: &&Cache| cache.level == level && cache.kind != CacheKind::Instruction;
            caches.iter().find(data).map(|cache| cache.bytes).filter(|bytes| *bytes > 0)
        };
        let Some(cache) = cache_bytes(level) else {
            return WorkingSet { bytes: BYTES_BEYOND_UNKNOWN[usize::from(level > 1)], cache: None };
        };
        let room = cache_bytes(level + 1).map_or(u64::MAX, |next| next / 2);
        let bytes = (CACHE_MULTIPLE * cache).min(room).max(CACHE_MULTIPLE_LEAST * cache);
        WorkingSet { bytes: bytes.next_multiple_of(BYTES_PER_LOOP), cache: Some(cache) }
    }

    /// The memory that contains the set.
    fn to_memory(self) -> ProgramMemory {
        let mut memory = ProgramMemory::standard(FloatElement::default(), false);
        let area = memory.areas.iter_mut().find(|area| area.pointer.is_some_and(|it| it.register == MEMORY_REGISTER));
        let area = area.expect("an argument's register points into an area");
        area.bytes = HEAD_BYTES + self.bytes;
        area.fill = AreaFill::Image(self.bytes.to_le_bytes().into());
        area.lifetime = StoreLifetime::Kept;
        area.pointer = Some(AreaPointer { register: MEMORY_REGISTER, at: PointerPosition::Start });
        memory
    }
}

/// The memory of loops with this footprint and working set, and its addresses in a layout that
/// moves data.
pub(super) fn loop_memory(
    footprint: MemoryFootprint,
    set: Option<WorkingSet>,
    moved: &[i32],
) -> (ProgramMemory, Vec<i32>) {
    match set {
        Some(set) => (set.to_memory(), vec![0; moved.len()]),
        None => {
            (ProgramMemory::standard(FloatElement::default(), footprint != MemoryFootprint::Untouched), moved.to_vec())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u32, kind: CacheKind, kib: u64) -> Cache {
        Cache { level, kind, bytes: kib << 10, line: 64, ways: 8 }
    }

    fn kib(level: u32, caches: &[Cache]) -> (u64, Option<u64>) {
        let set = WorkingSet::beyond_cache(level, caches);
        (set.bytes >> 10, set.cache.map(|bytes| bytes >> 10))
    }

    #[test]
    fn a_set_exceeds_its_cache_and_fits_the_next() {
        let turin = [
            cache(1, CacheKind::Data, 48),
            cache(1, CacheKind::Instruction, 32),
            cache(2, CacheKind::Unified, 1024),
            cache(3, CacheKind::Unified, 32 << 10),
        ];
        assert_eq!((kib(1, &turin), kib(2, &turin)), ((192, Some(48)), (4096, Some(1024))));
        // Little room in the next level, or none.
        let small = [cache(1, CacheKind::Data, 64), cache(2, CacheKind::Unified, 256)];
        assert_eq!((kib(1, &small), kib(2, &small)), ((128, Some(64)), (1024, Some(256))));
        let tight = [cache(1, CacheKind::Data, 48), cache(2, CacheKind::Unified, 64)];
        assert_eq!(kib(1, &tight), (96, Some(48)));
    }

    #[test]
    fn without_cache_data_sets_exceed_every_known_cache() {
        assert_eq!((kib(1, &[]), kib(2, &[])), ((192, None), (16 << 10, None)));
        let instructions = [cache(1, CacheKind::Instruction, 32), cache(2, CacheKind::Unified, 0)];
        assert_eq!((kib(1, &instructions).1, kib(2, &instructions).1), (None, None));
    }

    #[test]
    fn executors_accept_the_memory() {
        for level in [1, 2] {
            let set = WorkingSet::beyond_cache(level, &[]);
            let (memory, moved) = loop_memory(MemoryFootprint::Beyond(level), Some(set), &[64; 5]);
            memory.check().expect("it is sound");
            assert_eq!(moved, vec![0; memory.areas.len()]);
        }
    }
}
