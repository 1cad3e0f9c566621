//! Instructions as Intel-syntax text that the parser and, where it knows them, GNU as read back.

use iced_x86::{Formatter, Instruction, IntelFormatter, MemorySizeOptions};

/// One instruction as text, numbers in C's hexadecimal.
pub(super) fn text(instruction: &Instruction) -> String {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_rip_relative_addresses(true);
    options.set_space_after_operand_separator(true);
    options.set_memory_size_options(MemorySizeOptions::Always);
    options.set_show_branch_size(false);
    let mut text = String::new();
    formatter.format(instruction, &mut text);
    text
}
