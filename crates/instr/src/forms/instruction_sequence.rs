//! Sequences: several instructions that are measured as a unit.
//!
//! They run in order, with the registers that they name, and have no branch. If an instruction
//! reads a register before the sequence writes it, its value comes from the previous repetition: it
//! is *carried*.

use super::form_anatomy::{FormAnatomy, encode_instructions};
use cyclescope_code::asm::forms::{self, FormPrefix, InstructionForm};
use cyclescope_code::asm::registers::{
    HIGH_BYTES, RegisterSet, nth_register_like, registers_merged, registers_read, registers_written,
};
use cyclescope_code::asm::{CodeMode, as_encoded, format_instruction};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};

/// Instructions that are measured as a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionSequence {
    instructions: Vec<Instruction>,
    /// The form of each instruction, by its code.
    forms: Vec<InstructionForm>,
}

/// Upper limit of instructions per sequence.
const INSTRUCTIONS_MOST: usize = 64;

impl InstructionSequence {
    /// Checks the instructions. An error says what is wrong, and the remedy.
    pub fn new(instructions: &[Instruction]) -> Result<InstructionSequence, (String, &'static str)> {
        if instructions.is_empty() || instructions.len() > INSTRUCTIONS_MOST {
            let text = format!("a sequence has 1 to {INSTRUCTIONS_MOST} instructions, not {}", instructions.len());
            return Err((text, "write assembly, statements separated by `;`"));
        }
        let mut found = Vec::new();
        for instruction in instructions {
            let refused = |why: &str, remedy| Err((format!("`{}` {why}", format_instruction(instruction)), remedy));
            if instruction.flow_control() != FlowControl::Next || instruction.is_ip_rel_memory_operand() {
                let remedy = "leave branches and RIP-relative addresses out, or measure it with `cyclescope run`";
                return refused("can't be repeated as it is", remedy);
            }
            let mode = CodeMode::from_instruction(instruction);
            let counter = mode.register(Register::R15);
            let touched = registers_read(instruction).union(registers_written(instruction));
            if touched.contains(counter) {
                let why = format!("uses {}, which counts the loop", format!("{counter:?}").to_lowercase());
                return refused(&why, "take another register");
            }
            let form = forms::all_forms_of(mode).find(|form| matches_form(instruction, form));
            match form.filter(|form| FormAnatomy::from_form(*form).is_some()) {
                Some(form) => found.push(form),
                None => return refused("has no form in the instruction database", "take another instruction"),
            }
        }
        let stack: i32 = instructions.iter().map(Instruction::stack_pointer_increment).sum();
        let top: i32 = instructions.iter().map(|one| one.fpu_stack_increment_info().increment()).sum();
        if stack != 0 || top != 0 {
            let text = "it changes the height of the stack".to_string();
            return Err((text, "let each push have its pop"));
        }
        Ok(InstructionSequence { instructions: instructions.to_vec(), forms: found })
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The form of each instruction, by its code.
    pub fn forms(&self) -> &[InstructionForm] {
        &self.forms
    }

    /// The mode of the code.
    pub fn mode(&self) -> CodeMode {
        self.forms.first().map_or(CodeMode::default(), |form| form.mode)
    }

    /// The anatomy of each form.
    pub fn anatomies(&self) -> impl Iterator<Item = FormAnatomy> {
        self.forms.iter().filter_map(|form| FormAnatomy::from_form(*form))
    }

    /// The machine code.
    pub fn bytes(&self) -> Vec<u8> {
        encode_instructions(self.mode(), &self.instructions).unwrap_or_default()
    }

    /// The assembly in one line.
    pub fn to_assembly(&self) -> String {
        self.instructions.iter().map(format_instruction).collect::<Vec<_>>().join("; ")
    }

    /// Registers and flags that the sequence writes.
    pub(crate) fn written_registers(&self) -> RegisterSet {
        self.instructions.iter().map(registers_written).fold(RegisterSet::EMPTY, RegisterSet::union)
    }

    /// Registers and flags that the sequence reads or writes.
    pub(crate) fn used_registers(&self) -> RegisterSet {
        self.instructions.iter().map(registers_read).fold(self.written_registers(), RegisterSet::union)
    }

    /// Registers and flags through which a repetition depends on the previous one.
    pub(crate) fn carried_registers(&self) -> RegisterSet {
        let (mut from_before, mut written) = (RegisterSet::EMPTY, RegisterSet::EMPTY);
        for instruction in &self.instructions {
            let needed = registers_read(instruction).union(registers_merged(instruction));
            from_before = from_before.union(needed.difference(written));
            written = written.union(registers_written(instruction));
        }
        from_before.intersection(written)
    }

    /// Whether a repetition may read memory that the previous one wrote.
    pub(crate) fn carries_memory(&self) -> bool {
        let mut factory = InstructionInfoFactory::new();
        let (mut reads, mut writes) = (false, false);
        for instruction in &self.instructions {
            for used in factory.info(instruction).used_memory() {
                let access = used.access();
                reads |= !matches!(access, OpAccess::Write | OpAccess::None | OpAccess::NoMemAccess);
                writes |=
                    !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess);
            }
        }
        reads && writes
    }

    /// Whether a full register can be replaced by another, because no instruction implies it.
    pub(crate) fn can_rename(&self, full: Register) -> bool {
        let high = |one: &Instruction| (0..one.op_count()).any(|at| HIGH_BYTES.contains(&one.op_register(at)));
        let general = full.is_gpr64();
        let kind = general && full != Register::RSP || full.is_vector_register() || full.is_k();
        let apart = !(general && self.instructions.iter().any(high));
        kind && apart && self.anatomies().all(|part| !part.fixed_registers().contains(&full))
    }

