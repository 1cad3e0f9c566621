//! Latencies that grow when the scheduler holds many waiting instructions.
//!
//! An instruction that enters the scheduler while more than `knee` of its class wait there has
//! later results. In a chain of n instructions this happens from the knee on; in a long loop it
//! always happens.

use iced_x86::Mnemonic;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Classes of instructions that wait together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegimeClass {
    /// Instructions of the vector ports.
    Vector,
    /// Instructions of one mnemonic.
    Mnemonic(Mnemonic),
}

/// A simulated regime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimulatedRegime {
    /// The slower instructions.
    pub class: RegimeClass,
    /// Number of waiting instructions beyond which they are slower.
    pub knee: u32,
    /// Additional half cycles. With an odd number, every second result has one cycle more.
    pub half_cycles: u32,
}

/// Instructions of the class that have not started.
#[derive(Debug, Default)]
pub(super) struct WaitingInstructions {
    starts: BinaryHeap<Reverse<u32>>,
    odd: bool,
}

impl SimulatedRegime {
    /// Whether the class contains a mnemonic, on the vector ports or not.
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

    /// Enters an instruction with this start. Returns the delay of its results in cycles.
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
