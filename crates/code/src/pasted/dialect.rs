//! How the instructions of a text are read: their mode and syntax. AT&T syntax shows by the `%` in
//! front of registers.

use super::text_words::strip_comment;
use crate::asm::registers::find_register;
use crate::asm::{ALL_MODES, CodeMode, InstructionSyntax, Listing, SnippetData, parse_for_mode, parse_with_data};
use cyclescope_core::error::BadSnippet;
use iced_x86::{Decoder, DecoderOptions};

/// How the instructions of a text are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CodeDialect {
    /// The mode that they are for.
    pub(super) mode: CodeMode,
    /// Their syntax, if it is known.
    pub(super) syntax: Option<InstructionSyntax>,
}

impl CodeDialect {
    /// The same mode with this syntax, if no other is known.
    pub(super) fn or_syntax(self, syntax: Option<InstructionSyntax>) -> CodeDialect {
        CodeDialect { syntax: self.syntax.or(syntax), ..self }
    }

    /// Assembles some text.
    pub(super) fn assemble(self, text: &str) -> Result<Listing, BadSnippet> {
        parse_for_mode(text, self.mode, self.syntax)
    }

    /// Assembles some text that may use the labels of this data.
    pub(super) fn assemble_with_data(self, text: &str, data: &SnippetData) -> Result<Listing, BadSnippet> {
        parse_with_data(text, self.syntax, data)
    }

    /// A decoder of bytes at an address.
    pub(super) fn decode_at(self, bytes: &[u8], address: u64) -> Decoder<'_> {
        Decoder::with_ip(self.mode.bits(), bytes, address, DecoderOptions::NONE)
    }
}

/// Bytes of a text's shortest encoding in any mode. `None` if it does not assemble.
pub(super) fn shortest_length(text: &str) -> Option<u64> {
    let assembled = ALL_MODES.into_iter().filter_map(|mode| parse_for_mode(text, mode, None).ok());
    assembled.map(|listing| listing.bytes().len() as u64).min()
}

/// Whether a text assembles in some mode.
pub(super) fn assembles_in_any_mode(text: &str) -> bool {
    ALL_MODES.into_iter().any(|mode| parse_for_mode(text, mode, None).is_ok())
}

/// Whether a text names a register after `%`, as only AT&T syntax does.
pub fn has_att_registers(text: &str) -> bool {
    text.lines().map(strip_comment).any(|line| {
        line.split('%').skip(1).any(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            find_register(&rest[..end]).is_some()
        })
    })
}

/// The syntax of these texts, if something in them shows it.
pub(super) fn recognize_syntax<'a>(mut texts: impl Iterator<Item = &'a str>) -> Option<InstructionSyntax> {
    texts.any(has_att_registers).then_some(InstructionSyntax::Att)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_after_a_percent_sign_are_att() {
        assert!(has_att_registers("nop\nmov %rdi, %rax"));
        assert!(has_att_registers("addps (%rdi){%k1}, %xmm31"));
        assert!(!has_att_registers("mov rax, 7 % 4 # %rax\n%rep 3\nnop\n%endrep"));
    }
}