    /// The instructions with some full registers replaced by the registers with these numbers.
    /// `None` if they can't be encoded.
    pub(crate) fn rename_registers(&self, names: &[(Register, u8)]) -> Option<Vec<Instruction>> {
        let other = |register: Register| match names.iter().find(|(full, _)| *full == register.full_register()) {
            Some((_, number)) => nth_register_like(register, u32::from(*number)),
            None => Some(register),
        };
        let renamed = |instruction: &Instruction| {
            let mut one = *instruction;
            for operand in (0..one.op_count()).filter(|at| instruction.op_kind(*at) == OpKind::Register) {
                one.set_op_register(operand, other(instruction.op_register(operand))?);
            }
            if one.op_mask() != Register::None {
                one.set_op_mask(other(one.op_mask())?);
            }
            one.set_memory_base(other(one.memory_base())?);
            one.set_memory_index(other(one.memory_index())?);
            as_encoded(&one)
        };
        self.instructions.iter().map(renamed).collect()
    }

    /// The name under which the instructions first use a full register.
    pub(crate) fn register_name(&self, full: Register) -> String {
        let operands = |one: &Instruction| (0..one.op_count()).map(|at| one.op_register(at)).collect::<Vec<_>>();
        // MMX and x87 registers of one number are the same register.
        let mut same = RegisterSet::EMPTY;
        same.insert(full);
        let mut named = self.instructions.iter().flat_map(operands);
        let name = named.find(|register| same.contains(*register)).unwrap_or(full);
        format!("{name:?}").to_lowercase()
    }
}

/// Whether an instruction has the code and prefix of a form. Operand kinds are not compared.
fn matches_form(instruction: &Instruction, form: &InstructionForm) -> bool {
    let prefix = match form.prefix {
        FormPrefix::None => !instruction.has_rep_prefix() && !instruction.has_repne_prefix(),
        FormPrefix::Rep => instruction.has_rep_prefix(),
        FormPrefix::Repne => instruction.has_repne_prefix(),
        FormPrefix::Lock => false,
    };
    form.code == instruction.code() && prefix
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::parse_assembly;

    fn sequence(text: &str) -> Result<InstructionSequence, (String, &'static str)> {
        InstructionSequence::new(parse_assembly(text).unwrap().instructions())
    }

    fn carried(text: &str) -> (Vec<String>, bool) {
        let sequence = sequence(text).unwrap();
        let carried = sequence.carried_registers();
        let names = carried.registers().map(|full| sequence.register_name(full)).collect();
        (names, carried.flags() != 0)
    }

    #[test]
    fn a_register_read_before_its_write_is_carried() {
        let own = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(carried("popcnt rax, rbx; add rax, 1"), (own(&[]), false));
        assert_eq!(carried("imul eax, ebx; add eax, 1"), (own(&["eax"]), false));
        assert_eq!(carried("adc rax, rbx"), (own(&["rax"]), true));
        assert_eq!(carried("xor edx, edx; div rcx"), (own(&["rax"]), false));
        // A register that is written conditionally or in part keeps its old value.
        assert_eq!(carried("cmove rax, rbx; add rax, 1"), (own(&["rax"]), true));
        assert_eq!(carried("setc al; add rcx, rax"), (own(&["al", "rcx"]), true));
        assert_eq!(carried("mov eax, ebx; setc al"), (own(&[]), false));
        assert_eq!(carried("paddd mm2, mm3"), (own(&["mm2"]), false));
        assert_eq!(carried("mulps xmm1, xmm2; addps xmm3, xmm1"), (own(&["xmm1", "xmm3"]), false));
        let through = |text: &str| sequence(text).unwrap().carries_memory();
        assert!(through("mov [rsi], rax; mov rax, [rsi]") && !through("mov rax, [rsi]; lea rbx, [rax]"));
    }

    #[test]
    fn implied_registers_can_not_be_renamed() {
        let can = |text: &str, full| sequence(text).unwrap().can_rename(full);
        assert!(can("imul rax, rbx; add rax, [rcx]", Register::RAX));
        assert!(can("imul rax, rbx; add rax, [rcx]", Register::RCX));
        for text in ["mul rbx", "imul rax, rbx; shl rcx, cl; cdq", "add ah, 1", "rep movsb; mov rax, rcx"] {
            let fixed = [Register::RAX, Register::RCX, Register::RDX];
            assert!(fixed.into_iter().any(|full| !can(text, full)), "{text}");
        }
        assert!(!can("mov rax, rcx; rep movsb", Register::RCX) && !can("shl rax, cl", Register::RCX));
        let other = sequence("imul eax, [rax+8*rbx]; vaddps zmm1{k1}, zmm2, zmm3").unwrap();
        let names = [(Register::RAX, 9), (Register::ZMM1, 20), (Register::K1, 3)];
        let texts: Vec<String> = other.rename_registers(&names).unwrap().iter().map(format_instruction).collect();
        assert_eq!(texts.join("; "), text_of("imul r9d, [r9+8*rbx]; vaddps zmm20{k3}, zmm2, zmm3"));
    }

    fn text_of(text: &str) -> String {
        sequence(text).unwrap().to_assembly()
    }

    #[test]
    fn a_sequence_that_can_not_be_repeated_is_refused() {
        let cases = [
            ("", "1 to 64"),
            ("nop; jmp $+2", "can't be repeated"),
            ("lea rax, [rip+8]", "can't be repeated"),
            ("push rax", "stack"),
            ("fld1", "stack"),
            ("add r15, 1", "r15"),
        ];
        for (text, says) in cases {
            let (message, _) = sequence(text).unwrap_err();
            assert!(message.contains(says), "{text}: {message}");
        }
        assert!(sequence("push rax; pop rax").is_ok() && sequence("fld1; fstp st0").is_ok());
    }
}
