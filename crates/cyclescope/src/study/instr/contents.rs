//! Contents: init code that puts chosen values where the instances of a program read them.
//!
//! Values that a program puts into memory would be found by the other programs of its round too, so its addresses are
//! moved first to where no other program looks.

use super::operands::{Anatomy, encode};
use crate::asm::registers::{RegisterSet, numbered, reads, writes};
use iced_x86::{Code, EncodingKind, Instruction, MemoryOperand, OpKind, Register};

/// How far memory operands are moved, in bytes.
const APART: i64 = 0x8000;

/// What the operands of all instances of a program hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Contents {
    /// Operands, from 0, and eight bytes that are repeated in them.
    pub operands: Vec<(u32, u64)>,
    /// What RAX and RDX hold.
    pub dividend: Option<(u64, u64)>,
}

impl Contents {
    /// The code, `None` where there is no register to load them with. It has to run before the program's own init
    /// code, which may copy what is loaded here:
    ///
    /// ```text
    ///     lea r14, [r14+0x8000]
    ///     mov rax, VALUE
    ///     mov [r14+DISPLACEMENT], rax
    ///     mov rax, VALUE
    ///     movq xmm1, rax
    ///     punpcklqdq xmm1, xmm1
    /// ```
    pub fn code(&self, anatomy: &Anatomy, period: &[Instruction], init: &[Instruction]) -> Option<Vec<Instruction>> {
        let instances: Vec<&Instruction> =
            period.iter().filter(|instruction| instruction.code() == anatomy.code()).collect();
        let free = free(period, init)?;
        let mut code = Vec::new();
        for (operand, value) in &self.operands {
            let set = Instruction::with2(Code::Mov_r64_imm64, free, *value).ok()?;
            code.push(set);
            match anatomy.sample.op_kind(*operand) {
                OpKind::Register => {
                    let mut registers: Vec<Register> =
                        instances.iter().map(|instance| instance.op_register(*operand)).collect();
                    registers.sort();
                    registers.dedup();
                    for register in registers {
                        load(register, free, anatomy.sample.op_code().encoding(), &mut code)?;
                    }
                }
                OpKind::Memory => fill(&instances, anatomy.memory_bytes, free, &mut code)?,
                _ => return None,
            }
        }
        if let Some((rax, rdx)) = self.dividend {
            code.push(Instruction::with2(Code::Mov_r64_imm64, Register::RAX, rax).ok()?);
            code.push(Instruction::with2(Code::Mov_r64_imm64, Register::RDX, rdx).ok()?);
        }
        encode(&code).map(|_| code)
    }
}

/// A general register that neither the program nor its init code uses.
fn free(period: &[Instruction], init: &[Instruction]) -> Option<Register> {
    let used = period.iter().chain(init).fold(RegisterSet::EMPTY, |set, instruction| {
        set.union(reads(instruction)).union(writes(instruction))
    });
    // R15 counts the loop.
    let own = [Register::RSP, Register::R14, Register::R15];
    (0..16).map(|number| Register::RAX + number).find(|one| !own.contains(one) && !used.contains(*one))
}

/// Repeats eight bytes in a register, by code of the encoding that the program has.
fn load(register: Register, from: Register, encoding: EncodingKind, code: &mut Vec<Instruction>) -> Option<()> {
    let xmm = Register::XMM0 + register.number() as u32;
    if register.full_register().is_gpr64() {
        code.push(Instruction::with2(Code::Mov_r64_rm64, full(register), from).ok()?);
        return Some(());
    }
    if !register.is_vector_register() {
        return None;
    }
    match encoding {
        EncodingKind::EVEX => {
            let broadcast = match register {
                r if r.is_xmm() => Code::EVEX_Vpbroadcastq_xmm_k1z_r64,
                r if r.is_ymm() => Code::EVEX_Vpbroadcastq_ymm_k1z_r64,
                _ => Code::EVEX_Vpbroadcastq_zmm_k1z_r64,
            };
            code.push(Instruction::with2(broadcast, register, from).ok()?);
        }
        EncodingKind::Legacy => {
            code.push(Instruction::with2(Code::Movq_xmm_rm64, xmm, from).ok()?);
            code.push(Instruction::with2(Code::Punpcklqdq_xmm_xmmm128, xmm, xmm).ok()?);
        }
        _ => {
            code.push(Instruction::with2(Code::VEX_Vmovq_xmm_rm64, xmm, from).ok()?);
            code.push(Instruction::with3(Code::VEX_Vpunpcklqdq_xmm_xmm_xmmm128, xmm, xmm, xmm).ok()?);
            if register.is_ymm() {
                let insert = Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8;
                code.push(Instruction::with4(insert, register, register, xmm, 1).ok()?);
            }
        }
    }
    Some(())
}

/// The full register; a high byte's is the one that it is a part of.
fn full(register: Register) -> Register {
    numbered(Register::RAX, register.full_register().number() as u32).unwrap_or(register)
}

/// Repeats eight bytes in the memory operands of all instances, elsewhere than where they were.
fn fill(instances: &[&Instruction], bytes: usize, from: Register, code: &mut Vec<Instruction>) -> Option<()> {
    let mut places: Vec<(Register, i64)> = instances
        .iter()
        .flat_map(|instance| {
            let at = (instance.memory_base(), instance.memory_displacement64() as i64);
            (0..bytes.div_ceil(8) as i64).map(move |index| (at.0, at.1 + 8 * index))
        })
        .collect();
    places.sort();
    places.dedup();
    // A second base is a copy of the first that the program makes later.
    let base = places.first()?.0;
    let first = instances.first()?.memory_base();
    if instances.iter().any(|instance| instance.memory_base() != first || !instance.memory_base().is_gpr64()) {
        return None;
    }
    let moved = MemoryOperand::with_base_displ(base, APART);
    code.push(Instruction::with2(Code::Lea_r64_m, base, moved).ok()?);
    for (base, displacement) in places {
        let to = MemoryOperand::with_base_displ(base, displacement);
        code.push(Instruction::with2(Code::Mov_rm64_r64, to, from).ok()?);
    }
    Some(())
}
