//! Chooses the instruction for a statement: of all patterns that fit, the shortest encoding.
//!
//! Each candidate is encoded and decoded again, and must give the same Code: the encoder alone accepts
//! combinations that no processor does, such as `{z}` on a store.

use super::kinds::{Slot, slots};
use super::lexer::Position;
use super::mnemonic;
use super::operand::{Operand, Value};
use super::pattern::{Pattern, Target};
use super::place::{Fixup, Mismatch, Placing, Why};
use super::statement::{Prefix, Statement};
use super::suggest;
use cyclescope_core::error::BadSnippet;
use iced_x86::{
    Code, CpuidFeature, Decoder, DecoderOptions, Encoder, EncodingKind, Instruction, MandatoryPrefix,
    OpCodeInfo, OpCodeOperandKind, OpKind, Register, RoundingControl,
};

/// A statement's instruction.
#[derive(Debug, Clone)]
pub(super) struct Fit {
    pub(super) instruction: Instruction,
    pub(super) fixup: Fixup,
    /// The same branch with a 32-bit displacement, where the first one has 8 bits.
    pub(super) far_reach: Option<Instruction>,
    pub(super) long_vex: bool,
}

struct Candidate {
    placing: Placing,
    length: usize,
}

/// Finds the instruction, or the error at the operand to blame.
pub(super) fn fit(statement: &Statement) -> Result<Fit, BadSnippet> {
    let patterns = mnemonic::patterns(&statement.mnemonic);
    if patterns.is_empty() {
        return Err(suggest::unknown_mnemonic(statement));
    }
    let mut candidates = Vec::new();
    let mut mismatches = Vec::new();
    for pattern in patterns {
        match candidate(pattern, statement) {
            Ok(candidate) => candidates.push(candidate),
            Err(mismatch) => mismatches.push((mismatch, pattern)),
        }
    }
    if candidates.is_empty() {
        return Err(suggest::no_fit(statement, patterns, &mismatches));
    }
    settle_size(&mut candidates)?;
    Ok(choose(candidates, statement))
}

fn choose(mut candidates: Vec<Candidate>, statement: &Statement) -> Fit {
    let stack = |c: &Candidate| {
        let info = c.placing.info;
        (info.default_op_size64() || info.force_op_size64()) && info.operand_size() != 16
    };
    if candidates.iter().any(stack) {
        candidates.retain(stack);
    }
    // FMA4 has two encodings for registers alone; GNU as takes the one with W set.
    let fma4 = |code: Code| code.cpuid_features().contains(&CpuidFeature::FMA4);
    let second = |c: &Candidate| fma4(c.placing.info.code()) && c.placing.info.w() == 0;
    candidates.sort_by_key(|c| (encoding_rank(c.placing.info.code()), c.length, second(c)));
    let branch = |c: &Candidate, bits: u32| slots(c.placing.info.code()).any(|s| s == Slot::Branch(bits));
    let far_reach = candidates.iter().find(|c| branch(c, 32)).map(|c| c.placing.instruction);
    let first = candidates.swap_remove(0);
    Fit {
        far_reach: far_reach.filter(|_| branch(&first, 8)),
        instruction: first.placing.instruction,
        fixup: first.placing.fixup,
        long_vex: statement.prefixes.iter().any(|(prefix, _)| *prefix == Prefix::Vex3),
    }
}

/// VEX before EVEX, but for extensions that came to EVEX first: GNU as does the same.
fn encoding_rank(code: Code) -> u32 {
    match code.op_code().encoding() {
        EncodingKind::EVEX => 1,
        _ if is_late_vex(code) => 2,
        _ => 0,
    }
}

/// Whether this VEX encoding was added to an instruction that had an EVEX one.
pub(super) fn is_late_vex(code: Code) -> bool {
    let late = [CpuidFeature::AVX_VNNI, CpuidFeature::AVX_IFMA, CpuidFeature::AVX_NE_CONVERT];
    code.op_code().encoding() == EncodingKind::VEX && code.cpuid_features().iter().any(|f| late.contains(f))
}

