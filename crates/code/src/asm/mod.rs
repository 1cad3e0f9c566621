//! Assembles Intel-syntax or AT&T-syntax text, and formats machine code as Intel-syntax text. Also
//! instruction forms and register sets.
//!
//! The instruction database is iced's. The parser is our own, so that every form in the database
//! can be written, including masks, broadcasts, rounding and encodings.
//!
//! Limits: no 16-bit mode, no macros, and no directives but those of data.

pub mod access;
mod aliases;
mod assembler;
mod att;
mod code_mode;
mod cursor;
mod data_reader;
mod emitter;
mod expression;
pub mod forms;
mod instruction_builder;
mod instruction_choice;
mod instruction_form;
mod instruction_text;
mod lexer;
mod listing;
mod mnemonic;
mod mnemonic_pattern;
mod operand;
mod operand_choice;
mod operand_slot;
mod prefix_padding;
pub mod registers;
mod snippet_data;
mod snippet_reader;
mod statement;
mod suggest;

pub use assembler::{parse_assembly, parse_for_mode, parse_with_data, parse_with_syntax};
pub(crate) use att::is_att_mnemonic;
pub use code_mode::{ALL_MODES, CodeMode};
pub(crate) use data_reader::{DataStatement, data_names, read_data};
pub(crate) use emitter::NOMINAL_CONTEXT;
pub(crate) use emitter::{Emitter, context_operand};
pub use instruction_text::format_instruction;
pub use lexer::TextPosition;
pub use listing::{Listing, parse_hex, required_features, to_hex};
pub use operand_choice::as_encoded;
pub use prefix_padding::pad_with_prefixes;
pub use snippet_data::{ALIGNMENT_MOST, DATA_BASE, DATA_BYTES_MOST, SnippetData};
pub use statement::InstructionSyntax;
pub(crate) use suggest::WHOLE_TEXT;
pub use suggest::nearest_words;

/// Whether a word in lower case is the name of an instruction.
pub(crate) fn is_mnemonic(word: &str) -> bool {
    !mnemonic::find_patterns(word, CodeMode::default()).is_empty()
}
