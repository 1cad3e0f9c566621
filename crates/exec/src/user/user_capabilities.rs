//! What the user executor can do on a machine.

use super::narrow_code;
use crate::{Capabilities, CounterAvailability, ExecutorMemory, MissingCapability, PrivilegeRing, TimingOrigin};
use cyclescope_code::context::AREA_REGISTERS;
use cyclescope_code::program::memory::STANDARD_AREA_BYTES;
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::fact::Fact;
use cyclescope_worker::view;

/// The executor's name.
pub(super) const NAME: &str = "user";

/// Capabilities of a [`super::UserExecutor`] on a machine.
pub fn user_capabilities(machine: &Machine) -> Capabilities {
    Capabilities {
        executor: NAME,
        ring: PrivilegeRing::Three,
        timing: TimingOrigin::from_machine(machine),
        library: Ok(()),
        narrow_code: narrow_code::check_code_segment(),
        control_registers: Err(MissingCapability {
            why: "it writes a control register, which only ring 0 may",
            remedy: "choose another clock (--clock list), or add --executor kernel, which takes 64-bit code",
        }),
        cycle_counter: CounterAvailability::AskSystem,
        aperf: Fact::Known(false),
        room: Fact::Known(ExecutorMemory {
            arena: view::ARENA_BYTES,
            areas: vec![STANDARD_AREA_BYTES as usize; AREA_REGISTERS.len()],
        }),
    }
}
