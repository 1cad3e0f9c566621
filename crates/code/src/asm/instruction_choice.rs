//! Chooses the instruction for a statement: the shortest encoding among all patterns that fit.
//!
//! Each candidate is encoded and decoded again, and must give the same Code. The encoder alone
//! accepts combinations that no processor supports, such as `{z}` on a store.

use super::CodeMode;
use super::instruction_builder::{InstructionBuilder, LabelFixup, MismatchReason, PatternMismatch};
use super::lexer::TextPosition;
use super::mnemonic;
use super::mnemonic_pattern::{MnemonicPattern, OperandTarget};
use super::operand::{Operand, OperandValue};
use super::operand_slot::{OperandSlot, list_slots};
use super::statement::{Statement, StatementPrefix};
use super::suggest;
use cyclescope_core::error::BadSnippet;
use iced_x86::{
    Code, CpuidFeature, Decoder, DecoderOptions, Encoder, EncodingKind, Instruction, MandatoryPrefix, Mnemonic,
    OpCodeInfo, OpCodeOperandKind, OpKind, Register, RoundingControl,
};

/// Instruction of a statement.
#[derive(Debug, Clone)]
pub(super) struct ChosenInstruction {
    pub(super) instruction: Instruction,
    pub(super) fixup: LabelFixup,
    /// The same branch with a 32-bit displacement, if the first one has 8 bits.
    pub(super) far_reach: Option<Instruction>,
    pub(super) long_vex: bool,
}

struct EncodingCandidate {
    placing: InstructionBuilder,
    length: usize,
}

/// Finds the instruction, or an error at the responsible operand.
pub(super) fn choose_instruction(statement: &Statement) -> Result<ChosenInstruction, BadSnippet> {
    refuse_foreign_registers(statement)?;
    let patterns = mnemonic::find_patterns(&statement.mnemonic, statement.mode);
    if patterns.is_empty() {
        return Err(suggest::unknown_mnemonic(statement));
    }
    let mut candidates = Vec::new();
    let mut mismatches = Vec::new();
    for pattern in patterns {
        match try_pattern(pattern, statement) {
            Ok(candidate) => candidates.push(candidate),
            Err(mismatch) => mismatches.push((mismatch, pattern)),
        }
    }
    if candidates.is_empty() {
        return Err(suggest::mismatch_error(statement, patterns, &mismatches));
    }
    settle_memory_size(&mut candidates, statement.mode)?;
    Ok(pick_candidate(candidates, statement))
}

/// Fails at a register that instructions of the mode can't name.
fn refuse_foreign_registers(statement: &Statement) -> Result<(), BadSnippet> {
    for operand in &statement.operands {
        let registers = match &operand.value {
            OperandValue::Register(register) | OperandValue::Group(register, _) => [*register, Register::None],
            OperandValue::Memory(memory) => [memory.base, memory.index],
            _ => continue,
        };
        if let Some(register) = registers.into_iter().find(|register| !statement.mode.has_register(*register)) {
            let message = format!("`{register:?}` exists only in 64-bit mode").to_lowercase();
            return Err(operand.at.error_expecting(message, "write a register of 32-bit mode, or leave --bits 32 out"));
        }
    }
    Ok(())
}

fn pick_candidate(mut candidates: Vec<EncodingCandidate>, statement: &Statement) -> ChosenInstruction {
    let stack = |c: &EncodingCandidate| {
        let info = c.placing.info;
        (info.default_op_size64() || info.force_op_size64()) && info.operand_size() != 16
    };
    if candidates.iter().any(stack) {
        candidates.retain(stack);
    }
    // FMA4 has two encodings with only registers; GNU as takes the one with W set.
    let fma4 = |code: Code| code.cpuid_features().contains(&CpuidFeature::FMA4);
    let second = |c: &EncodingCandidate| fma4(c.placing.info.code()) && c.placing.info.w() == 0;
    candidates.sort_by_key(|c| (encoding_rank(c.placing.info.code()), c.length, second(c)));
    let branch =
        |c: &EncodingCandidate, bits: u32| list_slots(c.placing.info.code()).any(|s| s == OperandSlot::Branch(bits));
    let far_reach = candidates.iter().find(|c| branch(c, 32)).map(|c| c.placing.instruction);
    let first = candidates.swap_remove(0);
    ChosenInstruction {
        far_reach: far_reach.filter(|_| branch(&first, 8)),
        instruction: first.placing.instruction,
        fixup: first.placing.fixup,
        long_vex: statement.prefixes.iter().any(|(prefix, _)| *prefix == StatementPrefix::Vex3),
    }
}

