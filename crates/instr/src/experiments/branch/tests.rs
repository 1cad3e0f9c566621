//! Interprets the periods: checks the executed instances and the end.

use super::condition::{condition_holds, flags_after_compare};
use super::*;
use crate::experiments::experiment::ExperimentMeaning;
use cyclescope_code::asm::forms;
use iced_x86::{ConditionCode, Decoder, DecoderOptions, Mnemonic, OpKind, RflagsBits};
use std::collections::HashMap;

fn branches() -> Vec<FormAnatomy> {
    let near = |anatomy: &FormAnatomy| classify_branch(&anatomy.sample).is_some();
    forms::all_forms().filter_map(FormAnatomy::from_form).filter(near).collect()
}

/// A simulated core that knows the instructions of these programs.
#[derive(Default)]
struct Core {
    registers: HashMap<Register, u64>,
    memory: HashMap<u64, u64>,
    stack: Vec<u64>,
    flags: u32,
}

impl Core {
    fn get(&self, register: Register) -> u64 {
        *self.registers.get(&register.full_register()).expect("the register was set up")
    }

    fn source(&self, instruction: &Instruction, operand: u32) -> u64 {
        match instruction.op_kind(operand) {
            OpKind::Register => self.get(instruction.op_register(operand)),
            OpKind::Immediate32 => u64::from(instruction.immediate32()),
            OpKind::Memory => self.memory[&instruction.memory_displacement64()],
            _ => instruction.near_branch_target(),
        }
    }

    fn holds(&self, instruction: &Instruction) -> bool {
        let condition = instruction.condition_code();
        condition == ConditionCode::None || condition_holds(condition, self.flags)
    }

    /// Executes one instruction. Returns the address of the next.
    fn step(&mut self, one: &Instruction) -> u64 {
        let full = one.op0_register().full_register();
        match one.mnemonic() {
            Mnemonic::Nop => {}
            Mnemonic::Xor => drop(self.registers.insert(full, 0)),
            Mnemonic::Lea => drop(self.registers.insert(full, one.ip_rel_memory_address())),
            Mnemonic::Mov if one.op0_kind() == OpKind::Memory => {
                self.memory.insert(one.memory_displacement64(), self.source(one, 1));
            }
            Mnemonic::Mov => drop(self.registers.insert(full, self.source(one, 1))),
            Mnemonic::Cmp => self.flags = flags_after_compare(self.source(one, 0) as u32, self.source(one, 1) as u32),
            Mnemonic::Test => self.flags = if self.source(one, 0) == 0 { RflagsBits::ZF } else { 0 },
            Mnemonic::Jmp => return self.source(one, 0),
            Mnemonic::Call => {
                self.stack.push(one.next_ip());
                return self.source(one, 0);
            }
            Mnemonic::Ret => {
                assert!(one.op_count() == 0 || one.immediate16() == 0);
                return self.stack.pop().expect("a return follows its call");
            }
            Mnemonic::Jrcxz | Mnemonic::Jecxz if self.get(Register::RCX) == 0 => {
                return one.near_branch_target();
            }
            Mnemonic::Jrcxz | Mnemonic::Jecxz => {}
            Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne => {
                let left = self.get(Register::RCX) - 1;
                self.registers.insert(Register::RCX, left);
                if left != 0 && self.holds(one) {
                    return one.near_branch_target();
                }
            }
            _ if one.is_jcc_short_or_near() && self.holds(one) => return one.near_branch_target(),
            _ if one.is_jcc_short_or_near() => {}
            other => panic!("{other:?} is not known"),
        }
        one.next_ip()
    }

    /// Runs a period to its end. Returns the numbers of executed and of taken instances.
    fn run(&mut self, code: &[u8], form: Code) -> (usize, usize) {
        let (mut at, mut instances, mut jumped, mut steps) = (0, 0, 0, 0);
        while at != code.len() as u64 {
            let one = Decoder::with_ip(64, &code[at as usize..], at, DecoderOptions::NONE).decode();
            assert!(!one.is_invalid() && steps < 10_000);
            let next = self.step(&one);
            instances += usize::from(one.code() == form);
            // An adjacent target is the next instruction, so a taken branch to it is not counted.
            jumped += usize::from(one.code() == form && next != one.next_ip());
            (at, steps) = (next, steps + 1);
        }
        assert!(self.stack.is_empty());
        (instances, jumped)
    }
}

#[test]
fn every_near_branch_has_experiments_with_a_headline() {
    let all = branches();
    // Jcc, LOOP, JRCXZ, and JMP, CALL and RET with two to four forms each.
    assert_eq!(all.len(), 32 + 6 + 2 + 4 + 3 + 2);
    for anatomy in all {
        let found = plan_branch(&anatomy).unwrap();
        let headline =
            |one: &FormExperiment| matches!(one.meaning, ExperimentMeaning::Throughput { variant: None, .. });
        assert!(headline(&found[0]), "{:?}", anatomy.form);
        assert!(found.len() >= 5, "{:?}: {}", anatomy.form, found.len());
    }
}

#[test]
fn periods_execute_the_stated_number_of_instances() {
    for anatomy in branches() {
        for one in plan_branch(&anatomy).unwrap() {
            assert_eq!((one.count_repeats(usize::MAX), one.count_repeats(8)), (1, 1), "{:?}", anatomy.form);
            let mut core = Core::default();
            core.run(&one.init, anatomy.code());
            for iteration in 0..2 {
                let (instances, _) = core.run(&one.period, anatomy.code());
                assert_eq!(instances, one.copies, "{:?}, iteration {iteration}", anatomy.form);
            }
        }
    }
}

#[test]
fn variants_named_taken_are_taken() {
    for anatomy in
        branches().iter().filter(|anatomy| classify_branch(&anatomy.sample) == Some(NearBranchKind::Conditional))
    {
        for one in plan_branch(anatomy).unwrap() {
            let ExperimentMeaning::Throughput { variant, .. } = &one.meaning else { continue };
            let mut core = Core::default();
            core.run(&one.init, anatomy.code());
            let (instances, jumped) = core.run(&one.period, anatomy.code());
            match variant.as_deref() {
                None => assert_eq!(jumped, 0, "{:?}", anatomy.form),
                Some("taken, every 64 bytes") => assert_eq!(jumped, instances, "{:?}", anatomy.form),
                Some(_) => {}
            }
        }
    }
}
