//! Init code that puts chosen values into the operands of a program's instances.
//!
//! Other programs of the same round would find the values that it puts into memory. The program's
//! addresses are therefore moved to memory that no other program uses.

use crate::forms::form_anatomy::FormAnatomy;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::asm::registers::nth_register_like;
use iced_x86::{Code, EncodingKind, Instruction, MemoryOperand, OpKind, Register};

/// Bytes by which memory operands are moved.
const MEMORY_SHIFT: i64 = 0x8000;
/// Distance from R14 of the memory from which vector registers get their values. No operand is there.
const SCRATCH_OFFSET: i64 = MEMORY_SHIFT - 64;

/// Values of the operands of all instances of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OperandContents {
    /// Operand numbers from 0, each with eight bytes to repeat.
    pub operands: Vec<(u32, u64)>,
    /// Values of RAX and RDX.
    pub dividend: Option<(u64, u64)>,
}

impl OperandContents {
    /// The init code. `None` if an operand's kind can't be loaded. It must run before the program's
    /// own init code, which may copy the loaded registers:
    ///
    /// ```text
    ///     mov dword ptr [r14+SCRATCH], VALUE      ; and the upper half
    ///     movq xmm1, [r14+SCRATCH]
    ///     punpcklqdq xmm1, xmm1
    ///     lea r14, [r14+0x8000]
    ///     mov dword ptr [r14+DISPLACEMENT], VALUE
    /// ```
    pub(crate) fn build_code(&self, anatomy: &FormAnatomy, period: &[Instruction]) -> Option<Vec<Instruction>> {
        let instances: Vec<&Instruction> =
            period.iter().filter(|instruction| instruction.code() == anatomy.code()).collect();
        let (mut code, mut memory) = (Vec::new(), Vec::new());
        for (operand, value) in &self.operands {
            match anatomy.sample.op_kind(*operand) {
                OpKind::Register => {
                    let mut registers: Vec<Register> =
                        instances.iter().map(|instance| instance.op_register(*operand)).collect();
                    registers.sort();
                    registers.dedup();
                    if registers.iter().any(|register| register.is_vector_register()) {
                        let scratch = MemoryOperand::with_base_displ(Register::R14, SCRATCH_OFFSET);
                        store_number(scratch, *value, &mut code)?;
                    }
                    for register in registers {
                        load_register(register, *value, anatomy, &mut code)?;
                    }
                }
                OpKind::Memory => fill_memory(&instances, anatomy.memory_bytes, *value, &mut memory)?,
                _ => return None,
            }
        }
        // The base register moves last.
        code.extend(memory);
        if let Some((rax, rdx)) = self.dividend {
            code.push(load_number(anatomy.mode(), Register::RAX, rax)?);
            code.push(load_number(anatomy.mode(), Register::RDX, rdx)?);
        }
        anatomy.encode(&code).map(|_| code)
    }
}

/// The load of a number, or of as much of it as a general register of the mode holds.
fn load_number(mode: CodeMode, register: Register, number: u64) -> Option<Instruction> {
    match mode {
        CodeMode::Bits64 => Instruction::with2(Code::Mov_r64_imm64, register, number).ok(),
        CodeMode::Bits32 => Instruction::with2(Code::Mov_r32_imm32, mode.register(register), number as u32).ok(),
    }
}

/// Stores of eight bytes.
fn store_number(place: MemoryOperand, number: u64, code: &mut Vec<Instruction>) -> Option<()> {
    for (half, displacement) in [(number as u32, 0), ((number >> 32) as u32, 4)] {
        let half_place = MemoryOperand { displacement: place.displacement + displacement, ..place };
        code.push(Instruction::with2(Code::Mov_rm32_imm32, half_place, half).ok()?);
    }
    Some(())
}