/// VEX before EVEX, except for extensions that had EVEX first. GNU as does the same.
fn encoding_rank(code: Code) -> u32 {
    match code.op_code().encoding() {
        EncodingKind::EVEX => 1,
        _ if is_late_vex(code) => 2,
        _ => 0,
    }
}

/// Whether this VEX encoding was added to an instruction that already had an EVEX one.
pub(super) fn is_late_vex(code: Code) -> bool {
    let late = [CpuidFeature::AVX_VNNI, CpuidFeature::AVX_IFMA, CpuidFeature::AVX_NE_CONVERT];
    code.op_code().encoding() == EncodingKind::VEX && code.cpuid_features().iter().any(|f| late.contains(f))
}

/// Checks that a memory operand without a written size has only one possible size.
fn settle_memory_size(candidates: &mut Vec<EncodingCandidate>, mode: CodeMode) -> Result<(), BadSnippet> {
    let mut sizes: Vec<u32> = candidates.iter().filter_map(|c| Some(c.placing.unsized_memory?.0)).collect();
    let Some((_, at)) = candidates.iter().find_map(|c| c.placing.unsized_memory) else { return Ok(()) };
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 || sizes.iter().any(|size| super::operand::size_name(*size).is_none()) {
        return Ok(());
    }
    let wide = |c: &EncodingCandidate| {
        let size = c.placing.unsized_memory.map(|(size, _)| size);
        match mode {
            CodeMode::Bits64 => {
                (c.placing.info.default_op_size64() || c.placing.info.force_op_size64()) && size == Some(8)
            }
            // The stack's and the instruction pointer's width.
            CodeMode::Bits32 => {
                let mnemonic = c.placing.info.code().mnemonic();
                matches!(mnemonic, Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Jmp) && size == Some(4)
            }
        }
    };
    if candidates.iter().any(wide) {
        candidates.retain(wide);
        return Ok(());
    }
    let names: Vec<&str> = sizes.iter().filter_map(|size| super::operand::size_name(*size)).collect();
    Err(at.error_expecting(
        "the size of this memory operand is ambiguous",
        format!("write {} ptr before it", names.join(", ")),
    ))
}

fn try_pattern(pattern: &MnemonicPattern, statement: &Statement) -> Result<EncodingCandidate, PatternMismatch> {
    let (written, wanted) = (statement.operands.len(), pattern.targets.len());
    if written > wanted {
        return Err(PatternMismatch { depth: 0, why: MismatchReason::TooMany, at: statement.operands[wanted].at });
    }
    if written < wanted {
        return Err(PatternMismatch { depth: 0, why: MismatchReason::TooFew, at: statement.at });
    }
    let mut placing = InstructionBuilder::new(pattern.code, statement.mode);
    placing.displacement = statement.prefixes.iter().find_map(|(prefix, _)| match prefix {
        StatementPrefix::Disp8 => Some(1),
        StatementPrefix::Disp32 => Some(4),
        _ => None,
    });
    place_operands(pattern, statement, &mut placing)?;
    let full = |(why, at)| PatternMismatch { depth: wanted, why, at };
    apply_decorators(statement, &mut placing).map_err(full)?;
    apply_prefixes(statement, &mut placing).map_err(full)?;
    let length = verify_encoding(&placing, statement).map_err(full)?;
    Ok(EncodingCandidate { placing, length })
}

