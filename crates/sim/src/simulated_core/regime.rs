//! Latencies that grow where the scheduler holds many instructions that wait.
//!
//! An instruction that enters the scheduler while more than so many of its class wait there has later results. In a chain
//! of n of them that is so from the knee on, and all the time in a long loop.

use iced_x86::Mnemonic;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which instructions wait together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegimeClass {
    /// Those of the vector ports.
    Vector,
    /// Those of one mnemonic.
    Mnemonic(Mnemonic),
}

/// A planted regime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedRegime {
    /// Instructions that are slower.
    pub class: RegimeClass,
    /// More of them wait where they are.
    pub knee: u32,
    /// By how many half cycles. An odd one is a whole cycle more each other time.
    pub half_cycles: u32,
}

/// Instructions of the class that have not started.
#[derive(Debug, Default)]
pub(super) struct WaitingInstructions {
    starts: BinaryHeap<Reverse<u32>>,
    odd: bool,
}

impl SimulatedRegime {
    /// Whether instructions of a mnemonic, on the vector ports or not, are of the class.
    pub(super) fn contains_instruction(&self, mnemonic: Mnemonic, vector: bool) -> bool {
        match self.class {
            RegimeClass::Vector => vector,
            RegimeClass::Mnemonic(one) => one == mnemonic,
        }
    }
}

impl WaitingInstructions {
    pub(super) fn clear(&mut self) {
        *self = WaitingInstructions::default();
    }

    /// Enters an instruction that starts at some time; returns by how many cycles its results are late.
    pub(super) fn enter_instruction(&mut self, regime: &SimulatedRegime, now: u32, start: u32) -> u32 {
        while self.starts.peek().is_some_and(|first| first.0 <= now) {
            self.starts.pop();
        }
        let crowded = self.starts.len() as u32 > regime.knee;
        self.starts.push(Reverse(start));
        if !crowded {
            return 0;
        }
        self.odd = !self.odd;
        (regime.half_cycles + u32::from(self.odd)) / 2
    }
}
