//! The latest stores, for the loads that follow them.

use super::address::SymbolicAddress;
use iced_x86::Register;

/// Number of stores that can be forwarded; older ones are in the cache, and no load waits for them.
const FORWARDABLE_STORES: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct ForwardableStore {
    pub(super) address: SymbolicAddress,
    pub(super) size: i64,
    /// Its base register and the number of earlier writes to it, if memory renaming may follow it.
    pub(super) renamed: Option<(Register, u32)>,
    /// Number of earlier stores.
    pub(super) number: u64,
    /// When its data were ready.
    pub(super) data: u32,
    /// When they can be forwarded.
    pub(super) visible: u32,
}

/// The source of a load's data.
#[derive(Debug, Clone, Copy)]
pub(super) enum StoreMatch<'a> {
    /// Only the cache.
    Nothing,
    /// A store with all of its bytes.
    All(&'a ForwardableStore),
    /// A store with some of its bytes.
    Part(&'a ForwardableStore),
}

#[derive(Debug, Default)]
pub(super) struct StoreBuffer {
    stores: Vec<ForwardableStore>,
    /// Index of the oldest store, once the buffer is full.
    oldest: usize,
}

impl StoreBuffer {
    pub(super) fn clear(&mut self) {
        self.stores.clear();
        self.oldest = 0;
    }

    pub(super) fn push_store(&mut self, store: ForwardableStore) {
        if self.stores.len() < FORWARDABLE_STORES {
            self.stores.push(store);
        } else {
            self.stores[self.oldest] = store;
            self.oldest = (self.oldest + 1) % FORWARDABLE_STORES;
        }
    }

    /// The youngest store that overlaps.
    pub(super) fn find_overlap(&self, address: SymbolicAddress, size: i64) -> StoreMatch<'_> {
        let (young, old) = (&self.stores[..self.oldest], &self.stores[self.oldest..]);
        let overlaps = |store: &&ForwardableStore| {
            let distance = address.offset.wrapping_sub(store.address.offset);
            store.address.symbol == address.symbol && distance < store.size && distance > -size
        };
        match young.iter().rev().chain(old.iter().rev()).find(overlaps) {
            None => StoreMatch::Nothing,
            Some(store) => {
                let distance = address.offset.wrapping_sub(store.address.offset);
                let inside = distance >= 0 && distance + size <= store.size;
                if inside { StoreMatch::All(store) } else { StoreMatch::Part(store) }
            }
        }
    }
}
