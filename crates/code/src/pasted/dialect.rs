//! Recognizes AT&T syntax by the `%` in front of registers.

use super::text_words::strip_comment;
use crate::asm::InstructionSyntax;
use crate::asm::registers::find_register;

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
