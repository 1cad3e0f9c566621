//! The control flow of direct branches in one stretch of code, and the register facts at each offset.

use super::decode::{DecodedInstruction, Found, LONGEST, Offsets, target};
use super::facts::{COUNTER, Facts};
use super::instruction::{self, is_direct, is_indirect};
use super::reason::Reason;
use iced_x86::{FlowControl, Mnemonic};

/// A stretch of code after every path through it was followed.
pub(super) struct Flow<'a> {
    bytes: &'a [u8],
    looped: bool,
    offsets: Offsets<'a>,
    /// The contents of the offsets that were reached.
    found: Vec<Option<Found>>,
    /// The register facts at each offset; the last one is the stretch's end.
    facts: Vec<Option<Facts>>,
    open: Vec<usize>,
}

/// A refused offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    pub offset: usize,
    pub reason: Reason,
}

impl<'a> Flow<'a> {
    /// Follows all paths from the stretch's start; a looped one starts again after its end.
    pub(crate) fn through(bytes: &'a [u8], looped: bool, entry: Facts) -> Flow<'a> {
        let mut flow = Flow {
            bytes,
            looped,
            offsets: Offsets::new(bytes),
            found: vec![None; bytes.len()],
            facts: vec![None; bytes.len() + 1],
            open: Vec::new(),
        };
        flow.reach(0, entry);
        while let Some(offset) = flow.open.pop() {
            flow.advance(offset);
        }
        flow
    }

    fn reach(&mut self, offset: usize, facts: Facts) {
        let news = match &mut self.facts[offset] {
            Some(known) => known.meet(&facts),
            none => {
                *none = Some(facts);
                true
            }
        };
        if news {
            self.open.push(offset);
        }
    }

    fn advance(&mut self, offset: usize) {
        let Some(mut facts) = self.facts[offset] else { return };
        if offset == self.bytes.len() {
            if self.looped {
                facts.forget(COUNTER);
                self.reach(0, facts);
            }
            return;
        }
        if self.found[offset].is_none() {
            self.found[offset] = Some(self.offsets.at(offset));
        }
        let Some(Found::Instructions(instructions)) = self.found[offset].clone() else { return };
        for decoded in instructions {
            let after = facts.after(&decoded);
            if is_direct(&decoded.instruction) {
                // Registers go back to what they were before the transaction.
                let aborts = decoded.instruction.mnemonic() == Mnemonic::Xbegin;
                let there = if aborts { Facts::default() } else { after };
                if let Some(target) = self.inside(&decoded) {
                    self.reach(target, there);
                }
            }
            if goes_on(&decoded) {
                self.reach(offset + decoded.instruction.len(), after);
            }
        }
    }

    /// Where a direct branch leads, if not out of the stretch.
    fn inside(&self, decoded: &DecodedInstruction) -> Option<usize> {
        usize::try_from(target(&decoded.instruction)).ok().filter(|target| *target <= self.bytes.len())
    }

    /// The register facts at the stretch's end; none of them where no path reaches it.
    pub(crate) fn exit(&self) -> Facts {
        self.facts[self.bytes.len()].unwrap_or_default()
    }

    /// Whether an indirect branch was reached.
    pub(crate) fn is_indirect(&self) -> bool {
        self.instructions().any(|(_, decoded)| is_indirect(&decoded.instruction))
    }

    /// Whether every path that enters at the start leaves at the end, so that copies of the stretch run one after
    /// another.
    pub(crate) fn is_closed(&self) -> bool {
        let cut = self.found.iter().flatten().any(|found| matches!(found, Found::Cut));
        let leaves =
            |decoded: &DecodedInstruction| is_direct(&decoded.instruction) && self.inside(decoded).is_none();
        // The decoder may have judged bytes that it takes for too few to be an instruction, and more would follow.
        let near_end = self.bytes.len().saturating_sub(LONGEST);
        let unknown = self.found[near_end..].iter().flatten().any(|found| matches!(found, Found::Unknown));
        !cut && !unknown && !self.instructions().any(|(_, decoded)| leaves(decoded))
    }

    fn instructions(&self) -> impl Iterator<Item = (usize, &DecodedInstruction)> {
        self.found.iter().enumerate().flat_map(|(offset, found)| {
            let instructions: &[DecodedInstruction] = match found {
                Some(Found::Instructions(instructions)) => instructions,
                _ => &[],
            };
            instructions.iter().map(move |decoded| (offset, decoded))
        })
    }

    /// The first offset that is refused. `lone`: no second CPU could end an endless loop.
    pub(crate) fn refused(&self, lone: bool) -> Option<At> {
        let reached = self.found.iter().zip(&self.facts).enumerate();
        reached.into_iter().find_map(|(offset, (found, facts))| {
            let reason = match found.as_ref()? {
                Found::Unknown => Some(Reason::UnknownEncoding),
                Found::Cut => Some(Reason::CutOff),
                Found::Instructions(instructions) => instructions
                    .iter()
                    .find_map(|decoded| self.refusal(decoded, &facts.unwrap_or_default(), lone)),
            };
            reason.map(|reason| At { offset, reason })
        })
    }

    fn refusal(&self, decoded: &DecodedInstruction, facts: &Facts, lone: bool) -> Option<Reason> {
        let leaves = || is_direct(&decoded.instruction) && self.inside(decoded).is_none();
        instruction::always(&decoded.instruction, facts)
            .or_else(|| leaves().then_some(Reason::BranchLeaves))
            .or_else(|| lone.then(|| instruction::alone(decoded, self.looped)).flatten())
    }
}

/// Whether the instruction behind it can follow. Nothing comes back from an exception; a call comes back by a
/// branch to anywhere only.
fn goes_on(decoded: &DecodedInstruction) -> bool {
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
