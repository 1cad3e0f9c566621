//! Several instructions that are measured as one: what they read and write together.
//!
//! They follow each other with the registers that they name, and have no branch. What an instruction reads that none
//! before it wrote comes from the repetition before, if the sequence writes it at all: it is *carried*.

use super::operands::{Anatomy, encode};
use cyclescope_code::asm::forms::{self, Form, Prefix};
use cyclescope_code::asm::registers::{HIGH_BYTES, RegisterSet, keeps, numbered, reads, writes};
use cyclescope_code::asm::{legal, text};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};

/// Instructions that are measured as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    instructions: Vec<Instruction>,
    /// A form of each, by its code.
    forms: Vec<Form>,
}

/// Instructions of one sequence, at most.
const MOST: usize = 64;

impl Sequence {
    /// These instructions; else what is wrong with them, and what helps.
    pub fn new(instructions: &[Instruction]) -> Result<Sequence, (String, &'static str)> {
        if instructions.is_empty() || instructions.len() > MOST {
            let text = format!("a sequence has 1 to {MOST} instructions, not {}", instructions.len());
            return Err((text, "write assembly, statements separated by `;`"));
        }
        let mut found = Vec::new();
        for instruction in instructions {
            let refused = |why: &str, remedy| Err((format!("`{}` {why}", text(instruction)), remedy));
            if instruction.flow_control() != FlowControl::Next || instruction.is_ip_rel_memory_operand() {
                let remedy =
                    "leave branches and RIP-relative addresses out, or measure it with `cyclescope run`";
                return refused("can't be repeated as it is", remedy);
            }
            let touched = reads(instruction).union(writes(instruction));
            if touched.contains(Register::R15) {
                return refused("uses r15, which counts the loop", "take another register");
            }
            let form = forms::all().find(|form| is_of(instruction, form));
            match form.filter(|form| Anatomy::of(*form).is_some()) {
                Some(form) => found.push(form),
                None => return refused("is of no form that tables have", "take another instruction"),
            }
        }
        let stack: i32 = instructions.iter().map(Instruction::stack_pointer_increment).sum();
        let top: i32 = instructions.iter().map(|one| one.fpu_stack_increment_info().increment()).sum();
        if stack != 0 || top != 0 {
            let text = "it leaves the stack another height than it finds".to_string();
            return Err((text, "let each push have its pop"));
        }
        Ok(Sequence { instructions: instructions.to_vec(), forms: found })
    }

    /// The instructions.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// A form of each instruction, by its code.
    pub fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// The forms taken apart.
    pub fn parts(&self) -> impl Iterator<Item = Anatomy> {
        self.forms.iter().filter_map(|form| Anatomy::of(*form))
    }

    /// The machine code.
    pub fn bytes(&self) -> Vec<u8> {
        encode(&self.instructions).unwrap_or_default()
    }

    /// As assembly in one line.
    pub fn text(&self) -> String {
        self.instructions.iter().map(text).collect::<Vec<_>>().join("; ")
    }

    /// Registers and flags that it writes.
    pub(crate) fn writes(&self) -> RegisterSet {
        self.instructions.iter().map(writes).fold(RegisterSet::EMPTY, RegisterSet::union)
    }

    /// Registers and flags that it reads or writes.
    pub(crate) fn uses(&self) -> RegisterSet {
        self.instructions.iter().map(reads).fold(self.writes(), RegisterSet::union)
    }

    /// Registers and flags in which a repetition finds what the one before left.
    pub(crate) fn carried(&self) -> RegisterSet {
        let (mut from_before, mut written) = (RegisterSet::EMPTY, RegisterSet::EMPTY);
        for instruction in &self.instructions {
            let needed = reads(instruction).union(keeps(instruction));
            from_before = from_before.union(needed.difference(written));
            written = written.union(writes(instruction));
        }
        from_before.intersection(written)
    }

    /// Whether a repetition may find in memory what the one before left there.
    pub(crate) fn carries_memory(&self) -> bool {
        let mut factory = InstructionInfoFactory::new();
        let (mut reads, mut writes) = (false, false);
        for instruction in &self.instructions {
            for used in factory.info(instruction).used_memory() {
                let access = used.access();
                reads |= !matches!(access, OpAccess::Write | OpAccess::None | OpAccess::NoMemAccess);
                writes |= !matches!(
                    access,
                    OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess
                );
            }
        }
        reads && writes
    }

