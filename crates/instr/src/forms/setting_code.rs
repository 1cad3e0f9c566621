//! The machine code of a setting's init code, in the mode of a form.

use super::form_anatomy::{FormAnatomy, RegisterSlot, encode_instructions};
use super::instruction_setting::find_setting;
use cyclescope_code::asm::registers::registers_written;
use cyclescope_code::asm::{self, CodeMode};
use iced_x86::{Code, Instruction, Register};

/// The machine code of a form's init code. `None` if the mode lacks an instruction of it. The base of
/// memory operands points to the memory of R14 and keeps its value.
pub(crate) fn build_setting_code(anatomy: &FormAnatomy) -> Option<Vec<u8>> {
    let (mode, setting) = (anatomy.mode(), find_setting(anatomy.code()));
    let own = setting.narrow_init.filter(|_| mode == CodeMode::Bits32);
    let parsed = match own {
        Some(text) => asm::parse_for_mode(text, mode, None),
        None => asm::parse_assembly(setting.init),
    };
    let parsed = parsed.expect("settings are valid assembly");
    let (has_base, base) = (anatomy.slots().contains(&RegisterSlot::Base), anatomy.sample.memory_base());
    let keeps_base = |one: &&Instruction| !(has_base && registers_written(one).contains(base.full_register()));
    let mut instructions: Vec<Instruction> = parsed.instructions().iter().filter(keeps_base).copied().collect();
    if has_base && mode == CodeMode::Bits32 {
        let copy = Instruction::with2(Code::Mov_r64_rm64, base.full_register(), Register::R14);
        instructions.insert(0, copy.expect("two registers"));
    }
    encode_instructions(mode, &instructions)
}
