//! How one side of a method fits into an inlined function: the registers that return its reading,
//! and those that the compiler must give up.

use super::syntax::register_name;
use crate::asm::CodeMode;
use crate::clock::step::ClockStep;
use crate::clock::timing_method::{Clock, ClockSide};
use iced_x86::Register::{self, RAX, RBX, RCX, RDI, RDX, RSI};

/// Register use of one side. Registers have the names of 64-bit mode; [`RegisterWiring::name`] has
/// those of the code.
pub(super) struct RegisterWiring {
    /// The mode of the code.
    pub(super) mode: CodeMode,
    /// Registers that return the reading, low half first.
    pub(super) reading: [Register; 2],
    /// Whether the reading is moved there, because later steps change EDX:EAX.
    pub(super) is_moved: bool,
    /// Whether RBX is saved in another register meanwhile. Compilers may reserve it: GCC if a
    /// variable is fixed to it, LLVM as the base of some frames.
    pub(super) keeps_rbx: bool,
    /// Whether EBX is pushed around CPUID, in 32-bit code. GCC may reserve it for
    /// position-independent code.
    pub(super) pushes_ebx: bool,
    /// Whether the reading is pushed while later steps change EDX:EAX, in 32-bit code. ESI, EBX and
    /// EBP may be reserved there: Clang overwrote its own ESI in a function with an array of variable
    /// length and an aligned variable (version 14).
    pub(super) pushes_reading: bool,
    /// Whether a counter's number is passed in ECX.
    pub(super) takes_counter: bool,
    /// Whether the number of the CPU is returned too, as RDTSCP reads it into ECX.
    pub(super) keeps_cpu: bool,
    /// Other registers that change.
    pub(super) clobbers: Vec<Register>,
}

impl RegisterWiring {
    /// The wiring of a side whose reading has the number of its CPU.
    #[cfg(test)]
    pub(super) fn with_cpu(clock: &Clock, side: ClockSide, mode: CodeMode) -> RegisterWiring {
        let mut wiring = RegisterWiring::new(clock, side, mode);
        wiring.keeps_cpu = true;
        // The number stays there, or comes back from the stack, unless the reading is moved.
        wiring.clobbers.retain(|register| wiring.is_moved || *register != RCX);
        wiring
    }

    pub(super) fn new(clock: &Clock, side: ClockSide, mode: CodeMode) -> RegisterWiring {
        let steps = clock.side_steps(side);
        let store = steps.iter().position(|step| *step == ClockStep::Store).expect("each side stores one reading");
        let changes_reading = |step: &ClockStep| step.clobbers().iter().any(|register| [RAX, RDX].contains(register));
        let is_changed = steps[store..].iter().any(changes_reading);
        let is_moved = is_changed && mode == CodeMode::Bits64;
        let reading = if is_moved { [RSI, RDI] } else { [RAX, RDX] };
        let takes_counter = steps.contains(&ClockStep::Rdpmc);
        let mut clobbers = clock.side_clobbers(side);
        let changes_rbx = clobbers.contains(&RBX);
        clobbers.retain(|register| *register != RBX && !reading.contains(register));
        // RDPMC does not change ECX.
        clobbers.retain(|register| !(takes_counter && *register == RCX));
        RegisterWiring {
            mode,
            reading,
            is_moved,
            keeps_rbx: changes_rbx && mode == CodeMode::Bits64,
            pushes_ebx: changes_rbx && mode == CodeMode::Bits32,
            pushes_reading: is_changed && mode == CodeMode::Bits32,
            takes_counter,
            keeps_cpu: false,
            clobbers,
        }
    }

    /// Whether a step's registers are pushed around it.
    pub(super) fn pushes_around(&self, step: ClockStep) -> bool {
        self.pushes_ebx && step.clobbers().contains(&RBX)
    }

    /// Name of a register in code of the mode.
    pub(super) fn name(&self, register: Register) -> String {
        register_name(self.mode.register(register))
    }
}