    /// Whether another register can stand in the place of a full register, for no instruction implies it.
    pub(crate) fn can_rename(&self, full: Register) -> bool {
        let high =
            |one: &Instruction| (0..one.op_count()).any(|at| HIGH_BYTES.contains(&one.op_register(at)));
        let general = full.is_gpr64();
        let kind = general && full != Register::RSP || full.is_vector_register() || full.is_k();
        let apart = !(general && self.instructions.iter().any(high));
        kind && apart && self.parts().all(|part| !part.fixed().contains(&full))
    }

    /// The instructions with other registers in the place of some, full registers by their numbers; none where a code
    /// can't have them.
    pub(crate) fn renamed(&self, names: &[(Register, u8)]) -> Option<Vec<Instruction>> {
        let other =
            |register: Register| match names.iter().find(|(full, _)| *full == register.full_register()) {
                Some((_, number)) => numbered(register, u32::from(*number)),
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
            legal(&one)
        };
        self.instructions.iter().map(renamed).collect()
    }

    /// A full register by the name that the instructions first call it.
    pub(crate) fn name(&self, full: Register) -> String {
        let operands =
            |one: &Instruction| (0..one.op_count()).map(|at| one.op_register(at)).collect::<Vec<_>>();
        // MMX and x87 registers of one number are one.
        let mut same = RegisterSet::EMPTY;
        same.insert(full);
        let mut named = self.instructions.iter().flat_map(operands);
        let name = named.find(|register| same.contains(*register)).unwrap_or(full);
        format!("{name:?}").to_lowercase()
    }
}

/// Whether an instruction is of a form, but for the kinds of its operands.
fn is_of(instruction: &Instruction, form: &Form) -> bool {
    let prefix = match form.prefix {
        Prefix::None => !instruction.has_rep_prefix() && !instruction.has_repne_prefix(),
        Prefix::Rep => instruction.has_rep_prefix(),
        Prefix::Repne => instruction.has_repne_prefix(),
        Prefix::Lock => false,
    };
    form.code == instruction.code() && prefix
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::parse;

    fn sequence(text: &str) -> Result<Sequence, (String, &'static str)> {
        Sequence::new(parse(text).unwrap().instructions())
    }

    fn carried(text: &str) -> (Vec<String>, bool) {
        let sequence = sequence(text).unwrap();
        let carried = sequence.carried();
        let names = carried.registers().map(|full| sequence.name(full)).collect();
        (names, carried.flags() != 0)
    }

    #[test]
    fn what_is_read_before_it_is_written_is_carried() {
        let own = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        assert_eq!(carried("popcnt rax, rbx; add rax, 1"), (own(&[]), false));
        assert_eq!(carried("imul eax, ebx; add eax, 1"), (own(&["eax"]), false));
        assert_eq!(carried("adc rax, rbx"), (own(&["rax"]), true));
        assert_eq!(carried("xor edx, edx; div rcx"), (own(&["rax"]), false));
        // What an instruction may not write, or writes a part of, it keeps.
        assert_eq!(carried("cmove rax, rbx; add rax, 1"), (own(&["rax"]), true));
        assert_eq!(carried("setc al; add rcx, rax"), (own(&["al", "rcx"]), true));
        assert_eq!(carried("mov eax, ebx; setc al"), (own(&[]), false));
        assert_eq!(carried("paddd mm2, mm3"), (own(&["mm2"]), false));
        assert_eq!(carried("mulps xmm1, xmm2; addps xmm3, xmm1"), (own(&["xmm1", "xmm3"]), false));
        let through = |text: &str| sequence(text).unwrap().carries_memory();
        assert!(through("mov [rsi], rax; mov rax, [rsi]") && !through("mov rax, [rsi]; lea rbx, [rax]"));
    }

    #[test]
    fn what_an_instruction_implies_keeps_its_name() {
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
        let texts: Vec<String> = other.renamed(&names).unwrap().iter().map(text).collect();
        assert_eq!(texts.join("; "), text_of("imul r9d, [r9+8*rbx]; vaddps zmm20{k3}, zmm2, zmm3"));
    }

    fn text_of(text: &str) -> String {
        sequence(text).unwrap().text()
    }

    #[test]
    fn what_can_not_be_repeated_is_refused() {
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
