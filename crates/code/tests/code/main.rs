//! Text to machine code and back, as a user of the crate sees it.

mod assembler;
mod broken_text;
mod fuzz;
mod pasted;
mod syntax;
