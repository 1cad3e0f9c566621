//! Jumps: taken from instance to instance, or not taken.

use super::branch_body::{BODY_COPIES, BranchDescription, NearBranchBody, SPACINGS, describe_spacing};
use super::condition::ConditionSetup;
use crate::experiments::experiment::{ExperimentMeaning, FormExperiment};
use cyclescope_code::asm::CodeMode;
use iced_x86::{Code, Instruction, MemoryOperand, OpKind, Register};

/// Initial value of RCX if it must not be zero. No program counts it down to zero. ECX and CX are
/// positive too; CX passes zero at times.
const COUNTER_START: u32 = 1 << 30 | 1 << 14;
/// Bytes between instances of a chain: enough that branch tables don't limit it.
const CHAIN_SPACINGS: [usize; 2] = [16, 64];
/// Branches that are not taken need no table entry. Their bodies can be longer by this factor, so
/// that the loop's branch weighs less.
const NOT_TAKEN_FACTOR: usize = 4;
/// NOPs after each instance of a branch that is not taken.
const NOP_COUNTS: [usize; 4] = [0, 1, 2, 3];
/// Registers for targets.
const TARGET_REGISTERS: [Register; 12] = [
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSI,
    Register::RDI,
    Register::RBP,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
];
/// Number of targets in memory: as many as a one-byte displacement reaches.
const MEMORY_TARGETS: usize = 32;

/// Branches that are taken, each to the next one.
///
/// ```text
///     (flags)
///     jcc 1f
///     (NOPs that are never reached)
/// 1:  jcc 2f
///     …
/// ```
fn build_taken(sample: &Instruction, setup: &NearBranchSetup, copies: usize, bytes: usize) -> Option<NearBranchBody> {
    let mut body = setup.begin_body(sample)?;
    for _ in 0..copies {
        setup.each.iter().try_for_each(|instruction| body.push_instruction(*instruction))?;
        let next = body.len() + bytes.max(sample.len());
        body.push_branch(*sample, next)?;
        body.pad_to(next);
    }
    Some(body)
}

/// Branches that are not taken, with `nops` NOPs after each.
fn build_not_taken(
    sample: &Instruction,
    setup: &NearBranchSetup,
    copies: usize,
    nops: usize,
) -> Option<NearBranchBody> {
    let mut body = setup.begin_body(sample)?;
    for _ in 0..copies {
        setup.each.iter().try_for_each(|instruction| body.push_instruction(*instruction))?;
        body.push_branch(*sample, body.len() + sample.len())?;
        (0..nops).try_for_each(|_| body.push_instruction(Instruction::with(Code::Nopd)))?;
    }
    Some(body)
}

/// Code that decides whether the branch is taken.
#[derive(Default)]
struct NearBranchSetup {
    flags: ConditionSetup,
    count: Option<u32>,
    /// Instructions before each instance.
    each: Vec<Instruction>,
}

impl NearBranchSetup {
    fn for_branch(sample: &Instruction, taken: bool) -> Option<NearBranchSetup> {
        // JRCXZ is taken if RCX is zero, LOOP if it is above one.
        let zero = sample.is_jcx_short() && taken;
        let counted = sample.is_jcx_short() || sample.is_loop() || sample.is_loopcc();
        let count = counted.then_some(if zero { 0 } else { COUNTER_START });
        Some(NearBranchSetup { flags: ConditionSetup::for_branch(sample, taken)?, count, each: Vec::new() })
    }

    fn begin_body(&self, sample: &Instruction) -> Option<NearBranchBody> {
        let mut init = self.flags.init.clone();
        if let Some(count) = self.count {
            init.push(Instruction::with2(Code::Mov_r32_imm32, Register::ECX, count).ok()?);
        }
        let mut body = NearBranchBody::with_init(CodeMode::from_instruction(sample), &init)?;
        self.flags.before.iter().try_for_each(|instruction| body.push_instruction(*instruction))?;
        Some(body)
    }
}

/// All distances between branches. `name` gives the variant for each distance.
fn vary_spacing(
    sample: &Instruction,
    setup: &NearBranchSetup,
    name: impl Fn(usize) -> Option<String>,
) -> Vec<FormExperiment> {
    let mut found = Vec::new();
    for bytes in [sample.len()].into_iter().chain(SPACINGS) {
        for copies in BODY_COPIES {
            let recipe = format!("{copies} copies in a loop, {}", describe_spacing(bytes));
            let about = BranchDescription::new(recipe, name(bytes).as_deref());
            found.extend(build_taken(sample, setup, copies, bytes).map(|body| about.into_experiment(body, copies)));
        }
    }
    found
}

