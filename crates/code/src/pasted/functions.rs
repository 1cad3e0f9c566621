//! The end of a function: its return, and what follows it.

use crate::asm::TextPosition;
use cyclescope_core::error::BadSnippet;
use iced_x86::{Code, Instruction, Mnemonic};

/// Why the last return of a function is dropped.
pub(super) const RETURN_DROPPED: &str = "a snippet has no caller; the code before it is measured";

/// What helps if a text has too many functions.
pub(super) const FEWER_FUNCTIONS: &str = "paste fewer functions, or name one with --elf FILE --call NAME";

/// Bytes of [`call_function`] before the function.
pub(super) const CALL_BYTES: usize = 10;

/// A snippet that calls a function, for one that returns in several places:
///
/// ```text
/// call function
/// jmp end
/// function:
/// …
/// end:
/// ```
pub(super) fn call_function(code: &[u8]) -> Vec<u8> {
    const JUMP_BYTES: u8 = 5;
    let call = [0xe8, JUMP_BYTES, 0, 0, 0, 0xe9];
    [&call, &(code.len() as u32).to_le_bytes()[..], code].concat()
}

/// Whether an instruction is the usual return, which takes nothing but the address off the stack.
pub(super) fn is_plain_return(instruction: &Instruction) -> bool {
    instruction.code() == Code::Retnq
}

/// Error for a return that isn't the last instruction.
pub(super) fn middle_return_error(at: TextPosition) -> BadSnippet {
    at.error_expecting(
        "the code returns here, and a snippet has no caller",
        "measure the whole function with --elf FILE --call NAME, or paste only a part without returns, such as its loop",
    )
}

/// Whether an instruction may fill the space after a function.
pub(super) fn is_padding_after_end(instruction: &Instruction) -> bool {
    let exchanges =
        instruction.mnemonic() == Mnemonic::Xchg && instruction.op0_register() == instruction.op1_register();
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3) || exchanges
}

/// Whether the text of an instruction is a return.
pub(super) fn is_return_text(text: &str) -> bool {
    let mut words = text.split_whitespace().map(str::to_ascii_lowercase);
    let word = words.find(|word| !matches!(word.as_str(), "rep" | "repz" | "repe" | "bnd" | "notrack"));
    matches!(word.as_deref(), Some("ret" | "retq" | "retn"))
}

/// Whether the text of an instruction may fill the space after a function.
pub(super) fn is_padding_text(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let exchanges = matches!(words.clone().collect::<Vec<_>>()[..], ["xchg", "%ax", "%ax"] | ["xchg", "ax", "ax"]);
    let word = words.find(|word| !matches!(*word, "cs" | "data16" | "ds" | "es"));
    exchanges || matches!(word, Some("nop" | "nopw" | "nopl" | "nopq" | "int3"))
}

/// Whether code after this instruction runs only if something jumps there.
pub(super) fn is_end_text(text: &str) -> bool {
    let word = super::text_words::first_word(text);
    is_return_text(text) || matches!(word.as_str(), "jmp" | "jmpq" | "ud2" | "hlt")
}