fn place_operands(
    pattern: &MnemonicPattern,
    statement: &Statement,
    placing: &mut InstructionBuilder,
) -> Result<(), PatternMismatch> {
    let slots: Vec<OperandSlot> = list_slots(pattern.code).collect();
    let mut order: Vec<(u32, usize)> = Vec::new();
    for (depth, (target, operand)) in pattern.targets.iter().zip(&statement.operands).enumerate() {
        match target {
            OperandTarget::Operand(index) => order.push((*index, depth)),
            OperandTarget::Implied(register) => {
                if !matches!(operand.value, OperandValue::Register(r) if r == *register) {
                    return Err(PatternMismatch { depth, why: MismatchReason::Kind, at: operand.at });
                }
            }
        }
    }
    for &(index, depth) in &order {
        let operand = &statement.operands[depth];
        let put = placing.put_operand(index, slots[index as usize], operand);
        put.map_err(|(why, at)| PatternMismatch { depth, why, at })?;
    }
    for (index, slot) in (0..).zip(&slots) {
        if order.iter().any(|(placed, _)| *placed == index) {
            continue;
        }
        let filled = match pattern.immediate {
            Some(value) if matches!(slot, OperandSlot::Imm(_)) => {
                placing.set_immediate(index, super::operand_slot::ImmediateEncoding::Byte, value.into());
                true
            }
            _ => placing.set_omitted_operand(index, *slot),
        };
        if !filled {
            return Err(PatternMismatch { depth: 0, why: MismatchReason::TooFew, at: statement.at });
        }
    }
    Ok(())
}

fn apply_decorators(
    statement: &Statement,
    placing: &mut InstructionBuilder,
) -> Result<(), (MismatchReason, TextPosition)> {
    for (number, operand) in statement.operands.iter().enumerate() {
        for (text, at) in &operand.decorators {
            apply_decorator(text, *at, number, Some(operand), placing)?;
        }
    }
    for (text, at) in &statement.decorators {
        apply_decorator(text, *at, usize::MAX, None, placing)?;
    }
    let instruction = &placing.instruction;
    if placing.info.require_op_mask_register() && instruction.op_mask() == Register::None {
        return Err((MismatchReason::NeedsMask, statement.operands.first().map_or(statement.at, |o| o.at)));
    }
    Ok(())
}

fn apply_decorator(
    text: &str,
    at: TextPosition,
    number: usize,
    operand: Option<&Operand>,
    placing: &mut InstructionBuilder,
) -> Result<(), (MismatchReason, TextPosition)> {
    let info = placing.info;
    let i = &mut placing.instruction;
    let in_memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    let rounding = match text {
        "rn-sae" => RoundingControl::RoundToNearest,
        "rd-sae" => RoundingControl::RoundDown,
        "ru-sae" => RoundingControl::RoundUp,
        "rz-sae" => RoundingControl::RoundTowardZero,
        _ => RoundingControl::None,
    };
    let fits = match text {
        "z" => number == 0 && info.can_use_zeroing_masking(),
        "sae" => info.can_suppress_all_exceptions() && !info.can_use_rounding_control() && !in_memory,
        _ if rounding != RoundingControl::None => info.can_use_rounding_control() && !in_memory,
        _ if text.starts_with("1to") => operand.is_some_and(|o| matches!(o.value, OperandValue::Memory(_))),
        _ => number == 0 && info.can_use_op_mask_register() && parse_mask(text).is_some(),
    };
    if !fits {
        return Err((MismatchReason::Decorator, at));
    }
    match text {
        "z" => i.set_zeroing_masking(true),
        "sae" => i.set_suppress_all_exceptions(true),
        _ if rounding != RoundingControl::None => i.set_rounding_control(rounding),
        _ => {
            if let Some(register) = parse_mask(text) {
                i.set_op_mask(register);
            }
        }
    }
    Ok(())
}

/// Parses `k1` to `k7`; k0 means "no mask".
fn parse_mask(text: &str) -> Option<Register> {
    super::registers::find_register(text).filter(|r| r.is_k() && *r != Register::K0)
}

