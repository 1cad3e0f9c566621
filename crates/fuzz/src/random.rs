//! Random numbers from a seed.

/// A generator: SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators",
/// 2014).
#[derive(Debug, Clone)]
pub struct FuzzRandom(u64);

impl FuzzRandom {
    /// The generator of one input.
    pub fn new(seed: u64, number: u64) -> FuzzRandom {
        let mut random = FuzzRandom(seed);
        let start = random.next_bits() ^ number;
        FuzzRandom(FuzzRandom(start).next_bits())
    }

    fn next_bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number of 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.next_bits()
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next_bits() % end as u64) as usize
    }

    /// One element of a non-empty slice.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
