//! The order of the copies in a loop.
//!
//! Two orders of one mix may differ by a tenth and more. A port that has just finished work of three
//! cycles may lose a cycle before work of one (on Zen 5, `pext` and `rorx` take 6.0 where their ports
//! allow 4.0, if they alternate, and 4.25 in blocks of 48 each). Other mixes are slow in blocks, because a
//! block does not overlap with the next one. So several orders are tried.

use cyclescope_core::random::Random;
use serde::{Deserialize, Serialize};

/// Approximate instructions of the blocks of all forms together. Longer blocks would not overlap in the
/// scheduler.
const BLOCKED_INSTRUCTIONS: usize = 160;

/// An order of copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixOrder {
    /// Long blocks: many copies of a form, then many of the next one.
    Blocks,
    /// The same within each repetition of the mix.
    ShortBlocks,
    /// Each form evenly spread.
    Interleaved,
    /// Shuffled by this seed within each repetition of the mix.
    Random(u64),
}

impl MixOrder {
    /// The first `count` orders to try.
    pub fn list(count: usize) -> Vec<MixOrder> {
        let plain = [MixOrder::Blocks, MixOrder::Interleaved, MixOrder::ShortBlocks];
        plain.into_iter().chain((1..).map(MixOrder::Random)).take(count).collect()
    }

    /// Its name in texts.
    pub fn describe(self) -> String {
        match self {
            MixOrder::Blocks => "blocks".to_string(),
            MixOrder::ShortBlocks => "short blocks".to_string(),
            MixOrder::Interleaved => "interleaved".to_string(),
            MixOrder::Random(seed) => format!("random {seed}"),
        }
    }

    /// The form at each place of a loop: `repeats` times the mix with these numbers of copies.
    pub fn arrange(self, counts: &[usize], repeats: usize) -> Vec<usize> {
        let in_blocks = |times: usize| -> Vec<usize> {
            counts.iter().enumerate().flat_map(|(form, count)| std::iter::repeat_n(form, count * times)).collect()
        };
        let mut places = in_blocks(1);
        match self {
            MixOrder::Blocks => {
                let together = (BLOCKED_INSTRUCTIONS / places.len().max(1)).clamp(1, repeats);
                let rest = repeats % together;
                return [in_blocks(together).repeat(repeats / together), in_blocks(rest)].concat();
            }
            MixOrder::ShortBlocks => {}
            MixOrder::Interleaved => places = spread_evenly(counts),
            MixOrder::Random(seed) => Random::new(seed).shuffle(&mut places),
        }
        places.repeat(repeats)
    }
}

/// Puts each form's copies at equal distances.
fn spread_evenly(counts: &[usize]) -> Vec<usize> {
    let places_of = |(form, count): (usize, &usize)| {
        let count = *count;
        (0..count).map(move |copy| ((copy as f64 + 0.5) / count as f64, form))
    };
    let mut places: Vec<(f64, usize)> = counts.iter().enumerate().flat_map(places_of).collect();
    places.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    places.into_iter().map(|(_, form)| form).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_has_all_copies() {
        let orders = MixOrder::list(6);
        for order in &orders {
            let places = order.arrange(&[1, 4, 2], 3);
            let count = |form: usize| places.iter().filter(|place| **place == form).count();
            assert_eq!([count(0), count(1), count(2)], [3, 12, 6], "{order:?}");
        }
        assert!(orders.iter().enumerate().all(|(at, order)| !orders[..at].contains(order)));
    }

    #[test]
    fn orders_are_what_their_names_say() {
        let arrange = |order: MixOrder| order.arrange(&[2, 1], 2);
        assert_eq!(arrange(MixOrder::Blocks), [0, 0, 0, 0, 1, 1]);
        let long = MixOrder::Blocks.arrange(&[1, 1], 160);
        assert!(long[..80].iter().all(|form| *form == 0) && long[80..160].iter().all(|form| *form == 1));
        assert_eq!((long.len(), long[160]), (320, 0));
        assert_eq!(arrange(MixOrder::ShortBlocks), [0, 0, 1, 0, 0, 1]);
        assert_eq!(arrange(MixOrder::Interleaved), [0, 1, 0, 0, 1, 0]);
        assert_eq!(arrange(MixOrder::Random(1)), arrange(MixOrder::Random(1)));
        let some = |seed| MixOrder::Random(seed).arrange(&[6, 6], 1);
        assert_ne!(some(1), some(2));
    }
}