/// Fills a register with eight repeated bytes, by code of the program's encoding. Those of vectors are
/// in the scratch memory.
fn load_register(register: Register, number: u64, anatomy: &FormAnatomy, code: &mut Vec<Instruction>) -> Option<()> {
    let xmm = Register::XMM0 + register.number() as u32;
    let scratch = MemoryOperand::with_base_displ(Register::R14, SCRATCH_OFFSET);
    if register.full_register().is_gpr64() {
        code.push(load_number(anatomy.mode(), full_general_register(register), number)?);
        return Some(());
    }
    if !register.is_vector_register() {
        return None;
    }
    match anatomy.sample.op_code().encoding() {
        EncodingKind::EVEX => {
            let broadcast = match register {
                r if r.is_xmm() => Code::EVEX_Vpbroadcastq_xmm_k1z_xmmm64,
                r if r.is_ymm() => Code::EVEX_Vpbroadcastq_ymm_k1z_xmmm64,
                _ => Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64,
            };
            code.push(Instruction::with2(broadcast, register, scratch).ok()?);
        }
        EncodingKind::Legacy => {
            code.push(Instruction::with2(Code::Movq_xmm_xmmm64, xmm, scratch).ok()?);
            code.push(Instruction::with2(Code::Punpcklqdq_xmm_xmmm128, xmm, xmm).ok()?);
        }
        _ => {
            code.push(Instruction::with2(Code::VEX_Vmovq_xmm_xmmm64, xmm, scratch).ok()?);
            code.push(Instruction::with3(Code::VEX_Vpunpcklqdq_xmm_xmm_xmmm128, xmm, xmm, xmm).ok()?);
            if register.is_ymm() {
                let insert = Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8;
                code.push(Instruction::with4(insert, register, register, xmm, 1).ok()?);
            }
        }
    }
    Some(())
}

/// The full general register. For a high byte: the register that contains it.
fn full_general_register(register: Register) -> Register {
    nth_register_like(Register::RAX, register.full_register().number() as u32).unwrap_or(register)
}

