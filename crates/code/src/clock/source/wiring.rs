//! How one side of a method is wired into a function that a compiler builds in: where its reading leaves, and which registers
//! the compiler has to give up.

use crate::clock::step::ClockStep;
use crate::clock::timing_method::{Clock, ClockSide};
use iced_x86::Register::{self, RAX, RBX, RCX, RDI, RDX, RSI};

/// The wiring of one side.
pub(super) struct RegisterWiring {
    /// The registers that the reading leaves in, its low half first.
    pub(super) reading: [Register; 2],
    /// Whether it is moved there, for later steps change EDX:EAX.
    pub(super) is_moved: bool,
    /// Whether RBX is kept in another register meanwhile. Compilers may use it for themselves, so that it is not theirs to
    /// give up: GCC with a register of that name fixed, LLVM as the base of some frames.
    pub(super) keeps_rbx: bool,
    /// Whether a counter's number enters in ECX.
    pub(super) takes_counter: bool,
    /// The other registers that change.
    pub(super) clobbers: Vec<Register>,
}

impl RegisterWiring {
    pub(super) fn new(clock: &Clock, side: ClockSide) -> RegisterWiring {
        let steps = clock.side_steps(side);
        let store = steps.iter().position(|step| *step == ClockStep::Store).expect("each side stores one reading");
        let changes_reading = |step: &ClockStep| step.clobbers().iter().any(|register| [RAX, RDX].contains(register));
        let is_moved = steps[store..].iter().any(changes_reading);
        let reading = if is_moved { [RSI, RDI] } else { [RAX, RDX] };
        let takes_counter = steps.contains(&ClockStep::Rdpmc);
        let mut clobbers = clock.side_clobbers(side);
        let keeps_rbx = clobbers.contains(&RBX);
        clobbers.retain(|register| *register != RBX && !reading.contains(register));
        // RDPMC leaves ECX as it was.
        clobbers.retain(|register| !(takes_counter && *register == RCX));
        RegisterWiring { reading, is_moved, keeps_rbx, takes_counter, clobbers }
    }
}