/// A memory operand without a size must have one only.
fn settle_size(candidates: &mut Vec<Candidate>) -> Result<(), BadSnippet> {
    let mut sizes: Vec<u32> = candidates.iter().filter_map(|c| Some(c.placing.unsized_memory?.0)).collect();
    let Some((_, at)) = candidates.iter().find_map(|c| c.placing.unsized_memory) else { return Ok(()) };
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 || sizes.iter().any(|size| super::operand::size_name(*size).is_none()) {
        return Ok(());
    }
    let wide = |c: &Candidate| {
        (c.placing.info.default_op_size64() || c.placing.info.force_op_size64())
            && c.placing.unsized_memory.is_some_and(|(size, _)| size == 8)
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

fn candidate(pattern: &Pattern, statement: &Statement) -> Result<Candidate, Mismatch> {
    let (written, wanted) = (statement.operands.len(), pattern.targets.len());
    if written > wanted {
        return Err(Mismatch { depth: 0, why: Why::TooMany, at: statement.operands[wanted].at });
    }
    if written < wanted {
        return Err(Mismatch { depth: 0, why: Why::TooFew, at: statement.at });
    }
    let mut placing = Placing::new(pattern.code);
    placing.displacement = statement.prefixes.iter().find_map(|(prefix, _)| match prefix {
        Prefix::Disp8 => Some(1),
        Prefix::Disp32 => Some(4),
        _ => None,
    });
    operands(pattern, statement, &mut placing)?;
    let full = |(why, at)| Mismatch { depth: wanted, why, at };
    decorate(statement, &mut placing).map_err(full)?;
    prefixes(statement, &mut placing).map_err(full)?;
    let length = verify(&placing, statement).map_err(full)?;
    Ok(Candidate { placing, length })
}

fn operands(pattern: &Pattern, statement: &Statement, placing: &mut Placing) -> Result<(), Mismatch> {
    let slots: Vec<Slot> = slots(pattern.code).collect();
    let mut order: Vec<(u32, usize)> = Vec::new();
    for (depth, (target, operand)) in pattern.targets.iter().zip(&statement.operands).enumerate() {
        match target {
            Target::Operand(index) => order.push((*index, depth)),
            Target::Implied(register) => {
                if !matches!(operand.value, Value::Register(r) if r == *register) {
                    return Err(Mismatch { depth, why: Why::Kind, at: operand.at });
                }
            }
        }
    }
    for &(index, depth) in &order {
        let operand = &statement.operands[depth];
        let put = placing.put(index, slots[index as usize], operand);
        put.map_err(|(why, at)| Mismatch { depth, why, at })?;
    }
    for (index, slot) in (0..).zip(&slots) {
        if order.iter().any(|(placed, _)| *placed == index) {
            continue;
        }
        let filled = match pattern.immediate {
            Some(value) if matches!(slot, Slot::Imm(_)) => {
                placing.immediate(index, super::kinds::Imm::Byte, value.into());
                true
            }
            _ => placing.default(index, *slot),
        };
        if !filled {
            return Err(Mismatch { depth: 0, why: Why::TooFew, at: statement.at });
        }
    }
    Ok(())
}

fn decorate(statement: &Statement, placing: &mut Placing) -> Result<(), (Why, Position)> {
    for (number, operand) in statement.operands.iter().enumerate() {
        for (text, at) in &operand.decorators {
            decorator(text, *at, number, Some(operand), placing)?;
        }
    }
    for (text, at) in &statement.decorators {
        decorator(text, *at, usize::MAX, None, placing)?;
    }
    let instruction = &placing.instruction;
    if placing.info.require_op_mask_register() && instruction.op_mask() == Register::None {
        return Err((Why::NeedsMask, statement.operands.first().map_or(statement.at, |o| o.at)));
    }
    Ok(())
}

fn decorator(
    text: &str,
    at: Position,
    number: usize,
    operand: Option<&Operand>,
    placing: &mut Placing,
) -> Result<(), (Why, Position)> {
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
        _ if text.starts_with("1to") => operand.is_some_and(|o| matches!(o.value, Value::Memory(_))),
        _ => number == 0 && info.can_use_op_mask_register() && mask(text).is_some(),
    };
    if !fits {
        return Err((Why::Decorator, at));
    }
    match text {
        "z" => i.set_zeroing_masking(true),
        "sae" => i.set_suppress_all_exceptions(true),
        _ if rounding != RoundingControl::None => i.set_rounding_control(rounding),
        _ => {
            if let Some(register) = mask(text) {
                i.set_op_mask(register);
            }
        }
    }
    Ok(())
}

/// `k1` to `k7`: k0 means "no mask".
fn mask(text: &str) -> Option<Register> {
    super::registers::named(text).filter(|r| r.is_k() && *r != Register::K0)
}

fn prefixes(statement: &Statement, placing: &mut Placing) -> Result<(), (Why, Position)> {
    for (prefix, at) in &statement.prefixes {
        let info = placing.info;
        let encoding = info.encoding();
        let i = &mut placing.instruction;
        let in_memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
        let fits = match prefix {
            Prefix::Lock => info.can_use_lock_prefix() && i.op0_kind() == OpKind::Memory,
            Prefix::Rep => {
                let returns = matches!(info.code(), Code::Retnq | Code::Retnq_imm16);
                info.can_use_rep_prefix() || returns || has_own_rep(info)
            }
            Prefix::Data(bits) => info.operand_size() == *bits,
            Prefix::Addr32 => info.address_size() == 32,
            Prefix::Repne => info.can_use_repne_prefix(),
            Prefix::Xacquire => info.can_use_xacquire_prefix() && in_memory,
            Prefix::Xrelease => info.can_use_xrelease_prefix() && in_memory,
            Prefix::Bnd => info.can_use_bnd_prefix(),
            Prefix::Notrack => info.can_use_notrack_prefix(),
            Prefix::Segment(_) => (0..i.op_count()).any(|n| {
                !matches!(i.op_kind(n), OpKind::Register | OpKind::MemoryESRDI | OpKind::NearBranch64)
                    && !is_immediate(i.op_kind(n))
            }),
            Prefix::Vex | Prefix::Vex3 => encoding == EncodingKind::VEX,
            Prefix::Evex => encoding == EncodingKind::EVEX,
            Prefix::Load | Prefix::Store => direction(info.code()).is_none_or(|d| d == *prefix),
            Prefix::Disp8 | Prefix::Disp32 => true,
        };
        if !fits {
            return Err((Why::Prefix, *at));
        }
        match prefix {
            Prefix::Lock => i.set_has_lock_prefix(true),
            Prefix::Rep if !has_own_rep(info) => i.set_has_rep_prefix(true),
            Prefix::Repne | Prefix::Bnd => i.set_has_repne_prefix(true),
            Prefix::Xacquire => i.set_has_xacquire_prefix(true),
            Prefix::Xrelease => i.set_has_xrelease_prefix(true),
            Prefix::Notrack => i.set_segment_prefix(Register::DS),
            Prefix::Segment(register) => i.set_segment_prefix(*register),
            _ => {}
        }
    }
    Ok(())
}

/// Whether `rep` is part of the opcode, as in the instructions of VIA's PadLock.
fn has_own_rep(info: &OpCodeInfo) -> bool {
    info.mandatory_prefix() == MandatoryPrefix::PF3 && info.op_count() == 0
}

fn is_immediate(kind: OpKind) -> bool {
    kind >= OpKind::Immediate8 && kind <= OpKind::Immediate32to64
}

/// Whether the first operand is the one that can only be a register (a load) or not.
fn direction(code: Code) -> Option<Prefix> {
    use OpCodeOperandKind as K;
    let info = code.op_code();
    if info.op_count() < 2 {
        return None;
    }
    let memory = |kind| {
        matches!(super::kinds::slot(kind), Slot::RegMem(_))
            || matches!(kind, K::xmm_rm | K::ymm_rm | K::zmm_rm)
    };
    match (memory(info.op0_kind()), memory(info.op_kind(info.op_count() - 1))) {
        (true, false) => Some(Prefix::Store),
        (false, true) => Some(Prefix::Load),
        _ => None,
    }
}

/// Encodes and decodes; the length if the same Code comes back.
fn verify(placing: &Placing, statement: &Statement) -> Result<usize, (Why, Position)> {
    let mut encoder = Encoder::new(64);
    encoder.set_prevent_vex2(statement.prefixes.iter().any(|(prefix, _)| *prefix == Prefix::Vex3));
    if encoder.encode(&placing.instruction, 0).is_err() {
        return Err(suggest::blame(statement, false));
    }
    let bytes = encoder.take_buffer();
    let decoded = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).decode();
    // FINIT and the like are two instructions to a decoder: WAIT and FNINIT.
    let waiting = placing.info.fwait() && decoded.code() == Code::Wait;
    if decoded.code() == placing.info.code() || waiting {
        return Ok(bytes.len());
    }
    let distinct = placing.info.requires_unique_reg_nums() || placing.info.requires_unique_dest_reg_num();
    Err(suggest::blame(statement, distinct))
}
