//! All of a program except its body, and the body that a snippet gives it.

use super::built_program::{Program, shift_displacement};
use super::{ColdStart, LoopPlan};
use crate::asm::{CodeMode, Emitter};
use cyclescope_core::unit::Unit;

/// All of a program except its body. Built once, it serves programs of one snippet in many lengths.
#[derive(Debug, Clone)]
pub struct ProgramFrame {
    pub(super) mode: CodeMode,
    pub(super) head: Vec<u8>,
    pub(super) head_relocations: Vec<u32>,
    /// Encoded as if it began at the program's first byte.
    pub(super) tail: Vec<u8>,
    pub(super) tail_relocations: Vec<u32>,
    pub(super) init: Vec<u8>,
    pub(super) looped: Option<LoopPlan>,
    pub(super) lead: usize,
    pub(super) cold: ColdStart,
    pub(super) following: Vec<u8>,
    pub(super) library: bool,
    pub(super) counts: Unit,
}

impl ProgramFrame {
    /// Builds the program with this number of copies of a snippet.
    pub fn build_program(&self, snippet: &[u8], copies: usize) -> Program {
        let start = self.head.len();
        let loop_ends = 24;
        let mut bytes = Vec::with_capacity(start + snippet.len() * copies + loop_ends + self.tail.len());
        bytes.extend(&self.head);
        if let Some(looped) = self.looped {
            let mut emitter = Emitter::starting_at(bytes.len(), self.mode);
            looped.emit_start(&mut emitter);
            bytes.extend(emitter.finish().0);
        }
        append_copies(&mut bytes, snippet, copies);
        append_nops(&mut bytes, self.cold.padding_bytes(snippet.len() * copies));
        let mut relocations = self.head_relocations.clone();
        if let Some(looped) = self.looped {
            let mut emitter = Emitter::starting_at(bytes.len(), self.mode);
            looped.emit_end(&mut emitter, start);
            let (loop_end, own_relocations) = emitter.finish();
            bytes.extend(loop_end);
            relocations.extend(own_relocations);
        }
        let body = start..bytes.len();
        bytes.extend(&self.tail);
        for offset in &self.tail_relocations {
            let offset = body.end + *offset as usize;
            if self.mode == CodeMode::Bits64 {
                shift_displacement(&mut bytes[offset..], -(body.end as i32));
            }
            relocations.push(offset as u32);
        }
        Program {
            mode: self.mode,
            bytes,
            relocations,
            body,
            init: self.init.clone(),
            snippet: snippet.to_vec(),
            copies,
            looped: self.looped,
            lead: self.lead,
            following: self.following.clone(),
            library: self.library,
            counts: self.counts,
        }
    }
}

/// Appends copies of some bytes, in a few large pieces.
fn append_copies(into: &mut Vec<u8>, piece: &[u8], copies: usize) {
    let start = into.len();
    let end = start + piece.len() * copies;
    if copies > 0 {
        into.extend(piece);
    }
    while into.len() < end {
        let more = (into.len() - start).min(end - into.len());
        into.extend_from_within(start..start + more);
    }
}

/// Appends this number of bytes of NOPs, longest first (Intel SDM vol. 2, NOP).
pub fn append_nops(into: &mut Vec<u8>, mut bytes: usize) {
    const LONGEST: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    while bytes >= LONGEST.len() {
        into.extend(LONGEST);
        bytes -= LONGEST.len();
    }
    into.extend(std::iter::repeat_n(0x90, bytes));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_appended_exactly() {
        for copies in [0, 1, 2, 3, 7, 100] {
            let mut bytes = vec![9];
            append_copies(&mut bytes, &[1, 2, 3], copies);
            assert_eq!(bytes, [vec![9], [1, 2, 3].repeat(copies)].concat());
        }
        let mut bytes = Vec::new();
        append_copies(&mut bytes, &[], 5);
        assert!(bytes.is_empty());
    }
}