/// Moves the memory operands of all instances and fills them with eight repeated bytes.
fn fill_memory(instances: &[&Instruction], bytes: usize, number: u64, code: &mut Vec<Instruction>) -> Option<()> {
    let mut places: Vec<(Register, i64)> = instances
        .iter()
        .flat_map(|instance| {
            let at = (instance.memory_base().full_register(), instance.memory_displacement64() as i64);
            (0..bytes.div_ceil(8) as i64).map(move |index| (at.0, at.1 + 8 * index))
        })
        .collect();
    places.sort();
    places.dedup();
    // A second base register is a copy of the first that the program makes later.
    let base = places.first()?.0;
    let first = instances.first()?.memory_base();
    if instances.iter().any(|instance| instance.memory_base() != first || !first.is_gpr()) {
        return None;
    }
    let moved = MemoryOperand::with_base_displ(base, MEMORY_SHIFT);
    code.push(Instruction::with2(Code::Lea_r64_m, base, moved).ok()?);
    for (base, displacement) in places {
        store_number(MemoryOperand::with_base_displ(base, displacement), number, code)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::throughput_body::ThroughputBody;
    use super::super::throughput_recipe::RECIPES;
    use super::*;
    use cyclescope_code::asm::forms;
    use std::collections::BTreeMap;

    /// A simulated machine: registers (by full register) and memory after init code. R14 starts at
    /// zero.
    #[derive(Default)]
    struct Machine {
        registers: BTreeMap<Register, Vec<u64>>,
        memory: BTreeMap<i64, u32>,
    }

    impl Machine {
        fn get(&self, register: Register) -> Vec<u64> {
            self.registers.get(&register.full_register()).cloned().unwrap_or(vec![0])
        }

        fn address(&self, instruction: &Instruction) -> i64 {
            self.get(instruction.memory_base())[0] as i64 + instruction.memory_displacement64() as i64
        }

        fn word(&self, at: i64) -> u64 {
            u64::from(self.memory[&at]) | u64::from(self.memory[&(at + 4)]) << 32
        }

        fn load(&self, instruction: &Instruction) -> u64 {
            self.word(self.address(instruction))
        }

        fn run(&mut self, code: &[Instruction]) {
            for one in code {
                let (to, from) = (one.op0_register(), one.op1_register());
                let value = match one.code() {
                    Code::Mov_r64_imm64 => vec![one.immediate64()],
                    Code::Mov_r64_rm64 => self.get(from),
                    Code::Movq_xmm_xmmm64 | Code::VEX_Vmovq_xmm_xmmm64 => vec![self.load(one)],
                    Code::Lea_r64_m => vec![self.address(one) as u64],
                    Code::Mov_rm32_imm32 => {
                        self.memory.insert(self.address(one), one.immediate32());
                        continue;
                    }
                    Code::Punpcklqdq_xmm_xmmm128 => vec![self.get(from)[0]; 2],
                    Code::VEX_Vpunpcklqdq_xmm_xmm_xmmm128 => vec![self.get(from)[0]; 2],
                    Code::VEX_Vinsertf128_ymm_ymm_xmmm128_imm8 => self.get(from).repeat(2),
                    Code::EVEX_Vpbroadcastq_xmm_k1z_xmmm64 => vec![self.load(one); 2],
                    Code::EVEX_Vpbroadcastq_ymm_k1z_xmmm64 => vec![self.load(one); 4],
                    Code::EVEX_Vpbroadcastq_zmm_k1z_xmmm64 => vec![self.load(one); 8],
                    other => panic!("{other:?}"),
                };
                self.registers.insert(to.full_register(), value);
            }
        }
    }

    fn anatomies(code: Code) -> Vec<FormAnatomy> {
        forms::all_forms().filter(|form| form.code == code).filter_map(FormAnatomy::from_form).collect()
    }

    /// Loads distinct operand values and checks what each instance reads.
    fn check(anatomy: &FormAnatomy, operands: &[u32], dividend: Option<(u64, u64)>) {
        let operands: Vec<(u32, u64)> =
            operands.iter().map(|operand| (*operand, 0x1000 + u64::from(*operand))).collect();
        for recipe in RECIPES {
            let body = ThroughputBody::new(anatomy, recipe).unwrap();
            let code =
                OperandContents { operands: operands.clone(), dividend }.build_code(anatomy, &body.period).unwrap();
            let mut machine = Machine::default();
            machine.run(&code);
            machine.run(&body.init);
            let before = machine.registers.clone();
            for one in body.period.iter().filter(|one| one.code() == anatomy.code()) {
                for (operand, value) in &operands {
                    if one.op_kind(*operand) == OpKind::Memory {
                        let at = machine.address(one);
                        let words = anatomy.memory_bytes.div_ceil(8) as i64;
                        assert!(at >= MEMORY_SHIFT && (0..words).all(|word| machine.word(at + 8 * word) == *value));
                    } else {
                        let register = one.op_register(*operand);
                        let words = (register.size() / 8).max(1);
                        assert_eq!(before[&register.full_register()], vec![*value; words], "{register:?}");
                    }
                }
            }
            if let Some((rax, rdx)) = dividend {
                assert_eq!((machine.get(Register::RAX), machine.get(Register::RDX)), (vec![rax], vec![rdx]));
                // The copy that restores RAX before each instance.
                let restores = body.period.iter().filter(|one| one.code() == Code::Mov_r64_rm64);
                for one in restores.filter(|one| one.op0_register() == Register::RAX) {
                    assert_eq!(before[&one.op1_register()], [rax]);
                }
            }
        }
    }

    #[test]
    fn every_instance_reads_the_loaded_values() {
        let three = [
            Code::VEX_Vdivpd_xmm_xmm_xmmm128,
            Code::VEX_Vdivps_ymm_ymm_ymmm256,
            Code::EVEX_Vdivpd_xmm_k1z_xmm_xmmm128b64,
            Code::EVEX_Vdivps_zmm_k1z_zmm_zmmm512b32_er,
            Code::EVEX_Vdivsh_xmm_k1z_xmm_xmmm16_er,
        ];
        for anatomy in three.into_iter().flat_map(anatomies) {
            check(&anatomy, &[1, 2], None);
        }
        for anatomy in anatomies(Code::Divpd_xmm_xmmm128) {
            check(&anatomy, &[0, 1], None);
        }
    }

    #[test]
    fn divisions_read_the_loaded_dividend_and_divisor() {
        for code in [Code::Div_rm8, Code::Idiv_rm16, Code::Div_rm32, Code::Idiv_rm64] {
            for anatomy in anatomies(code) {
                check(&anatomy, &[0], Some((0x1_0001, 7)));
            }
        }
    }
}
