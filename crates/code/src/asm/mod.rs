//! Intel-syntax or AT&T-syntax text to machine code, machine code to Intel-syntax text, instruction forms and register
//! sets.
//!
//! The instruction database is iced's; the parser is our own, because every form that the database knows has
//! to be writable: masks, broadcasts, rounding and encodings included. Its limits: 64-bit mode only, no
//! macros and no directives.

pub mod access;
mod aliases;
mod att;
mod choice;
mod cursor;
mod emitter;
mod expression;
mod fit;
mod form;
pub mod forms;
mod kinds;
mod layout;
mod lexer;
mod listing;
mod mnemonic;
mod operand;
mod pattern;
mod place;
mod reader;
pub mod registers;
mod statement;
mod suggest;
mod text;

pub use choice::legal;
pub(crate) use emitter::Emitter;
pub(crate) use emitter::NOMINAL_CONTEXT;
pub use layout::{parse, parse_as};
pub use lexer::Position;
pub use listing::{Listing, features, hex, to_hex};
pub use statement::Syntax;
pub use suggest::nearest;
pub use text::text;
