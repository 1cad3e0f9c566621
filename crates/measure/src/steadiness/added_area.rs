//! An area that a check adds to the memory of a function.

use cyclescope_code::program::memory::{AreaPointer, MemoryArea, PointerPosition, ProgramMemory};
use iced_x86::Register;

/// Adds an area, to whose start a register points that no other area needs. `None` if all are taken.
pub(super) fn add_area(memory: &ProgramMemory, area: MemoryArea) -> Option<(Register, ProgramMemory)> {
    let is_free = |number: &u8| !memory.areas.iter().any(|area| area.pointer.is_some_and(|at| at.register == *number));
    let register = (8..12).find(is_free)?;
    let mut memory = memory.clone();
    let pointer = Some(AreaPointer { register, at: PointerPosition::Start });
    memory.areas.push(MemoryArea { pointer, ..area });
    Some((Register::RAX + u32::from(register), memory))
}
