//! The latest stores, for the loads that follow them.

use super::address::Address;
use iced_x86::Register;

/// How many stores can be forwarded; older ones are in the cache, and no load waits for them.
const DEPTH: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Store {
    pub(super) address: Address,
    pub(super) size: i64,
    /// Its base register and how often that was written before, where memory renaming may follow it.
    pub(super) renamed: Option<(Register, u32)>,
    /// How many stores there were before.
    pub(super) number: u64,
    /// When its data were there.
    pub(super) data: u32,
    /// When they can be forwarded.
    pub(super) visible: u32,
}

/// What a load finds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found<'a> {
    /// Nothing but the cache.
    Nothing,
    /// All that it wants.
    All(&'a Store),
    /// A part of it.
    Part(&'a Store),
}

#[derive(Debug, Default)]
pub(super) struct Stores {
    stores: Vec<Store>,
    /// Where the oldest one is, once there are many.
    oldest: usize,
}

impl Stores {
    pub(super) fn clear(&mut self) {
        self.stores.clear();
        self.oldest = 0;
    }

    pub(super) fn push(&mut self, store: Store) {
        if self.stores.len() < DEPTH {
            self.stores.push(store);
        } else {
            self.stores[self.oldest] = store;
            self.oldest = (self.oldest + 1) % DEPTH;
        }
    }

    /// The youngest store that overlaps.
    pub(super) fn find(&self, address: Address, size: i64) -> Found<'_> {
        let (young, old) = (&self.stores[..self.oldest], &self.stores[self.oldest..]);
        let overlaps = |store: &&Store| {
            let distance = address.offset.wrapping_sub(store.address.offset);
            store.address.symbol == address.symbol && distance < store.size && distance > -size
        };
        match young.iter().rev().chain(old.iter().rev()).find(overlaps) {
            None => Found::Nothing,
            Some(store) => {
                let distance = address.offset.wrapping_sub(store.address.offset);
                let inside = distance >= 0 && distance + size <= store.size;
                if inside { Found::All(store) } else { Found::Part(store) }
            }
        }
    }
}
