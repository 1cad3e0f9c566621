//! The placement policy of a program's body or of an area's pointer.
//!
//! It is data; `placement` turns it into offsets.

use cyclescope_core::error::BadBatch;
use serde::{Deserialize, Serialize};

/// Where something is to be. Code is placed by the first byte of the program's body, data by where a register points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementPolicy {
    /// Anywhere. The bodies of one layout that are placed so have one alignment against the cache line in common; data
    /// keep theirs.
    #[default]
    Random,
    /// Offset in bytes from the start of the code arena or of the area.
    Offset(u32),
    /// Anywhere at an address that is `plus` modulo `to`.
    Aligned {
        /// A power of two, up to 4096: the start of a page is all that executors promise of an arena or area.
        to: u32,
        /// Less than `to`.
        plus: u32,
    },
    /// Copies of one program, each body `by` bytes after the one before.
    Spaced {
        /// Number of copies, at least one.
        copies: u32,
        /// Bytes from one body to the next: at least the program's length.
        by: u32,
    },
    /// Anywhere at a distance from another body, or from another area's pointer, that is a multiple of 2 to the power
    /// of
    /// `bits`.
    Aliased {
        /// Index of the other among those that are placed together.
        with: usize,
        /// 1 to 31; for data to 12, for areas begin at the start of a page and no more is known.
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

    /// Whether the policy is valid for the item with this index among this number of items.
    pub fn check(self, number: usize, count: usize) -> Result<(), BadBatch> {
        let wrong = |what: String, expected: &str| {
            Err(BadBatch { part: format!("place {number}"), what, expected: expected.to_string() })
        };
        match self {
            PlacementPolicy::Random | PlacementPolicy::Offset(_) => Ok(()),
            PlacementPolicy::Aligned { to, plus } if !to.is_power_of_two() || to > 4096 || plus >= to => {
                wrong(format!("it is to be {plus} modulo {to}"), "less than a power of two of at most 4096")
            }
            PlacementPolicy::Spaced { copies, by } if copies == 0 || by == 0 => wrong(
                format!("it has {copies} copies, {by} bytes apart"),
                "at least one copy, and at least one byte from one to the next",
            ),
            PlacementPolicy::Aliased { with, .. } if with >= count || with == number => wrong(
                format!("it is to be aliased to place {with} of {count}"),
                "the number of another one that is placed with it",
            ),
            PlacementPolicy::Aliased { bits, .. } if !(1..32).contains(&bits) => {
                wrong(format!("it is to be aliased in {bits} bits"), "1 to 31 bits")
            }
            PlacementPolicy::Aligned { .. } | PlacementPolicy::Spaced { .. } | PlacementPolicy::Aliased { .. } => {
                Ok(())
            }
        }
    }
}
