//! Placement policy of a program's body or of an area's pointer.
//!
//! It is data; `placement` turns it into offsets.

use cyclescope_core::error::BadBatch;
use serde::{Deserialize, Serialize};

/// Where to place something. For code, the first byte of the program's body; for data, the target
/// of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementPolicy {
    /// Anywhere. Code: all such bodies of one layout share one alignment within the cache line.
    /// Data: the alignment stays.
    #[default]
    Random,
    /// Offset in bytes from the start of the code arena or of the area.
    Offset(u32),
    /// Any address that equals `plus` modulo `to`.
    Aligned {
        /// A power of two, at most 4096: executors only guarantee that an arena or area starts at a
        /// page.
        to: u32,
        /// Less than `to`.
        plus: u32,
    },
    /// Copies of one program; each body starts `by` bytes after the previous one.
    Spaced {
        /// Number of copies, at least one.
        copies: u32,
        /// Bytes from one body to the next: at least the program's length.
        by: u32,
    },
    /// At a distance from another body or area's pointer that is a multiple of 2^`bits`.
    Aliased {
        /// Index of the other item among those placed together.
        with: usize,
        /// 1 to 31; for data at most 12, because areas only guarantee to start at a page.
        bits: u8,
    },
}

impl PlacementPolicy {
    /// Number of copies of a program that the policy places.
    pub fn copies(self) -> usize {
        match self {
            PlacementPolicy::Spaced { copies, .. } => copies as usize,
            _ => 1,
        }
    }

    /// Checks that the policy is valid for the item with index `number` among `count` items.
    pub fn check(self, number: usize, count: usize) -> Result<(), BadBatch> {
        let wrong = |what: String, expected: &str| {
            Err(BadBatch { part: format!("place {number}"), what, expected: expected.to_string() })
        };
        match self {
            PlacementPolicy::Random | PlacementPolicy::Offset(_) => Ok(()),
            PlacementPolicy::Aligned { to, plus } if !to.is_power_of_two() || to > 4096 || plus >= to => {
                wrong(format!("its address must be {plus} modulo {to}"), "less than a power of two of at most 4096")
            }
            PlacementPolicy::Spaced { copies, by } if copies == 0 || by == 0 => wrong(
                format!("it has {copies} copies, {by} bytes apart"),
                "at least one copy, and at least one byte from one to the next",
            ),
            PlacementPolicy::Aliased { with, .. } if with >= count || with == number => {
                wrong(format!("it must alias place {with} of {count}"), "the number of another item placed with it")
            }
            PlacementPolicy::Aliased { bits, .. } if !(1..32).contains(&bits) => {
                wrong(format!("it must alias in {bits} bits"), "1 to 31 bits")
            }
            PlacementPolicy::Aligned { .. } | PlacementPolicy::Spaced { .. } | PlacementPolicy::Aliased { .. } => {
                Ok(())
            }
        }
    }
}