/// JMP to the next instance.
pub(super) fn plan_direct_jumps(sample: &Instruction) -> Vec<FormExperiment> {
    let setup = NearBranchSetup::default();
    let mut found = vary_spacing(sample, &setup, |_| None);
    found.extend(vary_spacing(sample, &setup, |bytes| Some(describe_spacing(bytes))));
    found
}

/// Branches that change no register: not taken, and as variants taken.
pub(super) fn plan_conditional_jumps(sample: &Instruction) -> Vec<FormExperiment> {
    let mut found = Vec::new();
    if let Some(setup) = NearBranchSetup::for_branch(sample, false) {
        for copies in BODY_COPIES.map(|copies| NOT_TAKEN_FACTOR * copies) {
            for nops in NOP_COUNTS {
                let after = match nops {
                    0 => String::new(),
                    1 => ", a nop after each".to_string(),
                    _ => format!(", {nops} nops after each"),
                };
                let recipe = format!("{copies} copies in a loop, not taken{after}");
                let body = build_not_taken(sample, &setup, copies, nops);
                found.extend(body.map(|body| BranchDescription::new(recipe, None).into_experiment(body, copies)));
            }
        }
    }
    if let Some(setup) = NearBranchSetup::for_branch(sample, true) {
        found.extend(vary_spacing(sample, &setup, |_| Some("taken".to_string())));
        found.extend(vary_spacing(sample, &setup, |bytes| Some(describe_spacing(bytes))));
    }
    found
}

/// LOOP, LOOPE and LOOPNE: taken, with or without restoring RCX; as a variant not taken.
pub(super) fn plan_loop_branches(sample: &Instruction) -> Vec<FormExperiment> {
    let mut found = Vec::new();
    let Some(setup) = NearBranchSetup::for_branch(sample, true) else { return found };
    found.extend(vary_spacing(sample, &setup, |_| None));
    found.extend(vary_spacing(sample, &setup, |bytes| Some(describe_spacing(bytes))));
    for copies in BODY_COPIES {
        let Ok(renewal) = Instruction::with2(Code::Mov_r32_imm32, Register::ECX, COUNTER_START) else { continue };
        let renewed =
            NearBranchSetup { each: vec![renewal], ..NearBranchSetup::for_branch(sample, true).unwrap_or_default() };
        let recipe = format!("{copies} copies in a loop, taken, rcx renewed before each");
        let body = build_taken(sample, &renewed, copies, 16);
        found.extend(
            body.map(|body| BranchDescription::new(recipe, None).mark_burdened().into_experiment(body, copies)),
        );
        let Ok(one) = Instruction::with2(Code::Mov_r32_imm32, Register::ECX, 1) else { continue };
        let Some(setup) = NearBranchSetup::for_branch(sample, false) else { continue };
        let recipe = format!("{copies} copies in a loop, not taken, rcx set to 1 before each");
        let body = build_not_taken(sample, &NearBranchSetup { each: vec![one], ..setup }, copies, 0);
        found.extend(body.map(|body| {
            BranchDescription::new(recipe, Some("not taken")).mark_burdened().into_experiment(body, copies)
        }));
    }
    found
}

/// The chain through RCX.
pub(super) fn plan_counter_chain(sample: &Instruction, from: &str, to: &str) -> Vec<FormExperiment> {
    let Some(setup) = NearBranchSetup::for_branch(sample, true) else { return Vec::new() };
    let mut found = Vec::new();
    for bytes in CHAIN_SPACINGS {
        let copies = BODY_COPIES[0];
        let Some(body) = build_taken(sample, &setup, copies, bytes) else { continue };
        let Some(turn) = build_taken(sample, &NearBranchSetup::default(), 1, 0) else { continue };
        let meaning = ExperimentMeaning::Latency {
            from: from.to_string(),
            to: to.to_string(),
            variant: None,
            links: Vec::new(),
            ports: None,
            turn: turn.period,
        };
        found.push(body.into_experiment(meaning, copies));
    }
    found
}

/// JMP through a register or memory.
pub(super) fn plan_indirect_jumps(sample: &Instruction) -> Vec<FormExperiment> {
    let mut found = Vec::new();
    let mode = CodeMode::from_instruction(sample);
    let in_memory = sample.op_kind(0) == OpKind::Memory;
    for bytes in [0].into_iter().chain(SPACINGS) {
        let apart = if bytes == 0 { "adjacent".to_string() } else { format!("every {bytes} bytes") };
        let copies = if in_memory { MEMORY_TARGETS } else { list_targets(mode).len() };
        let recipe = format!("{copies} copies in a loop, {apart}, each with a target of its own that is set once");
        let body = build_preset_targets(sample, copies, bytes);
        found.extend(body.map(|body| BranchDescription::new(recipe, None).into_experiment(body, copies)));
        // The address of code takes several instructions in 32-bit code.
        for copies in BODY_COPIES.into_iter().filter(|_| !in_memory && mode == CodeMode::Bits64) {
            let recipe = format!("{copies} copies in a loop, {apart}, a lea of the target before each");
            let body = build_computed_targets(sample, copies, bytes);
            found.extend(
                body.map(|body| BranchDescription::new(recipe, None).mark_burdened().into_experiment(body, copies)),
            );
        }
    }
    found
}

