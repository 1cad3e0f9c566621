//! The control flow of direct branches in one stretch of code, and the register facts at each
//! offset.

use super::decode::{DecodedInstruction, LONGEST_INSTRUCTION, OffsetContents, OffsetDecoder, branch_target};
use super::instruction::{self, is_direct_branch, is_indirect_branch};
use super::reason::RefusalReason;
use super::register_facts::RegisterFacts;
use cyclescope_code::program::LoopPlan;
use iced_x86::{FlowControl, Mnemonic};

/// A stretch of code with every path through it followed.
pub(super) struct CodeFlow<'a> {
    bytes: &'a [u8],
    looped: Option<LoopPlan>,
    offsets: OffsetDecoder<'a>,
    /// The contents of the reached offsets.
    found: Vec<Option<OffsetContents>>,
    /// The register facts at each offset; the last entry is the stretch's end.
    facts: Vec<Option<RegisterFacts>>,
    open: Vec<usize>,
}

/// A refused offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefusedOffset {
    pub offset: usize,
    pub reason: RefusalReason,
}

impl<'a> CodeFlow<'a> {
    /// Follows all paths from the stretch's start; a looped one starts again after its end.
    pub(crate) fn follow_paths(bytes: &'a [u8], looped: Option<LoopPlan>, entry: RegisterFacts) -> CodeFlow<'a> {
        let mut flow = CodeFlow {
            bytes,
            looped,
            offsets: OffsetDecoder::new(bytes),
            found: vec![None; bytes.len()],
            facts: vec![None; bytes.len() + 1],
            open: Vec::new(),
        };
        flow.reach_offset(0, entry);
        while let Some(offset) = flow.open.pop() {
            flow.follow_offset(offset);
        }
        flow
    }

    fn reach_offset(&mut self, offset: usize, facts: RegisterFacts) {
        let news = match &mut self.facts[offset] {
            Some(known) => known.intersect(&facts),
            none => {
                *none = Some(facts);
                true
            }
        };
        if news {
            self.open.push(offset);
        }
    }

    fn follow_offset(&mut self, offset: usize) {
        let Some(mut facts) = self.facts[offset] else { return };
        if offset == self.bytes.len() {
            if let Some(looped) = self.looped {
                if let Some(counter) = looped.counter() {
                    facts.forget_register(counter.number());
                }
                self.reach_offset(0, facts);
            }
            return;
        }
        if self.found[offset].is_none() {
            self.found[offset] = Some(self.offsets.decode_at(offset));
        }
        let Some(OffsetContents::Instructions(instructions)) = self.found[offset].clone() else { return };
        for decoded in instructions {
            let after = facts.facts_after(&decoded);
            if is_direct_branch(&decoded.instruction) {
                // An abort restores the registers of the transaction's start.
                let aborts = decoded.instruction.mnemonic() == Mnemonic::Xbegin;
                let there = if aborts { RegisterFacts::default() } else { after };
                if let Some(target) = self.branch_target_inside(&decoded) {
                    self.reach_offset(target, there);
                }
            }
            if falls_through(&decoded) {
                self.reach_offset(offset + decoded.instruction.len(), after);
            }
        }
    }

    /// The target of a direct branch, if it is inside the stretch.
    fn branch_target_inside(&self, decoded: &DecodedInstruction) -> Option<usize> {
        usize::try_from(branch_target(&decoded.instruction)).ok().filter(|target| *target <= self.bytes.len())
    }

    /// The register facts at the stretch's end; empty if no path reaches it.
    pub(crate) fn facts_at_end(&self) -> RegisterFacts {
        self.facts[self.bytes.len()].unwrap_or_default()
    }

    /// Whether an indirect branch was reached.
    pub(crate) fn has_indirect_branch(&self) -> bool {
        self.reached_instructions().any(|(_, decoded)| is_indirect_branch(&decoded.instruction))
    }

    /// Whether every path that enters at the start leaves at the end, so that copies of the stretch
    /// run in sequence.
    pub(crate) fn is_closed(&self) -> bool {
        let cut = self.found.iter().flatten().any(|found| matches!(found, OffsetContents::Cut));
        let leaves = |decoded: &DecodedInstruction| {
            is_direct_branch(&decoded.instruction) && self.branch_target_inside(decoded).is_none()
        };
        // Near the end the decoder may have judged an incomplete instruction, whose other bytes
        // would follow.
        let near_end = self.bytes.len().saturating_sub(LONGEST_INSTRUCTION);
        let unknown = self.found[near_end..].iter().flatten().any(|found| matches!(found, OffsetContents::Unknown));
        !cut && !unknown && !self.reached_instructions().any(|(_, decoded)| leaves(decoded))
    }

    fn reached_instructions(&self) -> impl Iterator<Item = (usize, &DecodedInstruction)> {
        self.found.iter().enumerate().flat_map(|(offset, found)| {
            let instructions: &[DecodedInstruction] = match found {
                Some(OffsetContents::Instructions(instructions)) => instructions,
                _ => &[],
            };
            instructions.iter().map(move |decoded| (offset, decoded))
        })
    }

    /// The first refused offset. With `lone`, no second CPU could end an endless loop.
    pub(crate) fn find_refused_offset(&self, lone: bool) -> Option<RefusedOffset> {
        let reached = self.found.iter().zip(&self.facts).enumerate();
        reached.into_iter().find_map(|(offset, (found, facts))| {
            let reason = match found.as_ref()? {
                OffsetContents::Unknown => Some(RefusalReason::UnknownEncoding),
                OffsetContents::Cut => Some(RefusalReason::CutOff),
                OffsetContents::Instructions(instructions) => {
                    instructions.iter().find_map(|decoded| self.find_reason(decoded, &facts.unwrap_or_default(), lone))
                }
            };
            reason.map(|reason| RefusedOffset { offset, reason })
        })
    }

    fn find_reason(&self, decoded: &DecodedInstruction, facts: &RegisterFacts, lone: bool) -> Option<RefusalReason> {
        let leaves = || is_direct_branch(&decoded.instruction) && self.branch_target_inside(decoded).is_none();
        instruction::find_general_reason(&decoded.instruction, facts)
            .or_else(|| leaves().then_some(RefusalReason::BranchLeaves))
            .or_else(|| lone.then(|| instruction::find_lone_cpu_reason(decoded, self.looped)).flatten())
    }
}

/// Whether the next instruction can follow this one. Exceptions never return; a call returns only
/// by an indirect branch.
fn falls_through(decoded: &DecodedInstruction) -> bool {
    !matches!(
        decoded.instruction.flow_control(),
        FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Exception
            | FlowControl::Interrupt
    )
}