fn apply_prefixes(
    statement: &Statement,
    placing: &mut InstructionBuilder,
) -> Result<(), (MismatchReason, TextPosition)> {
    for (prefix, at) in &statement.prefixes {
        let info = placing.info;
        let encoding = info.encoding();
        let i = &mut placing.instruction;
        let in_memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
        let fits = match prefix {
            StatementPrefix::Lock => info.can_use_lock_prefix() && i.op0_kind() == OpKind::Memory,
            StatementPrefix::Rep => {
                let returns = info.code().mnemonic() == Mnemonic::Ret;
                info.can_use_rep_prefix() || returns || has_own_rep(info)
            }
            StatementPrefix::Data(bits) => info.operand_size() == *bits,
            StatementPrefix::Addr(bits) => info.address_size() == *bits,
            StatementPrefix::Repne => info.can_use_repne_prefix(),
            StatementPrefix::Xacquire => info.can_use_xacquire_prefix() && in_memory,
            StatementPrefix::Xrelease => info.can_use_xrelease_prefix() && in_memory,
            StatementPrefix::Bnd => info.can_use_bnd_prefix(),
            StatementPrefix::Notrack => info.can_use_notrack_prefix(),
            StatementPrefix::Segment(_) => (0..i.op_count()).any(|n| {
                !matches!(
                    i.op_kind(n),
                    OpKind::Register
                        | OpKind::MemoryESRDI
                        | OpKind::MemoryESEDI
                        | OpKind::NearBranch64
                        | OpKind::NearBranch32
                ) && !is_immediate(i.op_kind(n))
            }),
            StatementPrefix::Vex | StatementPrefix::Vex3 => encoding == EncodingKind::VEX,
            StatementPrefix::Evex => encoding == EncodingKind::EVEX,
            StatementPrefix::Load | StatementPrefix::Store => load_or_store(info.code()).is_none_or(|d| d == *prefix),
            StatementPrefix::Disp8 | StatementPrefix::Disp32 => true,
        };
        if !fits {
            return Err((MismatchReason::Prefix, *at));
        }
        match prefix {
            StatementPrefix::Lock => i.set_has_lock_prefix(true),
            StatementPrefix::Rep if !has_own_rep(info) => i.set_has_rep_prefix(true),
            StatementPrefix::Repne | StatementPrefix::Bnd => i.set_has_repne_prefix(true),
            StatementPrefix::Xacquire => i.set_has_xacquire_prefix(true),
            StatementPrefix::Xrelease => i.set_has_xrelease_prefix(true),
            StatementPrefix::Notrack => i.set_segment_prefix(Register::DS),
            StatementPrefix::Segment(register) => i.set_segment_prefix(*register),
            _ => {}
        }
    }
    Ok(())
}

/// Whether `rep` is part of the opcode, as in VIA's PadLock instructions.
fn has_own_rep(info: &OpCodeInfo) -> bool {
    info.mandatory_prefix() == MandatoryPrefix::PF3 && info.op_count() == 0
}

fn is_immediate(kind: OpKind) -> bool {
    kind >= OpKind::Immediate8 && kind <= OpKind::Immediate32to64
}

/// Whether the first operand can only be a register, which makes it a load; otherwise a store.
fn load_or_store(code: Code) -> Option<StatementPrefix> {
    use OpCodeOperandKind as K;
    let info = code.op_code();
    if info.op_count() < 2 {
        return None;
    }
    let memory = |kind| {
        matches!(super::operand_slot::classify_operand(kind), OperandSlot::RegMem(_))
            || matches!(kind, K::xmm_rm | K::ymm_rm | K::zmm_rm)
    };
    match (memory(info.op0_kind()), memory(info.op_kind(info.op_count() - 1))) {
        (true, false) => Some(StatementPrefix::Store),
        (false, true) => Some(StatementPrefix::Load),
        _ => None,
    }
}

/// Encodes and decodes the instruction. Returns its length if the Code is unchanged.
fn verify_encoding(
    placing: &InstructionBuilder,
    statement: &Statement,
) -> Result<usize, (MismatchReason, TextPosition)> {
    let bits = statement.mode.bits();
    let mut encoder = Encoder::new(bits);
    encoder.set_prevent_vex2(statement.prefixes.iter().any(|(prefix, _)| *prefix == StatementPrefix::Vex3));
    if encoder.encode(&placing.instruction, 0).is_err() {
        return Err(suggest::blame_operand(statement, false));
    }
    let bytes = encoder.take_buffer();
    let decoded = Decoder::with_ip(bits, &bytes, 0, DecoderOptions::NONE).decode();
    // A decoder sees FINIT and its relatives as two instructions: WAIT and FNINIT.
    let waiting = placing.info.fwait() && decoded.code() == Code::Wait;
    if decoded.code() == placing.info.code() || waiting {
        return Ok(bytes.len());
    }
    let distinct = placing.info.requires_unique_reg_nums() || placing.info.requires_unique_dest_reg_num();
    Err(suggest::blame_operand(statement, distinct))
}