/// Code with a computed target before each jump.
///
/// ```text
///     lea rcx, [1f]
///     jmp rcx
/// 1:  lea rdx, [2f]
///     …
/// ```
fn build_computed_targets(sample: &Instruction, copies: usize, bytes: usize) -> Option<NearBranchBody> {
    let mut body = NearBranchBody::default();
    for copy in 0..copies {
        let register = TARGET_REGISTERS[copy % TARGET_REGISTERS.len()];
        let mut jump = *sample;
        jump.set_op_register(0, register);
        // The length of both is known once they are encoded.
        let mut trial = body.clone();
        trial.push_address(register, body.len())?;
        trial.push_instruction(jump)?;
        let next = trial.len().max(body.len() + bytes);
        body.push_address(register, next)?;
        body.push_instruction(jump)?;
        body.pad_to(next);
    }
    Some(body)
}

/// Targets that are set once.
///
/// ```text
///     xor eax, eax            ; before all
///     test rax, rax
///     je 3f                   ; the first time
/// 0:  jmp [r14 - 128]
/// 1:  jmp [r14 - 120]         ; the last one goes to the end
/// 3:  lea rax, [1b]
///     mov [r14 - 128], rax
///     …
///     jmp 0b
/// ```
fn build_preset_targets(sample: &Instruction, copies: usize, bytes: usize) -> Option<NearBranchBody> {
    let in_memory = sample.op_kind(0) == OpKind::Memory;
    let place = |copy: usize| MemoryOperand::with_base_displ(Register::R14, 8 * copy as i64 - 128);
    let mode = CodeMode::from_instruction(sample);
    let targets = list_targets(mode);
    let zero = Instruction::with2(Code::Xor_r32_rm32, Register::EAX, Register::EAX).ok()?;
    let mut body = NearBranchBody::with_init(mode, &[zero])?;
    body.push_instruction(Instruction::with2(Code::Test_rm64_r64, Register::RAX, Register::RAX).ok()?)?;
    let around = Instruction::with_branch(Code::Je_rel32_64, 0).ok()?;
    let back = Instruction::with_branch(Code::Jmp_rel32_64, 0).ok()?;
    let (head, test) = (body.len() + measure_jump_len(mode, around)?, body.clone());
    let mut jumps = NearBranchBody { period: vec![0; head], ..NearBranchBody::new(mode) };
    let mut nexts = Vec::new();
    for copy in 0..copies {
        let start = jumps.len();
        jumps.push_instruction(match in_memory {
            true => Instruction::with1(sample.code(), place(copy)).ok()?,
            false => Instruction::with1(sample.code(), mode.register(*targets.get(copy)?)).ok()?,
        })?;
        jumps.pad_to(start + bytes);
        nexts.push(jumps.len());
    }
    let setup = jumps.len();
    let assemble = |end: usize| {
        let mut body = test.clone();
        body.push_branch(around, setup)?;
        body.period.extend(&jumps.period[head..]);
        for (copy, next) in nexts.iter().enumerate() {
            let target = if copy + 1 == copies { end } else { *next };
            let register = if in_memory { Register::RAX } else { targets[copy] };
            body.push_address(register, target)?;
            if in_memory {
                body.push_instruction(Instruction::with2(Code::Mov_rm64_r64, place(copy), Register::RAX).ok()?)?;
            }
        }
        if !in_memory {
            body.push_address(Register::RAX, head)?;
        }
        body.push_branch(back, head)?;
        Some(body)
    };
    // Displacements to the end have four bytes in any case.
    let end = assemble(setup)?.len();
    assemble(end)
}

/// The registers for targets in a mode.
fn list_targets(mode: CodeMode) -> Vec<Register> {
    let counter = mode.register(Register::R15).full_register();
    let exists = |register: &Register| register.number() < mode.general_registers() && *register != counter;
    TARGET_REGISTERS.into_iter().filter(exists).collect()
}

fn measure_jump_len(mode: CodeMode, instruction: Instruction) -> Option<usize> {
    let mut body = NearBranchBody::new(mode);
    body.push_branch(instruction, 0)?;
    Some(body.len())
}
